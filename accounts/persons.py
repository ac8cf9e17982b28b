"""Which persons stand behind an account: decisions count persons, and so does what is charged.

A service account is never somebody of its own: it acts for everybody who could speak through it.
Whether one of them may do a thing is the actions' question.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from accounts.models import ApiToken, Membership, Organisation, Role, User

MANAGING = [role for role in Role if role.manages]


def persons_behind(account: User) -> frozenset[int]:
    """The keys of all whose act this account's may be: a person herself, and for a service account
    who made it, who ever held a token of it, who manages its organisation, and every superuser.

    Tokens that were revoked count too: what was said with one was said.
    """
    if not account.is_service:
        return frozenset({account.pk})
    found = set(User.objects.filter(is_superuser=True).values_list("pk", flat=True))
    seen: set[int] = set()
    accounts = {account.pk}
    while accounts:
        seen |= accounts
        makers = User.objects.filter(pk__in=accounts).values_list("made_by", flat=True)
        holders = ApiToken.objects.filter(user__in=accounts).values_list("created_by", flat=True)
        managers = Membership.objects.filter(
            organisation__memberships__user__in=accounts, role__in=MANAGING
        ).values_list("user", flat=True)
        found |= {pk for pk in {*makers, *holders, *managers} if pk is not None}
        services = User.objects.filter(pk__in=found, kind=User.Kind.SERVICE)
        accounts = set(services.values_list("pk", flat=True)) - seen
        found -= accounts | seen
    return frozenset(found)


def accounts_of(person: User) -> Q:
    """For a filter of users: she herself and the service accounts she stands behind."""
    own = Q(pk=person.pk)
    if person.is_service:
        return own
    services = Q(kind=User.Kind.SERVICE)
    if User.objects.filter(pk=person.pk, is_superuser=True).exists():
        return own | services
    managed = Organisation.objects.filter(memberships__user=person, memberships__role__in=MANAGING)
    tokens = ApiToken.objects.filter(created_by=person).values("user")
    members = Membership.objects.filter(organisation__in=managed).values("user")
    return own | services & (Q(made_by=person) | Q(pk__in=tokens) | Q(pk__in=members))


def charged_person(account: User, organisation_id: int) -> int:
    """The key of the person whose budgets count what this account spends in the organisation.

    Of a service account: who made it, as long as she belongs there; then the owner who has for longest.
    """
    if not account.is_service:
        return account.pk
    members = Membership.objects.filter(
        organisation=organisation_id, user__kind=User.Kind.PERSON, user__is_active=True
    )
    maker = members.filter(user=account.made_by_id).first()
    payer = maker or members.owners().order_by("created_at", "pk").first()
    return payer.user_id if payer is not None else account.pk


def whose_place(account: User) -> int:
    """The key of the person whose place it takes wherever a limit is each person's: an account's
    maker's. Asks no table."""
    return account.made_by_id or account.pk if account.is_service else account.pk


def place_of(owner: str) -> Coalesce:
    """`whose_place` in a query, of the account in the field `owner`: only service accounts have makers."""
    return Coalesce(f"{owner}__made_by", owner)


def sharing_place(place: int) -> QuerySet[User]:
    """All accounts of which `whose_place` is `place`: what they hold is counted together."""
    return User.objects.filter(Q(pk=place) | Q(made_by=place)).order_by()


def hold_names(organisation: Organisation | None) -> None:
    """Until the transaction that this is called in ends nobody else asks which names are free in an
    organisation, or without one among what the whole server has: its first organisation stands for it."""
    rows = Organisation.objects.select_for_update(no_key=True).order_by("pk")
    if organisation is not None:
        rows = rows.filter(pk=organisation.pk)
    rows.first()


def hold_place(account: User, organisation: Organisation | None) -> QuerySet[User]:
    """Lock what a limit of a person's is counted under, in the transaction this is called in; all accounts
    that share her place. The organisation comes first, as for who closes an account."""
    if organisation is not None:
        hold_names(organisation)
    place = whose_place(account)
    User.objects.select_for_update(no_key=True).filter(pk=place).first()
    return sharing_place(place)


def persons_among(people: Collection[int], services: Collection[Collection[int]]) -> int:
    """How many different persons at least have spoken: `people` for themselves, and others through
    service accounts, each given as all who stand behind it.

    A service account adds one only beside people none of whom could have spoken through it.
    """
    themselves = frozenset(people)
    # Any two of one organisation have its owners in common, so that one of them counts at most.
    return len(themselves) + any(themselves.isdisjoint(behind) for behind in services)
