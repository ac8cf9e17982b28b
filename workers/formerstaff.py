"""Keys end with the powers of the staff who were shown them: whoever had one could go on taking work.

Listens to `accounts.happenings`, and to what is taken from groups and permissions themselves, which
changes no account. What revoking a key means is `actions.keys`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models.signals import m2m_changed, pre_delete
from django.dispatch import receiver

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .actions.keys import revoke_keys_of
from .models import EnvironmentKey

POWERS = frozenset({"is_active", "is_staff", "is_superuser"})
GRANTS = frozenset({"groups", "user_permissions"})
"""What is stored after the account, in the same transaction."""


def end_keys_of_former_staff(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """A listener of `accounts.happenings`, in the transaction of the change."""
    if happening is Happening.ACCOUNT_DELETED:
        revoke_keys_of(actor=actor, person=_closed(details["deleted"]))
    elif happening is Happening.ACCOUNT_CHANGED:
        uid, changed = details["member"]["id"], set(details["changed"])
        if changed & POWERS:
            _look(uid, actor)
        if changed & GRANTS:
            transaction.on_commit(partial(_look, uid, actor))


@receiver(m2m_changed, sender=Group.permissions.through, dispatch_uid="workers.group_permissions")
@receiver(m2m_changed, sender=User.groups.through, dispatch_uid="workers.groups")
@receiver(m2m_changed, sender=User.user_permissions.through, dispatch_uid="workers.permissions")
@receiver(pre_delete, sender=Group, dispatch_uid="workers.group_deleted")
@receiver(pre_delete, sender=Permission, dispatch_uid="workers.permission_deleted")
def _look_at_all(action: str = "deleted", **_kwargs: Any) -> None:
    """Whoever was shown a key may have had her powers by what is taken away here, wherever that is done."""
    if action in {"deleted", "post_remove", "post_clear"}:
        transaction.on_commit(_end_keys_without_powers)


def _end_keys_without_powers() -> None:
    shown = EnvironmentKey.objects.valid().exclude(created_by=None).values("created_by")
    for uid in User.objects.filter(pk__in=shown).values_list("uid", flat=True):
        _look(uid, None)


def _look(uid: str, actor: User | None) -> None:
    """As she is now: what was read before may say what she was allowed."""
    revoke_keys_of(actor=actor, person=User.objects.get(uid=uid))


def _closed(uid: str) -> User:
    """As she will be: who is deleted has no powers."""
    person = User.objects.get(uid=uid)
    person.is_active = False
    return person
