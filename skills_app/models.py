"""Skills, their versions and files: what agents can be taught.

A version never changes, and its files are stored once, by their SHA-256. What is offered is said by
pointers of the skill, which move: `stable`, which a review moves, `canary`, and the newest released.
What happens to them is `actions`' part, how conversations use them `skillsets`'.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from harness.errors import NotFound
from harness.ids import new_id

from .names import NAME_LIMIT

MANAGE_ANY = "skills_app.change_skill"
"""What staff need to manage the server's own skills and to decide for any organisation."""


def new_skill_id() -> str:
    return new_id("skill")


def new_version_id() -> str:
    return new_id("skillver")


def new_source_id() -> str:
    return new_id("skillsrc")


class Channel(models.TextChoices):
    """Pointers that an agent may follow in place of a version."""

    STABLE = "stable", _("stable")
    CANARY = "canary", _("canary")
    LATEST = "latest", _("latest")


class SkillQuerySet(models.QuerySet["Skill"]):
    def visible_to(self, user: User) -> Self:
        """The server's, those of the person's organisations as far as something of them was released or
        she may look after them, and her own."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, MANAGE_ANY):
            return self.filter(Q(owner__isnull=True) | Q(owner=user))
        released = Exists(SkillVersion.objects.released().filter(skill=OuterRef("pk")))
        wrote = Exists(SkillVersion.objects.filter(skill=OuterRef("pk"), created_by=user))
        manages = Exists(
            Organisation.objects.filter(
                pk=OuterRef("organisation"),
                memberships__user=user,
                memberships__role__in=[role for role in Role if role.manages],
            )
        )
        member = Exists(
            Organisation.objects.filter(pk=OuterRef("organisation"), memberships__user=user)
        )
        shared = Q(owner__isnull=True) & (Q(released) | Q(wrote) | Q(manages))
        return self.filter(
            Q(organisation__isnull=True) & Q(released) | Q(member) & (shared | Q(owner=user))
        )

    def usable_in(self, organisation: Organisation, owner: User | None) -> Self:
        """Those that work for this organisation may use: with `owner` also that person's own."""
        own = Q(organisation=organisation, owner=owner) if owner is not None else Q(pk__in=[])
        return self.filter(
            Q(organisation__isnull=True) | Q(organisation=organisation, owner__isnull=True) | own
        )

    def on_offer(self) -> Self:
        """Those with something to use."""
        return self.filter(killed_at__isnull=True, latest__isnull=False)


class Skill(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_skill_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, null=True, blank=True, related_name="skills"
    )
    """Empty: everybody on this server may use it."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="own_skills"
    )
    """Whose alone it is, in the organisation; empty: everybody's there."""
    name = models.CharField(_("name"), max_length=NAME_LIMIT)
    title = models.CharField(_("title"), max_length=100, blank=True)
    """For people; empty: its name."""
    description = models.TextField(_("description"))
    """Of the version that is offered, or of the newest one."""
    stable = models.ForeignKey(
        "SkillVersion", on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    canary = models.ForeignKey(
        "SkillVersion", on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    latest = models.ForeignKey(
        "SkillVersion", on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    """The newest released one that was not withdrawn."""
    draft = models.ForeignKey(
        "SkillVersion", on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    """What stands in the folder that is watched (`watching`), whether or not anybody released it."""
    edit_problem = models.CharField(max_length=500, blank=True, editable=False)
    """Why what stands there now is not its draft."""
    killed_at = models.DateTimeField(_("stopped at"), null=True, editable=False)
    """From then on no version of it is used anywhere."""
    killed_reason = models.CharField(max_length=500, blank=True, editable=False)
    promotes = models.BooleanField(default=False, editable=False)
    """Its canary becomes stable by itself once the cases that it carries are green."""
    shipped = models.BooleanField(default=False, editable=False)
    """It came with this software."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SkillQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("skill")
        verbose_name_plural = _("skills")
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(organisation=None), name="skill_name_of_server"
            ),
            models.UniqueConstraint(
                fields=["organisation", "name"],
                condition=Q(owner=None),
                name="skill_name_of_organisation",
            ),
            models.UniqueConstraint(
                fields=["organisation", "owner", "name"], name="skill_name_of_person"
            ),
            models.CheckConstraint(
                condition=Q(owner=None) | Q(organisation__isnull=False),
                name="skill_owned_somewhere",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def at(self, channel: str) -> SkillVersion | None:
        """What a channel points to; None also for one that there is not."""
        found: SkillVersion | None = getattr(self, channel) if channel in Channel.values else None
        return found


class SkillVersionQuerySet(models.QuerySet["SkillVersion"]):
    def released(self) -> Self:
        return self.filter(state=SkillVersion.State.RELEASED)

    def visible_to(self, user: User) -> Self:
        """Released ones of skills she sees, what she wrote, and all for who manages them."""
        seen = self.filter(skill__in=Skill.objects.visible_to(user).values("pk"))
        if has_staff_permission(user, MANAGE_ANY):
            return seen
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        offered = Q(state__in=(SkillVersion.State.RELEASED, SkillVersion.State.YANKED))
        return seen.filter(
            offered
            | Q(created_by=user)
            | Q(skill__organisation__in=managed, skill__owner__isnull=True)
        )


class SkillVersion(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        WAITING = "waiting", _("waits for review")
        RELEASED = "released", _("released")
        REFUSED = "refused", _("refused")
        YANKED = "yanked", _("withdrawn")

    uid = models.CharField(max_length=40, unique=True, default=new_version_id, editable=False)
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    label = models.CharField(_("version"), max_length=50)
    """As its maker counts, else the number."""
    digest = models.CharField(max_length=64, editable=False)
    """Of all its files (`folder.digest_of`)."""
    description = models.TextField()
    front = models.JSONField(default=dict)
    """The fields of its head."""
    requires = models.JSONField(default=list)
    exposes = models.JSONField(default=dict)
    """Its tools, and what these may call and use (`manifest.Exposes`); empty: it has none."""
    python = models.JSONField(default=dict)
    """The packages that its Python files need (`pythonneeds.PythonNeeds`); empty: none."""
    warnings = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    note = models.CharField(_("what is new"), max_length=500, blank=True)
    source = models.ForeignKey(
        "SkillSource", on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    """Where it was installed from; empty: it was written here."""
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.DRAFT)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    asked_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    deprecated_at = models.DateTimeField(null=True, editable=False)
    removal_on = models.DateField(_("used until"), null=True, editable=False)
    """The first day on which it is refused; empty: none is set."""
    replacement = models.CharField(_("use in its place"), max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SkillVersionQuerySet.as_manager()

    class Meta:
        ordering = ["skill", "-number"]
        verbose_name = _("version of a skill")
        verbose_name_plural = _("versions of skills")
        constraints = [
            models.UniqueConstraint(fields=["skill", "number"], name="skill_version_number"),
            models.UniqueConstraint(fields=["skill", "label"], name="skill_version_label"),
        ]

    def __str__(self) -> str:
        return f"{self.skill.name} {self.label}"

    @property
    def removed(self) -> bool:
        """Its day has come."""
        return self.removal_on is not None and timezone.now().date() >= self.removal_on

    @property
    def hidden(self) -> bool:
        return bool(self.front.get("disable-model-invocation") is True)


class SkillContent(models.Model):
    """What stands in files, once for all versions that have it."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()

    def __str__(self) -> str:
        return self.sha256


class SkillFile(models.Model):
    version = models.ForeignKey(
        SkillVersion, on_delete=models.CASCADE, related_name="files", db_index=False
    )
    path = models.CharField(max_length=1_024)
    size = models.PositiveIntegerField()
    content = models.ForeignKey(SkillContent, on_delete=models.RESTRICT, related_name="+")

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="skill_file_path")]

    def __str__(self) -> str:
        return self.path

    def read(self) -> bytes:
        return bytes(self.content.content)


class SkillPackages(models.Model):
    """Python packages that some versions need alike: resolved and locked once, and where they lie
    (`packages`)."""

    LOST_AFTER = timedelta(minutes=30)
    """One that is installed for so long was left by its process."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waits")
        RUNNING = "running", _("is installed now")
        READY = "ready", _("installed")
        FAILED = "failed", _("not installed")

    needs = models.CharField(max_length=64, unique=True, editable=False)
    """A digest of what is needed and of the interpreter that runs it."""
    wanted = models.JSONField(_("needed"), default=dict)
    """That in words (`pythonneeds.PythonNeeds`)."""
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.WAITING)
    problem = models.CharField(_("problem"), max_length=1_000, blank=True)
    """Why they are not installed, in words."""
    parts = models.JSONField(_("packages"), default=list)
    """The lock: every package that came, with its version and the digest of its file."""
    tree = models.CharField(max_length=64, blank=True, editable=False)
    """Of the lock and of all files as they were put there; their folder is called so."""
    size = models.PositiveBigIntegerField(_("bytes"), default=0)
    asked_at = models.DateTimeField(auto_now_add=True)
    began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("Python packages of skills")
        verbose_name_plural = _("Python packages of skills")

    def __str__(self) -> str:
        return ", ".join(self.wanted.get("packages", ()))[:200]


class SkillTrialRun(models.Model):
    """That a version was tried in a sandbox, and what was seen of it (`trialrun.report.Report`)."""

    BROKEN_AFTER = timedelta(minutes=10)
    """One that says nothing for so long was ended with its process."""

    class State(models.TextChoices):
        RUNNING = "running", _("under way")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="trial_runs")
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    report = models.JSONField(default=dict)
    problem = models.CharField(max_length=500, blank=True)
    """Why it failed, in words."""
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("trial run of a skill")
        verbose_name_plural = _("trial runs of skills")

    def __str__(self) -> str:
        return f"{self.version_id}: {self.state}"

    @property
    def under_way(self) -> bool:
        late = self.started_at < timezone.now() - self.BROKEN_AFTER
        return self.state == self.State.RUNNING and not late


class SkillSourceQuerySet(models.QuerySet["SkillSource"]):
    def visible_to(self, user: User) -> Self:
        """Those of the organisations that she manages; for staff who manage skills all of them."""
        if has_staff_permission(user, MANAGE_ANY):
            return self
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        return self.filter(organisation__in=managed) if user.is_active else self.none()


class SkillSource(models.Model):
    """A place elsewhere from which skills are installed, for an organisation or for the whole server."""

    class Kind(models.TextChoices):
        SERVER = "server", _("another Agentsite, with a signed index")
        INDEX = "index", _("an index for clients of the standard")
        GIT = "git", _("a Git repository at a commit")
        CLAWHUB = "clawhub", _("a skill of ClawHub, by the address of its page")
        PLUGIN = "plugin", _("an Agent Plugins bundle, as an archive")
        FOLDER = "folder", _("a folder of this machine")

    uid = models.CharField(max_length=40, unique=True, default=new_source_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, null=True, blank=True, related_name="skill_sources"
    )
    """Empty: what comes from it is everybody's on this server."""
    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.SERVER)
    address = models.CharField(_("address"), max_length=2_000)
    """Of its index, repository, page or archive; of a folder the path."""
    key = models.CharField(_("key"), max_length=64, blank=True)
    """That the index of a server has to be signed with: an Ed25519 key in base64."""
    commit = models.CharField(_("commit"), max_length=64, blank=True)
    """Of a repository: the one that is read, as its SHA-1; of a bundle: the SHA-256 of its archive."""
    seen = models.BigIntegerField(default=0, editable=False)
    """When the newest signed index was issued that was taken from it; an older one is refused."""
    looked_at = models.DateTimeField(_("looked at"), null=True, editable=False)
    problem = models.CharField(_("problem"), max_length=500, blank=True, editable=False)
    """Why the last look gave nothing; empty: it gave what is offered."""
    remarks = models.JSONField(default=list, editable=False)
    """What of it could not be read, in words."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SkillSourceQuerySet.as_manager()

    class Meta:
        ordering = ["address"]
        verbose_name = _("source of skills")
        verbose_name_plural = _("sources of skills")
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "address"], name="skill_source_address"
            ),
            models.UniqueConstraint(
                fields=["address"],
                condition=Q(organisation=None),
                name="skill_source_address_of_server",
            ),
        ]

    def __str__(self) -> str:
        return self.address


class SourceOfferQuerySet(models.QuerySet["SourceOffer"]):
    def of(self, name: str, label: str = "") -> SourceOffer:
        """The version of this skill that is offered, or the one that comes first. Raises NotFound."""
        there = self.filter(gone=False)
        found = there.filter(name=name, **({"label": label} if label else {})).first()
        if found is None:
            names = sorted(set(there.values_list("name", flat=True)))[:50]
            raise NotFound(
                _now("The source offers no such skill."),
                hint=_now("It offers: %(names)s.") % {"names": ", ".join(names)},
            )
        return found


class SourceOffer(models.Model):
    """One version that a source offers, or offered: what it was called, and the digest that it must have."""

    source = models.ForeignKey(SkillSource, on_delete=models.CASCADE, related_name="offers")
    name = models.CharField(max_length=NAME_LIMIT)
    label = models.CharField(max_length=50, blank=True)
    """As its source counts; empty: it does not."""
    description = models.TextField(blank=True)
    place = models.CharField(max_length=2_000, blank=True)
    """Where in the source it is."""
    digest = models.CharField(max_length=64)
    """Of what is fetched: an archive, a SKILL.md, or all files of a folder."""
    content = models.CharField(max_length=64, blank=True)
    """Of all its files; empty: not known before it is fetched."""
    size = models.PositiveBigIntegerField(default=0)
    """Bytes of what is fetched; 0: its source does not say."""
    deprecated = models.BooleanField(default=False)
    replacement = models.CharField(max_length=200, blank=True)
    removal_on = models.DateField(null=True)
    position = models.PositiveIntegerField(default=0)
    """In the order of the source."""
    gone = models.BooleanField(default=False)
    """It was offered once, and is not any more."""
    first_seen_at = models.DateTimeField(auto_now_add=True)

    objects = SourceOfferQuerySet.as_manager()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "name", "label", "digest"], name="skill_source_offer"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.label or self.digest[:12]}"
