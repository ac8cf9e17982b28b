"""Writing the steering files of an organisation and of agents there; the next runs are told of it."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from agents.models import Agent
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import NotFound, TooLarge
from steering.kitpart import TEXT_LIMIT
from steering.models import SteeringFile


def save_steering_file(
    *, actor: User, organisation: Organisation, text: str, agent: Agent | None = None
) -> SteeringFile | None:
    """The organisation's, or with `agent` that of one there. An empty text takes it away: None.

    Raises NotFound for a stranger and for an agent that she does not see there, Forbidden for who does not
    manage, TooLarge.
    """
    require_manager(actor, organisation)
    if len(text) > TEXT_LIMIT:
        raise TooLarge(
            _("A steering file has at most %(limit)d characters.") % {"limit": TEXT_LIMIT},
            field="text",
            hint=_("It stands in every prompt. Put what is needed now and then into a skill."),
        )
    if agent is not None:
        seen = Agent.objects.visible_to(actor).usable_in(organisation)
        if not seen.filter(pk=agent.pk).exists():
            raise NotFound(_("There is no such agent."))
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        row = SteeringFile.objects.filter(organisation=organisation, agent=agent).first()
        if (row.text if row else "") == text:
            return row
        about_setting(
            AuditEntry.Action.STEERING_CHANGED,
            actor=actor,
            organisation_id=organisation.pk,
            agent=agent.uid if agent else "",
            characters=str(len(text)),
        )
        if not text.strip():
            if row is not None:
                row.delete()
            return None
        row = row or SteeringFile(organisation=organisation, agent=agent)
        row.text, row.changed_by = text, actor
        row.save()
        return row
