"""What a person prefers: for new conversations, and when to be mailed."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Agent, Environment, Preference
from conversations.notices import LONGEST_MINUTES
from harness.errors import Invalid


def set_mails(*, actor: User, enabled: bool, after_minutes: int) -> Preference:
    """Mail `actor` about what waits for her answer and she has not seen for so many minutes, or not.

    Raises Invalid for minutes out of range.
    """
    if not 1 <= after_minutes <= LONGEST_MINUTES:
        raise Invalid(
            _("The minutes are out of range."),
            field="mail_after_minutes",
            hint=_("Give a number from 1 to %(most)d.") % {"most": LONGEST_MINUTES},
        )
    preference, _created = Preference.objects.update_or_create(
        user=actor,
        defaults={"mail_when_waiting": enabled, "mail_after_minutes": after_minutes},
    )
    return preference


def set_defaults(
    *, actor: User, agent: Agent | None, environment: Environment | None
) -> Preference:
    """Preselect these for `actor`; None: whatever comes first. Raises Invalid for what is not
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
