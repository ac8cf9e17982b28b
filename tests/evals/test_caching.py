"""The cache tells apart all that could change a reply, and loses nothing under many writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from evals.caching import Place, find_reply, keep_reply, key_of, prune
from evals.models import CachedReply
from harness.content import Text
from harness.messages import (
    CompactionDone,
    Message,
    ModelRequest,
    ModelSettings,
    Piece,
    ReplyDone,
    ServiceEdits,
    TextDone,
    ThinkingDone,
    ToolAnswer,
    ToolCall,
    ToolCallDone,
    ToolSpec,
    Usage,
)

WRITERS = 20


def request(call: str = "sevt_1", **given) -> ModelRequest:
    messages = (
        Message("user", (Text(text="Hello"),)),
        Message("assistant", (ToolCall(call, "look", {"at": "x"}),)),
        Message("user", (ToolAnswer(call, (Text(text=f"see {call}.txt"),)),)),
    )
    defaults = {"model": "m", "system": "Be kind.", "messages": messages}
    return ModelRequest(**{**defaults, **given})


PLACE = Place(organisation_id=1, service="", sample="try 1", own_ids=("sesn_1",))


def test_ids_that_a_run_makes_up_change_nothing():
    first = key_of(request("sevt_1", system="in sesn_1"), "demo", PLACE)
    again = replace(PLACE, own_ids=("sesn_2",))

    assert key_of(request("sevt_2", system="in sesn_2"), "demo", again) == first


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "n"},
        {"system": "Be short."},
        {"messages": (Message("user", (Text(text="Hello!"),)),)},
        {"tools": (ToolSpec("look", "Looks.", {"type": "object"}),)},
        {"tool_choice": "none"},
        {"max_output_tokens": 5},
        {"settings": ModelSettings(temperature=0.5)},
        {"purpose": "compaction"},
        {"edits": ServiceEdits(compact_at=140_000)},
    ],
)
def test_whatever_could_change_the_reply_is_another_key(changed):
    assert key_of(request(**changed), "demo", PLACE) != key_of(request(), "demo", PLACE)


def test_a_tool_that_the_model_was_trained_on_is_another_one():
    plain = ToolSpec("look", "Looks.", {"type": "object"})
    trained = replace(plain, trained="look_20250818")

    keys = {key_of(request(tools=(each,)), "demo", PLACE) for each in (plain, trained)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "other", [{"organisation_id": 2}, {"service": "http://x"}, {"sample": "try 2"}]
)
def test_another_tenant_service_or_try_is_another_key(other):
    assert key_of(request(), "demo", replace(PLACE, **other)) != key_of(request(), "demo", PLACE)


REPLY: list[Piece] = [
    CompactionDone("They met.", {"type": "compaction", "content": "They met."}),
    ThinkingDone(0, "Hm", "signed"),
    TextDone(1, "Hello"),
    ToolCallDone(2, "look", {"at": "ü"}),
    ReplyDone("tool_use", Usage(3, 4, 5, 6), raw_end="tool_use", compaction=Usage(2, 1)),
]


@pytest.mark.django_db
def test_a_reply_comes_back_as_it_was_until_it_expires(acme):
    place = replace(PLACE, organisation_id=acme.pk)
    keep_reply("k", request(), "demo", place, list(REPLY))
    assert find_reply("k") == REPLY

    CachedReply.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert find_reply("k") is None
    keep_reply("k", request(), "demo", place, [TextDone(0, "New"), REPLY[-1]])
    assert find_reply("k") == [TextDone(0, "New"), REPLY[-1]]

    CachedReply.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    prune()
    assert not CachedReply.objects.exists()


@contextmanager
def closing() -> Iterator[None]:
    try:
        yield
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_twenty_writers_on_one_cache_lose_nothing(acme):
    place = replace(PLACE, organisation_id=acme.pk)
    start = threading.Barrier(WRITERS)
    problems: list[Exception] = []

    def write(number: int) -> None:
        with closing():
            start.wait()
            try:
                for own in range(5):
                    for key in (f"own-{number}-{own}", f"shared-{own}"):
                        reply: list[Piece] = [TextDone(0, f"{number}"), REPLY[-1]]
                        keep_reply(key, request(), "demo", place, reply)
                        assert find_reply(key) is not None
            except Exception as problem:
                problems.append(problem)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    assert problems == []
    assert connection.vendor in {"sqlite", "postgresql"}
    assert CachedReply.objects.count() == WRITERS * 5 + 5
    for number in range(WRITERS):
        assert find_reply(f"own-{number}-4") == [TextDone(0, f"{number}"), REPLY[-1]]
