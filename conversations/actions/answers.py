"""Answers to calls that are answered outside this server: questions to the person, custom tools.

The first answer counts; any later one raises Conflict and changes nothing. That a call waits is in the
log, so an answer may come from any door, at any time, after any restart.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import whose_place
from conversations.actions.frontends import check_front_end
from conversations.actions.media import check_media
from conversations.actions.own import own_conversation, writable_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.opencalls import answered
from conversations.wakes import wake
from harness.content import Block, as_blocks, text_of
from harness.errors import Conflict, Invalid, NotFound, TooLarge
from harness.events import ANSWERS, AgentCustomToolUse, UserCustomToolResult
from harness.frontends import FrontEnd
from harness.history import Entry
from jobs.prepared import Prepared
from tools_app.questions import TOOL as QUESTIONS
from tools_app.questions import Answer, answer_text, checked, questions_of

RESULT_CHARACTERS = 200_000
"""Of the text of one result; more belongs in a file of the workspace."""

SKIPPED = "The person chose not to answer. Decide yourself what you can, and say what you assumed."
WROTE_INSTEAD = "The person did not use the form but wrote a message, which follows."
REFUSED = "The person refused this call."


def answer_custom_tool(
    *,
    actor: User,
    conversation: Conversation,
    call_uid: str,
    content: str | tuple[Block, ...],
    is_error: bool = False,
    front_end: FrontEnd | None = None,
) -> Event:
    """Give a custom tool's call its result, as the program does or a person in its place.
    `front_end` is what the program sends along from here on.

    Raises NotFound, Conflict when the call has its answer, TooLarge, Invalid for a picture or a
    document that no model could read and for what `check_front_end` does not take, and Busy as
    `check_media`.
    """
    blocks = as_blocks(content.replace("\0", "")) if isinstance(content, str) else content
    if len(text_of(blocks)) > RESULT_CHARACTERS:
        raise TooLarge(
            _("The result is longer than %(limit)d characters.") % {"limit": RESULT_CHARACTERS},
            field="content",
            hint=_("Shorten it, or upload it as a file and name the file."),
        )
    blocks = check_media(blocks, who=whose_place(actor))
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        use = _waiting_call(held, call_uid)
        declared = {tool.name for tool in held.config.custom_tools}
        own = use.name == QUESTIONS and QUESTIONS not in declared
        if front_end is not None:
            check_front_end(held, front_end)
        return _give(
            held,
            call_uid,
            blocks,
            actor,
            is_error=is_error,
            untrusted=not own,
            front_end=front_end,
        )


def refuse_custom_tool(
    *, actor: User, conversation: Conversation, call_uid: str, reason: str = ""
) -> Event:
    """Answer a custom tool's call by hand with a refusal, which the model reads."""
    words = f"{REFUSED} {reason.strip()}".strip().replace("\0", "")
    if len(words) > RESULT_CHARACTERS:
        raise TooLarge(
            _("The reason is longer than %(limit)d characters.") % {"limit": RESULT_CHARACTERS},
            field="reason",
            hint=_("Shorten it."),
        )
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        _waiting_call(held, call_uid)
        return _give(held, call_uid, as_blocks(words), actor, is_error=True)


def answer_questions(
    *, actor: User, conversation: Conversation, call_uid: str, answers: Sequence[Answer]
) -> Event:
    """Answer what an agent asked. Raises NotFound, Conflict when it was answered before, and Invalid,
    naming the answer, for one that does not fit its question."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        questions = questions_of(_waiting_questions(held, call_uid).input)
        words = answer_text(questions, checked(questions, answers))
        return _give(held, call_uid, as_blocks(words), actor)


def skip_questions(*, actor: User, conversation: Conversation, call_uid: str) -> Event:
    """Let the agent go on without an answer."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        _waiting_questions(held, call_uid)
        return _give(held, call_uid, as_blocks(SKIPPED), actor)


def set_questions_aside(held: Conversation, actor: User) -> bool:
    """Answer the questions that wait because a message comes in their place; False: there were none.

    `held` is locked and the actor's. Questions asked by a run that is under way count too.
    """
    uids = {uid for (uid,) in _ASKED.all(conversation=held.pk)}
    if not uids:
        return False
    waiting = uids - answered(held, uids)
    for uid in sorted(waiting):
        _give(held, uid, as_blocks(WROTE_INSTEAD), actor)
    return bool(waiting)


_ASKED = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="agent.custom_tool_use", payload__name=QUESTIONS
    ).values_list("uid")
)


def _waiting_questions(held: Conversation, call_uid: str) -> AgentCustomToolUse:
    use = _waiting_call(held, call_uid)
    if use.name != QUESTIONS:
        raise Invalid(
            _("This call asks no questions."),
            field="call",
            hint=_("Give the result of its tool instead."),
        )
    return use


def _waiting_call(held: Conversation, call_uid: str) -> AgentCustomToolUse:
    subject = call_uid.replace("\0", "")  # one of the databases cannot look for it
    about = list(Event.objects.filter(conversation=held, subject=subject).order_by("seq"))
    use = about[0].value if about and about[0].uid == subject else None
    if not isinstance(use, AgentCustomToolUse):
        raise NotFound(_("There is no such call."))
    if any(row.type in ANSWERS for row in about):
        raise Conflict(
            _("This call has its answer already."), hint=_("The first answer counts; look at it.")
        )
    return use


def _give(
    held: Conversation,
    call_uid: str,
    content: tuple[Block, ...],
    actor: User,
    *,
    is_error: bool = False,
    untrusted: bool = False,
    front_end: FrontEnd | None = None,
) -> Event:
    result = UserCustomToolResult(
        custom_tool_use_id=call_uid,
        content=content,
        is_error=is_error,
        untrusted=untrusted,
        front_end=front_end,
    )
    row = append(held.pk, [Entry.of(result)], actor=actor)[0]
    wake(held.pk)
    return row
