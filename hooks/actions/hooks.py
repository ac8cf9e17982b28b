"""Who manages an organisation says which hooks are asked about what its agents do, when and how long.

A hook sees its people's work and may be trusted to add words to it: no permission of staff takes the place of
managing it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from accounts.models import Organisation, User
from accounts.permissions import require_manager
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from hooks.installed import names
from hooks.models import Hook, HookCount
from hooks.points import DEFAULT, POINTS
from webhooks.addresses import check_url
from webhooks.signing import new_secret
from wire.naming import named

MOST_HOOKS = 20
"""Of one organisation: each is waited for."""
MOST_TARGET = 500
"""Characters of a command line or an address."""
LONGEST = 30.0
SHORTEST = 0.1
"""Seconds of a deadline."""


@dataclass(frozen=True, slots=True)
class Saved:
    hook: Hook
    secret: str
    """With which its requests are signed; "" where there is none, or it was told before."""


@sensitive_variables("secret")
def save_hook(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    kind: str,
    target: str,
    points: Sequence[str] = DEFAULT,
    tool: str = "*",
    trusted: bool = False,
    position: int = 10,
    deadline: float = 5.0,
    on_failure: str = Hook.OnFailure.REFUSE,
    enabled: bool = True,
    hook: Hook | None = None,
) -> Saved:
    """Make one, or make `hook` say this from the next run on. Its secret is made with the first address and
    stays.

    Raises NotFound for a stranger, Forbidden, Invalid naming the field, Conflict for a name that is taken,
    LimitReached, and NotConfigured where secrets cannot be sealed.
    """
    require_manager(actor, organisation)
    name, _about = named(name, "", missing=_("A hook needs a name."))
    values: dict[str, Any] = {
        "name": name,
        "kind": _one_of(kind, Hook.Kind.values, "kind"),
        "target": _target(kind, target),
        "points": _points(points),
        "tool": tool.strip()[:128] or "*",
        "trusted": trusted and kind == Hook.Kind.WEBHOOK,
        "position": max(0, min(position, 1_000)),
        "deadline": _deadline(deadline),
        "on_failure": _one_of(on_failure, Hook.OnFailure.values, "on_failure"),
        "enabled": enabled,
    }
    secret = ""
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        there = Hook.objects.filter(organisation=organisation)
        held = there.filter(pk=hook.pk).first() if hook is not None else None
        if hook is not None and held is None:
            raise NotFound(_("There is no such hook."))
        others = there if held is None else there.exclude(pk=held.pk)
        if others.filter(name=name).exists():
            raise Conflict(
                _("There is a hook “%(name)s” already.") % {"name": name},
                hint=_("Give it another name."),
            )
        if held is None and there.count() >= MOST_HOOKS:
            raise LimitReached(
                _("There are %(limit)d hooks here already.") % {"limit": MOST_HOOKS},
                hint=_("Delete one first."),
            )
        saved = held or Hook(organisation=organisation, created_by=actor)
        if held is None or not held.enabled or {*values["points"]} - {*held.points}:
            saved.told_from = timezone.now()
        for field, value in values.items():
            setattr(saved, field, value)
        if saved.kind == Hook.Kind.WEBHOOK and not saved.sealed:
            secret = new_secret()
            saved.sealed = vault.seal(secret)
        saved.save()
        HookCount.objects.bulk_create(
            [HookCount(hook=saved, point=point) for point in saved.points], ignore_conflicts=True
        )
        if not saved.enabled:
            saved.deliveries.all().delete()
        _tell(AuditEntry.Action.HOOK_SAVED, actor, saved, **values)
    return Saved(saved, secret)


def delete_hook(*, actor: User, hook: Hook) -> None:
    """Raises NotFound, Forbidden."""
    with transaction.atomic():
        rows = Hook.objects.visible_to(actor).select_related("organisation")
        held = rows.filter(pk=hook.pk).first()
        if held is None:
            raise NotFound(_("There is no such hook."))
        require_manager(actor, held.organisation)
        _tell(AuditEntry.Action.HOOK_DELETED, actor, held)
        held.delete()


def reseal_secrets() -> int:
    """Seal every secret under the first vault key; how many. In the caller's transaction."""
    count = 0
    for row in Hook.objects.exclude(sealed="").select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count


def _target(kind: str, target: str) -> str:
    target = target.strip()
    if kind == Hook.Kind.WEBHOOK:
        return check_url(target)
    if kind == Hook.Kind.COMMAND:
        return _command(target)
    if target not in names():
        there = ", ".join(names()) or _("none")
        raise Invalid(
            _("No installed package brings a hook “%(name)s”.") % {"name": target[:100]},
            field="target",
            hint=_("There are: %(names)s.") % {"names": there},
        )
    return target


def _command(line: str) -> str:
    if not line or len(line) > MOST_TARGET or not line.isprintable():
        raise Invalid(
            _("A command is one line of 1 to %(most)d characters.") % {"most": MOST_TARGET},
            field="target",
            hint=_("It is run by a shell; longer ones belong into a program of the sandbox."),
        )
    return line


def _points(points: Sequence[str]) -> list[str]:
    """In the order of pages, each once."""
    unknown = [point for point in points if point not in POINTS]
    if unknown or not points:
        raise Invalid(
            _("A hook is asked at one point at least, and only at those that there are."),
            field="points",
            hint=_("There are: %(names)s.") % {"names": ", ".join(POINTS)},
        )
    return [point for point in POINTS if point in points]


def _deadline(seconds: float) -> float:
    if not math.isfinite(seconds) or not SHORTEST <= seconds <= LONGEST:
        raise Invalid(
            _("A deadline is from %(least)g to %(most)g seconds.")
            % {"least": SHORTEST, "most": LONGEST},
            field="deadline",
            hint=_("What is asked about waits so long at most."),
        )
    return seconds


def _one_of(value: str, known: list[str], field: str) -> str:
    if value not in known:
        raise Invalid(_("This is none of the choices."), field=field, hint=", ".join(known))
    return value


def _tell(action: AuditEntry.Action, actor: User, hook: Hook, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=hook.organisation_id,
        hook=hook.uid,
        **{"name": hook.name, **details},
    )
