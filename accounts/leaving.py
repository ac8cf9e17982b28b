"""What goes with an account that is deleted, and what keeps a person from deleting hers.

What is hers in apps above is cleared by what they register (`clear_with`, `goes_with`, in their `ready()`);
this package knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import Membership, Organisation, Role, User
from accounts.models.organisation import OrganisationQuerySet


@dataclass(frozen=True, slots=True)
class Part:
    clear: Callable[[User], int]
    """Deletes some of what is hers and of what is in organisations that are only hers, in short transactions
    of its own, in each of which it asks `still_goes`; how much that was. It skips what is not at rest."""
    left: Callable[[User], bool]
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


def cleared(user: User) -> bool:
    """Delete what there is of hers in apps above; False where something of it is still at work."""
    parts = list(_parts.values())
    while sum(part.clear(user) for part in parts):
        pass
    return not anything_left(user)


def anything_left(user: User) -> bool:
    """Of hers in apps above."""
    return any(part.left(user) for part in _parts.values())


def closed_for_good() -> QuerySet[User]:
    """Accounts that their persons deleted and nobody opened again."""
    return User.objects.filter(is_active=False, deleting_since__isnull=False)


def still_goes(user: User, *, owner_id: int, organisation_id: int) -> bool:
    """Whether what this owner has in this organisation is deleted with her. Needs a transaction, until whose
    end nobody opens her account again, nor joins an organisation that goes."""
    is_hers = owner_id == user.pk
    if not is_hers:
        list(Organisation.objects.select_for_update().filter(pk=organisation_id))
    if closed_for_good().select_for_update(no_key=True).filter(pk=user.pk).first() is None:
        return False
    return is_hers or only_hers(user).filter(pk=organisation_id).exists()


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
