"""Which versions of a skill are offered: asked for, reviewed, released, withdrawn; where channels point."""

from __future__ import annotations

from datetime import date

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from harness.errors import AlreadyDecided, Conflict, Forbidden, Invalid
from skills_app.access import (
    held_skill,
    managed_skill,
    may_write,
    version_of,
    why_not_decide,
)
from skills_app.auditing import about_skill
from skills_app.choosing import require_fitting
from skills_app.contracts import CASES, contract_of, faults_of_cases, require_green
from skills_app.files import folder_of
from skills_app.folder import faults_of
from skills_app.models import Channel, Skill, SkillVersion
from skills_app.packages import ask_for
from wire.naming import one_line

WORDS_LIMIT = 500
State = SkillVersion.State


def ask_for_release(*, actor: User, version: SkillVersion) -> SkillVersion:
    """Have a draft looked at; a person's own skill, which nobody else uses, is released at once.

    Raises NotFound, Forbidden, Conflict for what is no draft and for one that breaks the standard or
    requires what cannot be had: its faults are named.
    """
    with transaction.atomic():
        held = held_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if not may_write(actor, held):
            raise Forbidden(_("Only who may write this skill asks for its release."))
        if found.state not in {State.DRAFT, State.REFUSED}:
            raise Conflict(
                _("This version is no draft: %(state)s.") % {"state": found.get_state_display()}
            )
        _require_sound(found)
        # Before somebody looks at it, so that she sees what came and can try it.
        ask_for(found, again=True)
        found.asked_by, found.asked_at = actor, timezone.now()
        if held.owner_id is not None:
            found.decided_by, found.decided_at = actor, timezone.now()
            _release(actor, held, found, Channel.STABLE)
            return found
        found.state = State.WAITING
        found.save(update_fields=["state", "asked_by", "asked_at"])
        about_skill(
            AuditEntry.Action.SKILL_REVIEW_ASKED,
            actor,
            held,
            version=found.label,
            digest=found.digest,
        )
    return found


def take_back(*, actor: User, version: SkillVersion) -> SkillVersion:
    """A version that waits is a draft again. Raises NotFound, Forbidden for who did not ask, Conflict."""
    with transaction.atomic():
        held = held_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if found.asked_by_id != actor.pk:
            raise Forbidden(_("Somebody else asked for this review."))
        _require_waiting(found)
        found.state = State.DRAFT
        found.save(update_fields=["state"])
        about_skill(AuditEntry.Action.SKILL_REVIEW_WITHDRAWN, actor, held, version=found.label)
    return found


def decide_release(
    *,
    actor: User,
    version: SkillVersion,
    approve: bool,
    channel: str = Channel.STABLE,
    reason: str = "",
    expected_digest: str = "",
) -> SkillVersion:
    """Offer a version that waits, on `stable` or `canary`, or say why not. With `expected_digest` only the
    content that was looked at.

    Raises NotFound, Forbidden, MayNotDecide for who wrote it or asked for it where somebody else could
    decide, AlreadyDecided, Invalid for a refusal without a reason and for another channel, Conflict.
    """
    if channel not in {Channel.STABLE, Channel.CANARY}:
        raise Invalid(_("There is no such channel."), field="channel", hint="stable, canary")
    reason = one_line(reason)[:WORDS_LIMIT]
    with transaction.atomic():
        held = held_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if refusal := why_not_decide(actor, found):
            raise refusal
        _require_waiting(found)
        if expected_digest and expected_digest != found.digest:
            raise Conflict(_("This is not what you looked at."), hint=_("Look at it again."))
        found.decided_by, found.decided_at, found.reason = actor, timezone.now(), reason
        if approve:
            _require_sound(found)
            if channel == Channel.STABLE:
                require_green(found)
            _release(actor, held, found, channel)
            return found
        if not reason:
            raise Invalid(
                _("A refusal needs a reason."),
                field="reason",
                hint=_("Say what to change; the person who asked reads it."),
            )
        found.state = State.REFUSED
        found.save(update_fields=["state", "decided_by", "decided_at", "reason"])
        about_skill(
            AuditEntry.Action.SKILL_REFUSED, actor, held, version=found.label, reason=reason
        )
    return found


def move_channel(*, actor: User, skill: Skill, channel: str, version: SkillVersion | None) -> Skill:
    """Point `stable` or `canary` to a released version, forwards or back; None for canary: to none.

    Conversations that began keep what they have. Raises NotFound, Forbidden, Invalid, Conflict.
    """
    if channel not in {Channel.STABLE, Channel.CANARY}:
        raise Invalid(_("There is no such channel."), field="channel", hint="stable, canary")
    with transaction.atomic():
        held = managed_skill(actor, skill)
        found = version_of(actor, version, held) if version is not None else None
        if found is None and channel == Channel.STABLE:
            raise Invalid(_("Name a version."), field="version")
        if found is not None and found.state != State.RELEASED:
            raise Conflict(_("This version was not released."), hint=_("Have it reviewed first."))
        if found is not None and channel == Channel.STABLE and not _goes_back(held, found):
            require_green(found)
        setattr(held, channel, found)
        _point(held)
        about_skill(
            AuditEntry.Action.SKILL_CHANNEL_MOVED,
            actor,
            held,
            channel=str(channel),
            version=found.label if found else "",
        )
    return held


def set_promotion(*, actor: User, skill: Skill, promotes: bool) -> Skill:
    """Whether its canary becomes stable by itself once its cases are green. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = managed_skill(actor, skill)
        held.promotes = promotes
        held.save(update_fields=["promotes"])
        about_skill(
            AuditEntry.Action.SKILL_CHANNEL_MOVED, actor, held, channel="canary", promotes=promotes
        )
    return held


def promote_canary(*, actor: User, version: SkillVersion) -> bool:
    """Make the canary stable where its skill says so and its cases are green; whether it was. Raises as
    `move_channel`."""
    with transaction.atomic():
        held = managed_skill(actor, version.skill)
        if not held.promotes or held.canary_id != version.pk or contract_of(version) is None:
            return False
        move_channel(actor=actor, skill=held, channel=Channel.STABLE, version=version)
        move_channel(actor=actor, skill=held, channel=Channel.CANARY, version=None)
    return True


def deprecate_version(
    *, actor: User, version: SkillVersion, replacement: str = "", removal_on: date | None = None
) -> SkillVersion:
    """Warn whoever uses it from now on, naming what to use in its place; from `removal_on` on it is refused.

    Raises NotFound, Forbidden, Conflict for what was not released, Invalid for a day that is past.
    """
    if removal_on is not None and removal_on <= timezone.now().date():
        raise Invalid(
            _("The day is past."), field="removal_on", hint=_("Name a later one, or withdraw it.")
        )
    with transaction.atomic():
        held = managed_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if found.state != State.RELEASED:
            raise Conflict(_("This version was not released."))
        found.deprecated_at = found.deprecated_at or timezone.now()
        found.replacement, found.removal_on = one_line(replacement)[:200], removal_on
        found.save(update_fields=["deprecated_at", "replacement", "removal_on"])
        about_skill(
            AuditEntry.Action.SKILL_DEPRECATED,
            actor,
            held,
            version=found.label,
            replacement=found.replacement,
            removal_on=removal_on.isoformat() if removal_on else "",
        )
    return found


def yank_version(*, actor: User, version: SkillVersion, reason: str) -> SkillVersion:
    """Withdraw a released version: no conversation that begins gets it; those that have it keep it
    (`kill_skill` stops it there too). Channels that pointed to it point to the newest one before it.

    Raises NotFound, Forbidden, Invalid without a reason, Conflict for what was not released.
    """
    reason = one_line(reason)[:WORDS_LIMIT]
    if not reason:
        raise Invalid(_("Withdrawing a version needs a reason."), field="reason")
    with transaction.atomic():
        held = managed_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if found.state != State.RELEASED:
            raise Conflict(_("This version was not released."))
        found.state, found.reason = State.YANKED, reason
        found.decided_by, found.decided_at = actor, timezone.now()
        found.save(update_fields=["state", "reason", "decided_by", "decided_at"])
        before = (
            held.versions.released().filter(number__lt=found.number).order_by("-number").first()
        )
        if held.stable_id == found.pk:
            held.stable = before
        if held.canary_id == found.pk:
            held.canary = None
        _point(held)
        about_skill(AuditEntry.Action.SKILL_YANKED, actor, held, version=found.label, reason=reason)
    return found


def _release(actor: User, held: Skill, found: SkillVersion, channel: str) -> None:
    found.state = State.RELEASED
    found.save(
        update_fields=["state", "asked_by", "asked_at", "decided_by", "decided_at", "reason"]
    )
    if channel == Channel.STABLE and held.canary is not None and held.canary.number <= found.number:
        held.canary = None
    setattr(held, channel, found)
    _point(held)
    about_skill(
        AuditEntry.Action.SKILL_RELEASED,
        actor,
        held,
        version=found.label,
        digest=found.digest,
        channel=str(channel),
    )


def _point(held: Skill) -> None:
    held.latest = held.versions.released().order_by("-number").first()
    offered = held.stable or held.latest
    if offered is not None:
        held.description = offered.description
    held.save(update_fields=["stable", "canary", "latest", "description"])


def _goes_back(held: Skill, found: SkillVersion) -> bool:
    """To what was stable already, or may have been: the way back stays open."""
    return held.stable is not None and found.number <= held.stable.number


def _require_sound(version: SkillVersion) -> None:
    folder = folder_of(version)
    faults = [
        *faults_of(folder),
        *filter(None, [faults_of_cases(folder.files.get(CASES))]),
    ]
    if faults:
        raise Conflict(
            _("This version cannot be published: %(why)s") % {"why": " ".join(faults)[:1_000]},
            hint=_("Mend it in a new version."),
        )
    require_fitting(version, version.skill.owner)


def _require_waiting(version: SkillVersion) -> None:
    if version.state != State.WAITING:
        raise AlreadyDecided(
            _("This was decided already: %(state)s.") % {"state": version.get_state_display()}
        )
