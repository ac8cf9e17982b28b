"""Who shortens: what is asked of the service, and when we do it all the same."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.beta import BetaContextManagementConfigParam
from pydantic import TypeAdapter

from harness.agentconfig import AgentConfig, Limits, Shortening
from harness.content import Text
from harness.events import AgentThreadContextCompacted
from harness.messages import Message, ModelRequest, ModelSettings, ServiceEdits, Usage
from harness.modelcards import card_for
from harness.serviceedits import CLEARS_RESULTS, COMPACTS, edits_for
from providers.anthropic_request import FEATURES, betas_of, request_body
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said

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
