"""Asks hooks about one thing, one after another, each within its deadline. Knows no tables.

A hook that fails, answers nonsense or is late counts by its own rule. Nothing it says can allow anything: the
policy has allowed it by then.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from harness.errors import AgentError
from harness.hooks import (
    CHILD_BEFORE,
    COMPACTION_BEFORE,
    MODEL_BEFORE,
    ON_CALLS,
    TOOL_AFTER,
    TOOL_BEFORE,
    TURN_BEFORE,
    About,
    Ruling,
)
from harness.ids import new_id
from reading.foreignjson import Unreadable, read_mended_json
from reading.wholetext import storable
from tools_app.builtin.shell import EXTRA as SHELL
from tools_app.provenance import EXTRA as PROVENANCE
from webhooks.models import WebhookSecret
from webhooks.requests import post
from webhooks.signing import headers

from . import commands
from .events import HookAnswer, HooksAnswered, Verdict, source_of, words_of
from .failing import Failed
from .installed import Answer, Where, find
from .points import POINTS

REASON = 500
"""Characters of a hook's reason."""
CONTEXT = 10_000
"""Characters of what a hook adds for the agent."""
BODY = 1_000_000
"""Bytes of what a webhook is told; what is longer counts as a failure of the hook."""
ANSWER_BYTES = 50_000
_threads = ThreadPoolExecutor(16, thread_name_prefix="agentsite-hook")
"""Of hooks alone: those that never return keep threads from other hooks, and from nothing else."""
QUIET = frozenset({MODEL_BEFORE, COMPACTION_BEFORE})
"""Points at which the log keeps nothing where all let it pass: they are many, and no card shows them."""


@dataclass(frozen=True, slots=True)
class Held:
    """A hook as it was when the run began."""

    pk: int
    name: str
    kind: str
    target: str
    sealed: str
    tool: str
    deadline: float
    refuses_on_failure: bool
    points: frozenset[str]
    trusted: bool = False
    """Words it adds count as ours."""
    load: Callable[[str], Callable[..., Any]] = find

    def is_asked(self, about: About) -> bool:
        if about.point not in self.points:
            return False
        return not POINTS[about.point].on_calls or fnmatchcase(about.tool, self.tool)

    def sees(self, tool: str) -> bool:
        """Whether it is asked about calls of this tool."""
        return not ON_CALLS.isdisjoint(self.points) and fnmatchcase(tool, self.tool)


Told = list[tuple[Held, HookAnswer]]


async def ask(
    hooks: Sequence[Held], about: About, where: Where, extras: Mapping[str, Any]
) -> tuple[Ruling, Told]:
    """What they say together, and each one's answer. The first refusal ends it."""
    told: Told = []
    refusal = question = quoted = ""
    sets_aside: tuple[str, ...] = ()
    for hook in hooks:
        if not hook.is_asked(about):
            continue
        answer = await ask_one(hook, about, where, extras)
        told.append((hook, answer))
        if answer.verdict == "refuse" or (answer.verdict == "failed" and hook.refuses_on_failure):
            refusal = _words(hook, answer, about.point)
            quoted = source_of(answer) if _quotes_others(hook, answer) else ""
            if answer.verdict == "refuse" and about.point == TURN_BEFORE:
                # A hook that is away is no judge of words: they may be said again to it.
                sets_aside = tuple(about.more.get("message_ids", ()))
            break
        if answer.verdict == "ask":
            question = question or _words(hook, answer, about.point)
            quoted = quoted or (source_of(answer) if _quotes_others(hook, answer) else "")
    answers = [answer for _hook, answer in told]
    if refusal:
        gone = {"context": "", "adds": False}
        answers = [answer.model_copy(update=gone) for answer in answers]
    ruling = Ruling(
        refusal, question, _events(about, answers), untrusted_by=quoted, sets_aside=sets_aside
    )
    if about.point != TOOL_AFTER or refusal:
        return ruling, told
    added = [answer for answer in answers if answer.context]
    foreign = next((source_of(answer) for answer in added if answer.untrusted), "")
    return Ruling(
        events=ruling.events,
        added="\n\n".join(map(words_of, added)),
        untrusted_by=foreign,
    ), told


def _quotes_others(hook: Held, answer: HookAnswer) -> bool:
    """Whether the words of a refusal or a question repeat what nobody of ours wrote: a reason, or what a
    command printed before it failed."""
    said = answer.verdict in {"refuse", "ask"} or hook.kind == "command"
    return said and bool(answer.reason) and not hook.trusted


def _events(about: About, answers: Sequence[HookAnswer]) -> tuple[HooksAnswered, ...]:
    silent = all(answer.verdict == "pass" and not answer.context for answer in answers)
    if not answers or (silent and about.point in QUIET):
        return ()
    if about.call_id:
        # What was added to a result is read there, and shown there.
        kept = [answer.model_copy(update={"context": ""}) for answer in answers]
        return (HooksAnswered(point=about.point, tool_use_id=about.call_id, told=tuple(kept)),)
    return (HooksAnswered(point=about.point, turn=about.subject, told=tuple(answers)),)


_SUBJECTS = {
    TOOL_BEFORE: "this call",
    TOOL_AFTER: "this result to be read",
    CHILD_BEFORE: "this subagent",
    TURN_BEFORE: "this turn",
    MODEL_BEFORE: "this request",
    COMPACTION_BEFORE: "a summary now",
}


def _words(hook: Held, answer: HookAnswer, point: str) -> str:
    if answer.verdict == "failed":
        said = f"The hook “{hook.name}” gave no answer ({answer.reason}), and without it "
        return said + ("the result is withheld." if point == TOOL_AFTER else "this may not run.")
    said = f": {answer.reason}" if answer.reason else "."
    if answer.verdict == "ask":
        return f"The hook “{hook.name}” asks for a person{said}"
    if point == TOOL_AFTER:
        return f"The hook “{hook.name}” withholds this result{said}"
    return f"The hook “{hook.name}” refuses {_SUBJECTS[point]}{said}"


async def ask_one(
    hook: Held, about: About, where: Where, extras: Mapping[str, Any], *, uid: str = ""
) -> HookAnswer:
    """Never raises. `uid`: the id of a request that may come twice; a new one otherwise."""
    began = time.monotonic()
    verdict: Verdict
    context = ""
    try:
        async with asyncio.timeout(hook.deadline):
            answer = await _answer(hook, about, where, extras, uid or new_id("whe"))
        verdict, reason, context = answer.verdict, answer.reason, answer.context
    except TimeoutError:
        verdict, reason = "failed", f"it was later than {hook.deadline:g} s"
    except Failed as problem:
        verdict, reason = "failed", str(problem)
    except Exception as problem:
        verdict, reason = "failed", type(problem).__name__
    spent = round((time.monotonic() - began) * 1_000)
    return HookAnswer(
        hook=hook.name,
        verdict=verdict,
        milliseconds=spent,
        reason=storable(" ".join(reason.split())[:REASON]),
        context=storable(context.strip()[:CONTEXT]),
        adds=bool(context.strip()),
        passed_over=verdict == "failed" and not hook.refuses_on_failure,
        untrusted=bool(context.strip()) and not hook.trusted,
    )


async def _answer(
    hook: Held, about: About, where: Where, extras: Mapping[str, Any], uid: str
) -> Answer:
    point = about.point
    if hook.kind == "python":
        return await _call(hook, about, where)
    body = json.dumps(told_of(hook, about, where, uid), ensure_ascii=hook.kind == "command")
    if hook.kind == "webhook":
        said = await _post(hook, body, uid)
    else:
        said = await commands.run(
            hook.target,
            body,
            hook.deadline,
            shell=extras.get(SHELL),
            provenance=extras.get(PROVENANCE),
            tainted_by=about.tainted_by,
        )
    return _parsed(said, point)


def told_of(hook: Held, about: About, where: Where, uid: str) -> dict[str, Any]:
    """What webhooks and commands are told."""
    call = (
        {
            "call_id": about.call_id,
            "tool": about.tool,
            "effect": about.effect,
            "arguments": about.arguments,
        }
        if about.tool
        else {"subject": about.subject}
    )
    told = {"type": about.point, "id": uid, "hook": hook.name, **call, **asdict(where)}
    return {**about.more, **told, "tainted_by": about.tainted_by}


async def _call(hook: Held, about: About, where: Where) -> Answer:
    function = hook.load(hook.target)
    if inspect.iscoroutinefunction(function):
        said = await function(about, where)
    else:
        loop = asyncio.get_running_loop()
        call = partial(copy_context().run, _contained, function, about, where)
        said = await loop.run_in_executor(_threads, call)
    if said is None or not POINTS[about.point].asks:
        return Answer()
    return _read(said.verdict, said.reason, getattr(said, "context", ""), about.point)


def _contained(function: Callable[..., Any], about: About, where: Where) -> Any:
    try:
        return function(about, where)
    except SystemExit:
        raise Failed("it wanted to end the process") from None


async def _post(hook: Held, body: str, uid: str) -> str:
    sent = body.encode("utf-8", "replace")
    if len(sent) > BODY:
        raise Failed("what it is asked about is too long to be told")
    try:
        valid = [WebhookSecret(sealed=hook.sealed)]
        signed = headers(uid, body, at=datetime.now(UTC), valid=valid)
    except AgentError as problem:
        raise Failed(problem.message) from None
    answer = await post(hook.target, sent, signed, most=ANSWER_BYTES)
    if not answer.is_delivered:
        # Why it failed is told to the model, as our words.
        raise Failed("its connection failed" if answer.is_quoting else answer.summary)
    return "" if answer.status == 204 else answer.body


def _parsed(text: str, point: str) -> Answer:
    if not text.strip() or not POINTS[point].asks:
        return Answer()
    try:
        # Who is refused may have it quote any sign, and must not be rid of the refusal by it.
        said = read_mended_json(text)
    except Unreadable:
        raise Failed("its answer is no JSON") from None
    if not isinstance(said, dict):
        raise Failed("its answer is no JSON object")
    return _read(said.get("verdict"), said.get("reason", ""), said.get("context", ""), point)


def _read(verdict: Any, reason: Any, context: Any, point: str) -> Answer:
    where = POINTS[point]
    if not where.asks:
        return Answer()
    if verdict is None and isinstance(context, str) and context and where.adds:
        verdict = "pass"
    if not isinstance(verdict, str) or verdict not in where.verdicts:
        known = ", ".join(sorted(where.verdicts))
        raise Failed(f"its answer names no verdict that there is here: {known}")
    said = context if isinstance(context, str) and where.adds else ""
    # No verdict is lost for want of a reason.
    return Answer(verdict, reason if isinstance(reason, str) else "", said)  # type: ignore[arg-type]
