"""Why a call asks is told in the reader's language, whatever language the log keeps it in."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from chat.presentation.reasons import in_words
from harness.agentconfig import Features
from harness.policy import Situation, Verdict
from harness.rules import Level, LevelledRule
from harness.tools import Effect
from tests.harness.test_policy import ALLOW, ASK, DENY, LEVELS, at, command, judged, rule, tool

SHELL = tool("bash", effect=Effect.OUTSIDE, general=True)
OTHER = tool("fetch", effect=Effect.OUTSIDE)


def question(*others: LevelledRule, own: str = "*", **more: Any) -> str:
    """Why it asks; a shell is called unless `used` says something else."""
    found = judged(
        *others,
        own=(rule(ALLOW, own, when=more.pop("when", None)),),
        used=more.pop("used", SHELL),
        tools=(SHELL, OTHER),
        given={"command": "$x"},
        **more,
    )
    assert found.verdict is Verdict.ASK, found
    return found.reason


def questions() -> list[str]:
    return [
        *(question(at(level, ASK, "bash")) for level in LEVELS),
        question(at(Level.ORGANISATION, ASK, "fetch")),
        question(at(Level.ORGANISATION, DENY, "fetch")),
        question(at(Level.AGENT, DENY, "bash", when=command("rm"))),
        question(own="bash", when=command("rm")),
        question(used=tool("act", always_asks=True)),
        question(used=OTHER, state=Situation(Features(), tainted_by="web_fetch")),
        question(state=Situation(Features(approval=True))),
    ]


@pytest.mark.parametrize("language", ["de", "ar"])
def test_no_question_that_a_policy_puts_is_left_in_english(language: str):
    with translation.override(language):
        for reason in questions():
            said = in_words(reason)
            assert not any(word in said for word in ("rule", "asks", "denies", " and ")), said


def test_a_question_is_said_in_english_as_it_is_kept():
    for reason in questions():
        assert in_words(reason) == reason


def test_what_a_rule_says_of_itself_stays_as_it_was_written():
    reason = "A rule of this server asks before bash when it is “a. b”. Nobody knows this sentence."
    with translation.override("de"):
        said = in_words(reason)
    assert said.startswith("Eine Regel dieses Servers fragt vor bash when it is “a. b”.")
    assert said.endswith("Nobody knows this sentence.")
