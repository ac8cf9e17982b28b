"""The task board: pieces of work with an owner, an order and links, for agents and people alike.

A conversation has one with all that descends from it, which is a team's own where it leads one; an
organisation has one. Changing a task is `actions.tasks`' part; what an agent notes for itself alone is its
todo list (`tools_app.builtin.todos`).
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership, Organisation, User
from conversations.models import Conversation
from harness.ids import new_id

SUBJECT_LIMIT = 200
DESCRIPTION_LIMIT = 10_000


def new_board_id() -> str:
    return new_id("brd")


def new_task_id() -> str:
    return new_id("task")


class BoardQuerySet(models.QuerySet["Board"]):
    def visible_to(self, user: User) -> Self:
        """Those of conversations that she may read, and of organisations she belongs to."""
        return self._of(user, Conversation.objects.visible_to(user))

    def changeable_by(self, user: User) -> Self:
        """Those of conversations that she may write in, and of organisations she belongs to."""
        return self._of(user, Conversation.objects.writable_by(user))

    def _of(self, user: User, conversations: models.QuerySet[Conversation]) -> Self:
        member = Membership.objects.order_by().filter(
            organisation=OuterRef("organisation"), user=user
        )
        there = conversations.order_by().filter(pk=OuterRef("conversation"))
        return self.filter(Q(conversation=None) & Exists(member) | Exists(there))


class Board(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_board_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, null=True, related_name="board"
    )
    """The one that people began; empty: it is the organisation's."""
    last_number = models.PositiveIntegerField(default=0)
    """Of the last task that was made; numbers are never given twice."""
    version = models.PositiveIntegerField(default=0)
    """Grows with each change."""

    objects = BoardQuerySet.as_manager()

    class Meta:
        verbose_name = _("task board")
        verbose_name_plural = _("task boards")
        constraints = [
            models.UniqueConstraint(
                fields=["organisation"],
                condition=Q(conversation=None),
                name="board_of_organisation_once",
            )
        ]

    def __str__(self) -> str:
        return self.uid

    @property
    def is_stored(self) -> bool:
        """Whether it has a row: one that nobody has put a task on has none."""
        return bool(self.pk)


class TaskQuerySet(models.QuerySet["Task"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(board__in=Board.objects.visible_to(user))

    def open(self) -> Self:
        return self.filter(status__in=[Task.Status.PENDING, Task.Status.IN_PROGRESS])

    def waiting_for(self, user: User) -> Self:
        """Open ones that are hers to do, where she can still see them."""
        return self.visible_to(user).open().filter(owner_user=user)

    def claimable(self) -> Self:
        """Those that anybody may take: pending, nobody's, and held back by no other."""
        return self.filter(
            status=Task.Status.PENDING, owner_user=None, owner_conversation=None
        ).exclude(Exists(Dependency.objects.holding().filter(task=OuterRef("pk"))))


class Task(models.Model):
    class Status(models.TextChoices):
        PENDING = "pending", _("to do")
        IN_PROGRESS = "in_progress", _("in progress")
        COMPLETED = "completed", _("done")
        CANCELLED = "cancelled", _("cancelled")

    uid = models.CharField(max_length=40, unique=True, default=new_task_id, editable=False)
    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    number = models.PositiveIntegerField()
    subject = models.CharField(_("subject"), max_length=SUBJECT_LIMIT)
    description = models.TextField(_("description"), blank=True)
    active_form = models.CharField(_("while it is done"), max_length=SUBJECT_LIMIT, blank=True)
    """How to say it while it is being done: “Writing the tests”."""
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.PENDING)
    owner_user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="owned_tasks",
    )
    owner_conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="owned_tasks"
    )
    """Whose agent does it."""
    owner_name = models.CharField(max_length=150, blank=True)
    """What the owner was called when the task became hers; empty: it is nobody's."""
    creator_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    creator_conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Whose agent made it; empty: a person did."""
    metadata = models.JSONField(default=dict)
    """What agents and programs note on it: names and values."""
    writers = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    """Whose words it holds: who wrote it by hand, and for whom the agents that did acted then."""
    untrusted_by = models.CharField(max_length=300, blank=True)
    """What had brought untrusted content to whoever wrote it; empty: nothing had."""
    key = models.CharField(max_length=100, null=True)
    """The maker's own: the same key twice makes one task."""
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["board", "number"]
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        constraints = [
            models.UniqueConstraint(fields=["board", "number"], name="task_number_unique"),
            models.UniqueConstraint(
                fields=["board", "key"], condition=Q(key__isnull=False), name="task_key_unique"
            ),
            models.CheckConstraint(
                condition=Q(owner_user=None) | Q(owner_conversation=None), name="task_one_owner"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number}"

    @property
    def is_open(self) -> bool:
        return self.status in {self.Status.PENDING, self.Status.IN_PROGRESS}

    @property
    def is_owned(self) -> bool:
        return self.owner_user_id is not None or self.owner_conversation_id is not None

    def strangers_for(self, owner: int) -> str:
        """What others wrote into it, for agents that work for this person: an agent that had read strangers'
        words, or another person; empty: nobody did."""
        if self.untrusted_by:
            return self.untrusted_by
        if self.creator_conversation_id is None and self.creator_user_id != owner:
            return "a task on the board that somebody else wrote"
        return ""

    @property
    def noted(self) -> dict[str, Any]:
        found: dict[str, Any] = self.metadata
        return found


class DependencyQuerySet(models.QuerySet["Dependency"]):
    def holding(self) -> Self:
        """Those whose blocker is still open."""
        return self.filter(blocker__status__in=[Task.Status.PENDING, Task.Status.IN_PROGRESS])


class Dependency(models.Model):
    """That a task waits for another of its board, whichever of the two said so."""

    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="dependencies", db_index=False
    )
    blocker = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="dependents")

    objects = DependencyQuerySet.as_manager()

    class Meta:
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        constraints = [
            models.UniqueConstraint(fields=["task", "blocker"], name="dependency_once"),
            models.CheckConstraint(
                condition=~Q(task=F("blocker")), name="dependency_not_on_itself"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} waits for {self.blocker_id}"


class TaskLink(models.Model):
    """What a task is about or came to: a conversation, one of its runs, a file in its workspace."""

    class Kind(models.TextChoices):
        CONVERSATION = "conversation", _("conversation")
        RUN = "run", _("run")
        FILE = "file", _("file")

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="links")
    kind = models.CharField(max_length=20, choices=Kind)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="task_links"
    )
    target = models.CharField(max_length=1_024, blank=True)
    """Of a file its path in the workspace, of a run its number."""

    class Meta:
        ordering = ["id"]
        verbose_name = _("link of a task")
        verbose_name_plural = _("links of tasks")
        constraints = [
            models.UniqueConstraint(
                fields=["task", "kind", "conversation", "target"], name="task_link_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.conversation_id}"
