"""What an agent does in a team: bring teammates in, write to them, ask for something by an id, and answer.

Offered where the conversation works as a team. Whoever leads has all of them; a teammate has no more than it
may use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conversations.models import Conversation
from harness.errors import ToolError
from harness.events import UserMessage
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from teams_app.actions.mail import in_words, send_mail
from teams_app.actions.requests import answer_as_member, make_request
from teams_app.actions.tasks import numbered
from teams_app.actions.teams import spawn_teammate as spawn
from teams_app.boards import board_of
from teams_app.members import Member, member_named, member_of, members_of
from teams_app.models import Mail, TeamRequest
from teams_app.models.team import NAME_LIMIT, ROLE_LIMIT, TEXT_LIMIT
from teams_app.owners import person_named

from .place import conversation_of, told_to_the_model

FEATURE = "teams"
LISTED = 20
"""Messages that one look into the mailbox shows."""


def spawn_teammate(context: ToolContext, arguments: dict[str, Any]) -> str:
    here = conversation_of(context)
    with told_to_the_model():
        made = spawn(
            actor=here.owner,
            lead=here,
            name=arguments["name"],
            role=arguments.get("role", ""),
            text=arguments["prompt"],
            agent=arguments.get("agent", ""),
            key=context.call_id,
        )
    return f"{made.name} has joined and begins. You will hear from it; end your turn when no work is left."


def list_teammates(context: ToolContext, _arguments: dict[str, Any]) -> ToolOutput:
    me = member_of(conversation_of(context))
    if me is None:
        return ToolOutput("There is no team yet.")
    members = members_of(me.team)
    lines = [_member_line(member, me) for member in members]
    lines += [
        f"Request {request.uid} ({request.kind}) waits." for request in me.team.requests.pending()
    ]
    if me.teammate is None:
        # Whoever leads wrote these roles itself, on whichever branch.
        mates = (member.teammate for member in members if member.teammate)
        source = context.brought_by(mate.key for mate in mates if mate.key)
    else:
        source = next(filter(None, map(_role_brings, members)), "")
    return ToolOutput("\n".join(lines), untrusted=bool(source), untrusted_by=source)


def send_message(context: ToolContext, arguments: dict[str, Any]) -> str:
    me = _me(context)
    with told_to_the_model():
        whom = member_named(me.team, arguments["to"])
        if whom.conversation.pk == me.conversation.pk:
            raise ToolError("Nobody writes to herself.")
        send_mail(
            actor=me.conversation.owner,
            sender=me,
            receivers=[whom],
            text=arguments["content"],
            key=context.call_id,
        )
    return f"{whom.name} will read it at its next step."


def broadcast(context: ToolContext, arguments: dict[str, Any]) -> str:
    me = _me(context)
    with told_to_the_model():
        sent = send_mail(
            actor=me.conversation.owner,
            sender=me,
            receivers=members_of(me.team),
            text=arguments["content"],
            key=context.call_id,
            kind=Mail.Kind.BROADCAST,
        )
    return f"Sent to {len(sent)}."


def read_inbox(context: ToolContext, _arguments: dict[str, Any]) -> ToolOutput:
    me = _me(context)
    box = me.team.mails.filter(receiver=me.conversation).select_related("team__lead__owner")
    mails = list(box.with_reading().order_by("-pk")[:LISTED])
    lines = [
        f"{'' if mail.was_read else '(not read yet) '}{in_words(mail)}" for mail in reversed(mails)
    ]
    source = next((mail.untrusted_by for mail in mails if mail.untrusted_by), "")
    source = source or context.brought_by(mail.event_uid for mail in mails if mail.event_uid)
    text = "\n\n".join(lines) or "Nobody has written to you."
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def shutdown_request(context: ToolContext, arguments: dict[str, Any]) -> str:
    return _ask(context, TeamRequest.Kind.SHUTDOWN, arguments["teammate"], arguments["reason"])


def plan_request(context: ToolContext, arguments: dict[str, Any]) -> str:
    return _ask(context, TeamRequest.Kind.PLAN, arguments.get("to", "lead"), arguments["plan"])


def ask_team(context: ToolContext, arguments: dict[str, Any]) -> str:
    return _ask(context, TeamRequest.Kind.QUESTION, arguments["to"], arguments["question"])


def hand_over(context: ToolContext, arguments: dict[str, Any]) -> str:
    return _ask(
        context, TeamRequest.Kind.HANDOVER, arguments["to"], arguments["note"], arguments["id"]
    )


def answer_request(context: ToolContext, arguments: dict[str, Any]) -> str:
    me = _me(context)
    with told_to_the_model():
        answered = answer_as_member(
            actor=me.conversation.owner,
            member=me,
            request_uid=arguments["request_id"],
            approve=arguments["approve"],
            text=arguments.get("text", ""),
        )
    ends = answered.kind == TeamRequest.Kind.SHUTDOWN and arguments["approve"]
    return "You have left the team. End your turn." if ends else "Whoever asked is told."


def check_protocol(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    me = _me(context)
    found = me.team.requests.filter(uid=arguments["request_id"].replace("\0", "")).first()
    if found is None:
        raise ToolError("There is no such request in the team.")
    text = f"{found.kind}: {found.state}{': ' + found.answer if found.answer else ''}"
    return ToolOutput(text, untrusted=bool(found.untrusted_by), untrusted_by=found.untrusted_by)


# --------------------------------------------------------------------------------------------------


def _me(context: ToolContext) -> Member:
    found = member_of(conversation_of(context))
    if found is None or (found.teammate is not None and found.teammate.dismissed_at is not None):
        raise ToolError(
            "You belong to no team.", hint="Whoever leads brings teammates in with spawn_teammate."
        )
    return found


def _ask(context: ToolContext, kind: str, to: str, text: str, task: int | None = None) -> str:
    me = _me(context)
    with told_to_the_model():
        board = board_of(me.team.lead)
        person = person_named(board, to) if to.strip().startswith("@") else None
        made = make_request(
            actor=me.conversation.owner,
            asker=me,
            kind=kind,
            text=text,
            key=context.call_id,
            addressee=None if person else member_named(me.team, to),
            person=person,
            task=None if task is None else numbered(board, task),
        )
    return f"Asked: {made.uid}. You will be told of the answer; do other work meanwhile, or end your turn."


def _member_line(member: Member, me: Member) -> str:
    you = " (you)" if member.conversation.pk == me.conversation.pk else ""
    role = f": {member.teammate.role}" if member.teammate and member.teammate.role else ""
    return f"{member.name}{you}, {member.status}{role}"


def _role_brings(member: Member) -> str:
    """What strangers may have had a part in its role, which was given with the first that it was told."""
    if member.teammate is None or not member.teammate.role:
        return ""
    told = member.conversation.events.filter(type="user.message").order_by("seq").first()
    value = told.value if told is not None else None
    return value.untrusted_by if isinstance(value, UserMessage) else ""


def _to(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("to") or arguments.get("teammate") or "")


def _tool(
    name: str,
    handler: Any,
    description: str,
    properties: Mapping[str, Any],
    required: Sequence[str] = (),
    **more: Any,
) -> Tool:
    # Words within the team reach no further than its conversations, and a call that is made twice says
    # them once.
    return Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
        handler=handler,
        owner="teams_app",
        feature=FEATURE,
        **{"effect": Effect.READ, "in_order": True, "idempotent": True, "intent": _to, **more},
    )


_MEMBER = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "A teammate's name, or “lead”.",
}
_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT}
_ID = {"type": "string", "minLength": 1, "maxLength": 64, "description": "The id of the request."}

LEADS = (
    _tool(
        "spawn_teammate",
        spawn_teammate,
        "Bring a teammate in, which works beside you in a conversation of its own, from the same task board. "
        "When it has nothing to do it takes the next free task; it costs nothing while it is idle.",
        {
            "name": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
            "role": {"type": "string", "maxLength": ROLE_LIMIT, "description": "In a line."},
            "prompt": {**_TEXT, "description": "What it is to do first, and all it has to know."},
            "agent": {
                "type": "string",
                "maxLength": 100,
                "description": "Whom you may call on, or one on offer, by name; without, one like you.",
            },
        },
        ["name", "prompt"],
        # It begins work and costs money, which a plan does not, and which is not tried again by itself.
        effect=Effect.WORKSPACE,
        intent=lambda arguments: str(arguments.get("name", "")),
    ),
    _tool(
        "shutdown_request",
        shutdown_request,
        "Ask a teammate to end its work for good. It answers; its open tasks are nobody's then.",
        {"teammate": _MEMBER, "reason": _TEXT},
        ["teammate", "reason"],
    ),
)
ALL = (
    _tool("list_teammates", list_teammates, "Who is in the team, and how each of them stands.", {}),
    _tool(
        "send_message",
        send_message,
        "Write to one member of the team, who reads it at its next step, or begins a turn with it.",
        {"to": _MEMBER, "content": _TEXT},
        ["to", "content"],
    ),
    _tool(
        "broadcast", broadcast, "Write to all others in the team.", {"content": _TEXT}, ["content"]
    ),
    _tool(
        "read_inbox",
        read_inbox,
        "What was written to you last. New messages reach you by themselves.",
        {},
    ),
    _tool(
        "plan_request",
        plan_request,
        "Ask the lead, or another member, to review a plan before you carry it out.",
        {"plan": _TEXT, "to": _MEMBER},
        ["plan"],
    ),
    _tool(
        "ask_team",
        ask_team,
        "Ask one member of the team, or a person by her user name behind an @, who finds it among what waits "
        "for her. The answer comes as a message.",
        {
            "to": {**_MEMBER, "description": "A name, “lead”, or a person behind an @."},
            "question": _TEXT,
        },
        ["to", "question"],
    ),
    _tool(
        "hand_over",
        hand_over,
        "Ask another member to take over a task of yours.",
        {"id": {"type": "integer", "minimum": 1}, "to": _MEMBER, "note": _TEXT},
        ["id", "to", "note"],
    ),
    _tool(
        "answer_request",
        answer_request,
        "Answer a request that reached you with an id: to end your work, to review a plan, to take over a "
        "task, a question. Once.",
        {"request_id": _ID, "approve": {"type": "boolean"}, "text": {**_TEXT, "minLength": 0}},
        ["request_id", "approve"],
        intent=lambda arguments: str(arguments.get("request_id", "")),
    ),
    _tool(
        "check_protocol",
        check_protocol,
        "How a request stands.",
        {"request_id": _ID},
        ["request_id"],
    ),
)


def tools_for(conversation: Conversation) -> Sequence[Tool]:
    """Whoever works for somebody else brings nobody in."""
    return (*LEADS, *ALL) if conversation.parent_id is None else ALL
