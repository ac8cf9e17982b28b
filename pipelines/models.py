"""Pipelines, their versions, and runs of them with the steps these consist of.

A version never changes, and neither do the versions of agents it is pinned to. What it says is `graph`'s;
what a run's steps came to is read from their conversations, whose logs hold every word.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from accounts.staff import has_staff_permission
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.events import WAITS_FOR_WORKER
from harness.ids import new_id

from .graph.following import Call, Done, Outcome
from .graph.spec import STRANDS, PipelineSpec

VIEW_ANY = "pipelines.view_pipeline"
CHANGE_ANY = "pipelines.change_pipeline"
"""What staff need for the pipelines of any organisation."""
BEGINNING = 240
"""Characters of a question in a list."""
WAITING = (
    "",
    WAITS_FOR_WORKER,
    "requires_action",
    "retries_exhausted",
    "budget_reached",
    "refusal",
)
"""Why the conversation of a step rests that has not ended: nothing began, or somebody has to act. Whoever
stops one has it rest for another reason."""


def new_pipeline_id() -> str:
    return new_id("pipeline")


def new_run_id() -> str:
    return new_id("piperun")


class PipelineQuerySet(models.QuerySet["Pipeline"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's organisations; all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        return self.filter(
            organisation__in=Organisation.objects.filter(memberships__user=user).values("pk")
        )

    def on_offer(self) -> Self:
        return self.filter(archived_at=None)


class Pipeline(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_pipeline_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="pipelines"
    )
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("what it is for"), max_length=500, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = PipelineQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("pipeline")
        verbose_name_plural = _("pipelines")
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="pipeline_name_unique")
        ]

    def __str__(self) -> str:
        return self.name

    def newest(self) -> PipelineVersion:
        """There is one from the beginning."""
        return self.versions.order_by("-number")[0]


class PipelineVersion(models.Model):
    pipeline = models.ForeignKey(
        Pipeline, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField(_("version"))
    stored_spec = models.JSONField(db_column="spec")
    digest = models.CharField(max_length=64)
    """SHA-256 of what it says, with the versions of its agents."""
    note = models.CharField(_("what changed"), max_length=500, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pipeline", "-number"]
        verbose_name = _("version of a pipeline")
        verbose_name_plural = _("versions of pipelines")
        constraints = [
            models.UniqueConstraint(fields=["pipeline", "number"], name="pipeline_version_unique")
        ]

    def __str__(self) -> str:
        return f"{self.pipeline} v{self.number}"

    @property
    def spec(self) -> PipelineSpec:
        return PipelineSpec.model_validate(self.stored_spec)

    def pinned(self) -> dict[str, AgentVersion]:
        """The version of an agent that each of its steps is done by."""
        rows = self.pins.select_related("agent_version__agent")
        return {pin.step: pin.agent_version for pin in rows}


class Pin(models.Model):
    """That a step of a version is done by this version of an agent."""

    version = models.ForeignKey(
        PipelineVersion, on_delete=models.CASCADE, related_name="pins", db_index=False
    )
    step = models.CharField(max_length=40)
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.RESTRICT, related_name="+")

    class Meta:
        ordering = ["version", "id"]
        verbose_name = _("agent of a step")
        verbose_name_plural = _("agents of steps")
        constraints = [
            models.UniqueConstraint(fields=["version", "step"], name="pipeline_pin_unique")
        ]

    def __str__(self) -> str:
        return f"{self.version_id}:{self.step}"


class PipelineRunQuerySet(models.QuerySet["PipelineRun"]):
    def visible_to(self, user: User) -> Self:
        """Whoever sees the conversation that it is."""
        return self.filter(root__in=Conversation.objects.visible_to(user).values("pk"))

    def owned_by(self, user: User) -> Self:
        return self.filter(root__in=Conversation.objects.owned_by(user).values("pk"))

    def going_on(self) -> Self:
        return self.filter(state=PipelineRun.State.RUNNING)

    def in_lists(self) -> Self:
        """With what a list of them shows, which is not the pipeline nor all that was asked."""
        named = self.select_related("version__pipeline", "root__owner")
        return named.defer("version__stored_spec", "question").annotate(
            beginning=Left("question", BEGINNING)
        )

    def due(self, *, lacking: Collection[str] = ()) -> Self:
        """Those of which something may be done now: all that go on, but for those whose open step works or
        waits, and those between steps whose engine is one of these, which this server lacks."""
        steps = StepRun.objects.filter(run=OuterRef("pk"))
        found = self.going_on().exclude(Exists(steps.holding()))
        if not lacking:
            return found
        stuck = PipelineVersion.objects.filter(stored_spec__engine__in=list(lacking)).values("pk")
        is_open = Exists(steps.filter(state__in=StepRun.OPEN))
        return found.exclude(~is_open, version__in=stuck)


class PipelineRun(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("under way")
        DONE = "done", _("done")
        FAILED = "failed", _("did not pass")
        STOPPED = "stopped", _("stopped")

    uid = models.CharField(max_length=40, unique=True, default=new_run_id, editable=False)
    version = models.ForeignKey(PipelineVersion, on_delete=models.RESTRICT, related_name="runs")
    root = models.OneToOneField(Conversation, on_delete=models.CASCADE, related_name="pipeline_run")
    """What its steps stand below: who sees it sees the run, and its budget caps all of it."""
    question = models.TextField()
    scripted = models.BooleanField(default=False)
    """By the steps' scripts, without a model."""
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    problem = models.CharField(max_length=500, blank=True)
    """Why it did not come to a good end."""
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = PipelineRunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("run of a pipeline")
        verbose_name_plural = _("runs of pipelines")
        indexes = [
            models.Index(fields=["id"], condition=Q(state="running"), name="pipeline_run_running")
        ]

    def __str__(self) -> str:
        return self.uid


class GraphCheckpoint(models.Model):
    """Where LangGraph stands in a run that it drives. It holds nobody's words, only which rules held."""

    run = models.ForeignKey(
        PipelineRun, on_delete=models.CASCADE, related_name="checkpoints", db_index=False
    )
    uid = models.CharField(max_length=40)
    """LangGraph's own, of the clock of the machine that made it: `id` says which was written last."""
    parent = models.CharField(max_length=40, blank=True)
    kind = models.CharField(max_length=20)
    """How `body` is written."""
    body = models.BinaryField()
    metadata_kind = models.CharField(max_length=20)
    metadata = models.BinaryField()

    class Meta:
        ordering = ["run", "uid"]
        verbose_name = _("checkpoint of a run")
        verbose_name_plural = _("checkpoints of runs")
        constraints = [
            models.UniqueConstraint(fields=["run", "uid"], name="pipeline_checkpoint_unique")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.uid}"


class GraphWrite(models.Model):
    """What a node of LangGraph's wrote behind a checkpoint: that it waits, or what it goes on with."""

    run = models.ForeignKey(
        PipelineRun, on_delete=models.CASCADE, related_name="graph_writes", db_index=False
    )
    checkpoint = models.CharField(max_length=40)
    task = models.CharField(max_length=64)
    number = models.SmallIntegerField()
    channel = models.CharField(max_length=100)
    path = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=20)
    body = models.BinaryField()

    class Meta:
        ordering = ["run", "id"]
        verbose_name = _("write behind a checkpoint")
        verbose_name_plural = _("writes behind checkpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "checkpoint", "task", "number"], name="pipeline_write_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.checkpoint} {self.channel}"


class StepRunQuerySet(models.QuerySet["StepRun"]):
    def holding(self) -> Self:
        """Those that ask a person, are at work, or wait in a way that only others end: for an answer, for
        money, for a service. What `standing.rest_of` calls ended is none of them."""
        status = Conversation.Status
        works = Q(conversation__status__in=[status.RUNNING, status.RESCHEDULING])
        rests = Q(conversation__status=status.IDLE)
        waits = Q(conversation__stop_reason__in=WAITING) | Q(conversation__owes_run=True)
        asks, runs = Q(state=StepRun.State.ASKING), Q(state=StepRun.State.RUNNING)
        return self.filter(asks | runs & (works | rests & waits))


class StepRun(models.Model):
    """One time that a run came to a step. Rows of a run follow each other; only the last may be open."""

    class State(models.TextChoices):
        RUNNING = "running", _("at work")
        ASKING = "asking", _("waits for a decision")
        DONE = "done", _("done")
        FAILED = "failed", _("not usable")
        STOPPED = "stopped", _("stopped")

    OPEN = (State.RUNNING, State.ASKING)

    run = models.ForeignKey(
        PipelineRun, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    place = models.PositiveSmallIntegerField()
    """Counts up from 1: a place is taken once, whatever dies and however many processes look."""
    name = models.CharField(max_length=40)
    came_by = models.CharField(max_length=60)
    """The rule that led here, or a word of `graph.following`."""
    times = models.PositiveSmallIntegerField()
    """The how-manieth time this run came to this step."""
    conversation = models.OneToOneField(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="pipeline_step"
    )
    """Null where a person is asked, where it could not begin, and once it is deleted."""
    asked_event = models.CharField(max_length=40, blank=True)
    """The message by which its agent was asked."""
    ended_seq = models.PositiveBigIntegerField(default=0)
    """The last event that counts for its answer: what is said there later changes nothing."""
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    outcome = models.JSONField(default=dict)
    """What its answer was read as: the word, the fields that rules look at, or the calls of specialists."""
    final = models.BooleanField(default=False)
    """No further try would mend it."""
    problem = models.CharField(max_length=500, blank=True)
    """Why its answer could not be used, or why it could not begin."""
    comment = models.CharField(max_length=2_000, blank=True)
    """What the person said who was asked."""
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = StepRunQuerySet.as_manager()

    class Meta:
        ordering = ["run", "place"]
        verbose_name = _("step of a run of a pipeline")
        verbose_name_plural = _("steps of runs of pipelines")
        constraints = [
            models.UniqueConstraint(fields=["run", "place"], name="pipeline_step_once_a_place")
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="asking"), name="pipeline_step_asking")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.place} {self.name}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def is_orchestrator(self) -> bool:
        """Of a model-driven pipeline."""
        spec = self.run.version.spec
        return spec.engine == STRANDS and self.name == spec.steps[0].name

    def done(self) -> Done:
        """As the rules look at it, once it has ended."""
        read: dict[str, Any] = self.outcome
        usable = self.state == self.State.DONE
        calls = tuple(Call(**call) for call in read.get("calls", ()))
        outcome = Outcome(read.get("word", ""), read.get("fields", {}), calls) if usable else None
        return Done(self.name, self.came_by, outcome, self.final)
