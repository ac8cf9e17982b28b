"""What goes with an account that is deleted, and what keeps a person from deleting hers.

What is hers in apps above is cleared by what they register (`clear_with`, `goes_with`, in their `ready()`);
this package knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from accounts.models import Membership, Organisation, Role, User
from accounts.models.organisation import OrganisationQuerySet

Organisations = Sequence[Organisation]


@dataclass(frozen=True, slots=True)
class Part:
    clear: Callable[[User, Organisations], int]
    """Deletes some of what is hers and of what is in these organisations, in short transactions of its own;
    how much that was. It skips what is not at rest."""
    left: Callable[[User, Organisations], bool]
    """Whether there still is some."""


Take = Callable[[User], Callable[[], None]]
"""Says, while her rows are there, what is to be deleted once they are gone; both in the one transaction."""

_parts: dict[str, Part] = {}
_taken: dict[str, Take] = {}


def clear_with(app: str, part: Part) -> None:
    """From now on; one for each app."""
    _parts[app] = part


def goes_with(app: str, take: Take) -> None:
    """From now on; one for each app."""
    _taken[app] = take


def cleared(user: User, organisations: Organisations) -> bool:
    """Delete what there is of hers in apps above; False where something of it is still at work."""
    parts = list(_parts.values())
    while sum(part.clear(user, organisations) for part in parts):
        pass
    return not any(part.left(user, organisations) for part in parts)


def delete_row(user: User) -> None:
    """Hers, whatever the database deletes with it, and what goes with her. Needs a transaction."""
    behind = [take(user) for take in _taken.values()]
    user.delete()
    for take in behind:
        take()


def only_hers(user: User) -> OrganisationQuerySet:
    """Organisations that she owns, and nobody else belongs to but service accounts: they go with her."""
    others = Membership.objects.filter(organisation=OuterRef("pk"), user__kind=User.Kind.PERSON)
    mine = Organisation.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    return mine.exclude(Exists(others.exclude(user=user))).order_by("pk")


def left_ownerless(user: User) -> OrganisationQuerySet:
    """Those of others as well that nobody would own without her."""
    owners = Membership.objects.filter(
        organisation=OuterRef("pk"),
        role=Role.OWNER,
        user__kind=User.Kind.PERSON,
        user__is_active=True,
    )
    owned = Organisation.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    alone = owned.exclude(Exists(owners.exclude(user=user)))
    return alone.exclude(pk__in=only_hers(user).values("pk")).order_by("name", "pk")


def is_last_superuser(user: User) -> bool:
    others = User.objects.filter(is_superuser=True, is_active=True, kind=User.Kind.PERSON)
    return user.is_superuser and not others.exclude(pk=user.pk).exists()
