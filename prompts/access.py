"""The first step of every action on prompts: may the actor do this there? A stranger finds nothing."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import may_manage, require_manager
from accounts.staff import has_staff_permission, require_staff
from harness.errors import NotFound

from .models import CHANGE_ANY, Prompt


def may_change(actor: User, organisation: Organisation | None) -> bool:
    """Whether `require_prompts_of` would let her pass."""
    if has_staff_permission(actor, CHANGE_ANY):
        return True
    return organisation is not None and may_manage(actor, organisation)


def require_prompts_of(actor: User, organisation: Organisation | None) -> None:
    """Pass owners and administrators of it, and staff with the permission; None: of the server, staff."""
    if has_staff_permission(actor, CHANGE_ANY):
        return
    if organisation is None:
        require_staff(actor, CHANGE_ANY)
    else:
        require_manager(actor, organisation)


def held_prompt(actor: User, prompt: Prompt) -> Prompt:
    """The row as it is now, locked. Needs a transaction. NotFound, Forbidden."""
    seen = Prompt.objects.visible_to(actor).values("pk")
    rows = Prompt.objects.filter(pk__in=seen).select_for_update(of=("self",))
    found = rows.select_related("organisation").filter(pk=prompt.pk).first()
    if found is None:
        raise NotFound(_("There is no such prompt."))
    require_prompts_of(actor, found.organisation)
    return found


def find_prompt(user: User, organisation: Organisation, wanted: str) -> Prompt:
    """By id, or by the name that it has in this organisation. NotFound that names those there are."""
    seen = Prompt.objects.visible_to(user).select_related("organisation")
    found = seen.filter(uid=wanted).first()
    found = found or seen.usable_in(organisation).filter(name=wanted).first()
    if found is None:
        raise NotFound(_("There is no such prompt."), hint=names_there(organisation))
    return found


def names_there(organisation: Organisation | None) -> str:
    """In words, which prompts work done for this organisation can name."""
    rows = Prompt.objects.usable_in(organisation).values_list("name", flat=True)
    names = list(dict.fromkeys(rows[:60]))
    if not names:
        return _("There is none yet.")
    shown = ", ".join(names[:30])
    return _("There are: %(names)s.") % {"names": shown if len(names) <= 30 else f"{shown} …"}
