"""What a person prefers for new conversations, and what is so for everybody who did not choose."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from accounts.staff import require_staff
from agents.models import Agent, Environment
from audit import record as audit
from conversations.models import Defaults, Preference
from harness.errors import Invalid

CHANGE_DEFAULTS = "conversations.change_defaults"
DELETE_DEFAULTS = "conversations.delete_defaults"


def put_away_first_steps(*, actor: User) -> None:
    """The list of what to do first does not come back."""
    Preference.objects.update_or_create(user=actor, defaults={"first_steps_put_away": True})


def set_defaults(
    *, actor: User, agent: Agent | None, environment: Environment | None
) -> Preference:
    """Preselect these for `actor`; None: what her organisation has. Raises Invalid for what is not
    hers to use."""
    if agent is not None and not Agent.objects.visible_to(actor).on_offer().contains(agent):
        raise Invalid(_("This agent is not on offer."), field="default_agent")
    offered = Environment.objects.visible_to(actor).on_offer()
    if environment is not None and not offered.contains(environment):
        raise Invalid(_("This environment is not on offer."), field="default_environment")
    preference, _created = Preference.objects.update_or_create(
        user=actor,
        defaults={"default_agent": agent, "default_environment": environment},
    )
    return preference


def set_shared_defaults(
    *,
    actor: User,
    organisation: Organisation | None,
    agent: Agent | None,
    environment: Environment | None,
) -> Defaults:
    """What new conversations begin with in an organisation, or (None) on the whole server, where a
    person has no choice of her own. None: what the next level up has.

    Raises NotFound for strangers, Forbidden for who does not manage it, and Invalid for what not
    everybody there may use.
    """
    if organisation is None:
        require_staff(actor, CHANGE_DEFAULTS)
        here = Q(organisation=None)
    else:
        require_manager(actor, organisation)
        here = Q(organisation=None) | Q(organisation=organisation)
    if agent is not None and not Agent.objects.on_offer().filter(here, private=False).contains(
        agent
    ):
        raise Invalid(
            _("This agent is not on offer there."),
            field="default_agent",
            hint=_("Choose one that everybody there may use."),
        )
    offered = Environment.objects.on_offer().filter(here)
    if environment is not None and not offered.contains(environment):
        raise Invalid(
            _("This environment is not on offer there."),
            field="default_environment",
            hint=_("Choose one that everybody there may use."),
        )
    with transaction.atomic():
        before = _held(organisation)
        defaults, created = Defaults.objects.update_or_create(
            organisation=organisation, defaults={"agent": agent, "environment": environment}
        )
        if created or before != _held(organisation):
            _record(actor, organisation, before)
    return defaults


def clear_shared_defaults(*, actor: User, organisation: Organisation | None) -> None:
    """New conversations begin there with what the next level up has; nothing where it was so already.

    Raises as `set_shared_defaults`.
    """
    if organisation is None:
        require_staff(actor, DELETE_DEFAULTS)
    else:
        require_manager(actor, organisation)
    with transaction.atomic():
        before = _held(organisation)
        gone, _rows = Defaults.objects.filter(organisation=organisation).delete()
        if gone:
            _record(actor, organisation, before)


def _held(organisation: Organisation | None) -> dict[str, dict[str, str] | None]:
    """What is preselected there, as the audit log names it."""
    held = (
        Defaults.objects.select_related("agent", "environment")
        .filter(organisation=organisation)
        .first()
    )
    chosen = {"agent": held and held.agent, "environment": held and held.environment}
    return {
        kind: {"id": one.uid, "name": one.name} if one else None for kind, one in chosen.items()
    }


def _record(
    actor: User, organisation: Organisation | None, before: dict[str, dict[str, str] | None]
) -> None:
    audit.about_setting(
        audit.Action.DEFAULTS_SET,
        actor=actor,
        organisation_id=organisation.pk if organisation else None,
        before=before,
        after=_held(organisation),
    )
