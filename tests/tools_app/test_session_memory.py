"""Notes of one conversation: versions, refusal of a stale one, and that rests and summaries leave them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.agentconfig import Limits
from harness.content import text_of
from harness.events import AgentThreadContextCompacted, SessionMemoryWritten
from harness.history import History
from harness.messages import Usage
from harness.tools import Outcome, ToolContext, perform
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said
from tools_app.builtin.sessionmemory import MOST, TOOLS
from tools_app.catalogue import find


def noted(part: str, *texts: str, untrusted_by: str = "") -> tuple[SessionMemoryWritten, ...]:
    return tuple(
        SessionMemoryWritten(part=part, version=number, text=text, untrusted_by=untrusted_by)
        for number, text in enumerate(texts, 1)
    )


async def on(
    memory: Mapping[str, tuple[SessionMemoryWritten, ...]],
    name: str,
    *,
    tainted_by: str = "",
    **arguments: Any,
) -> Outcome:
    tool = find(f"session_memory_{name}")
    assert tool is not None
    context = ToolContext("e1", Path("/nonexistent"), memory=memory, tainted_by=tainted_by)
    return await perform(tool, context, arguments)


def written(outcome: Outcome) -> tuple[int, str]:
    (event,) = outcome.events
    assert isinstance(event, SessionMemoryWritten)
    return event.version, event.text


async def test_each_write_makes_a_version_and_older_ones_stay_readable():
    first = await on({}, "write", part="state", content="Goal.", mode="replace")
    assert written(first) == (1, "Goal.")
    memory = {"state": noted("state", "Goal.", "Goal.\nHalf.")}
    more = await on(memory, "write", part="state", content="Done.", mode="append")
    assert written(more) == (3, "Goal.\nHalf.\nDone.")
    old = await on(memory, "read", part="state", version=1)
    assert text_of(old.content) == "state, version 1 of 2:\nGoal."
    both = text_of((await on(memory, "read")).content)
    assert "state, version 2:\nGoal.\nHalf." in both
    assert "buffer: nothing was written yet (version 0)." in both
    assert (await on(memory, "read", part="state", version=3)).is_error


@pytest.mark.parametrize("expected", [None, 0, 1, 3])
async def test_a_stale_expected_version_is_refused_and_what_is_there_is_shown(expected):
    memory = {"buffer": noted("buffer", "a", "b")}
    given = {} if expected is None else {"expected_version": expected}
    outcome = await on(memory, "write", part="buffer", content="c", mode="replace", **given)
    assert outcome.is_error
    assert outcome.events == ()
    assert "buffer, version 2:\nb" in text_of(outcome.content)
    right = await on(
        memory, "write", part="buffer", content="c", mode="replace", expected_version=2
    )
    assert written(right) == (3, "c")


@pytest.mark.parametrize("part", list(MOST))
async def test_a_part_holds_what_it_may_and_not_one_character_more(part):
    full = "x" * MOST[part]
    assert written(await on({}, "write", part=part, content=full, mode="replace"))[0] == 1
    memory = {part: noted(part, full)}
    over = await on(memory, "write", part=part, content="", mode="append")
    assert not over.is_error
    assert (await on(memory, "write", part=part, content="y", mode="append")).is_error


async def test_what_was_written_after_strangers_words_is_marked_where_it_is_read_again():
    heard = await on({}, "write", tainted_by="a page", part="state", content="x", mode="replace")
    (event,) = heard.events
    assert isinstance(event, SessionMemoryWritten)
    assert event.untrusted_by == "a page"
    memory = {"state": (*noted("state", "Goal."), event), "buffer": noted("buffer", "Mine.")}
    for arguments in ({}, {"part": "state"}, {"part": "state", "version": 2}):
        outcome = await on(memory, "read", **arguments)
        assert (outcome.untrusted, outcome.untrusted_by) == (True, "a page")
    for arguments in ({"part": "buffer"}, {"part": "state", "version": 1}):
        assert not (await on(memory, "read", **arguments)).untrusted
    for name, arguments in (
        ("write", {"part": "state", "content": "y", "mode": "replace"}),
        ("write", {"part": "state", "content": "y", "mode": "replace", "expected_version": 7}),
        ("read", {"part": "state", "version": 7}),
    ):
        refused = await on(memory, name, **arguments)
        assert refused.is_error
        assert refused.untrusted_by == "a page", "it shows what is there"
    (more,) = (await on(memory, "write", part="state", content="y", mode="append")).events
    (anew,) = (
        await on(memory, "write", part="state", content="y", mode="replace", expected_version=2)
    ).events
    assert (more.untrusted_by, anew.untrusted_by) == ("a page", "")


async def test_of_two_writes_in_one_step_the_second_builds_on_the_first():
    write = {"part": "buffer", "mode": "append"}
    bench = Bench(
        Scripted(
            [
                reply(
                    call("session_memory_write", content="one", **write),
                    call("session_memory_write", content="two", expected_version=1, **write),
                    call("session_memory_write", content="three", expected_version=1, **write),
                ),
                "Done.",
            ]
        ),
        TOOLS,
    )
    await bench.run(said("Note it."))
    kept = History(bench.journal.entries).memory
    assert kept == {"buffer": noted("buffer", "one", "one\ntwo")}


async def test_notes_outlive_rests_processes_and_every_summary():
    looks = iter(
        reply(call("look", text="z" * 2_000), usage=Usage(1_500 * (n % 8), 10)) for n in range(30)
    )
    first = iter(
        [
            reply(call("session_memory_write", part="state", content="Goal: tea.", mode="replace")),
            "Noted.",
        ]
    )

    def answer(request):
        if request.purpose == "compaction":
            return reply("Summed up.")
        return next(first, None) or next(looks, reply("Done."))

    bench = Bench(
        Scripted(answer),
        [make_tool("look"), *TOOLS],
        limits=Limits(context_window=10_000, output_tokens=1_000, token_budget=10**9),
    )
    await bench.run(said("Note it."))
    await bench.run(said("Now look around."))
    assert len(bench.events(AgentThreadContextCompacted)) >= 2
    opening = str(bench.requests[-1].messages[0].parts)
    assert "session state" in opening
    assert "(version 1)\\nGoal: tea." in opening
    assert History(bench.journal.entries).memory == {"state": noted("state", "Goal: tea.")}
