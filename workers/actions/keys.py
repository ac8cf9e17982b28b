"""Keys with which workers take the work of one self-hosted environment: made and revoked by staff.

The secret leaves here once and is kept as a hash. What a worker may do with it is `actions.work`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import has_staff_permission, require_staff
from accounts.tokens import hash_token, new_token
from agents.models import Environment
from audit import record as audit
from harness.errors import Conflict, Invalid, NotFound, TooLarge
from wire.naming import one_line
from workers import items as work
from workers.auditing import about_key
from workers.models import MANAGE_KEYS, EnvironmentKey, WorkItem

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
        # Locked: whoever takes her powers away comes before this and is heeded, or finds the key.
        require_staff(User.objects.select_for_update(no_key=True).get(pk=actor.pk), MANAGE_KEYS)
        if not held.has_workers:
            raise Invalid(
                _("The tools of this environment run on this server; no worker takes them."),
                field="environment",
                hint=_("Choose one whose sandbox is “worker”."),
            )
        if held.keys.valid().count() >= MOST_KEYS:
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
        about_key(audit.Action.KEY_MADE, key, actor=actor)
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
        _revoke(held, actor)


def revoke_keys_of(*, actor: User | None, person: User) -> None:
    """End the keys whose secrets this person was shown, unless she may manage keys still."""
    if has_staff_permission(person, MANAGE_KEYS):
        return
    with transaction.atomic():
        keys = EnvironmentKey.objects.valid().select_for_update(of=("self",))
        for key in keys.filter(created_by=person).order_by("pk"):
            _revoke(key, actor)


def _revoke(key: EnvironmentKey, actor: User | None) -> None:
    key.revoked_at = timezone.now()
    key.save(update_fields=["revoked_at"])
    about_key(audit.Action.KEY_REVOKED, key, actor=actor)
    # Each in a transaction of its own: conversations are locked before anything else.
    transaction.on_commit(partial(_take_work_away, key.pk))


def _take_work_away(key_pk: int) -> None:
    work.take_away(list(WorkItem.objects.filter(key=key_pk).alive()))


def _held_environment(actor: User, environment: Environment) -> Environment:
    rows = Environment.objects.filter(
        pk__in=Environment.objects.visible_to(actor).filter(pk=environment.pk).values("pk")
    )
    held = rows.select_for_update(no_key=True).first()
    if held is None:
        raise NotFound(_("There is no such environment."))
    return held
