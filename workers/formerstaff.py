"""Keys end with the powers of the staff who were shown them: whoever had one could go on taking work.

Listens to `accounts.happenings`. What revoking a key means is `actions.keys`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import transaction

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .actions.keys import revoke_keys_of

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


def _look(uid: str, actor: User | None) -> None:
    """As she is now: what was read before may say what she was allowed."""
    revoke_keys_of(actor=actor, person=User.objects.get(uid=uid))


def _closed(uid: str) -> User:
    """As she will be: who is deleted has no powers."""
    person = User.objects.get(uid=uid)
    person.is_active = False
    return person
