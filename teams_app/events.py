"""What happens on a task board, as the conversations that it concerns are told."""

from __future__ import annotations

from typing import Literal

from django.utils.translation import gettext as _

from harness.content import Frozen
from harness.events import AppEvent

TYPES = ("x.task_created", "x.task_updated", "x.task_deleted")


class TaskFacts(Frozen):
    """A task as it was then."""

    id: str
    number: int
    subject: str
    status: str = "pending"
    active_form: str = ""
    owner: str = ""
    """What its owner is called; empty: it is nobody's."""
    blocked_by: tuple[int, ...] = ()
    """Numbers of those it waits for."""


class TaskEvent(AppEvent):
    """Base: what all of them tell."""

    board_id: str
    task: TaskFacts
    quiet: bool = False
    """The agent of this conversation did it by a call, whose card says so."""


class TaskCreated(TaskEvent):
    type: str = "x.task_created"

    def remark(self) -> str:
        if self.quiet:
            return ""
        return _("Task #%(number)d was made: %(subject)s") % _words(self.task)

    def instructs(self) -> bool:
        return True


class TaskUpdated(TaskEvent):
    type: str = "x.task_updated"
    change: Literal["edited", "claimed", "released", "handed", "moved", "freed"] = "edited"
    """`freed`: nothing that it waited for is open any more."""

    def remark(self) -> str:
        if self.quiet:
            return ""
        words = _words(self.task)
        match self.change:
            case "claimed":
                return _("Task #%(number)d was taken by %(owner)s: %(subject)s") % words
            case "handed":
                return _("Task #%(number)d is now for %(owner)s: %(subject)s") % words
            case "released":
                return _("Task #%(number)d is nobody’s again: %(subject)s") % words
            case "freed":
                return _("Task #%(number)d waits for nothing any more: %(subject)s") % words
            case "moved":
                return self._moved(words)
            case _:
                return _("Task #%(number)d was changed: %(subject)s") % words

    def instructs(self) -> bool:
        return self.change in {"edited", "handed", "moved"}

    def _moved(self, words: dict[str, object]) -> str:
        match self.task.status:
            case "completed":
                return _("Task #%(number)d is done: %(subject)s") % words
            case "cancelled":
                return _("Task #%(number)d was cancelled: %(subject)s") % words
            case "in_progress":
                return _("Task #%(number)d is in progress: %(subject)s") % words
            case _:
                return _("Task #%(number)d is to be done: %(subject)s") % words


class TaskDeleted(TaskEvent):
    type: str = "x.task_deleted"

    def remark(self) -> str:
        if self.quiet:
            return ""
        return _("Task #%(number)d was deleted: %(subject)s") % _words(self.task)


def _words(task: TaskFacts) -> dict[str, object]:
    return {"number": task.number, "subject": task.subject, "owner": task.owner}


class TeammateStatus(AppEvent):
    """How a member of the team stands, in the log of whoever leads it."""

    type: str = "x.teammate_status"
    name: str
    status: str
    """`working`, `waiting`, `idle`, `stopped` or `dismissed`."""
    role: str = ""
    """Told when it joins."""
    conversation_id: str = ""

    def remark(self) -> str:
        match self.status:
            case "dismissed":
                return _("%(name)s has left the team.") % {"name": self.name}
            case "stopped":
                return _("%(name)s was stopped.") % {"name": self.name}
            case _ if self.role:
                return _("%(name)s joined the team: %(role)s") % {
                    "name": self.name,
                    "role": self.role,
                }
        return ""


class RequestMade(AppEvent):
    type: str = "x.team_request"
    request_id: str
    kind: str
    asker: str
    addressee: str
    text: str = ""
    """Of events from before it stood in the request and its mail alone."""

    def remark(self) -> str:
        # Not what is asked: that can be taken out of the request and its mail.
        words = {"asker": self.asker, "whom": self.addressee}
        match self.kind:
            case "shutdown":
                return _("%(asker)s asks %(whom)s to end its work.") % words
            case "plan":
                return _("%(asker)s asks %(whom)s to review a plan.") % words
            case "handover":
                return _("%(asker)s asks %(whom)s to take over a task.") % words
        return _("%(asker)s asks %(whom)s a question.") % words


class RequestClosed(AppEvent):
    type: str = "x.team_request_closed"
    request_id: str
    kind: str
    state: str
    by: str = ""

    def instructs(self) -> bool:
        return True

    def remark(self) -> str:
        match self.state:
            case "approved":
                return _("%(by)s agreed to a request.") % {"by": self.by}
            case "rejected":
                return _("%(by)s refused a request.") % {"by": self.by}
        return _("A request in the team was answered by nobody in time.")


class TeamStuck(AppEvent):
    """Nobody of the team works, and what is left nobody will begin by herself."""

    type: str = "x.team_stuck"
    reasons: tuple[str, ...]

    def remark(self) -> str:
        return _("The team stands still: %(why)s") % {"why": " ".join(self.reasons)}


EVENTS: tuple[type[AppEvent], ...] = (
    TaskCreated,
    TaskUpdated,
    TaskDeleted,
    TeammateStatus,
    RequestMade,
    RequestClosed,
    TeamStuck,
)
