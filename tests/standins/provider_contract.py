"""What every provider must do, as numbered clauses for pytest.

A test module derives a class from `AnyProvider` or, when its provider can be made to play a script,
from `ScriptableProvider`, and gives it a `stage`. `check_pieces` holds for any reply of any provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from typing import Protocol, cast

import pytest

from harness.content import Base64Source, Image, Text
from harness.errors import (
    BadCredentials,
    BadRequest,
    BillingRefused,
    BrokenStream,
    ContextTooLong,
    Overloaded,
    ProviderError,
    ProviderTimedOut,
    ProviderUnreachable,
    RateLimited,
    UnknownModel,
)
from harness.messages import (
    Lull,
    Message,
    ModelRequest,
    Piece,
    ReplyDone,
    ReplyEnd,
    TextDelta,
    TextDone,
    Thinking,
    ThinkingDelta,
    ThinkingDone,
    ToolAnswer,
    ToolCall,
    ToolCallDone,
    ToolSpec,
    Unshown,
    Usage,
    UsageSeen,
)
from harness.provider import Provider
from providers.scripted import (
    Fail,
    Hold,
    Reply,
    Script,
    call,
    garbled_call,
    play,
    reply,
    say,
    think,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""

_PATIENCE = 60.0
"""Seconds after which a test that waits for something gives up."""

LOOK = ToolSpec(
    "look",
    "Look at something.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What a provider's wire can carry, where wires differ."""

    name: str
    model: str = "model-1"
    signatures: bool = True
    """Signed and redacted thinking."""
    cache_writes: bool = True
    ends: frozenset[ReplyEnd] = frozenset(
        {
            "end_turn",
            "tool_use",
            "max_tokens",
            "stop_sequence",
            "pause",
            "refusal",
            "context_full",
        }
    )


class Playing(Protocol):
    """A provider in the middle of a script, and what the other side saw of it."""

    provider: Provider

    @property
    def requests(self) -> list[ModelRequest]: ...

    @property
    def closed_early(self) -> int: ...


class Stage(Protocol):
    traits: Traits

    def playing(self, script: Script, *, fragment: int = 0) -> AbstractAsyncContextManager[Playing]:
        """A provider that gets the script's replies; with `fragment`, in pieces of that many bytes."""
        ...


# --- what tests ask with --------------------------------------------------------------------------


def ask(
    words: str = "Hello", *, model: str = "model-1", tools: Sequence[ToolSpec] = (LOOK,)
) -> ModelRequest:
    message = Message("user", (Text(text=words),))
    return ModelRequest(model, "Be brief.", (message,), tuple(tools))


async def pieces_of(provider: Provider, request: ModelRequest) -> list[Piece]:
    """Without what depends on how the bytes came."""
    pieces = [piece async for piece in provider.stream(request)]
    return [piece for piece in pieces if not isinstance(piece, Lull | Unshown)]


async def pieces_until_error(
    provider: Provider, request: ModelRequest
) -> tuple[list[Piece], ProviderError]:
    """What arrived, and the `ProviderError` that must end it."""
    pieces: list[Piece] = []
    try:
        async for piece in provider.stream(request):
            if not isinstance(piece, Lull | Unshown):
                pieces.append(piece)
    except ProviderError as error:
        return pieces, error
    raise AssertionError(f"no error ended {pieces}")


def check_pieces(pieces: Sequence[Piece]) -> None:
    """The order that every reply keeps: blocks one after another and numbered without gaps, deltas
    that join to their `…Done`, and one `ReplyDone` at the end."""
    assert pieces, "a reply has at least its end"
    assert isinstance(pieces[-1], ReplyDone)
    number, texts, kind = 0, [""], ""
    for piece in pieces[:-1]:
        assert not isinstance(piece, ReplyDone), "only one end"
        if isinstance(piece, UsageSeen | Unshown | Lull):
            continue
        assert piece.index == number, f"{piece} where block {number} is open"
        match piece:
            case TextDelta() | ThinkingDelta():
                assert piece.text, "an empty delta says nothing"
                assert kind in ("", type(piece).__name__), "a block is of one kind"
                kind = type(piece).__name__
                texts.append(piece.text)
                continue
            case TextDone() | ThinkingDone():
                assert "".join(texts) == piece.text
                assert piece.text or isinstance(piece, ThinkingDone)
            case ToolCallDone():
                assert not kind, "a call has no deltas"
                assert not (piece.invalid and piece.input)
        number, texts, kind = number + 1, [""], ""
    assert not kind, "the last block is complete"


def whole(pieces: Sequence[Piece], traits: Traits) -> list[Piece]:
    """The pieces without what depends on the wire: how deltas are cut, and the service's own words."""
    kept: list[Piece] = []
    for piece in pieces:
        match piece:
            case TextDelta() | ThinkingDelta() | UsageSeen() | Unshown() | Lull():
                continue
            case ThinkingDone() if not traits.signatures:
                kept.append(replace(piece, signature=""))
            case ReplyDone():
                kept.append(replace(piece, raw_end="", usage=_usage(piece.usage, traits)))
            case _:
                kept.append(piece)
    return kept


def _usage(usage: Usage, traits: Traits) -> Usage:
    if traits.cache_writes:
        return usage
    return replace(
        usage,
        input_tokens=usage.input_tokens + usage.cache_creation_input_tokens,
        cache_creation_input_tokens=0,
    )


async def expected(answer: Reply, traits: Traits) -> list[Piece]:
    return whole([piece async for piece in play(replace(answer, delay=0))], traits)


# --- clauses for any provider ---------------------------------------------------------------------


class AnyProvider:
    """For providers that answer as they like. `provider` is given by the test module."""

    async def test_clause_1_pieces_come_in_order_and_one_end_comes_last(
        self, provider: Provider
    ) -> None:
        check_pieces(await pieces_of(provider, ask()))

    async def test_clause_2_closing_twice_is_harmless(self, provider: Provider) -> None:
        await pieces_of(provider, ask())
        await provider.aclose()
        await provider.aclose()


# --- clauses for providers that can be made to play a script --------------------------------------


CONVERSATION: tuple[Reply, ...] = (
    reply(
        think("The file comes first.", signature="signed-1"),
        "I look at two files.",
        call("look", path="a.py"),
        call("look", path="b.py"),
        chunk=4,
        usage=Usage(100, 20, 50, 30),
    ),
    reply("Both are there: *a* and *b* — done.", chunk=7, usage=Usage(12, 9, 5, 180)),
)
"""One conversation, with thinking, parallel calls and an answer."""

EARLY: tuple[tuple[ProviderError, type[ProviderError]], ...] = (
    (RateLimited("too many", retry_after=7), RateLimited),
    (Overloaded("busy"), Overloaded),
    (Overloaded("broken", status=500), Overloaded),
    (Overloaded("down", status=503), Overloaded),
    (BadCredentials("no"), BadCredentials),
    (BadCredentials("not allowed", status=403), BadCredentials),
    (BillingRefused("pay"), BillingRefused),
    (UnknownModel("model-1"), UnknownModel),
    (ContextTooLong("9 tokens > 8 maximum"), ContextTooLong),
    (ContextTooLong("too large", status=413), ContextTooLong),
    (BadRequest("wrong"), BadRequest),
    (ProviderTimedOut("silence"), ProviderTimedOut),
    (ProviderUnreachable("gone"), ProviderUnreachable),
)


class ScriptableProvider:
    """For providers over a script or a stand-in service. `stage` is given by the test module."""

    async def test_clause_1_pieces_come_in_order_and_one_end_comes_last(self, stage: Stage) -> None:
        async with stage.playing(CONVERSATION) as playing:
            for _ in CONVERSATION:
                check_pieces(await pieces_of(playing.provider, ask()))

    async def test_clause_2_closing_twice_is_harmless(self, stage: Stage) -> None:
        async with stage.playing(["Hello"]) as playing:
            await pieces_of(playing.provider, ask())
            await playing.provider.aclose()
            await playing.provider.aclose()

    async def test_clause_3_closing_early_closes_the_connection_at_once(self, stage: Stage) -> None:
        hold = Hold()
        async with stage.playing([say("First ", hold, "second")]) as playing:
            stream = cast(AsyncGenerator[Piece], playing.provider.stream(ask()))
            async with aclosing(stream) as pieces:
                while not isinstance(piece := await anext(pieces), TextDelta):
                    pass
                assert piece == TextDelta(0, "First ")
                waiting = asyncio.ensure_future(anext(pieces))
                async with asyncio.timeout(_PATIENCE):
                    await hold.reached.wait()
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            async with asyncio.timeout(_PATIENCE):
                while not playing.closed_early:  # noqa: ASYNC110 - the server's count has no event
                    await asyncio.sleep(0.005)

    async def test_clause_4_one_script_gives_the_same_reply_through_each_provider(
        self, stage: Stage
    ) -> None:
        """Switching the provider changes nothing that the loop can see."""
        async with stage.playing(CONVERSATION) as playing:
            for answer in CONVERSATION:
                got = whole(await pieces_of(playing.provider, ask()), stage.traits)
                assert got == await expected(answer, stage.traits)

    async def test_clause_5_arguments_that_are_no_json_object_are_kept_as_text(
        self, stage: Stage
    ) -> None:
        for raw in ('{"path": "a', "[1, 2]", '"text"', "{'path': 'a'}", '{"path": NaN}'):
            async with stage.playing([reply(garbled_call("look", raw), chunk=3)]) as playing:
                first, end = whole(await pieces_of(playing.provider, ask()), stage.traits)
                assert first == ToolCallDone(0, "look", {}, raw)
                assert isinstance(end, ReplyDone)
                assert end.end == "tool_use"

    async def test_clause_6_an_empty_reply_is_only_its_end(self, stage: Stage) -> None:
        for empty in (reply(), reply(""), reply(say(""), call("look", path="a"), "")):
            async with stage.playing([empty]) as playing:
                pieces = await pieces_of(playing.provider, ask())
                check_pieces(pieces)
                assert whole(pieces, stage.traits) == await expected(empty, stage.traits)

    async def test_clause_7_characters_survive_being_split_anywhere(self, stage: Stage) -> None:
        text = "Grüße, 世界 👩‍🚀 \u2028 \x85 \x1e and\r\nlines"
        answer = reply(text, call("look", path="größe 👩‍🚀"), chunk=1)
        for fragment in (0, 3):
            async with stage.playing([answer], fragment=fragment) as playing:
                pieces = await pieces_of(playing.provider, ask())
                check_pieces(pieces)
                assert whole(pieces, stage.traits) == await expected(answer, stage.traits)

    async def test_clause_8_halves_of_a_character_in_two_deltas_are_joined(
        self, stage: Stage
    ) -> None:
        answer = say("a\ud83d", "\ude00b\ud83d")
        async with stage.playing([answer]) as playing:
            pieces = await pieces_of(playing.provider, ask())
        check_pieces(pieces)
        for piece in pieces:
            if isinstance(piece, TextDelta | TextDone):
                piece.text.encode()
        assert pieces[-2] == TextDone(0, "a😀b\N{REPLACEMENT CHARACTER}")

    async def test_clause_9_usage_counts_each_kind_of_token(self, stage: Stage) -> None:
        usage = Usage(1_000, 200, 30, 4_000)
        async with stage.playing([reply("Hello", usage=usage)]) as playing:
            end = (await pieces_of(playing.provider, ask()))[-1]
        assert isinstance(end, ReplyDone)
        assert end.usage == _usage(usage, stage.traits)
        assert end.usage.total_tokens == usage.total_tokens

    async def test_clause_10_each_way_to_end_is_named(self, stage: Stage) -> None:
        """A reply cut off by the output limit is told from a finished one."""
        for end in sorted(stage.traits.ends):
            async with stage.playing([reply("Some text", end=end)]) as playing:
                last = (await pieces_of(playing.provider, ask()))[-1]
            assert isinstance(last, ReplyDone)
            assert last.end == end
            assert last.raw_end

    async def test_clause_11_a_refusal_says_why(self, stage: Stage) -> None:
        refusal = reply(end="refusal", detail="This may do harm.")
        async with stage.playing([refusal]) as playing:
            last = (await pieces_of(playing.provider, ask()))[-1]
        assert isinstance(last, ReplyDone)
        assert (last.end, last.detail) == ("refusal", "This may do harm.")

    async def test_clause_12_an_error_before_the_reply_keeps_its_kind(self, stage: Stage) -> None:
        """Who must act is known by the class; how long to wait by `retry_after`."""
        for error, kind in EARLY:
            async with stage.playing([error]) as playing:
                pieces, caught = await pieces_until_error(playing.provider, ask())
                assert not pieces, "nothing came before"
                assert type(caught) is kind
                assert caught.retryable is kind.retryable
                assert caught.retry_after == error.retry_after
                assert caught.__cause__ is None
                assert len(playing.requests) == 1, "nothing is retried here"

    async def test_clause_13_a_break_in_the_middle_keeps_what_came_and_names_its_cause(
        self, stage: Stage
    ) -> None:
        """The partial text stays and the person is told the true cause."""
        for error, cause in (
            (BrokenStream("connection lost"), ""),
            (Overloaded("busy now"), "busy now"),
            (ProviderTimedOut("It sent nothing for a while."), "nothing for"),
        ):
            script = [reply("Whole. ", say("Half a ", Fail(error)))]
            async with stage.playing(script) as playing:
                pieces, caught = await pieces_until_error(playing.provider, ask())
            texts = [piece.text for piece in pieces if isinstance(piece, TextDelta)]
            assert "".join(texts) == "Whole. Half a "
            assert not any(isinstance(piece, ReplyDone) for piece in pieces)
            assert isinstance(caught, BrokenStream)
            assert cause in str(caught)
            assert caught.message.removeprefix("The reply broke off").strip(" :.")

    async def test_clause_14_a_history_arrives_as_it_was_sent(self, stage: Stage) -> None:
        """Thinking, calls, answers and pictures pass the rules of the service."""
        request = history(stage.traits)
        async with stage.playing(["Thanks."]) as playing:
            check_pieces(await pieces_of(playing.provider, request))
            (received,) = playing.requests
        assert received.system == request.system
        assert received.tools == request.tools
        assert _comparable(received, stage.traits) == _comparable(request, stage.traits)

    async def test_clause_15_tools_may_be_shown_and_forbidden(self, stage: Stage) -> None:
        """The closing summary is asked for with the tools in sight but out of reach."""
        async with stage.playing(["No tools then."]) as playing:
            await pieces_of(playing.provider, replace(ask(), tool_choice="none"))
            (received,) = playing.requests
        assert received.tool_choice == "none"
        assert [tool.name for tool in received.tools] == ["look"]

    async def test_clause_16_a_large_input_arrives_whole(self, stage: Stage) -> None:
        answer = reply(call("look", path="x" * 400_000), chunk=2_000)
        async with stage.playing([answer]) as playing:
            pieces = await pieces_of(playing.provider, ask())
        assert whole(pieces, stage.traits) == await expected(answer, stage.traits)

    async def test_clause_17_replies_at_the_same_time_do_not_mix(self, stage: Stage) -> None:
        def echo(request: ModelRequest) -> Reply:
            (part,) = request.messages[-1].parts
            assert isinstance(part, Text)
            return reply(part.text * 20, chunk=2, delay=0.0005)

        async with stage.playing(echo) as playing:
            words = [f"<{number}>" for number in range(8)]
            replies = await asyncio.gather(
                *(pieces_of(playing.provider, ask(word)) for word in words)
            )
        for word, pieces in zip(words, replies, strict=True):
            check_pieces(pieces)
            assert pieces[-2] == TextDone(0, word * 20)


def history(traits: Traits) -> ModelRequest:
    """A conversation of every kind of part, with a second assistant's thinking that must stay away."""
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL))
    own = Thinking("My thoughts.", "signed-1", "", traits.name, traits.model)
    hidden = Thinking("", "", "sealed", traits.name, traits.model)
    foreign = Thinking("Another's.", "signed-2", "", "other", traits.model)
    older = Thinking("An older model's.", "signed-3", "", traits.name, "model-0")
    return ModelRequest(
        traits.model,
        "Be brief.",
        (
            Message("user", (Text(text="What is this?"), picture)),
            Message(
                "assistant",
                (
                    own,
                    hidden,
                    foreign,
                    older,
                    Text(text="I look."),
                    ToolCall("sevt_1", "look", {"path": "größe.py"}),
                    ToolCall("sevt_2", "look", {"path": "b.py"}),
                ),
            ),
            Message(
                "user",
                (
                    ToolAnswer("sevt_1", (Text(text="a pixel"),)),
                    ToolAnswer("sevt_2", (Text(text="no such file"),), is_error=True),
                ),
            ),
            Message("assistant", (Text(text="A pixel."),)),
            Message("user", (Text(text="Thanks. And now?"),)),
        ),
        (LOOK,),
    )


def _comparable(request: ModelRequest, traits: Traits) -> list[tuple[str, tuple[object, ...]]]:
    """The messages without thinking that this provider may not send back."""

    def kept(part: object) -> bool:
        if not isinstance(part, Thinking):
            return True
        own = (part.provider, part.model) == (traits.name, traits.model)
        return own and traits.signatures

    return [
        (message.role, tuple(part for part in message.parts if kept(part)))
        for message in request.messages
    ]
