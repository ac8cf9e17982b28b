"""Our agents as a part of `/mcp`: their tools, conversations as resources, and what goes on as tasks.

Where the client takes tasks, what is asked answers with one at once. Else the answer is waited for; what a
person has to decide is asked of her through a client that can, and is a link for all others.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.shared.exceptions import MCPError

from accounts.models import TokenScope
from harness.errors import AgentError, Forbidden, Invalid, NotFound
from reading.foreignjson import read_json

from . import asking, tasks, tools
from .lookups import EVERY
from .parts import Call, Context, Page, Part, Task, Tool, can
from .taskwire import created, takes_tasks
from .threads import in_thread
from .tools import Offered, Principal

POLL_SECONDS = 0.25
MOST_WAITING = 8
"""Answers that one process waits for at once for one person: each looks at the tables again and again."""
_waiting: Counter[int] = Counter()


class Agents(Part):
    def tools(self, who: Principal) -> Sequence[Tool]:
        return _tools_of(frozenset(scope for scope in _SCOPES if who.may(scope)))

    async def unlisted(self, call: Call) -> HandlerResult:
        """A tool that the token does not open: said in words, which its person can act on."""
        held_back = next((each for each in EVERY if each.name == call.params.name), None)
        if held_back is None:
            return None
        return _failed(
            Forbidden(
                "This token may not be used for this.",
                hint=f"Make one with the scope “{held_back.scope.value}”.",
            )
        )

    async def resources(self, who: Principal, cursor: str | None) -> Page | None:
        if not who.may(tools.READ):
            return Page() if cursor is None else None
        try:
            rows, following = await in_thread(tools.listed, who, cursor)
        except Invalid:
            return None
        return Page(
            [
                types.Resource(uri=address, name=title, mime_type=MARKDOWN)
                for address, title in rows
            ],
            following,
        )

    def templates(self, who: Principal) -> Sequence[types.ResourceTemplate]:
        if not who.may(tools.READ):
            return ()
        return [
            types.ResourceTemplate(
                uri_template=f"{tools.ADDRESS}{{conversation_id}}",
                name="conversation",
                title="A conversation",
                description="A conversation as Markdown.",
                mime_type=MARKDOWN,
            )
        ]

    async def read(self, who: Principal, uri: str) -> Sequence[Any] | None:
        if not who.may(tools.READ):
            return None
        try:
            text = await in_thread(tools.whole, who, uri)
        except NotFound:
            return None
        return [types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)]

    async def follow(self, who: Principal, uri: str) -> str | None:
        if not (who.may(tools.READ) and uri.startswith(tools.ADDRESS)):
            return None
        found = await _or_none(tools.find, who, uri.removeprefix(tools.ADDRESS))
        return found.uid if found is not None else None

    async def follow_task(self, who: Principal, uid: str) -> str | None:
        if not (who.may(tools.READ) or who.may(tools.WRITE)):
            return None
        found = await _or_none(tasks.find_errand, who, uid)
        return found.conversation.uid if found is not None else None

    async def task(self, who: Principal, context: Context, uid: str) -> Task | None:
        _require(who, tools.READ, tools.WRITE)
        found: Task | None = await _or_none(_task, who, uid, can(context, "elicitation.form"))
        return found

    async def answer_task(
        self, who: Principal, context: Context, uid: str, answers: Mapping[str, Any]
    ) -> bool:
        _require(who, tools.WRITE)
        try:
            return await _or_none(_answer, who, uid, answers) is not None
        except AgentError as problem:
            raise MCPError(types.INVALID_PARAMS, _words(problem)) from None

    async def cancel_task(self, who: Principal, context: Context, uid: str) -> bool:
        _require(who, tools.WRITE)
        return await _or_none(_cancel, who, uid) is not None


MARKDOWN = "text/markdown"


def _require(who: Principal, *scopes: TokenScope) -> None:
    if not any(who.may(scope) for scope in scopes):
        words = f"This token may not be used for this; it lacks the scope {scopes[0].value}"
        raise MCPError(types.INVALID_REQUEST, words)


async def _or_none(work: Callable[..., Any], *given: Any) -> Any:
    try:
        return await in_thread(work, *given)
    except NotFound:
        return None


def _task(who: Principal, uid: str, asks: bool) -> Task:
    errand = tasks.find_errand(who, uid)
    conversation = errand.conversation
    page = tools.page_of(who, conversation)
    status: Literal["working", "input_required", "completed", "cancelled"] = "working"
    message, result, requests = "", None, {}
    if errand.is_cancelled:
        status = "cancelled"
    elif errand.end is not None:
        status, result = "completed", _result_of(who, errand)
    elif errand.taken is not None and asking.waits(conversation):
        message = f"It waits for a person: {page}"
        requests = (
            {each.key: each.wire() for each in asking.questions(who, conversation)} if asks else {}
        )
        status = "input_required" if requests else "working"
    return Task(
        uid,
        status,
        errand.message.created_at,
        errand.end.created_at if errand.end is not None else conversation.active_at,
        message,
        result,
        requests=requests,
    )


def _result_of(who: Principal, errand: tasks.Errand) -> dict[str, Any]:
    """What the call would have answered."""
    state = tools.state_of(who, errand.conversation.uid)
    state |= {"status": "rests", "answer": tasks.said_in(errand), "message_id": errand.message.uid}
    state.pop("waits_for", None)
    wrong = tasks.stopped_short(errand)
    told = _told(state, is_error=bool(wrong), words=wrong)
    return told.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"result_type"})


def _answer(who: Principal, uid: str, answers: Mapping[str, Any]) -> bool:
    errand = tasks.find_errand(who, uid)
    if errand.end is None:
        asking.answer(who, errand.conversation, asking.read_said(answers))
    return True


def _cancel(who: Principal, uid: str) -> bool:
    tasks.cancel(who, uid)
    return True


_SCOPES = frozenset(each.scope for each in EVERY)


@cache
def _tools_of(scopes: frozenset[TokenScope]) -> Sequence[Tool]:
    return [Tool(_described(each), _calling(each)) for each in EVERY if each.scope in scopes]


def _calling(offered: Offered) -> Any:
    async def call(call: Call) -> HandlerResult:
        try:
            return await _called(offered, call)
        except AgentError as problem:
            return _failed(problem)

    return call


async def _called(offered: Offered, call: Call) -> HandlerResult:
    who, context = call.who, call.context
    before = _round_before(call)
    if offered.at_once:
        return _told(tools.perform(who, offered, call.arguments)[0])
    if before is None:
        state, seconds = await in_thread(tools.perform, who, offered, call.arguments)
    else:
        # The round that was broken off for a person: what was begun is not begun again.
        said = asking.read_said(call.answers)
        state = await in_thread(_answered, who, before, said)
        seconds = tools.seconds_of(offered, call.arguments)
    if offered.begins and takes_tasks(context) and state["status"] != "rests":
        return created(await in_thread(_task, who, state["message_id"], False))
    state = await _waited(call, state, seconds)
    if not (offered.waits and seconds > 0 and call.can("elicitation.form")):
        return _told(state)
    if call.is_modern:
        return await _asked_by_rounds(call, state)
    return _told(await _asked_meanwhile(call, state, seconds))


async def _asked_by_rounds(call: Call, state: dict[str, Any]) -> HandlerResult:
    """From 2026-07-28 on: the call ends with what is asked, and is made again with the answers."""
    asked = await _due(call, state) if not _dismissed(asking.read_said(call.answers)) else []
    if not asked:
        return _told(state)
    kept = {key: state[key] for key in ("conversation_id", "message_id") if key in state}
    return types.InputRequiredResult(
        input_requests={
            each.key: types.ElicitRequest.model_validate(each.wire()) for each in asked
        },
        request_state=json.dumps(kept),
    )


async def _asked_meanwhile(call: Call, state: dict[str, Any], seconds: int) -> dict[str, Any]:
    """By the revisions before, where one process has the client's line: the call goes on meanwhile."""
    session = call.context.session
    for _round in range(MOST_ROUNDS):
        asked = await _due(call, state) if session.can_send_request else []
        said: dict[str, asking.Said] = {}
        for each in asked:
            told = await session.elicit_form(each.message, each.schema, call.context.request_id)
            said |= asking.read_said({each.key: told})
        if not said or _dismissed(said):
            break
        before = {key: state[key] for key in ("conversation_id", "message_id") if key in state}
        state = await in_thread(_answered, call.who, before, said)
        state = await _waited(call, state, seconds)
    return state


MOST_ROUNDS = 20


async def _due(call: Call, state: Mapping[str, Any]) -> list[asking.Asked]:
    if state["status"] != "waits_for_person":
        return []
    found: list[asking.Asked] = await in_thread(_questions, call.who, state["conversation_id"])
    return found


def _round_before(call: Call) -> dict[str, str] | None:
    """What the client was given to keep; it was sealed, so it is as we wrote it."""
    kept = call.params.request_state
    return None if kept is None else read_json(kept)


def _dismissed(said: Mapping[str, asking.Said]) -> bool:
    """The person wanted not to answer now: she is not asked at once again."""
    return any(each.action == "cancel" for each in said.values())


def _questions(who: Principal, uid: str) -> list[asking.Asked]:
    return asking.questions(who, tools.find(who, uid))


def _answered(
    who: Principal, before: Mapping[str, str], said: Mapping[str, asking.Said]
) -> dict[str, Any]:
    conversation = tools.find(who, before["conversation_id"])
    asking.answer(who, conversation, said)
    return tools.state_of(who, conversation.uid) | dict(before)


async def _waited(call: Call, state: dict[str, Any], seconds: int) -> dict[str, Any]:
    """Once the conversation rests or the time is up; at once where the person waits for enough already."""
    key = call.who.user.pk
    if seconds == 0 or _waiting[key] >= MOST_WAITING:
        return state
    _waiting[key] += 1
    try:
        return await _at_rest(call, state, monotonic() + seconds)
    finally:
        _waiting[key] -= 1
        if not _waiting[key]:
            del _waiting[key]


async def _at_rest(call: Call, state: dict[str, Any], end: float) -> dict[str, Any]:
    kept = {key: state[key] for key in ("message_id",) if key in state}
    told = 0
    while state.get("status") == "working" and monotonic() < end:
        await asyncio.sleep(min(POLL_SECONDS, max(end - monotonic(), 0.0)))
        state = await in_thread(tools.state_of, call.who, state["conversation_id"])
        told = await _progressed(call, state, told)
    return state | kept


async def _progressed(call: Call, state: Mapping[str, Any], told: int) -> int:
    """Tell a client that wants to know how far the log has come; the number that it knows then."""
    if not call.context.meta or "progress_token" not in call.context.meta:
        return told
    seq, doing = await in_thread(tools.progress_of, call.who, state["conversation_id"])
    if seq <= told:
        return told
    await call.context.session.report_progress(float(seq), message=doing or None)
    return int(seq)


def _failed(problem: AgentError) -> types.CallToolResult:
    words = _words(problem)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)],
        structured_content={"error": {"code": problem.code, "message": words}},
        is_error=True,
    )


def _words(problem: AgentError) -> str:
    field = problem.field if isinstance(problem, Invalid) else ""
    place = f"{field}: " if field else ""
    return f"{place}{problem.words}"


def _told(
    state: dict[str, Any], *, is_error: bool = False, words: str = ""
) -> types.CallToolResult:
    text = json.dumps(state, ensure_ascii=False, indent=1)
    content = [types.TextContent(type="text", text=each) for each in (words, text) if each]
    return types.CallToolResult(content=content, structured_content=state, is_error=is_error)


def _described(each: Offered) -> types.Tool:
    return types.Tool(
        name=each.name,
        title=each.title,
        description=each.description,
        input_schema=each.given.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=each.reads, destructive_hint=False),
    )
