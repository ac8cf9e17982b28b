"""Having the Python packages of a version installed, once more where that failed. How is `packages`' part."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Conflict, Invalid
from skills_app.access import managed_skill, version_of
from skills_app.models import SkillVersion
from skills_app.packages import Packages, ask_for, packages_of, sound_place


def install_packages(*, actor: User, version: SkillVersion) -> Packages:
    """Raises NotFound, Forbidden for who does not manage the skill, Invalid where it needs none, Conflict
    where they are there or under way, and where this server installs none."""
    with transaction.atomic():
        held = managed_skill(actor, version.skill)
        found = version_of(actor, version, held)
        before = packages_of(found)
        if before is None:
            raise Invalid(_("It needs no Python packages."), field="version")
        if not before.source:
            raise Conflict(before.problem)
        if before.under_way:
            raise Conflict(_("They are being installed."), hint=_("Wait for its end."))
    if before.ready and _is_sound(before):
        raise Conflict(_("They are installed."))
    ask_for(found, again=True)
    after = packages_of(found)
    assert after is not None  # noqa: S101 - for the type checker
    return after


def _is_sound(found: Packages) -> bool:
    try:
        sound_place(found)
    except Conflict:
        return False
    return True
