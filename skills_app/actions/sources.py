"""Skills from elsewhere: an organisation's sources, and what is taken from them, which is reviewed."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Conflict
from skills_app.actions.releases import ask_for_release
from skills_app.actions.skills import add_version, create_skill
from skills_app.fetching import address_of
from skills_app.folder import SkillFolder
from skills_app.models import Skill, SkillSource, SkillVersion
from skills_app.signedindex import Index, Offered


def know_source(
    *, actor: User, organisation: Organisation, address: str, key: str = ""
) -> SkillSource:
    """The source at this address, made known with the key that its index has to be signed with.

    Raises NotFound for a stranger, Forbidden for who does not manage the organisation, Invalid, and Conflict
    for another key than the one that is known, and for none where none is.
    """
    require_manager(actor, organisation)
    place = address_of(address)
    with transaction.atomic():
        found = SkillSource.objects.filter(organisation=organisation, address=place).first()
        if found is not None and key in {"", found.key}:
            return found
        if found is not None or not key:
            raise Conflict(
                _("The source has another key.") if found else _("The source is not known yet."),
                hint=_("Ask who runs it for the key, and give it with --key."),
            )
        made = SkillSource.objects.create(
            organisation=organisation, address=place, key=key, created_by=actor
        )
        about_setting(
            AuditEntry.Action.SKILL_SOURCE_ADDED,
            actor=actor,
            organisation_id=organisation.pk,
            address=place,
            key=key,
        )
    return made


def take_from_source(
    *, actor: User, source: SkillSource, index: Index, offered: Offered, folder: SkillFolder
) -> SkillVersion:
    """Store what was fetched and verified as a version of the organisation's, and have it reviewed.

    Raises NotFound, Forbidden, and what `create_skill`, `add_version` and `ask_for_release` raise; Conflict
    where another process has seen a newer index meanwhile.
    """
    organisation = source.organisation
    require_manager(actor, organisation)
    with transaction.atomic():
        held = SkillSource.objects.select_for_update(no_key=True).get(pk=source.pk)
        if index.issued < held.seen:
            raise Conflict(_("The source showed a newer index meanwhile."), hint=_("Try again."))
        held.seen = index.issued
        held.save(update_fields=["seen"])
        note = _("From %(source)s, version %(version)s") % {
            "source": source.address,
            "version": offered.version,
        }
        skill = Skill.objects.filter(
            organisation=organisation, owner=None, name=folder.name
        ).first()
        if skill is None:
            version = create_skill(
                actor=actor, organisation=organisation, files=folder.files, note=note[:500]
            )
        else:
            version = add_version(actor=actor, skill=skill, files=folder.files, note=note[:500])
        return ask_for_release(actor=actor, version=version)
