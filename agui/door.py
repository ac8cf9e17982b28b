"""`/agui`: an AG-UI client posts a run and reads its events as they come (server-sent events).

What is wrong with a request (token, shape, unknown thread, too fast) is an HTTP error; what the
conversation refuses is told as RUN_ERROR. What a run is, is `following`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui.core import BaseEvent, CustomEvent
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated

from accounts.api.authentication import Caller, caller_with, presented_secret
from accounts.api.request_ids import current_request_id
from accounts.api.scopes import require_scope
from accounts.api.throttling import count_request
from harness.errors import AgentError, Conflict, Forbidden
from jobs.connections import give_back
from v1.door import ALWAYS, READ, WRITE, Door, clean, parse, refuse_nul
from v1.outgoing import Wire
from v1.problems import V1ErrorEnvelope, handle
from v1.stream import MESSAGES, respond
from wire.givenjson import read_object
from wire.jsonbodies import BODY_BYTES
from wire.parameters import check_query

from .activities import at_work
from .below import BELOW
from .following import ENTERED, OVER, Run, find_or_begin
from .incoming import RunInput, servers_of
from .projection import CUSTOM, Projection
from .servers import take_servers


class Frames:
    """The frames of one answer, in order: `stream.Encode`."""

    def __init__(
        self, body: RunInput, conversation_uid: str, state: dict[str, Any] | None = None
    ) -> None:
        self._run = Projection(body.thread_id, body.run_id, state)
        self._ignored = body.ignored()
        self._uid = conversation_uid
        self._begun = False

    def __call__(self, name: str, data: Wire, _seq: int | None) -> bytes:
        begun, self._begun = self._begun, True
        opening = b"" if begun else _frames(self._opening())
        if name == "ping":
            return opening + b": ping\n\n"
        return opening + _frames(self._events_of(data))

    def refusal(self, error: AgentError) -> bytes:
        """A whole run: the conversation would not take the input."""
        words = error.words
        return _frames([*self._run.started(), *self._run.failed(words, error.code)])

    def _opening(self) -> list[BaseEvent]:
        events = self._run.started()
        events.append(CustomEvent(name=f"{CUSTOM}conversation", value={"id": self._uid}))
        if self._ignored:
            events.append(CustomEvent(name=f"{CUSTOM}ignored", value={"fields": self._ignored}))
        return events

    def _events_of(self, data: Wire) -> list[BaseEvent]:
        match data["type"]:
            case "event_start":
                return []
            case "event_delta":
                return self._run.arriving(data["event_id"], data["delta"]["content"]["text"])
            case "error":
                error = data["error"]
                return self._run.failed(error["message"], error.get("code", "server_error"))
            case kind if kind == ENTERED:
                self._run.enter()
                return []
            case kind if kind == OVER:
                if "rest" in data:
                    return self._run.rested(
                        data["rest"], data["interrupts"], data["below"], data["pending"]
                    )
                if "interrupts" in data:
                    return self._run.waiting(data["interrupts"], data["below"])
                return self._run.cancelled()
            case kind if kind == BELOW:
                return list(at_work(data["began"], data["facts"]))
        return self._run.happened(data["id"], data["value"], data.get("began"), data.get("came"))


def _frames(events: Iterable[BaseEvent]) -> bytes:
    return b"".join(
        b"data: %s\n\n" % event.model_dump_json(by_alias=True).encode() for event in events
    )


async def run(request: HttpRequest) -> HttpResponseBase:
    """Take a run's input and answer with its events."""
    answer: HttpResponseBase
    try:
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method))
        admitted = await sync_to_async(_admit)(request)
    except Exception as error:
        refusal = handle(error, None)
        answer = JsonResponse(refusal.data, status=refusal.status_code)
        for name, value in refusal.headers.items():
            if name.lower() not in {"content-type", "content-length"}:
                answer[name] = value
    else:
        answer = _answer(*admitted)
    answer["request-id"] = current_request_id()
    return answer


def _answer(taken: Run | AgentError, frames: Frames) -> HttpResponseBase:
    if isinstance(taken, AgentError):
        return HttpResponse(frames.refusal(taken), content_type="text/event-stream")
    return respond(
        taken.uid,
        taken.read,
        after=taken.after,
        previews=frozenset({MESSAGES}),
        who=taken.place,
        encode=frames,
    )


def _admit(request: HttpRequest) -> tuple[Run | AgentError, Frames]:
    try:
        refuse_nul(request)
        caller = _caller(request)
        check_query(RunAgent, "POST", request.GET, ALWAYS)
        body = _body(request)
        servers = servers_of(body)
        conversation = find_or_begin(
            caller,
            body.thread_id,
            request.GET.get("agent", ""),
            request.GET.get("environment", ""),
        )
        try:
            if servers is not None:
                take_servers(caller, conversation, servers)
            taken = Run(caller, conversation, body)
        except (Conflict, Forbidden) as error:
            return error, Frames(body, conversation.uid)
        return taken, Frames(body, conversation.uid, taken.state)
    finally:
        # A stream lasts for hours; the connection that this thread holds is given back now.
        give_back()


def _caller(request: HttpRequest) -> Caller:
    secret = presented_secret(request.headers)
    if not secret:
        raise NotAuthenticated
    caller = caller_with(secret)
    if caller is None:
        raise AuthenticationFailed(_("This token is not valid."))
    require_scope(caller, READ)
    require_scope(caller, WRITE)
    count_request(caller.token, writes=True)
    return caller


def _body(request: HttpRequest) -> RunInput:
    data = read_object(
        request.body, hint=_("Send a RunAgentInput as one JSON object."), limit=BODY_BYTES
    )
    return parse(clean(data), RunInput)


class RunAgent(Door):
    """Only described here; `run` answers."""

    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="agui_run",
        tags=["agui"],
        summary="Run an agent for an AG-UI client (server-sent events)",
        request=RunInput,
        parameters=[
            OpenApiParameter(
                "agent", OpenApiTypes.STR, description="Of a new thread: the agent's id or name."
            ),
            OpenApiParameter(
                "environment",
                OpenApiTypes.STR,
                description="Of a new thread: the environment's id or name.",
            ),
        ],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            "4XX": V1ErrorEnvelope,
            "5XX": V1ErrorEnvelope,
        },
    )
    def post(self, request: Any) -> None:
        """Run an agent for an AG-UI client."""


async def _view(request: HttpRequest) -> HttpResponseBase:
    return await run(request)


run_agent: Any = _view
run_agent.cls = RunAgent
run_agent.initkwargs = {}
run_agent.csrf_exempt = True
