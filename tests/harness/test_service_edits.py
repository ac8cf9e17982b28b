"""Who shortens: what is asked of the service, and when we do it all the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.beta import BetaContextManagementConfigParam
from pydantic import TypeAdapter

from harness.agentconfig import AgentConfig, Limits, Shortening
from harness.content import Text
from harness.events import AgentThreadContextCompacted, SpanModelRequestStart
from harness.history import Entry, History
from harness.hooks import COMPACTION_BEFORE, About, Ruling
from harness.messages import (
    CompactionDone,
    Message,
    ModelRequest,
    ModelSettings,
    Piece,
    ReplyDone,
    ServiceEdits,
    ToolAnswer,
    Usage,
)
from harness.modelcards import card_for
from harness.serviceedits import CLEARS_RESULTS, COMPACTS, edits_for
from providers.anthropic_request import FEATURES, betas_of, request_body
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said
from tests.standins.journal import MemoryJournal

BOTH = frozenset({CLEARS_RESULTS, COMPACTS})


def config(**more: Any) -> AgentConfig:
    return AgentConfig(shortening=Shortening(by="service"), **more)


def test_an_agent_that_asks_for_nothing_gets_nothing() -> None:
    chosen = edits_for(AgentConfig(), BOTH)
    assert (chosen.edits, chosen.words) == (None, "")


@pytest.mark.parametrize(
    ("known", "more", "hooked", "edits", "words"),
    [
        (BOTH, {}, False, (90_000, 140_000), "and summarises past 140,000."),
        (BOTH, {}, True, (90_000, 0), "Agentsite summarises: hooks are asked before"),
        (
            BOTH,
            {"limits": Limits(context_window=32_000)},
            False,
            (14_400, 0),
            "Agentsite summarises: the service begins at 50,000 tokens",
        ),
        ({CLEARS_RESULTS}, {}, False, (90_000, 0), "the model's service here does not do it"),
        (frozenset(), {}, False, None, "Agentsite shortens: the model's service here does not"),
    ],
)
def test_what_the_service_cannot_do_stays_ours_and_that_is_said(
    known: Any, more: Any, hooked: bool, edits: Any, words: str
) -> None:
    chosen = edits_for(config(**more), frozenset(known), hooked=hooked)
    found = chosen.edits and (chosen.edits.clear_at, chosen.edits.compact_at)
    assert found == edits
    assert words in chosen.words


def test_the_service_is_asked_in_the_words_of_its_own_types() -> None:
    request = ModelRequest(
        "claude-sonnet-5-5",
        "",
        (Message("user", (Text(text="Hi"),)),),
        settings=ModelSettings(thinking=True),
        edits=ServiceEdits(90_000, 3, 2, 140_000),
    )
    body = request_body(request, provider="anthropic", caching=True)
    sent = body["extra_body"]["context_management"]
    TypeAdapter(BetaContextManagementConfigParam).validate_python(sent, strict=True)
    assert [edit["type"] for edit in sent["edits"]] == [
        "clear_thinking_20251015",
        CLEARS_RESULTS,
        COMPACTS,
    ]
    assert {edit["type"] for edit in sent["edits"]} <= FEATURES & card_for(request.model).features
    assert betas_of(request) == "context-management-2025-06-27,compact-2026-01-12"


class Knowing(Scripted):
    """A service that shortens by itself."""

    features = FEATURES


class Editing(Knowing):
    """One that says with each reply what it left out."""

    def __init__(self, script: Any, *told: Piece, cleared: int = 0) -> None:
        super().__init__(script)
        self._told, self._cleared = told, cleared

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        for piece in self._told:
            yield piece
        async for piece in super().stream(request):
            if isinstance(piece, ReplyDone):
                piece = replace(piece, cleared_tokens=self._cleared)
            yield piece


async def test_a_summary_of_the_service_stands_for_what_it_read_and_for_nothing_that_came_meanwhile() -> (
    None
):
    def meanwhile(journal: MemoryJournal, entries: Sequence[Entry]) -> None:
        if isinstance(entries[-1].event, SpanModelRequestStart) and journal.appends > 2:
            journal.post(said("And this."))
            journal.hook = None

    made = CompactionDone("They met.", {"type": "compaction", "content": "They met."})
    bench = Bench(
        Editing([reply(call("look", text="x")), reply("Two."), reply("Three.")], made),
        tools=[make_tool("look")],
        journal=MemoryJournal(before_append=meanwhile),
        config={"shortening": Shortening(by="service")},
        model="claude-sonnet-5-5",
    )
    await bench.run(said("Go."))
    through = bench.events(AgentThreadContextCompacted)[1].through
    [place] = [n for n, each in enumerate(bench.journal.entries) if each.uid == through]
    came, begun = bench.journal.events[place + 1 : place + 3]
    assert (came.type, begun.type) == ("user.message", "span.model_request_start")


class Refusing:
    """Hooks that let no summary be made."""

    points = frozenset({COMPACTION_BEFORE})

    def sees(self, tool: str) -> bool:
        return False

    def before_request(self, history: History) -> Sequence[About]:
        return ()

    async def ask(self, about: About, extras: Mapping[str, Any]) -> Ruling:
        return Ruling(refusal="not today")

    async def ended(self) -> None:
        pass


async def test_what_a_service_left_out_is_not_expected_again_where_results_are_shortened_here() -> (
    None
):
    counted = [40_000] * 13 + [86_000]
    looks = [reply(call("look", text="x"), usage=Usage(each, 5)) for each in counted]
    bench = Bench(
        Editing([*looks, reply("Done.")], cleared=50_000),
        tools=[make_tool("look", lambda *_: "x" * 30_000)],
        limits=Limits(context_window=100_000, compact_at=0.8, token_budget=10_000_000),
        config={"shortening": Shortening(by="service")},
        model="claude-opus-4-5",
        hooks=Refusing(),
    )
    await bench.run(said("Go."))
    plans = [each.plan for each in bench.events(SpanModelRequestStart) if each.purpose == "main"]
    shortened_at_all = False
    for request, plan in zip(bench.requests, plans, strict=False):
        results = [
            part for each in request.messages for part in each.parts if isinstance(part, ToolAnswer)
        ]
        shortened = len({len(part.content[0].text) for part in results}) > 1
        shortened_at_all = shortened_at_all or shortened
        assert not (shortened and plan.cleared), plan
    assert shortened_at_all


@pytest.mark.parametrize(("counted", "ours"), [(70_000, False), (90_000, True)])
async def test_ours_acts_where_a_prompt_would_not_fit_although_the_service_is_to_shorten(
    counted: int, ours: bool
) -> None:
    looks = [reply(call("look", text="x"), usage=Usage(counted, 5)) for _ in range(6)]
    bench = Bench(
        Knowing([*looks, reply("Summary."), reply("Done."), reply("Done.")]),
        tools=[make_tool("look")],
        limits=Limits(context_window=100_000, compact_at=0.51, token_budget=10_000_000),
        config={"shortening": Shortening(by="service")},
        model="claude-sonnet-5-5",
    )
    await bench.run(said("Go."))
    assert bool(bench.events(AgentThreadContextCompacted)) is ours
