"""Letting a skill of a conversation's workspace instruct its agent, in just the bytes that were looked at."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import writable_conversation
from conversations.broughtwords import bring_words
from conversations.models import Conversation
from harness.errors import Conflict, Forbidden, LimitReached, NotFound
from skills_app.folder import SkillFolder
from skillsets.models import TrustedSkill, TrustedSkillFile, UsedSkill
from skillsets.workspace import MOST_TRUSTED, look_at
from tools_app.workspace import workspace_for


def trust_skill(
    *, actor: User, conversation: Conversation, place: str, digest: str
) -> TrustedSkill:
    """From the next run on the agent is told of it and may read it, as long as its folder stays as it is.
    What is read then are the bytes stored here.

    Raises NotFound, Forbidden for who may not write here and for a service account, Conflict where the folder
    says something else by now, cannot be a skill, or has the name of another one, LimitReached.
    """
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        _require_person(actor)
        found = look_at(held, workspace_for(held.uid), place)
        if found.folder is None:
            raise Conflict(found.problem)
        if found.digest != digest:
            raise Conflict(
                _("The skill has changed since you looked at it."),
                hint=_("Look at it again, then decide."),
            )
        _require_its_own_name(held, place, found.folder.name)
        row = _stored(actor, held, place, found.folder)
        _tell(AuditEntry.Action.SKILL_TRUSTED, actor, held, row)
        bring_words(held, [actor.pk], way="skill")
    return row


def distrust_skill(*, actor: User, conversation: Conversation, place: str) -> None:
    """From the next call on it is a folder as any other, and what was stored of it is gone. Raises NotFound,
    Forbidden."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        _require_person(actor)
        rows = TrustedSkill.objects.filter(conversation=held)
        # No table can be asked for such a place.
        row = None if "\0" in place else rows.filter(place=place).first()
        if row is None:
            raise NotFound(_("There is no such skill in the workspace."))
        _tell(AuditEntry.Action.SKILL_DISTRUSTED, actor, held, row)
        row.delete()


def _require_person(actor: User) -> None:
    if actor.is_service:
        raise Forbidden(
            _("Only a person trusts what stands in a workspace."),
            hint=_("Have somebody look at it on the conversation’s page."),
        )


def _require_its_own_name(held: Conversation, place: str, name: str) -> None:
    others = TrustedSkill.objects.filter(conversation=held).exclude(place=place)
    used = UsedSkill.objects.filter(conversation=held, skill__name=name)
    if others.filter(name=name).exists() or used.exists():
        raise Conflict(
            _("The conversation has another skill with the name “%(name)s”.") % {"name": name},
            hint=_("Rename it in its SKILL.md, or trust the other one no more."),
        )
    if others.count() >= MOST_TRUSTED:
        raise LimitReached(
            _("A conversation has at most %(most)d trusted skills of its workspace.")
            % {"most": MOST_TRUSTED},
            hint=_("Trust one no more, or put some into the library."),
        )


def _stored(actor: User, held: Conversation, place: str, folder: SkillFolder) -> TrustedSkill:
    row, _made = TrustedSkill.objects.update_or_create(
        conversation=held,
        place=place,
        defaults={
            "name": folder.name,
            "description": folder.description,
            "hidden": folder.hidden,
            "digest": folder.digest,
            "by": actor,
        },
    )
    TrustedSkillFile.objects.filter(skill=row).delete()
    TrustedSkillFile.objects.bulk_create(
        TrustedSkillFile(skill=row, path=path, content=data) for path, data in folder.files.items()
    )
    return row


def _tell(action: AuditEntry.Action, actor: User, held: Conversation, row: TrustedSkill) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=held.organisation_id,
        conversation=held.uid,
        place=row.place,
        name=row.name,
        sha256=row.digest,
    )
