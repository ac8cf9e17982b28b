"""Keys with which workers take the work of one self-hosted environment: made and revoked by staff.

The secret leaves here once and is kept as a hash. What a worker may do with it is `actions.work`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.tokens import hash_token, new_token
from conversations import audit, work
from conversations.actions.naming import one_line
from conversations.models import Environment, EnvironmentKey, WorkItem
from conversations.models.work import MANAGE_KEYS
from conversations.permissions import require_staff
from harness.errors import Conflict, Invalid, NotFound, TooLarge

SECRET_PREFIX = "age_"  # noqa: S105 - how every secret begins, so that scanners and people know one
NAME_LENGTH = 80
MOST_KEYS = 50
"""Valid ones of one environment."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    key: EnvironmentKey
    secret: str = field(repr=False)
    """Known only now; only its hash is stored."""


def create_key(*, actor: User, environment: Environment, name: str) -> IssuedKey:
    """Raises Forbidden for who is not staff with the permission, NotFound, Invalid for a name or for
    an environment without workers, and Conflict when it has too many keys."""
    require_staff(actor, MANAGE_KEYS)
    name = one_line(name)
    if not name:
        raise Invalid(
            _("A key needs a name."), field="name", hint=_("Say which worker will use it.")
        )
    if len(name) > NAME_LENGTH:
        raise TooLarge(
            _("The name is longer than %(limit)d characters.") % {"limit": NAME_LENGTH},
            field="name",
            hint=_("Shorten it."),
        )
    secret = SECRET_PREFIX + new_token()
    with transaction.atomic():
        held = _held_environment(actor, environment)
        if not held.has_workers:
            raise Invalid(
                _("The tools of this environment run on this server; no worker takes them."),
                field="environment",
                hint=_("Choose one whose sandbox is “worker”."),
            )
        if held.keys.filter(revoked_at=None).count() >= MOST_KEYS:
            raise Conflict(
                _("There are already %(limit)d valid keys.") % {"limit": MOST_KEYS},
                hint=_("Revoke those that are not needed."),
            )
        key = EnvironmentKey.objects.create(
            environment=held,
            name=name,
            digest=hash_token(secret),
            beginning=secret[: len(SECRET_PREFIX) + 6],
            created_by=actor,
        )
        audit.about_key(audit.Action.KEY_MADE, key, actor=actor)
    return IssuedKey(key, secret)


def revoke_key(*, actor: User, key: EnvironmentKey) -> None:
    """End a key and take away the work of who holds it; a second time changes nothing."""
    require_staff(actor, MANAGE_KEYS)
    with transaction.atomic():
        rows = EnvironmentKey.objects.visible_to(actor).select_for_update(of=("self",))
        held = rows.filter(pk=key.pk).first()
        if held is None:
            raise NotFound(_("There is no such key."))
        if held.revoked_at is not None:
            return
        held.revoked_at = timezone.now()
        held.save(update_fields=["revoked_at"])
        audit.about_key(audit.Action.KEY_REVOKED, held, actor=actor)
    # Each in a transaction of its own: conversations are locked before anything else.
    work.take_away(list(WorkItem.objects.filter(key=held).alive()))


def _held_environment(actor: User, environment: Environment) -> Environment:
    rows = Environment.objects.filter(
        pk__in=Environment.objects.visible_to(actor).filter(pk=environment.pk).values("pk")
    )
    held = rows.select_for_update(no_key=True).first()
    if held is None:
        raise NotFound(_("There is no such environment."))
    return held
