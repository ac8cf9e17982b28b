"""Skills come into being, get further versions, and are stopped. What is released is `releases`' part."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_member
from accounts.persons import hold_names, hold_place
from accounts.staff import require_staff
from audit.models import AuditEntry
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, TooLarge
from skills_app.access import held_skill, managed_skill, may_write
from skills_app.auditing import about_skill
from skills_app.folder import read_folder
from skills_app.models import MANAGE_ANY, Skill, SkillFile, SkillVersion
from skills_app.storing import drop_unused, store_version
from skills_app.uses import is_used
from wire.naming import one_line

WORDS_LIMIT = 500


def create_skill(
    *,
    actor: User,
    organisation: Organisation | None,
    files: Mapping[str, bytes],
    own: bool = False,
    called: str = "",
    title: str = "",
    note: str = "",
) -> SkillVersion:
    """The first version of a new skill, a draft: the actor's own in the organisation, everybody's there, or,
    without an organisation, the server's.

    Raises NotFound for a stranger, Forbidden, Invalid and TooLarge as `read_folder`, Conflict for a name that
    is taken, and LimitReached.
    """
    if organisation is not None:
        require_member(actor, organisation)
    else:
        require_staff(actor, MANAGE_ANY)
    folder = read_folder(files, called=called)
    title = one_line(title)
    if len(title) > 100:
        raise TooLarge(
            _("The title is longer than 100 characters."), field="title", hint=_("Shorten it.")
        )
    owner = actor if own and organisation is not None else None
    with transaction.atomic():
        hold_names(organisation)
        hers = hold_place(actor, organisation)
        there = Skill.objects.filter(organisation=organisation, owner=owner)
        if there.filter(name=folder.name).exists():
            raise Conflict(
                _("There is a skill “%(name)s” already.") % {"name": folder.name},
                hint=_("Add a version to it, or choose another name."),
            )
        if owner is not None:
            there = Skill.objects.filter(organisation=organisation, owner__in=hers)
        if there.count() >= settings.AGENTSITE_SKILLS:
            raise LimitReached(
                _("There are %(most)d skills already.") % {"most": settings.AGENTSITE_SKILLS},
                hint=_("Delete one first."),
            )
        skill = Skill.objects.create(
            organisation=organisation,
            owner=owner,
            name=folder.name,
            title=title,
            description=folder.description,
            created_by=actor,
        )
        version = store_version(actor, skill, folder, note)
        about_skill(AuditEntry.Action.SKILL_MADE, actor, skill, digest=version.digest)
    return version


def add_version(
    *, actor: User, skill: Skill, files: Mapping[str, bytes], note: str = ""
) -> SkillVersion:
    """A draft behind the newest version. Raises NotFound, Forbidden, Invalid and TooLarge as `read_folder`,
    Invalid for another name, Conflict where nothing is new or the version's label is taken, LimitReached."""
    folder = read_folder(files)
    with transaction.atomic():
        held = held_skill(actor, skill)
        if not may_write(actor, held):
            raise Forbidden(_("Only who manages this skill may add versions."))
        if folder.name != held.name:
            raise Invalid(
                _("The skill is called “%(name)s”.") % {"name": held.name},
                field="name",
                hint=_("Keep its name in SKILL.md, or make another skill."),
            )
        newest = held.versions.order_by("-number").first()
        if newest is not None and newest.digest == folder.digest:
            raise Conflict(
                _("Version %(version)s holds exactly this.") % {"version": newest.label},
                hint=_("Change something first."),
            )
        version = store_version(actor, held, folder, note)
        about_skill(
            AuditEntry.Action.SKILL_CHANGED,
            actor,
            held,
            version=version.label,
            digest=version.digest,
        )
    return version


def kill_skill(*, actor: User, skill: Skill, reason: str) -> Skill:
    """Stop it everywhere before the next call of every conversation, also of those that are at work.

    Raises NotFound, Forbidden, Invalid without a reason.
    """
    reason = one_line(reason)[:WORDS_LIMIT]
    if not reason:
        raise Invalid(
            _("Stopping a skill needs a reason."),
            field="reason",
            hint=_("Say why; agents that used it are told."),
        )
    with transaction.atomic():
        held = managed_skill(actor, skill)
        held.killed_at, held.killed_reason = held.killed_at or timezone.now(), reason
        held.save(update_fields=["killed_at", "killed_reason"])
        about_skill(AuditEntry.Action.SKILL_STOPPED, actor, held, reason=reason)
    return held


def revive_skill(*, actor: User, skill: Skill) -> Skill:
    """Have it used again. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = managed_skill(actor, skill)
        if held.killed_at is not None:
            held.killed_at, held.killed_reason = None, ""
            held.save(update_fields=["killed_at", "killed_reason"])
            about_skill(AuditEntry.Action.SKILL_REVIVED, actor, held)
    return held


def delete_skill(*, actor: User, skill: Skill) -> None:
    """Take it away with all versions. Raises NotFound, Forbidden, and Conflict for one that conversations
    used: what they did must stay explained."""
    with transaction.atomic():
        held = managed_skill(actor, skill)
        if held.shipped:
            raise Conflict(
                _("This skill comes with the software."), hint=_("Stop it in place of deleting it.")
            )
        if is_used(held):
            raise Conflict(
                _("Conversations used this skill."), hint=_("Stop it in place of deleting it.")
            )
        about_skill(AuditEntry.Action.SKILL_DELETED, actor, held)
        contents = set(
            SkillFile.objects.filter(version__skill=held).values_list("content_id", flat=True)
        )
        held.delete()
        transaction.on_commit(partial(drop_unused, contents))
