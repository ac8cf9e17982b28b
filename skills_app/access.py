"""Who may do what with a skill, asked by the actions. Somebody else's is *not found*."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, User
from accounts.permissions import may_manage
from accounts.persons import MANAGING, persons_behind
from accounts.staff import has_staff_permission
from harness.errors import Forbidden, MayNotDecide, NotFound

from .models import MANAGE_ANY, Skill, SkillVersion


def manages(actor: User, skill: Skill) -> bool:
    """Whether she releases, moves and withdraws versions of it."""
    if skill.owner_id is not None:
        return actor.is_active and skill.owner_id == actor.pk
    if skill.organisation is None:
        return has_staff_permission(actor, MANAGE_ANY)
    return may_manage(actor, skill.organisation) or has_staff_permission(actor, MANAGE_ANY)


def may_write(actor: User, skill: Skill) -> bool:
    """Whether she may add versions, as drafts."""
    if skill.organisation is None or skill.owner_id is not None:
        return manages(actor, skill)
    return (
        manages(actor, skill) or Membership.objects.role_in(skill.organisation, actor) is not None
    )


def held_skill(actor: User, skill: Skill) -> Skill:
    """It as it is now, locked. Raises NotFound for one the actor does not see."""
    seen = Skill.objects.visible_to(actor).filter(pk=skill.pk).exists()
    rows = Skill.objects.select_for_update(of=("self",), no_key=True).filter(pk=skill.pk)
    held = rows.select_related("organisation", "stable", "canary", "latest").first()
    if held is None or not seen:
        raise NotFound(_("There is no such skill."))
    return held


def managed_skill(actor: User, skill: Skill) -> Skill:
    """As `held_skill`, and Forbidden for who does not manage it."""
    held = held_skill(actor, skill)
    if not manages(actor, held):
        raise Forbidden(
            _("Only who manages this skill may do this."),
            hint=_(
                "Owners and administrators manage an organisation’s, staff those of the server."
            ),
        )
    return held


def version_of(actor: User, version: SkillVersion, held: Skill) -> SkillVersion:
    """It as it is now, of a skill that is held. Raises NotFound."""
    found = SkillVersion.objects.visible_to(actor).filter(pk=version.pk, skill=held).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    return found


def why_not_decide(actor: User, version: SkillVersion) -> Forbidden | None:
    """What keeps the actor from deciding a review; None: nothing. Nobody decides what she asked for or
    wrote where somebody else could."""
    skill = version.skill
    if not manages(actor, skill):
        return Forbidden(
            _("Only owners and administrators may do this."), hint=_("Ask one of them.")
        )
    if actor.is_service:
        return MayNotDecide(_("A person reviews skills."), hint=_("Ask one who manages."))
    authors = {version.asked_by, version.created_by} - {None}
    if not any(author and actor.pk in persons_behind(author) for author in authors):
        return None
    others = Membership.objects.filter(
        organisation=skill.organisation,
        role__in=MANAGING,
        user__is_active=True,
        user__kind=User.Kind.PERSON,
    ).exclude(user__in=[each.pk for each in authors if each])
    others = others.exclude(user=actor).select_related("user")
    if skill.organisation is None or not others.exists():
        return None
    return MayNotDecide(
        _("It is your own."),
        hint=_("Another owner or administrator decides: %(names)s.")
        % {"names": ", ".join(str(each.user) for each in others[:5])},
    )
