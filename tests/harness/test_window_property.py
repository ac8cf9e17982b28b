"""Whatever is said, shown, asked and brought, by tools and by workers, whenever older messages are summarised
or dropped, and wherever somebody goes back to: each request fits its window, is one that services accept,
holds the last question and what was pinned whole, and begins as the one before.

More examples: WINDOW_EXAMPLES.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.agentconfig import Limits
from harness.branches import on_path
from harness.content import Base64Source, Image, Text
from harness.contextplan import reserve_of
from harness.errors import BadRequest
from harness.events import (
    AgentThreadContextCompacted,
    CallHandedOut,
    CompactionRequested,
    InputTaken,
    MessagePinned,
    Rewound,
    SessionStatusIdle,
    SpanModelRequestStart,
    UserMessage,
    UserToolResult,
)
from harness.history import Entry
from harness.messages import ModelRequest, Part, Usage
from harness.tools import Effect, ToolOutput
from providers.anthropic_request import request_body
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool
from tests.harness.test_transcript import assert_acceptable
from tests.standins.anthropic_rules import check_request
from tools_app.builtin.rereading import TOOLS as REREADING

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", "25"))
IMAGE_TOKENS = 1_600
"""What the service charges for one."""
RESULTS = (10, 300, 4_000, 30_000)

step = st.tuples(
    st.integers(0, 1_500),
    st.lists(
        st.one_of(
            st.sampled_from(RESULTS).map(lambda size: ("look", size)),
            st.sampled_from(RESULTS).map(lambda size: ("shell", size)),
            st.just(("picture", 1)),
        ),
        min_size=1,
        max_size=3,
    ),
)
"""Characters that the agent says, and what it calls: a tool, a worker, and what brings an image."""
turn = st.tuples(
    st.integers(1, 4_000),
    st.booleans(),
    st.lists(step, max_size=8),
    st.sampled_from(["", "", "compact", "pin", "rewind"]),
    st.integers(0, 5),
)
"""Characters of the question, whether an image comes with it, steps, what somebody does behind it, and with
which of the turns."""


def image(number: int) -> Image:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + str(number).encode()).decode()
    return Image(source=Base64Source(media_type="image/png", data=data))


def _count(request: ModelRequest, bytes_per_token: float) -> int:
    """As a service counts."""
    text = str(request_body(request, provider="anthropic", caching=False))
    return int(len(text) / bytes_per_token) + IMAGE_TOKENS * text.count("'type': 'image'")


class Service:
    """Answers by a plan of turns, fails to summarise when it is told to, refuses nothing."""

    def __init__(self, turns: Any, bytes_per_token: float, fails: Any) -> None:
        self.bytes_per_token = bytes_per_token
        self.replies = itertools.chain.from_iterable(self._turn(each[2]) for each in turns)
        self.fails = itertools.cycle(fails)

    def _turn(self, steps: Any) -> Any:
        for words, calls in steps:
            yield "w" * words, [call(name, text=str(size)) for name, size in calls]
        yield "That is all.", []

    def __call__(self, request: ModelRequest) -> Any:
        usage = Usage(input_tokens=_count(request, self.bytes_per_token), output_tokens=50)
        if request.purpose == "compaction":
            return BadRequest("No.") if next(self.fails) else reply("In short. " * 50, usage=usage)
        words, calls = next(self.replies)
        return reply(*([words] if words else []), *calls, usage=usage)


class Talk:
    """A conversation, and what people do in it."""

    def __init__(self, provider: Scripted, limits: Limits) -> None:
        images = itertools.count(1_000)
        look = make_tool("look", lambda _context, given: "r" * int(given["text"]))
        picture = make_tool("picture", lambda *_given: ToolOutput((image(next(images)),)))
        shell = make_tool(
            "shell", effect=Effect.WORKSPACE, handed_out=lambda given: ("sh", dict(given))
        )
        self.bench = Bench(provider, [look, picture, shell, *REREADING], limits=limits)
        self.asked: list[str] = []
        """The ids of its questions."""
        self.ends: list[int] = [0]
        """Where its turns end."""

    @property
    def entries(self) -> list[Entry]:
        return self.bench.journal.entries

    def ask(self, characters: int, *, with_image: bool) -> None:
        number = len(self.asked)
        text = Text(text=f"Question {number}: " + "q" * characters)
        message = UserMessage(content=(text, image(number)) if with_image else (text,))
        self._run(message)
        self.asked.append(next(e.uid for e in self.entries if e.event == message))
        while waiting := self._with_workers():
            self._run(*waiting)
        self.ends.append(len(self.entries))

    def _with_workers(self) -> list[UserToolResult]:
        answered = {
            entry.event.tool_use_id
            for entry in self.entries
            if isinstance(entry.event, UserToolResult)
        }
        return [
            UserToolResult(
                tool_use_id=event.tool_use_id,
                content=(Text(text="s" * int(event.input["text"])),),
            )
            for event in self.bench.events(CallHandedOut)
            if event.tool_use_id not in answered
        ]

    def act(self, what: str, number: int) -> None:
        match what:
            case "compact":
                self._run(CompactionRequested(focus="the rest"))
            case "pin":
                uid = self.asked[number % len(self.asked)]
                self.bench.journal.post(MessagePinned(event_id=uid))
            case "rewind":
                behind = self.ends[number % len(self.ends)]
                self.bench.journal.post(Rewound(behind=behind))

    def _run(self, *posted: Any) -> None:
        asyncio.run(self.bench.run(*posted))


AN_IMAGE_GOES = [
    (
        467,
        True,
        [
            (0, [("picture", 1)]),
            (1_220, [("shell", 30_000), ("shell", 30_000), ("picture", 1)]),
            (139, [("shell", 30_000)] * 3),
        ],
        "",
        0,
    )
]
"""Of which far less is counted than was estimated, and dense text takes its place."""


@settings(max_examples=EXAMPLES, deadline=None)
@example(AN_IMAGE_GOES, 12_000, 3.0, [False])
@given(
    st.lists(turn, min_size=1, max_size=6),
    st.sampled_from([12_000, 24_000, 64_000]),
    st.floats(3.0, 4.5),
    st.lists(st.booleans(), min_size=1, max_size=3),
)
def test_every_request_of_any_conversation_is_sound(turns, window, bytes_per_token, fails):
    service = Scripted(Service(turns, bytes_per_token, fails))
    talk = Talk(service, Limits(context_window=window, output_tokens=2_000, token_budget=10**9))
    for question, with_image, _steps, act, number in turns:
        talk.ask(question, with_image=with_image)
        talk.act(act, number)
    sent = [request for request in service.requests if request.purpose == "main"]
    starts = [
        entry
        for entry in talk.bench.entries(SpanModelRequestStart)
        if isinstance(entry.event, SpanModelRequestStart) and entry.event.purpose == "main"
    ]
    assert len(sent) == len(starts) == sum(len(each[2]) + 1 for each in turns)
    assert isinstance(talk.entries[-1].event, SessionStatusIdle | MessagePinned | Rewound)
    for request, start in zip(sent, starts, strict=True):
        assert_acceptable(request.messages)
        check_request({**request_body(request, provider="anthropic", caching=True), "stream": True})
        room = window - reserve_of(window, 2_000)
        assert _count(request, bytes_per_token) <= room
        parts = [part for message in request.messages for part in message.parts]
        before = list(on_path(talk.entries[: start.seq]))
        for block in _question(before):
            assert block in parts
        _assert_pinned_are_told(before, parts)
    for (before_, one), (after, two) in itertools.pairwise(zip(sent, starts, strict=True)):
        _assert_same_beginning(before_, after, talk.entries[one.seq : two.seq])


def _question(entries: Sequence[Entry]) -> Sequence[Any]:
    said_by = {entry.uid: entry.event for entry in entries}
    taken = [entry.event for entry in entries if isinstance(entry.event, InputTaken)][-1]
    message = said_by[taken.event_ids[0]]
    assert isinstance(message, UserMessage)
    return message.content


def _assert_pinned_are_told(entries: Sequence[Entry], parts: Sequence[Part]) -> None:
    """Word for word, or named with what found no room."""
    said_by = {entry.uid: entry.event for entry in entries}
    words = "\n".join(part.text for part in parts if isinstance(part, Text))
    for entry in entries:
        event = entry.event
        message = said_by.get(event.event_id) if isinstance(event, MessagePinned) else None
        if isinstance(event, MessagePinned) and isinstance(message, UserMessage):
            (text, *_image) = message.content
            assert isinstance(text, Text)
            assert text.text in words or f"message {event.event_id}" in words


def _assert_same_beginning(before: ModelRequest, after: ModelRequest, between: list[Entry]) -> None:
    """Byte for byte, up to what was changed in between: a summary, a pin, a way back, or where results were
    shortened and what is kept found no room, in the messages that say so alone."""
    assert (before.system, before.tools) == (after.system, after.tools)
    changes = AgentThreadContextCompacted | MessagePinned | Rewound
    if any(isinstance(entry.event, changes) for entry in between):
        return
    old, new = (_bytes(request) for request in (before, after))
    for was, now in zip(old, new, strict=False):
        if was != now:
            said = (b"shortened", b"left out", b"No room was left")
            assert any(mark in each for mark in said for each in (was, now)), now[:500]
    assert len(new) > len(old)


def _bytes(request: ModelRequest) -> list[bytes]:
    body = request_body(request, provider="anthropic", caching=False)
    return [orjson.dumps(message) for message in body["messages"]]
