"""Evals: suites of cases, evaluations of an agent's version by a suite, and the trials they consist of.

An evaluation fixes what it tries: later changes of a case change nothing of it. What a case says is
`checks.spec`'s, when a trial is due says its row (`running`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from agents.models import Agent, AgentVersion, Environment
from conversations.models import Conversation
from harness.ids import new_id
from skills_app.models import SkillVersion

from .checks.spec import CaseSpec

VIEW_ANY = "evals.view_suite"
CHANGE_ANY = "evals.change_suite"
"""What staff need for the suites of any organisation."""


def new_suite_id() -> str:
    return new_id("suite")


def new_case_id() -> str:
    return new_id("case")


def new_evaluation_id() -> str:
    return new_id("eval")


def _managed_by(user: User) -> Any:
    roles = [role for role in Role if role.manages]
    return Organisation.objects.filter(memberships__user=user, memberships__role__in=roles).values(
        "pk"
    )


class SuiteQuerySet(models.QuerySet["Suite"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations that the person manages; all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        return self.filter(organisation__in=_managed_by(user))


class Suite(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_suite_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="suites")
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=2_000, blank=True)
    judge_provider = models.CharField(max_length=50, blank=True)
    judge_model = models.CharField(max_length=100, blank=True)
    """Whom judge checks ask; empty: the provider's own default model."""
    judges = models.PositiveSmallIntegerField(default=1)
    """How many judges are asked about an answer, one or two."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = SuiteQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("suite of cases")
        verbose_name_plural = _("suites of cases")
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="suite_name_unique")
        ]

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_case_id, editable=False)
    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="cases", db_index=False)
    name = models.CharField(_("name"), max_length=100)
    stored_spec = models.JSONField(db_column="spec")
    digest = models.CharField(max_length=64)
    """Of what it says: the same one, the same case."""
    source_uid = models.CharField(max_length=40, blank=True)
    """The conversation it was made of."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["suite", "id"]
        verbose_name = _("case")
        verbose_name_plural = _("cases")
        constraints = [models.UniqueConstraint(fields=["suite", "name"], name="case_name_unique")]

    def __str__(self) -> str:
        return self.name

    @property
    def spec(self) -> CaseSpec:
        return CaseSpec.model_validate(self.stored_spec)


class EvaluationQuerySet(models.QuerySet["Evaluation"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(suite__in=Suite.objects.visible_to(user).values("pk"))

    def going_on(self) -> Self:
        return self.filter(state=Evaluation.State.RUNNING)


class Evaluation(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        STOPPED = "stopped", _("stopped")

    uid = models.CharField(max_length=40, unique=True, default=new_evaluation_id, editable=False)
    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="evaluations")
    root = models.OneToOneField(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """What its trials stand below, and what its budget caps with all of them."""
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.RESTRICT, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="+")
    overrides = models.JSONField(default=dict)
    """Provider, model and prompts where they differ from the version's."""
    tried_texts = models.JSONField(default=list)
    """Versions of prompts (`pk`) that nobody has allowed yet and that its trials are told all the same."""
    skills = models.JSONField(default=dict)
    """Versions of skills by name, where they differ from those the version names."""
    skill_version = models.ForeignKey(
        SkillVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Whose own cases these are; it stands in each trial, released or not."""
    scripted = models.BooleanField(default=False)
    """By the cases' scripts, without a model."""
    repetitions = models.PositiveSmallIntegerField(default=1)
    parallel = models.PositiveSmallIntegerField(default=4)
    limit = models.PositiveBigIntegerField(null=True)
    """What all of it may cost, in hundred-millionths of a US dollar; null: no limit of its own."""
    uses_cache = models.BooleanField(default=True)
    note = models.CharField(_("note"), max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    digest = models.CharField(max_length=64)
    """Of all its cases: evaluations with the same one tried the same."""
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("evaluation")
        verbose_name_plural = _("evaluations")
        indexes = [
            models.Index(fields=["id"], condition=Q(state="running"), name="evaluation_running")
        ]

    def __str__(self) -> str:
        return self.uid


class Trial(models.Model):
    class State(models.TextChoices):
        WAITING = "waiting", _("waits")
        RUNNING = "running", _("running")
        JUDGING = "judging", _("being judged")
        PASSED = "passed", _("passed")
        FAILED = "failed", _("failed")
        BROKEN = "broken", _("could not be tried")

    OPEN = (State.RUNNING, State.JUDGING)
    """That something is done for."""
    ENDED = (State.PASSED, State.FAILED, State.BROKEN)

    evaluation = models.ForeignKey(
        Evaluation, on_delete=models.CASCADE, related_name="trials", db_index=False
    )
    case = models.ForeignKey(Case, on_delete=models.SET_NULL, null=True, related_name="trials")
    name = models.CharField(max_length=100)
    stored_spec = models.JSONField(db_column="spec")
    """The case as it was when the evaluation began."""
    digest = models.CharField(max_length=64)
    source_uid = models.CharField(max_length=40, blank=True)
    """The conversation that the case was made of, also once the case is gone."""
    repetition = models.PositiveSmallIntegerField()
    """Counts up from 1."""
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    conversation = models.OneToOneField(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="trial"
    )
    first_seq = models.PositiveBigIntegerField(default=0)
    """The last event of what it began with."""
    answer = models.TextField(blank=True)
    ran = models.JSONField(default=dict)
    """What came of the commands of checks, by their places, while judges are asked."""
    outcomes = models.JSONField(default=list)
    """What came of each check (`checks.judging.Outcome`)."""
    problem = models.CharField(max_length=500, blank=True)
    """Why it could not be tried."""
    steps = models.PositiveIntegerField(default=0)
    model_calls = models.PositiveIntegerField(default=0)
    cached_calls = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    """US dollars that were spent, its judges' too; null when a price was unknown."""
    saved = models.DecimalField(max_digits=14, decimal_places=8, default=Decimal(0))
    """US dollars that answers from the cache would have cost."""
    seconds = models.FloatField(default=0)
    """That its run worked."""
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["evaluation", "id"]
        verbose_name = _("trial")
        verbose_name_plural = _("trials")
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation", "name", "repetition"], name="trial_unique"
            )
        ]
        indexes = [
            models.Index(
                fields=["evaluation", "state"],
                condition=Q(state__in=["waiting", "running", "judging"]),
                name="trial_open",
            ),
            models.Index(fields=["source_uid"], condition=~Q(source_uid=""), name="trial_source"),
        ]

    def __str__(self) -> str:
        return f"{self.name} #{self.repetition}"

    @property
    def spec(self) -> CaseSpec:
        return CaseSpec.model_validate(self.stored_spec)


class Judgement(models.Model):
    """One question to one judge about one check of a trial, in a conversation of its own."""

    trial = models.ForeignKey(
        Trial, on_delete=models.CASCADE, related_name="judgements", db_index=False
    )
    place = models.PositiveSmallIntegerField()
    """Of the check among those of its case."""
    number = models.PositiveSmallIntegerField()
    """Of the judge; of a preference, 1 sees the answers the other way round."""
    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="judgement"
    )

    class Meta:
        ordering = ["trial", "place", "number"]
        verbose_name = _("judgement")
        verbose_name_plural = _("judgements")
        constraints = [
            models.UniqueConstraint(fields=["trial", "place", "number"], name="judgement_unique")
        ]

    def __str__(self) -> str:
        return f"{self.trial_id}:{self.place}:{self.number}"


class Grade(models.Model):
    """How well a person finds that a try did, beside what its checks and judges say. The gate knows nothing
    of it."""

    SCALE = 5
    """Points go from 1 to this."""

    trial = models.ForeignKey(
        Trial, on_delete=models.CASCADE, related_name="grades", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    points = models.PositiveSmallIntegerField()
    note = models.CharField(max_length=500, blank=True)
    given_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["trial", "id"]
        verbose_name = _("points of a person")
        verbose_name_plural = _("points of people")
        constraints = [models.UniqueConstraint(fields=["trial", "by"], name="grade_unique")]

    def __str__(self) -> str:
        return f"{self.points}/{self.SCALE}"

    @property
    def share(self) -> float:
        """Of the scale, between 0 and 1."""
        return (self.points - 1) / (self.SCALE - 1)


class CachedReply(models.Model):
    """A model's reply, by everything that could have changed it (`caching`)."""

    key = models.CharField(max_length=64, primary_key=True)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=100)
    pieces = models.JSONField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("cached reply")
        verbose_name_plural = _("cached replies")

    def __str__(self) -> str:
        return self.key


class Requirement(models.Model):
    """That versions of an agent are released only with this suite green."""

    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="requirements", db_index=False
    )
    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="requirements")
    repetitions = models.PositiveSmallIntegerField(default=1)
    """At least so many tries of each case are wanted."""
    by_script = models.BooleanField(default=False)
    """Evaluations by the cases' scripts count, which ask no model."""
    at_least = models.PositiveSmallIntegerField(default=100)
    """Percent of all tries that pass, beside that no case does worse than with the version in use."""

    class Meta:
        ordering = ["agent", "suite"]
        verbose_name = _("suite that a release needs")
        verbose_name_plural = _("suites that releases need")
        constraints = [
            models.UniqueConstraint(fields=["agent", "suite"], name="requirement_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}:{self.suite_id}"


class ReleaseQuerySet(models.QuerySet["Release"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(agent__in=Agent.objects.visible_to(user).values("pk"))


class Release(models.Model):
    """That an agent's version came into use by the gate: why it might, and what it replaced."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="releases")
    version = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, related_name="releases")
    replaced = models.ForeignKey(
        AgentVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True)
    """Of who let it pass although a suite is not green; empty: all are."""
    report = models.JSONField(default=list)
    """What the gate said of each suite."""
    rolled_back = models.BooleanField(default=False)
    """It brought an earlier version back."""
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    released_at = models.DateTimeField(auto_now_add=True)

    objects = ReleaseQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("release")
        verbose_name_plural = _("releases")

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.version_id}"


class Canary(models.Model):
    """That a newer version was given to a share of new conversations, and what became of it. Which of them
    begin with it says the agent (`Agent.drawn_for`)."""

    class End(models.TextChoices):
        PROMOTED = "promoted", _("promoted")
        ROLLED_BACK = "rolled_back", _("rolled back")
        REPLACED = "replaced", _("another version came into use")

    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="canaries", db_index=False
    )
    version = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, related_name="+")
    against = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, related_name="+")
    """The version in use, which all others begin with."""
    share = models.PositiveSmallIntegerField()
    """Percent of new conversations, as was said last."""
    reason = models.CharField(max_length=500, blank=True)
    """Of who let it be one although a suite is not green; empty: all were."""
    report = models.JSONField(default=list)
    """What the gate said of each suite."""
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    started_at = models.DateTimeField(auto_now_add=True)
    ended_as = models.CharField(max_length=20, choices=End, blank=True)
    """Empty while it goes on."""
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("canary")
        verbose_name_plural = _("canaries")
        constraints = [
            models.UniqueConstraint(
                fields=["agent"], condition=Q(ended_as=""), name="one_canary_per_agent"
            )
        ]
        indexes = [models.Index(fields=["agent", "-id"], name="canary_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.version_id}"
