"""Going back in a conversation: say a message anew, have an answer done anew, rewind, choose a sibling.

Each appends what closes the branch that is left, and one `x.rewound`, in one transaction; nothing is
changed or taken away (`harness.branches`). Only at rest: work that is under way is stopped first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.messages import checked_text, sent_before
from conversations.actions.own import own_conversation, require_own
from conversations.branches import branches_of, standing
from conversations.checkpoints import ask_for_files, holding
from conversations.log import SENT_BEFORE, append, entries_after
from conversations.models import BackgroundCommand, Conversation, Event
from conversations.ratelimits import count_message
from conversations.wakes import wake
from harness.branches import place_before
from harness.calls import STOPPED, UNKNOWN, refusal_of
from harness.content import Block, Text
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from harness.events import (
    EndTurn,
    InputTaken,
    MessageWithdrawn,
    RequiresAction,
    Rewound,
    SessionStatusIdle,
    UserMessage,
    subject_of,
)
from harness.history import Entry, History, OpenCall
from harness.lostrequests import left_behind

MOST_BRANCHES = 500
"""In one conversation; each is looked at whenever a page of it is drawn."""
MODEL_LIMIT = 100
ACTS = ("edit", "regenerate", "rewind", "switch")


@dataclass(frozen=True, slots=True)
class Log:
    """A conversation at rest, held, with all of its log and what of it counts."""

    held: Conversation
    entries: Sequence[Entry]
    history: History

    @property
    def path(self) -> Sequence[Entry]:
        return self.history.entries

    def place_of(self, uid: str) -> int:
        """Where an event stands on the path. Raises NotFound, and Conflict for one of a sibling."""
        for place, entry in enumerate(self.path):
            if entry.uid == uid:
                return place
        if any(entry.uid == uid for entry in self.entries):
            raise Conflict(_("This stands on another branch."), hint=_("Choose that branch first."))
        raise NotFound(_("There is no such event."))

    def taken(self, place: int, *, begins: bool = False) -> int:
        """Where the input was taken that led to an event: a message its own, anything else the last one
        before it. `begins`: the one with which the turn began, whatever joined it later."""
        uid, first = self.path[place].uid, place
        if isinstance(self.path[place].event, UserMessage):
            for found in range(len(self.path) - 1, place, -1):
                taken = self.path[found].event
                if isinstance(taken, InputTaken) and uid in taken.event_ids:
                    first = found
                    break
            else:
                raise Conflict(
                    _("This message still waits."), hint=_("Edit or withdraw it in the queue.")
                )
        for found in range(first, -1, -1):
            taken = self.path[found].event
            if isinstance(taken, InputTaken) and not (begins and taken.steered):
                return found
        raise Conflict(_("Nothing was asked before this."), hint=_("Send a message instead."))

    def before(self, taken: int, keeps: Collection[str] = ()) -> int:
        """The number behind which the dialogue goes on right before an input was taken: the place that
        it rests on, and everything of the inputs that are kept, as they came and were edited since."""
        kept = (
            entry.seq for entry in self.path[:taken] if subject_of(entry.uid, entry.event) in keeps
        )
        return max([place_before(self.path, taken), *kept])

    def edge(self, place: int) -> int:
        """The number behind which the dialogue goes on at a message, right before its turn, or at
        anything else, at the end of its turn. Raises Conflict while that is not over."""
        if isinstance(self.path[place].event, UserMessage):
            return place_before(self.path, self.taken(place, begins=True))
        for entry in self.path[place:]:
            if _is_over(entry):
                return entry.seq
        raise Conflict(_("This turn is not over."), hint=_("Answer what waits, or stop it first."))

    def last_end(self) -> int:
        """The number at which the last turn ended that is over; 0: none is."""
        return next((entry.seq for entry in reversed(self.path) if _is_over(entry)), 0)


def _is_over(entry: Entry) -> bool:
    rest = entry.event
    return isinstance(rest, SessionStatusIdle) and not isinstance(rest.stop_reason, RequiresAction)


def edit_and_resend(
    *,
    actor: User,
    conversation: Conversation,
    message_uid: str,
    text: str,
    key: str | None = None,
    files: bool = True,
) -> Event:
    """Say a message of the dialogue in other words: it goes on from there on a branch of its own, with
    what came with the message, and with the files as they were there unless `files` is false. Returns
    the new message; the same `key` twice stores one.

    Raises NotFound, Invalid and TooLarge for the text, TooMany, Conflict while it works, for what is no
    message of a person's in the present dialogue and for a key of another message, LimitReached past
    `MOST_BRANCHES`.
    """
    text = checked_text(text)
    read = read_so_far(actor, conversation)
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        known = SENT_BEFORE.first(conversation=held.pk, key=key) if key else None
        if known is not None:
            return sent_before(known, sender=actor, text=text)
        log = at_rest(held, read)
        place = log.place_of(message_uid)
        message = log.path[place].event
        if not isinstance(message, UserMessage) or message.by_agent:
            raise Conflict(_("Only a message of a person can be said anew."))
        count_message(actor)
        taken = log.taken(place)
        before = log.path[taken].event
        ids = before.event_ids if isinstance(before, InputTaken) else ()
        words = {"content": _in_other_words(message, text), "carried_over": False}
        anew = Entry.of(message.model_copy(update=words))
        keeps = tuple(uid for uid in ids if uid != message_uid)
        rewound = Rewound(behind=log.before(taken, keeps), why="edit", keeps=keeps)
        _leave(log, rewound, actor, files=files)
        row = append(held.pk, [anew], actor=actor, key=key)[0]
        these = tuple(anew.uid if uid == message_uid else uid for uid in ids)
        taken_anew = before.model_copy(update={"event_ids": these})
        append(held.pk, [Entry.of(taken_anew)], actor=actor)
        _go_on(log)
    return row


def regenerate(
    *,
    actor: User,
    conversation: Conversation,
    event_uid: str,
    model: str = "",
    files: bool = True,
) -> Event:
    """Have what a message led to done anew on a branch of its own; `event_uid` is the message's, or of
    anything it led to. `model` answers in place of the agent's own, this time. `files` as for an edit.

    Raises NotFound, Invalid for the model's name, Conflict while it works, LimitReached, and TooMany: it
    has the agent work as a message does.
    """
    model = checked_model(model)
    read = read_so_far(actor, conversation)
    with transaction.atomic():
        log = at_rest(own_conversation(actor, conversation), read)
        taken = log.taken(log.place_of(event_uid))
        count_message(actor)
        behind = log.path[taken].seq
        rewound = Rewound(behind=behind, why="regenerate", model=model)
        row = _leave(log, rewound, actor, files=files)
        _go_on(log)
    return row


def rewind(*, actor: User, conversation: Conversation, event_uid: str, files: bool = True) -> Event:
    """Go back to right before the turn of a message, or to the end of the turn of anything else. `files`
    as for an edit.

    Raises NotFound, LimitReached, Conflict while it works and where it stands there already.
    """
    read = read_so_far(actor, conversation)
    with transaction.atomic():
        log = at_rest(own_conversation(actor, conversation), read)
        behind = log.edge(log.place_of(event_uid))
        if behind == place_before(log.path, len(log.path)):
            raise Conflict(_("The conversation stands there already."))
        return _leave(log, Rewound(behind=behind), actor, files=files)


def switch_branch(
    *, actor: User, conversation: Conversation, event_uid: str, files: bool = True
) -> Event:
    """Go on with the newest dialogue that leads through an event, on whichever branch it stands. `files`
    as for an edit.

    Raises NotFound, LimitReached, Conflict while it works and where that is the present one.
    """
    read = read_so_far(actor, conversation)
    with transaction.atomic():
        log = at_rest(own_conversation(actor, conversation), read)
        chosen = next((entry for entry in log.entries if entry.uid == event_uid), None)
        if chosen is None:
            raise NotFound(_("There is no such event."))
        branches = branches_of(log.held.pk, log.held.last_seq, siblings=True)
        if chosen.seq in branches.path():
            raise Conflict(_("The conversation stands on this branch already."))
        path = branches.path(branches.tip(chosen.seq))
        theirs = [entry for entry in log.entries if entry.seq in path]
        behind = place_before(theirs, len(theirs))
        return _leave(log, Rewound(behind=behind, why="switch"), actor, files=files)


def go_elsewhere(
    *,
    actor: User,
    conversation: Conversation,
    act: str,
    event_uid: str,
    content: str = "",
    model: str = "",
    files: bool = True,
) -> Event:
    """One of `ACTS`, as doors of programs name it; `content` is an edit's, `model` a new answer's. Raises
    what that raises, and Invalid for another act."""
    match act:
        case "edit":
            return edit_and_resend(
                actor=actor,
                conversation=conversation,
                message_uid=event_uid,
                text=content,
                files=files,
            )
        case "regenerate":
            return regenerate(
                actor=actor,
                conversation=conversation,
                event_uid=event_uid,
                model=model,
                files=files,
            )
        case "rewind":
            return rewind(actor=actor, conversation=conversation, event_uid=event_uid, files=files)
        case "switch":
            return switch_branch(
                actor=actor, conversation=conversation, event_uid=event_uid, files=files
            )
        case _:
            raise Invalid(
                _("There is no act “%(name)s”.") % {"name": act[:40]},
                field="act",
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(ACTS)},
            )


def checked_model(model: str) -> str:
    """What is stored of a model's name; raises Invalid."""
    model = model.strip()
    if len(model) > MODEL_LIMIT or not model.isprintable():
        raise Invalid(
            _("The name of the model has more than %(limit)d characters, or odd ones.")
            % {"limit": MODEL_LIMIT},
            field="model",
            hint=_("Leave it out."),
        )
    return model


def require_files_settled(held: Conversation) -> None:
    """Raises Conflict while it is not known yet how its files are: they are still to be brought back."""
    if held.files_due_seq is not None:
        raise Conflict(
            _("Its files are just being brought back."), hint=_("Try again in a moment.")
        )


def require_quiet_files(held: Conversation) -> None:
    """Raises Conflict where commands would go on changing what is brought back."""
    if BackgroundCommand.objects.running().filter(conversation=held).exists():
        raise Conflict(
            _("A background command is at work on its files."),
            hint=_("Cancel it first, or leave the files as they are."),
        )


def read_so_far(reader: User, conversation: Conversation) -> list[Entry]:
    """The log so far. Before the transaction: a long one takes seconds, in which nobody else could write
    where the database knows one writer only. Raises NotFound."""
    require_own(reader, conversation)
    return entries_after(conversation.pk, 0)


def require_quiet(held: Conversation) -> None:
    """Raises Conflict where it is archived, at work or about to be."""
    if held.archived_at is not None:
        raise Conflict(_("This conversation is archived."), hint=_("Bring it back first."))
    if held.is_running or held.waits_for_worker or held.owes_run:
        raise Conflict(_("The conversation is at work."), hint=_("Stop it first, or wait."))


def at_rest(held: Conversation, read: Sequence[Entry] = ()) -> Log:
    """With nothing under way, and read, as far as it was not before. Raises Conflict."""
    require_quiet(held)
    entries = [*read, *entries_after(held.pk, read[-1].seq if read else 0)]
    return Log(held, entries, History(entries))


def _in_other_words(message: UserMessage, text: str) -> tuple[Block, ...]:
    """Pictures and documents stay."""
    return (Text(text=text), *(block for block in message.content if not isinstance(block, Text)))


def _leave(log: Log, rewound: Rewound, actor: User, *, files: bool) -> Event:
    """Close what is open on the present branch, and go on elsewhere, with its files or without. Raises
    LimitReached."""
    if sum(isinstance(entry.event, Rewound) for entry in log.entries) >= MOST_BRANCHES:
        raise LimitReached(
            _("This conversation has %(limit)d branches, the most there may be.")
            % {"limit": MOST_BRANCHES},
            hint=_("Go on with this one, or fork it."),
        )
    rewound = rewound.model_copy(update=_files_there(log, rewound.behind, wanted=files))
    history = log.history
    closing = [_given_up(call) for call in history.unanswered()]
    closing += left_behind(history, ())  # of a run that broke; none goes on here that would say so
    if history.turn.open:
        closing.append(Entry.of(SessionStatusIdle(stop_reason=EndTurn(), interrupted=True)))
    closing += [Entry.of(MessageWithdrawn(event_id=entry.uid)) for entry in _queue(log)]
    entries = [*closing, Entry.of(rewound)]
    placed = [replace(entry, seq=seq) for seq, entry in enumerate(entries, log.held.last_seq + 1)]
    stands = standing(History([*log.entries, *placed]))
    row = append(log.held.pk, entries, actor=actor, stands=stands)[-1]
    if rewound.checkpoint:
        ask_for_files(log.held.pk)
    return row


def _files_there(log: Log, place: int, *, wanted: bool) -> dict[str, str]:
    """What becomes of the files. Raises Conflict where commands that run would go on changing them."""
    if log.held.environment.has_workers:
        return {"files": "elsewhere"}
    require_files_settled(log.held)
    found = holding(log.held.pk, place)
    if found is None:
        return {}
    if not wanted:
        return {"files": "stay"}
    if not found.snapshot:
        return {"files": "not_kept"}
    require_quiet_files(log.held)
    return {"files": "follow", "checkpoint": found.uid}


def _go_on(log: Log) -> None:
    """A run is owed. What waited in the queue comes along, each still its sender's."""
    queue = _queue(log)
    senders = {
        row.uid: row.actor
        for row in Event.objects.filter(
            conversation=log.held, uid__in=[entry.uid for entry in queue]
        ).select_related("actor")
    }
    for entry in queue:
        here = entry.event.model_copy(update={"carried_over": True})
        append(log.held.pk, [Entry.of(here)], actor=senders.get(entry.uid))
    wake(log.held.pk)


def _queue(log: Log) -> list[Entry]:
    return [entry for entry in log.history.queued() if isinstance(entry.event, UserMessage)]


def _given_up(call: OpenCall) -> Entry:
    if call.started_effect is None and not call.unknown:
        return refusal_of(call, STOPPED, "stopped")
    return refusal_of(call, UNKNOWN, "unknown")
