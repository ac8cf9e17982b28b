"""What an MCP client can ask for: agents to work with, conversations to begin, go on with, read and stop.

Each tool is a plain function over the actions everybody calls, for one person in one organisation. How it
travels is `serving`'s. Everything that is begun is stored before an answer leaves, and outlives its client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from accounts.api.authentication import Caller, caller_of_token
from accounts.models import Organisation, TokenScope, User
from agents.listing import listed_agents
from approvals.models import Approval
from conversations.actions.conversations import find_agent, find_environment
from conversations.actions.messages import post_message, stop
from conversations.actions.own import require_own
from conversations.defaults import default_agent, default_environment
from conversations.models import Conversation
from harness.content import Text, text_of
from harness.errors import Invalid, NotFound
from harness.events import AgentMcpToolUse, AgentMessage, AgentToolUse, UserMessage
from harness.modelfaults import read_as
from keeping import export
from programs.actions.sessions import begin_session
from wire.fieldnames import written

READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
MOST_SECONDS = 50
"""That one request is kept for an answer."""
LISTED = 50
LOOKED_AT = 60
"""Latest messages among which the answer is looked for."""
MOST_CHARACTERS = 200_000
"""Of a conversation that is read as a whole."""
ADDRESS = "agentsite://conversations/"


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a client speaks for."""

    user: User
    organisation: Organisation
    caller: Caller | None = None
    """The token that was shown; None: the person herself, at the server's own machine."""

    base: str = ""
    """What the addresses of pages begin with where the site does not know its own."""

    def may(self, scope: TokenScope) -> bool:
        return self.caller is None or self.caller.token.has_scope(scope)

    def is_let_in(self) -> bool:
        """Whether the token opens anything still, for what outlives the request that showed it."""
        return self.caller is None or caller_of_token(self.caller.token.uid) is not None


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(Given):
    pass


class Start(Given):
    text: str = Field(description="What the agent is asked to do.", max_length=100_000)
    agent: str = Field(default="", max_length=200, description="Its name or id; empty: the usual.")
    environment: str = Field(default="", max_length=200)
    title: str = Field(default="", max_length=200)
    wait_seconds: int = Field(
        default=20, ge=0, le=MOST_SECONDS, description="How long to wait for the answer."
    )


class Continue(Given):
    conversation_id: str = Field(max_length=80)
    text: str = Field(max_length=100_000)
    wait_seconds: int = Field(default=20, ge=0, le=MOST_SECONDS)


class Read(Given):
    conversation_id: str = Field(max_length=80)
    wait_seconds: int = Field(default=0, ge=0, le=MOST_SECONDS)


class Stop(Given):
    conversation_id: str = Field(max_length=80)


@dataclass(frozen=True, slots=True)
class Offered:
    name: str
    title: str
    description: str
    scope: TokenScope
    given: type[Given]
    do: Callable[[Principal, Any], dict[str, Any]]
    reads: bool = False
    begins: bool = False
    """It gives an agent something to do, which may take long: the state has the message's id."""
    at_once: bool = False
    """It asks no table and takes no time, so it is done where it is asked for and not in a thread."""

    @property
    def waits(self) -> bool:
        return "wait_seconds" in self.given.model_fields


def list_agents(who: Principal, given: Nothing) -> dict[str, Any]:
    rows = listed_agents(who.user, who.organisation).order_by("name", "pk")[:200]
    return {
        "agents": [
            {"id": row.uid, "name": row.name, "description": row.description} for row in rows
        ]
    }


def start(who: Principal, given: Start) -> dict[str, Any]:
    user, organisation = who.user, who.organisation
    agent = (
        find_agent(actor=user, organisation=organisation, wanted=given.agent)
        if given.agent
        else default_agent(user, organisation)
    )
    environment = (
        find_environment(actor=user, organisation=organisation, wanted=given.environment)
        if given.environment
        else default_environment(user, organisation)
    )
    with written({"initial_events": "text"}):
        conversation = begin_session(
            caller=who.caller,
            actor=user,
            organisation=organisation,
            agent=agent,
            environment=environment,
            title=given.title,
            messages=[UserMessage(content=(Text(text=given.text),))],
        )
    message = conversation.events.get(type="user.message")
    return {**state_of(who, conversation.uid), "message_id": message.uid}


def go_on(who: Principal, given: Continue) -> dict[str, Any]:
    conversation = find(who, given.conversation_id)
    with written({"content": "text"}):
        message = post_message(actor=who.user, conversation=conversation, text=given.text)
    return {**state_of(who, conversation.uid), "message_id": message.uid}


def read(who: Principal, given: Read) -> dict[str, Any]:
    return state_of(who, given.conversation_id)


def end(who: Principal, given: Stop) -> dict[str, Any]:
    conversation = find(who, given.conversation_id)
    require_own(who.user, conversation)
    stop(actor=who.user, conversation=conversation)
    return state_of(who, conversation.uid)


TOOLS: tuple[Offered, ...] = (
    Offered(
        "list_agents", "List agents", "The agents that can be asked.", READ, Nothing, list_agents,
        reads=True,
    ),
    Offered(
        "start_conversation",
        "Start a conversation with an agent",
        "Ask an agent to do something. Answers with what it said, or, where it takes longer, with the "
        "id of the conversation, which goes on; read it later. Where it waits for a person, the answer "
        "has the page on which she decides.",
        WRITE,
        Start,
        start,
        begins=True,
    ),
    Offered(
        "continue_conversation", "Continue a conversation", "Say more to the agent.", WRITE,
        Continue, go_on, begins=True,
    ),
    Offered(
        "read_conversation", "Read a conversation", "How it stands, and the latest answer.", READ,
        Read, read, reads=True,
    ),
    Offered(
        "stop_conversation", "Stop a conversation", "Stop what its agent is doing.", WRITE, Stop, end
    ),
)  # fmt: skip


def visible(who: Principal) -> Any:
    return Conversation.objects.visible_to(who.user).filter(organisation=who.organisation)


def find(who: Principal, uid: str) -> Conversation:
    found = visible(who).named(uid).first()
    if not isinstance(found, Conversation):
        raise NotFound(_("There is no such conversation."))
    return found


def state_of(who: Principal, uid: str) -> dict[str, Any]:
    """How a conversation stands: `working`, `waits_for_person` or `rests`, and what was said last."""
    conversation = find(who, uid)
    page = page_of(who, conversation)
    state: dict[str, Any] = {
        "conversation_id": conversation.uid,
        "status": "working" if is_busy(conversation) else "rests",
        "url": page,
        "answer": _answer(conversation),
    }
    if waits(conversation):
        state["status"] = "waits_for_person"
        waiting = Approval.objects.filter(conversation=conversation, state=Approval.State.PENDING)
        state["waits_for"] = [
            {"tool": row.tool, "url": f"{page}#u-{row.call_uid}"} for row in waiting[:20]
        ]
    elif conversation.has_stopped_short:
        state["stop_reason"] = conversation.stop_reason
    return state


def page_of(who: Principal, conversation: Conversation) -> str:
    return f"{settings.AGENTSITE_BASE_URL or who.base}{conversation.get_absolute_url()}"


def progress_of(who: Principal, uid: str) -> tuple[int, str]:
    """How long the log is, and the tool that was called last."""
    conversation = find(who, uid)
    calls = conversation.events.filter(type__in=("agent.tool_use", "agent.mcp_tool_use"))
    last = calls.order_by("-seq").first()
    value = last.value if last is not None else None
    name = value.name if isinstance(value, AgentToolUse | AgentMcpToolUse) else ""
    return conversation.last_seq, name


def waits(conversation: Conversation) -> bool:
    """For a person's answer; once that came, for nobody: a run is owed then."""
    return conversation.waits_for_person and not conversation.owes_run


def is_busy(conversation: Conversation) -> bool:
    answered = conversation.waits_for_person and conversation.owes_run
    return conversation.is_running or conversation.is_about_to_start or answered


def _answer(conversation: Conversation) -> str:
    """What was said since a person last spoke."""
    kinds = ("user.message", "agent.message")
    said: list[str] = []
    rows = conversation.events.filter(type__in=kinds).order_by("-seq")
    for row in rows[:LOOKED_AT]:
        value = row.value
        if isinstance(value, UserMessage):
            break
        if isinstance(value, AgentMessage):
            said.append(text_of(value.content))
    return "\n\n".join(reversed(said))[:MOST_CHARACTERS]


def listed(who: Principal, cursor: str | None) -> tuple[list[tuple[str, str]], str | None]:
    """Address and title of the person's latest conversations, and the cursor of those before them.

    Raises Invalid for a cursor that was never given.
    """
    rows = visible(who).filter(owner=who.user).listed_in(who.organisation)
    if cursor is not None:
        last = rows.named(cursor).first()
        if last is None:
            raise Invalid(_("This is no cursor of the list."), field="cursor")
        same = Q(active_at=last.active_at, pk__lt=last.pk)
        rows = rows.filter(Q(active_at__lt=last.active_at) | same)
    latest = list(rows.order_by("-active_at", "-id")[: LISTED + 1])
    told = latest[:LISTED]
    following = told[-1].uid if len(latest) > LISTED else None
    return [(f"{ADDRESS}{row.uid}", row.title or row.uid) for row in told], following


def whole(who: Principal, address: str) -> str:
    """A conversation as Markdown, as far as the limit. NotFound for what is no address of one."""
    if not address.startswith(ADDRESS):
        raise NotFound(_("There is no such resource."))
    pieces: list[str] = []
    left = MOST_CHARACTERS
    for piece in islice(export.as_markdown(find(who, address.removeprefix(ADDRESS))), 10_000):
        pieces.append(piece[:left])
        left -= len(pieces[-1])
        if left <= 0:
            pieces.append("\n\n[…]\n")
            break
    return "".join(pieces)


def perform(
    who: Principal, offered: Offered, given: Mapping[str, Any]
) -> tuple[dict[str, Any], int]:
    """What comes of a call, and how many seconds its client waits for more. Raises what the actions do."""
    value = read_as(dict(given), offered.given)
    return offered.do(who, value), int(getattr(value, "wait_seconds", 0))


def seconds_of(offered: Offered, given: Mapping[str, Any]) -> int:
    """For how long such a call waits. Raises Invalid."""
    return int(getattr(read_as(dict(given), offered.given), "wait_seconds", 0))
