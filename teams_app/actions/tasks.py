"""Tasks come into being, are taken, changed, linked and deleted; by people, and by agents at their board.

Every change holds the board's row, so that numbers, claims and the order of tasks are decided by the
database, whichever process asks. An agent acts for the owner of its conversation (`by`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.broughtwords import bring_words
from conversations.models import Conversation, Run
from conversations.writers import behind
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge
from reading.digits import number_of
from teams_app.boards import holding, stored
from teams_app.events import TaskCreated, TaskDeleted, TaskUpdated
from teams_app.models import Board, Dependency, Task, TaskLink
from teams_app.models.board import DESCRIPTION_LIMIT, SUBJECT_LIMIT
from teams_app.owners import NOBODY, Owner, require_fit, works_at
from teams_app.telling import say_to_agent, tell_of
from teams_app.waking import attend_board
from wire.naming import one_line

METADATA_CHARACTERS = 10_000
LINKS = 20
"""Of one task."""
BLOCKERS = 50
"""Of one task."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What of a task is to be different; None: it stays."""

    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: str | None = None
    owner: Owner | None = None
    """`NOBODY` leaves it to whoever takes it."""
    blocked_by: Sequence[int] = ()
    """Numbers of tasks that it waits for from now on, too."""
    blocks: Sequence[int] = ()
    """Numbers of tasks that wait for it from now on, too."""
    unblocked_by: Sequence[int] = ()
    """Numbers of tasks that it waits for no more."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Merged with what is there; a null takes a name away."""

    @property
    def says_something(self) -> bool:
        """Whether it brings words into the task."""
        return bool(self.subject or self.description or self.active_form or self.metadata)


def create_task(
    *,
    actor: User,
    board: Board,
    subject: str,
    description: str = "",
    active_form: str = "",
    owner: Owner = NOBODY,
    blocked_by: Sequence[int] = (),
    blocks: Sequence[int] = (),
    metadata: Mapping[str, Any] | None = None,
    by: Conversation | None = None,
    key: str | None = None,
    untrusted_by: str = "",
) -> Task:
    """The same `key` twice makes one task. Raises NotFound and Forbidden for the board, Invalid and
    TooLarge naming the field, Conflict for a circle of tasks, LimitReached."""
    words = {
        "subject": _subject(subject),
        "description": _text(description, "description", DESCRIPTION_LIMIT),
        "active_form": _line(active_form, "active_form"),
    }
    with _changing(actor, board, by) as held:
        if key is not None and (known := held.tasks.filter(key=key).first()):
            return known
        if held.tasks.count() >= settings.AGENTSITE_BOARD_TASKS:
            raise LimitReached(
                _("The board holds %(limit)d tasks already.")
                % {"limit": settings.AGENTSITE_BOARD_TASKS},
                hint=_("Delete some that are done."),
            )
        require_fit(held, owner)
        held.last_number += 1
        task = Task.objects.create(
            board=held,
            number=held.last_number,
            creator_user=None if by else actor,
            creator_conversation=by,
            key=key,
            untrusted_by=untrusted_by[:300],
            metadata=_merged({}, metadata or {}),
            **words,
            **owner.fields(),
        )
        task.writers.add(*_writing(actor, by))
        _depend(held, task, blocked_by, blocks)
        tell_of(TaskCreated, held, task, actor=actor, by=by)
        _tell_owner(task, by)
    return task


def change_task(
    *,
    actor: User,
    task: Task,
    changes: Changes,
    by: Conversation | None = None,
    untrusted_by: str = "",
) -> Task:
    """All of it or nothing. Whoever finishes or cancels a task frees those that waited for it.

    Raises NotFound, Forbidden, Invalid and TooLarge naming the field, and Conflict for a circle, and for a
    status that a task cannot have while it waits for others.
    """
    with _changing(actor, task.board, by, task) as held:
        row = _held_task(held, task)
        if by is not None:
            _require_its_business(held, row, by, changes)
        else:
            _require_her_say(held, actor, changes)
        before = _Before.of(row)
        _write_words(row, changes)
        if changes.says_something:
            source = untrusted_by or _other_person(held, actor, by)
            row.untrusted_by = source[:300] or row.untrusted_by
            row.writers.add(*_writing(actor, by))
        if changes.owner is not None and not changes.owner.has(row):
            require_fit(held, changes.owner)
            _give(row, changes.owner)
        for number in changes.unblocked_by:
            row.dependencies.filter(blocker__number=number).delete()
        _depend(held, row, changes.blocked_by, changes.blocks)
        if changes.status is not None:
            _move(row, changes.status, before)
        row.save()
        tell_of(
            TaskUpdated,
            held,
            row,
            actor=actor,
            by=by,
            also=[before.owner_conversation],
            change=before.kind_of_change(row),
        )
        if before.was_open and not row.is_open:
            _free(held, row, actor, by)
            _tell_maker(row, actor, by)
        if changes.owner is not None:
            _tell_owner(row, by)
    return row


def claim_task(
    *,
    actor: User,
    board: Board,
    number: int | None = None,
    claimant: Owner,
    by: Conversation | None = None,
) -> Task:
    """Take a task that is nobody's and waits for nothing, and begin it; without a number the first of
    them. Of many who try at once one has it.

    Raises NotFound for no such task and where none is to be had, Conflict where it is another's, waits for
    others or is no longer to be done.
    """
    with _changing(actor, board, by) as held:
        require_fit(held, claimant)
        if number is None:
            task = held.tasks.claimable().order_by("number").first()
            if task is None:
                raise NotFound(_("No task can be taken now."))
        else:
            task = numbered(held, number)
            if claimant.has(task) and task.status == Task.Status.IN_PROGRESS:
                return task
            _require_claimable(task, claimant)
        unclaimed = Task.objects.filter(pk=task.pk, status=Task.Status.PENDING)
        unclaimed = unclaimed.filter(
            owner_user=task.owner_user_id, owner_conversation=task.owner_conversation_id
        )
        if not unclaimed.update(**claimant.fields(), status=Task.Status.IN_PROGRESS):
            raise Conflict(_("Task #%(number)d was just taken.") % {"number": task.number})
        task.refresh_from_db()
        tell_of(TaskUpdated, held, task, actor=actor, by=by, change="claimed")
        _name_writers(task)
    return task


def delete_task(*, actor: User, task: Task, by: Conversation | None = None) -> None:
    """For good; its number is not given again. Those that waited for it are free.

    Raises NotFound, Forbidden.
    """
    with _changing(actor, task.board, by) as held:
        row = _held_task(held, task)
        if by is not None:
            _require_its_business(held, row, by, Changes())
        tell_of(TaskDeleted, held, row, actor=actor, by=by)
        waiting = _waiting_for(held, row)
        row.delete()
        _tell_freed(held, waiting, actor, by)


def link_task(
    *,
    actor: User,
    task: Task,
    kind: str,
    conversation: Conversation,
    target: str = "",
    by: Conversation | None = None,
    untrusted_by: str = "",
) -> TaskLink:
    """Say what a task is about, or what it came to: a conversation, a run of it, a file in its workspace.
    Who cannot see the conversation does not see the link.

    Raises NotFound for what the actor does not see, Invalid for another kind or target, LimitReached.
    """
    with _changing(actor, task.board, by, task) as held:
        row = _held_task(held, task)
        if not Conversation.objects.visible_to(actor).filter(pk=conversation.pk).exists():
            raise NotFound(_("There is no such conversation."))
        target = _target(kind, conversation, target)
        if row.links.count() >= LINKS:
            raise LimitReached(_("A task has at most %(limit)d links.") % {"limit": LINKS})
        link, made = TaskLink.objects.get_or_create(
            task=row, kind=kind, conversation=conversation, target=target
        )
        if made:
            # A path is read with the task, and may be any words.
            source = untrusted_by or _other_person(held, actor, by)
            row.untrusted_by = source[:300] or row.untrusted_by
            row.save(update_fields=["untrusted_by"])
            row.writers.add(*_writing(actor, by))
            tell_of(TaskUpdated, held, row, actor=actor, by=by, change="edited")
    return link


def unlink_task(*, actor: User, task: Task, link: int) -> None:
    """Raises NotFound, Forbidden."""
    with _changing(actor, task.board, None, task) as held:
        row = _held_task(held, task)
        mine = row.links.filter(conversation__in=Conversation.objects.visible_to(actor), pk=link)
        if not mine.exists():
            raise NotFound(_("There is no such link."))
        tell_of(TaskUpdated, held, row, actor=actor, by=None, change="edited")
        mine.delete()


def numbered(board: Board, number: int) -> Task:
    """NotFound for none."""
    there = board.is_stored and 0 < number < 2**31
    found = board.tasks.filter(number=number).first() if there else None
    if found is None:
        raise NotFound(
            _("There is no task #%(number)d.") % {"number": number},
            hint=_("The list of tasks tells which there are."),
        )
    return found


# --- who may ------------------------------------------------------------------------------------


@contextmanager
def _changing(
    actor: User, board: Board, by: Conversation | None, task: Task | None = None
) -> Iterator[Board]:
    """The board, held to the end of the transaction; what was changed at it makes it another version.

    Raises NotFound for one that the actor does not see, Forbidden where she may only look, unless the task
    is hers to do.
    """
    with transaction.atomic():
        held = _held(actor, stored(_visible_place(actor, board)), task)
        if by is not None and not works_at(held, by):
            raise NotFound(_("There is no such board."))
        yield held
        Board.objects.filter(pk=held.pk).update(
            version=F("version") + 1, last_number=held.last_number
        )
        attend_board(held)


def _visible_place(actor: User, board: Board) -> Board:
    """Before a board is stored for the first time: its conversation is the actor's to write in."""
    if board.is_stored:
        return board
    place = board.conversation
    if place is None and not actor.memberships.filter(organisation=board.organisation).exists():
        _refuse(may_look=False)
    if place is not None and not Conversation.objects.writable_by(actor).contains(place):
        _refuse(Conversation.objects.visible_to(actor).contains(place))
    return board


def _held(actor: User, board: Board, task: Task | None) -> Board:
    held = (
        Board.objects.changeable_by(actor)
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=board.pk)
        .first()
    )
    if held is not None:
        return held
    seen = Board.objects.visible_to(actor).filter(pk=board.pk)
    hers = task is not None and Task.objects.waiting_for(actor).filter(pk=task.pk).exists()
    if not hers:
        _refuse(seen.exists())
    return seen.select_for_update(of=("self",), no_key=True).get()


def _refuse(may_look: bool) -> NoReturn:
    if may_look:
        raise Forbidden(
            _("You may look at this board, but not change it."),
            hint=_("Ask the owner of its conversation."),
        )
    raise NotFound(_("There is no such board."))


def _held_task(board: Board, task: Task) -> Task:
    found = board.tasks.filter(pk=task.pk).first()
    if found is None:
        raise NotFound(_("There is no such task."))
    return found


def _require_its_business(board: Board, task: Task, by: Conversation, changes: Changes) -> None:
    """An agent changes what is its own, nobody's, or of its own making, and as the lead what other agents
    do; that a person's work is done she says herself."""
    moved = changes.status in {Task.Status.IN_PROGRESS, Task.Status.COMPLETED}
    if task.owner_user_id is not None and (moved or task.creator_conversation_id != by.pk):
        raise Forbidden(
            _("Task #%(number)d is for %(owner)s to do.")
            % {"number": task.number, "owner": task.owner_name},
            hint=_("Wait for it, or take it back by giving it to nobody, if you made it."),
        )
    leads = board.conversation_id == by.pk
    others = task.owner_conversation_id not in {None, by.pk}
    if others and not leads and task.creator_conversation_id != by.pk:
        raise Forbidden(
            _("Task #%(number)d is being done by %(owner)s.")
            % {"number": task.number, "owner": task.owner_name}
        )


def _require_her_say(board: Board, actor: User, changes: Changes) -> None:
    """Who may only look at the board, and was handed a task, says how far it is and nothing else."""
    if changes == Changes(status=changes.status):
        return
    if not Board.objects.changeable_by(actor).filter(pk=board.pk).exists():
        _refuse(may_look=True)


# --- what is written ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Before:
    """How a task was before a change, as far as what is told of it depends on that."""

    status: str
    owner: tuple[int | None, int | None]
    was_open: bool

    @classmethod
    def of(cls, task: Task) -> _Before:
        owner = (task.owner_user_id, task.owner_conversation_id)
        return cls(task.status, owner, task.is_open)

    @property
    def owner_conversation(self) -> int | None:
        return self.owner[1]

    def kind_of_change(self, task: Task) -> str:
        if task.status != self.status:
            return "moved"
        if (task.owner_user_id, task.owner_conversation_id) == self.owner:
            return "edited"
        return "handed" if task.is_owned else "released"


def _write_words(task: Task, changes: Changes) -> None:
    if changes.subject is not None:
        task.subject = _subject(changes.subject)
    if changes.description is not None:
        task.description = _text(changes.description, "description", DESCRIPTION_LIMIT)
    if changes.active_form is not None:
        task.active_form = _line(changes.active_form, "active_form")
    if changes.metadata:
        task.metadata = _merged(task.noted, changes.metadata)


def _give(task: Task, owner: Owner) -> None:
    for name, value in owner.fields().items():
        setattr(task, name, value)
    if task.status == Task.Status.IN_PROGRESS:
        # Whoever has it now has not begun.
        task.status = Task.Status.PENDING


def _move(task: Task, status: str, before: _Before) -> None:
    if status not in Task.Status.values:
        raise Invalid(
            _("There is no status “%(status)s”.") % {"status": status[:30]},
            field="status",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(Task.Status.values)},
        )
    begins = status in {Task.Status.IN_PROGRESS, Task.Status.COMPLETED}
    if begins and status != before.status:
        _require_free(task)
    task.status = status


def _require_claimable(task: Task, claimant: Owner) -> None:
    if task.is_owned and not claimant.has(task):
        raise Conflict(
            _("Task #%(number)d has been taken by %(owner)s.")
            % {"number": task.number, "owner": task.owner_name},
            hint=_("Take another one."),
        )
    if task.status != Task.Status.PENDING:
        raise Conflict(
            _("Task #%(number)d is no longer to be done: it is %(status)s.")
            % {"number": task.number, "status": task.get_status_display()}
        )
    _require_free(task)


def _require_free(task: Task) -> None:
    if waits_for := holding([task.pk]).get(task.pk):
        raise Conflict(
            _("Task #%(number)d waits for %(others)s.")
            % {"number": task.number, "others": _hashed(waits_for)},
            hint=_("Finish or cancel these first, or say that it does not wait for them."),
        )


def _depend(board: Board, task: Task, blocked_by: Sequence[int], blocks: Sequence[int]) -> None:
    """Raises NotFound for a number that there is not, Invalid for the task itself, Conflict for a circle."""
    new = [(task, numbered(board, number)) for number in blocked_by]
    new += [(numbered(board, number), task) for number in blocks]
    if not new:
        return
    for waiting, blocker in new:
        if waiting.pk == blocker.pk:
            raise Invalid(
                _("A task cannot wait for itself."), field="blocked_by", hint=_("Name another one.")
            )
        if not waiting.is_open and blocker.is_open:
            raise Conflict(
                _("Task #%(number)d is finished and waits for nothing.")
                % {"number": waiting.number}
            )
        Dependency.objects.get_or_create(task=waiting, blocker=blocker)
        if waiting.dependencies.count() > BLOCKERS:
            raise LimitReached(
                _("A task waits for at most %(limit)d others.") % {"limit": BLOCKERS}
            )
    _require_no_circle(board, {waiting.pk for waiting, _blocker in new})


def _require_no_circle(board: Board, begin: Iterable[int]) -> None:
    """Conflict where a task waits, by way of others, for itself. Walks each dependency once."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for waiting, blocker in Dependency.objects.filter(task__board=board).values_list(
        "task_id", "blocker_id"
    ):
        after[waiting].append(blocker)
    done: set[int] = set()
    for start in begin:
        on_the_way: set[int] = set()
        stack = [(start, iter(after[start]))]
        on_the_way.add(start)
        while stack:
            task, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                on_the_way.discard(task)
                done.add(task)
            elif following in on_the_way:
                circle = [pk for pk, _rest in stack]
                raise _circle(board, circle[circle.index(following) :])
            elif following not in done:
                on_the_way.add(following)
                stack.append((following, iter(after[following])))


def _circle(board: Board, tasks: Sequence[int]) -> Conflict:
    numbers = dict(board.tasks.filter(pk__in=tasks).values_list("pk", "number"))
    words = " → ".join(f"#{numbers[pk]}" for pk in [*tasks, tasks[0]])
    return Conflict(
        _("These tasks would wait for each other: %(circle)s.") % {"circle": words},
        hint=_("Leave one of these dependencies out."),
    )


def _waiting_for(board: Board, task: Task) -> list[Task]:
    """The open ones that wait for this one, if it is open itself."""
    if not task.is_open:
        return []
    return list(board.tasks.open().filter(dependencies__blocker=task).order_by("number"))


def _free(board: Board, task: Task, actor: User, by: Conversation | None) -> None:
    waiting = board.tasks.open().filter(dependencies__blocker=task).order_by("number")
    _tell_freed(board, list(waiting), actor, by)


def _tell_freed(
    board: Board, waiting: Sequence[Task], actor: User, by: Conversation | None
) -> None:
    still = holding(task.pk for task in waiting)
    for task in waiting:
        if not still.get(task.pk):
            tell_of(TaskUpdated, board, task, actor=actor, by=by, change="freed")


def _writing(actor: User, by: Conversation | None) -> set[int]:
    """Whose words somebody writes: her own, or those on which her agent acts."""
    return behind(by) if by is not None else {actor.pk}


def _name_writers(task: Task) -> None:
    """The agent that has it acts on what they wrote."""
    if task.owner_conversation is not None:
        bring_words(task.owner_conversation, task.writers.values_list("pk", flat=True), way="task")


def _tell_owner(task: Task, by: Conversation | None) -> None:
    """An agent to whom somebody else gave work hears of it."""
    _name_writers(task)
    owner = task.owner_conversation_id
    if owner is not None and (by is None or by.pk != owner) and task.is_open:
        text = f"[Task board] Task #{task.number} is yours now: {task.subject}"
        _say_of(task, owner, text)


def _tell_maker(task: Task, actor: User, by: Conversation | None) -> None:
    """An agent that handed work to a person hears what became of it."""
    maker = task.creator_conversation_id
    if maker is not None and by is None:
        writers = {actor.pk, *task.writers.values_list("pk", flat=True)}
        bring_words(Conversation.objects.get(pk=maker), writers, way="task")
        ended = "done" if task.status == Task.Status.COMPLETED else "cancelled"
        text = f"[Task board] {actor.username} says that task #{task.number} is {ended}: {task.subject}"
        _say_of(task, maker, text)


def _say_of(task: Task, conversation: int, text: str) -> None:
    person = Conversation.objects.values_list("owner", flat=True).get(pk=conversation)
    say_to_agent(conversation, text, untrusted_by=task.strangers_for(person))


def _other_person(board: Board, actor: User, by: Conversation | None) -> str:
    """Who writes on it by hand, if she is not the person its agents work for."""
    home = board.conversation
    if by is not None or (home is not None and home.owner_id == actor.pk):
        return ""
    return f"what {actor.username} wrote on the task board"


# --- what comes in --------------------------------------------------------------------------------


def _subject(text: str) -> str:
    subject = _line(text, "subject")
    if not subject:
        raise Invalid(
            _("A task needs a subject."),
            field="subject",
            hint=_("Say in a line what is to be done."),
        )
    return subject


def _line(text: str, name: str) -> str:
    line = one_line(text)
    _require_short(line, name, SUBJECT_LIMIT)
    return line


def _text(text: str, name: str, limit: int) -> str:
    text = text.replace("\0", "").replace("\r\n", "\n").strip()
    _require_short(text, name, limit)
    return text


def _require_short(text: str, name: str, limit: int) -> None:
    if len(text) > limit:
        raise TooLarge(
            _("The text is longer than %(limit)d characters.") % {"limit": limit},
            field=name,
            hint=_("Put long texts into a file and link it."),
        )


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**old, **new}
    kept = {name: value for name, value in merged.items() if value is not None}
    try:
        size = len(json.dumps(kept))
    except (TypeError, ValueError, RecursionError):
        size = METADATA_CHARACTERS + 1
    if size > METADATA_CHARACTERS:
        raise TooLarge(
            _("The metadata takes more than %(limit)d characters.")
            % {"limit": METADATA_CHARACTERS},
            field="metadata",
            hint=_("Keep long texts in files."),
        )
    return kept


def _target(kind: str, conversation: Conversation, target: str) -> str:
    target = target.replace("\0", "").strip()
    match kind:
        case TaskLink.Kind.CONVERSATION if not target:
            return ""
        case TaskLink.Kind.FILE if 0 < len(target) <= 1_024:
            return target
        case TaskLink.Kind.RUN if (pk := number_of(target)) is not None:
            if Run.objects.filter(pk=pk, conversation=conversation).exists():
                return target
            raise NotFound(_("The conversation has no such run."))
    raise Invalid(
        _("A link leads to a conversation, to a run by its number, or to a file by its path."),
        field="target",
        hint=_("Choose from: %(names)s.") % {"names": ", ".join(TaskLink.Kind.values)},
    )


def _hashed(numbers: Iterable[int]) -> str:
    return ", ".join(f"#{number}" for number in numbers)
