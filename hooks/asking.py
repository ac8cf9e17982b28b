"""Asks hooks about one call, one after another, each within its deadline. Knows no tables.

A hook that fails, answers nonsense or is late counts by its own rule. Nothing it says can allow a call: the
policy has allowed it by then.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from harness.errors import AgentError
from harness.hooks import AboutCall, Ruling
from harness.ids import new_id
from reading.foreignjson import Unreadable, read_mended_json
from reading.wholetext import storable
from webhooks.models import WebhookSecret
from webhooks.requests import post
from webhooks.signing import headers

from .events import HookAnswer, HooksAnswered, Verdict
from .installed import Answer, Where, find

REASON = 500
"""Characters of a hook's reason."""
BODY = 1_000_000
"""Bytes of what a webhook is told; a call with more counts as a failure of the hook."""
ANSWER_BYTES = 10_000


class Failed(Exception):
    """A hook gave no answer; the words are for people."""


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
    load: Callable[[str], Callable[..., Any]] = find


async def ask(
    hooks: Sequence[Held], about: AboutCall, where: Where
) -> tuple[Ruling, list[tuple[Held, HookAnswer]]]:
    """What they say together, and each one's answer. The first refusal ends it."""
    told: list[tuple[Held, HookAnswer]] = []
    refusal = question = ""
    for hook in hooks:
        if not fnmatchcase(about.tool, hook.tool):
            continue
        answer = await _ask(hook, about, where)
        told.append((hook, answer))
        if answer.verdict == "refuse" or (answer.verdict == "failed" and hook.refuses_on_failure):
            refusal = _words(hook, answer)
            break
        if answer.verdict == "ask":
            question = question or _words(hook, answer)
    answers = tuple(answer for _hook, answer in told)
    told_of = any(answer.verdict != "pass" for answer in answers)
    events = (HooksAnswered(tool_use_id=about.call_id, told=answers),) if told_of else ()
    return Ruling(refusal, question, events), told


def _words(hook: Held, answer: HookAnswer) -> str:
    if answer.verdict == "failed":
        return f"The hook “{hook.name}” gave no answer ({answer.reason}), and without it this may not run."
    said = f": {answer.reason}" if answer.reason else "."
    verb = "refuses this call" if answer.verdict == "refuse" else "asks for a person"
    return f"The hook “{hook.name}” {verb}{said}"


async def _ask(hook: Held, about: AboutCall, where: Where) -> HookAnswer:
    began = time.monotonic()
    verdict: Verdict
    try:
        async with asyncio.timeout(hook.deadline):
            answer = await (
                _call(hook, about, where) if hook.kind == "python" else _post(hook, about, where)
            )
        verdict, reason = answer.verdict, answer.reason
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
    )


async def _call(hook: Held, about: AboutCall, where: Where) -> Answer:
    function = hook.load(hook.target)
    if inspect.iscoroutinefunction(function):
        said = await function(about, where)
    else:
        said = await asyncio.to_thread(function, about, where)
    if said is None:
        return Answer("pass")
    return _read(said.verdict, said.reason)


async def _post(hook: Held, about: AboutCall, where: Where) -> Answer:
    told = {"type": "tool.before", "hook": hook.name, **asdict(about), **asdict(where)}
    body = json.dumps(told, ensure_ascii=False)
    sent = body.encode("utf-8", "replace")
    if len(sent) > BODY:
        raise Failed("the call is too long to be told")
    at = datetime.now(UTC)
    try:
        signed = headers(new_id("whe"), body, at=at, valid=[WebhookSecret(sealed=hook.sealed)])
    except AgentError as problem:
        raise Failed(problem.message) from None
    answer = await post(hook.target, sent, signed, most=ANSWER_BYTES)
    if not answer.is_delivered:
        raise Failed(answer.summary)
    if answer.status == 204 or not answer.body.strip():
        return Answer("pass")
    try:
        # Who is refused may have it quote any sign, and must not be rid of the refusal by it.
        said = read_mended_json(answer.body)
    except Unreadable:
        raise Failed("its answer is no JSON") from None
    if not isinstance(said, dict):
        raise Failed("its answer is no JSON object")
    return _read(said.get("verdict"), said.get("reason", ""))


def _read(verdict: Any, reason: Any) -> Answer:
    if verdict not in {"pass", "ask", "refuse"}:
        raise Failed("its answer names no verdict: pass, ask or refuse")
    # No verdict is lost for want of a reason.
    return Answer(verdict, reason if isinstance(reason, str) else "")
