"""What a conversation waits for, as questions that an MCP client can put to its person, and their answers.

Asked is what this person may decide, with this token, and what a form shows whole; all else has its link.
Deciding itself is the actions' that every door calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from pydantic import ValidationError

from accounts.models import TokenScope, User
from agents.models import Agent
from approvals.actions.calls import decide_call
from approvals.deciders import may_not_decide
from approvals.models import Approval
from conversations.actions.answers import answer_questions, skip_questions
from conversations.models import Conversation, Event
from conversations.opencalls import open_calls
from harness.errors import Conflict, Invalid
from harness.events import AgentCustomToolUse
from reading.unseen import visible_json
from tools_app.questions import TOOL as QUESTIONS
from tools_app.questions import Answer, questions_of
from tools_app.touches import as_data, as_text, is_shown_whole

from . import tools
from .tools import Principal

MOST_ASKED = 20
MOST_SHOWN = 6_000
"""Characters of a call's input, and of what it would act on, that a form still shows. What is longer
is decided on the page."""
PART = "."
"""In a key, between a call, how often it was asked for, and the beginning of the hash of what was shown: an
old answer is none to a new question, nor to a call that somebody has changed since."""
_HASH = 16
ALLOW, DENY = "allow", "deny"


@dataclass(frozen=True, slots=True)
class Asked:
    key: str
    """Never used for another question."""
    message: str
    schema: dict[str, Any]

    def wire(self) -> dict[str, Any]:
        params = {"mode": "form", "message": self.message, "requestedSchema": self.schema}
        return {"method": "elicitation/create", "params": params}


@dataclass(frozen=True, slots=True)
class Said:
    """A client's answer to one of them."""

    action: str
    content: Mapping[str, Any]


def waiting(conversation: Conversation) -> QuerySet[Approval]:
    """Calls of the conversation, and of those that it started, that somebody has to decide on."""
    return Approval.objects.filter(conversation__in=_family(conversation)).waiting()


def waits(conversation: Conversation) -> bool:
    return tools.waits(conversation) or waiting(conversation).exists()


def questions(who: Principal, conversation: Conversation) -> list[Asked]:
    """Those that can be asked by a form."""
    found: list[Asked] = []
    if who.may(TokenScope.APPROVALS_DECIDE):
        rows = waiting(conversation).select_related("conversation").order_by("pk")[:MOST_ASKED]
        found += [
            asked
            for row in rows
            if not may_not_decide(who.user, row) and (asked := _decision(row)) is not None
        ]
    if who.may(TokenScope.CONVERSATIONS_WRITE):
        found += [_form(row) for row in _open_questions(who.user, conversation)]
    return found[:MOST_ASKED]


def answer(who: Principal, conversation: Conversation, said: Mapping[str, Said]) -> None:
    """Take the answers to what is open; other keys are passed over. Dismissed (`cancel`), it stays open.

    Raises Invalid for one that does not fit its question, and what the actions raise.
    """
    open_now = {each.key for each in questions(who, conversation)}
    for key, each in said.items():
        if key not in open_now or each.action == "cancel":
            continue
        try:
            if PART in key:
                _decide(who, conversation, key, each)
            else:
                _reply(who, conversation, key, each)
        except Conflict:
            # Somebody was faster, or it is no longer asked: what the client hears next says so.
            continue


def read_said(given: Mapping[str, Any]) -> dict[str, Said]:
    """Answers as they came. What is none is left out."""
    found: dict[str, Said] = {}
    for key, value in given.items():
        data = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        action, content = data.get("action"), data.get("content")
        if action in {"accept", "decline", "cancel"}:
            found[key] = Said(action, content if isinstance(content, Mapping) else {})
    return found


def _family(conversation: Conversation) -> list[int]:
    found = generation = [conversation.pk]
    while generation:
        below = Conversation.objects.filter(parent__in=generation)
        generation = list(below.order_by().values_list("pk", flat=True))
        found = [*found, *generation]
    return found


def _decision(row: Approval) -> Asked | None:
    shown = visible_json(row.effective_input, indent=1)
    if told := as_text(as_data(row.touches)):
        shown += f"\n\n{told}"
    if len(shown) > MOST_SHOWN or not is_shown_whole(row.touches):
        return None
    wanted = _("The agent wants to use %(tool)s:") % {"tool": row.tool}
    if row.host:
        wanted = _("The agent wants to use %(tool)s at %(host)s:") % {
            "tool": row.tool,
            "host": row.host,
        }
    words = [wanted, shown]
    if row.reason:
        words.append(row.reason)
    schema = {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": str(_("Decision")),
                "enum": [ALLOW, DENY],
                "description": str(_("Allow exactly this call, or deny it.")),
            },
            "reason": {"type": "string", "title": str(_("Why, if it is denied"))},
        },
        "required": ["decision"],
    }
    return Asked(_key(row), "\n".join(words), schema)


def _key(row: Approval) -> str:
    return PART.join((row.call_uid, str(row.round), row.effective_sha256[:_HASH]))


def _decide(who: Principal, conversation: Conversation, key: str, said: Said) -> None:
    uid = key.partition(PART)[0]
    row = waiting(conversation).filter(call_uid=uid).select_related("conversation").first()
    if row is None or _key(row) != key:
        return
    decision = said.content.get("decision") if said.action == "accept" else DENY
    if decision not in {ALLOW, DENY}:
        raise Invalid(
            _("A decision is “allow” or “deny”."),
            field=f"{key}.decision",
            hint=_("Give one of them."),
        )
    reason = said.content.get("reason")
    decide_call(
        actor=who.user,
        conversation=row.conversation,
        call_uid=uid,
        allow=decision == ALLOW,
        reason=reason if isinstance(reason, str) else "",
        shown=row.effective_sha256,
        seen_round=row.round,
    )


def _answerable(user: User, conversation: Conversation) -> list[int]:
    """Those of the family in which `writable_conversation` lets her: what others own, with an agent that is
    hers to use."""
    usable = Agent.objects.visible_to(user).values("pk")
    found = Conversation.objects.writable_by(user).filter(
        Q(owner=user) | Q(agent_version__agent__in=usable), pk__in=_family(conversation)
    )
    return sorted(set(found.values_list("pk", flat=True)))


def _open_questions(user: User, conversation: Conversation) -> Sequence[Event]:
    """The agent's questions (`ask_user`) that have no answer, where this person may give one."""
    rows: list[Event] = []
    for pk in _answerable(user, conversation):
        uses = Event.objects.filter(conversation=pk, type="agent.custom_tool_use").order_by("-seq")
        latest = {
            row.uid: row
            for row in uses[:MOST_ASKED]
            if isinstance(row.value, AgentCustomToolUse) and row.value.name == QUESTIONS
        }
        rows += [latest[uid] for uid in open_calls(pk, latest)] if latest else []
    return rows


def _form(row: Event) -> Asked:
    use = row.value
    asked = questions_of(use.input) if isinstance(use, AgentCustomToolUse) else ()
    properties: dict[str, Any] = {}
    for number, question in enumerate(asked, start=1):
        labels = [option.label for option in question.options]
        about = "; ".join(
            f"{each.label}: {each.description}" for each in question.options if each.description
        )
        shape: dict[str, Any] = {"title": question.question}
        if about:
            shape["description"] = about
        if labels and question.multi_select:
            items = {"type": "string", "enum": labels}
            properties[f"choice_{number}"] = {**shape, "type": "array", "items": items}
        elif labels:
            properties[f"choice_{number}"] = {**shape, "type": "string", "enum": labels}
        if question.takes_text:
            title = str(_("In your own words")) if labels else question.question
            properties[f"text_{number}"] = {"type": "string", "title": title}
    message = "\n".join(question.question for question in asked)
    return Asked(row.uid, message, {"type": "object", "properties": properties})


def _reply(who: Principal, conversation: Conversation, uid: str, said: Said) -> None:
    row = next((each for each in _open_questions(who.user, conversation) if each.uid == uid), None)
    use = row.value if row is not None else None
    if row is None or not isinstance(use, AgentCustomToolUse):
        return
    place = row.conversation
    if said.action != "accept":
        skip_questions(actor=who.user, conversation=place, call_uid=uid)
        return
    try:
        answers = _answers(said.content, len(questions_of(use.input)))
        answer_questions(actor=who.user, conversation=place, call_uid=uid, answers=answers)
    except Invalid as problem:
        raise problem.under(uid) from None


def _answers(content: Mapping[str, Any], count: int) -> list[Answer]:
    found: list[Answer] = []
    for number in range(1, count + 1):
        chosen, text = content.get(f"choice_{number}"), content.get(f"text_{number}")
        labels = [chosen] if isinstance(chosen, str) and chosen else chosen or []
        try:
            found.append(Answer.model_validate({"chosen": labels, "text": text or ""}))
        except ValidationError:
            raise Invalid(
                _("This is no answer to the question."),
                field=f"choice_{number}",
                hint=_("Choose among the options, or use your own words."),
            ) from None
    return found
