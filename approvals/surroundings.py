"""What stands around a call for those who decide on it: title, request, and the steps before it.

How much of somebody else's conversation is shown, its organisation says (`ReviewersSee`); owners see
all of their own, staff with the permission all. Which approvals a person sees is the model's to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from accounts.models import ReviewersSee, User
from accounts.staff import has_staff_permission
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.errors import NotFound
from harness.events import (
    AgentMcpToolUse,
    AgentMessage,
    AgentToolUse,
    InputTaken,
    MessageEdited,
    UserMessage,
)
from reading.unseen import visible
from tools_app.catalogue import find

from .models import Approval
from .models.approval import CHANGE, VIEW

REQUEST_CHARACTERS = 600
STEP_CHARACTERS = 300
STEPS = 10
"""The last ones before the call."""


@dataclass(frozen=True, slots=True)
class Around:
    """Empty where it is not shown."""

    title: str = ""
    request: str = ""
    steps: bool = False
    """Whether the steps before it may be looked at."""


@dataclass(frozen=True, slots=True)
class Step:
    tool: str
    """Empty for what the agent said."""
    words: str


def around(user: User, approvals: Iterable[Approval]) -> dict[int, Around]:
    """By the key of each approval, in three queries at most, whatever their number."""
    given = list(approvals)
    theirs = {one.conversation_id for one in given if one.conversation.owner_id != user.pk}
    rows = Conversation.objects.decidable_by(user).filter(pk__in=theirs)
    open_to_her = set(rows.values_list("pk", flat=True)) if theirs else set()
    shown = {one.pk: (one, _shown(user, one, open_to_her)) for one in given}
    told = [one for one, level in shown.values() if level != ReviewersSee.CALL]
    requests = _requests({one.turn_uid for one in told if one.turn_uid})
    return {
        pk: Around()
        if level == ReviewersSee.CALL
        else Around(
            title=visible(one.root.title),
            request=requests.get(one.turn_uid, ""),
            steps=level == ReviewersSee.STEPS,
        )
        for pk, (one, level) in shown.items()
    }


def steps_before(user: User, approval: Approval) -> list[Step]:
    """What the agent said and called in the turn before this call. Raises NotFound where that is not
    shown to her."""
    here = Conversation.objects.decidable_by(user).filter(pk=approval.conversation_id)
    if _shown(user, approval, set(here.values_list("pk", flat=True))) != ReviewersSee.STEPS:
        raise NotFound("These steps are not shown.")
    rows = Event.objects.filter(conversation=approval.conversation_id)
    call = rows.filter(uid=approval.call_uid).first()
    begin = rows.filter(uid=approval.turn_uid).first() if approval.turn_uid else None
    if call is None or begin is None:
        return []
    of_agent = rows.filter(
        seq__gt=begin.seq,
        seq__lt=call.seq,
        type__in=["agent.message", "agent.tool_use", "agent.mcp_tool_use"],
    )
    return [_step(row) for row in reversed(of_agent.order_by("-seq")[:STEPS])]


def _shown(user: User, approval: Approval, open_to_her: Collection[int]) -> str:
    own = approval.conversation.owner_id == user.pk or approval.conversation_id in open_to_her
    if own or has_staff_permission(user, VIEW) or has_staff_permission(user, CHANGE):
        return ReviewersSee.STEPS
    return approval.organisation.reviewers_see


def _requests(turns: set[str]) -> dict[str, str]:
    """What people said that these turns began with."""
    taken: dict[str, tuple[str, ...]] = {}
    for row in Event.objects.filter(uid__in=turns):
        value = row.value
        if isinstance(value, InputTaken):
            taken[row.uid] = value.event_ids
    uids = {uid for several in taken.values() for uid in several}
    said: dict[str, str] = {}
    about = Event.objects.filter(subject__in=uids, type__in=["user.message", "x.message_edited"])
    for row in about.order_by("conversation", "seq"):
        value = row.value
        if isinstance(value, UserMessage | MessageEdited):
            said[row.subject] = text_of(value.content)
    return {turn: _together(said, several) for turn, several in taken.items()}


def _together(said: Mapping[str, str], uids: Iterable[str]) -> str:
    return _cut("\n\n".join(said[uid] for uid in uids if uid in said), REQUEST_CHARACTERS)


def _step(row: Event) -> Step:
    match row.value:
        case AgentMessage() as message:
            return Step("", _cut(text_of(message.content), STEP_CHARACTERS))
        case AgentToolUse() | AgentMcpToolUse() as use:
            tool = find(use.name)
            try:
                intent = "" if tool is None else tool.intent(use.input)
            except Exception:  # input that broke the schema may break the intent
                intent = ""
            return Step(visible(use.name), _cut(intent, STEP_CHARACTERS))
        case _:
            return Step("", "")


def _cut(text: str, most: int) -> str:
    shown = visible(text).strip()
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
