"""How good an answer is, by the judge that evaluations ask: a conversation of its own, without tools."""

from __future__ import annotations

from conversations import logsql
from conversations.log import append, entries_after
from conversations.models import Conversation
from conversations.wakes import wake
from evals.checks.facts import Facts, Verdict, facts_of
from evals.checks.judges import question_for, read_verdict
from evals.checks.spec import JudgeCheck
from evals.running import judge_version
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.events import UserMessage
from harness.history import Entry as LogEntry

from .models import SCALE, Comparison

RUBRIC = """\
How well does the answer serve the person who asked? It is right as far as you can tell, answers all of what \
was asked, says where its facts are from if it states any that are not common knowledge, and claims nothing \
that it does not support. An answer that evades the question, or is empty, gets the fewest points."""

_CHECK = JudgeCheck(rubric=RUBRIC, scale=SCALE, at_least=SCALE)


def judge_config(provider: str, model: str) -> AgentConfig:
    """As a judge would be asked."""
    return judge_version().config.model_copy(update=_overrides(provider, model))


def ask_judge(comparison: Comparison, name: str, answer: str) -> Conversation:
    """Begin the conversation of one judge. Needs the transaction in which its entry says so."""
    root = comparison.root
    conversation = Conversation(
        organisation=root.organisation,
        owner=root.owner,
        parent=root,
        agent_version=judge_version(),
        environment=root.environment,
        title=name,
        overrides=_overrides(comparison.judge_provider, comparison.judge_model),
    )
    logsql.insert([conversation])
    text = question_for(_CHECK, Facts(question=comparison.question, answer=answer), swapped=False)
    said = UserMessage(content=(Text(text=text),))
    append(conversation.pk, [LogEntry.of(said)], actor=root.owner)
    wake(conversation.pk)
    return conversation


def verdict_of(judge: Conversation) -> Verdict:
    """What a judge that rests has said."""
    said = facts_of(entries_after(judge.pk, 0))
    if said.stop != "end_turn":
        return Verdict(None, said.stop_words or said.stop)
    return read_verdict(_CHECK, said.answer, swapped=False)


def _overrides(provider: str, model: str) -> dict[str, str]:
    named = {"provider": provider, "model": model}
    return {name: value for name, value in named.items() if value}
