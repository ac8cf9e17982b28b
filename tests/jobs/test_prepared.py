"""Prepared queries find what their querysets find, in the same rows, whatever is asked first."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Greatest, Left
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from accounts.models import ApiToken, Membership, Organisation, Role, User
from agents.models import Agent
from documents.models import Collection, Document, Passage, PassageVector
from jobs.prepared import Prepared, PreparedUpdate
from spending.models import ModelPrice

MEMBERS = Prepared(
    lambda given: (
        Membership.objects.filter(organisation__memberships__user=given.user)
        .filter(organisation=given.organisation, created_at__lt=given.moment)
        .select_related("user", "organisation")
        .order_by("user__username")
    )
)
LOCKED = Prepared(
    lambda given: User.objects.select_for_update(no_key=True).filter(username=given.name)
)
ALONE = Prepared(
    lambda given: User.objects.annotate(
        member=Exists(Membership.objects.filter(user=OuterRef("pk"), role=given.role))
    ).order_by("username")
)
BEHIND = Prepared(lambda given: User.objects.filter(pk__lt=given.pk).order_by("pk"))
NUMBERED = Prepared(lambda given: User.objects.filter(pk=given.pk))
NAMES = Prepared(
    lambda given: (
        User.objects.filter(memberships__role=given.role).order_by("-username")
    ).values_list("username", "is_active", "date_joined")[:2]
)
KEPT = Prepared(
    lambda given: (
        PassageVector.objects.filter(model=given.model, passage__number__gte=given.first)
        .filter(passage__document__updated_at__lt=given.moment)
        .order_by("pk")
        .values_list("pk", Left("passage__text", 4), "passage__document__updated_at", "data")
    ),
    binary=True,
)

PROMOTED = PreparedUpdate(
    lambda given: Membership.objects.filter(
        created_at__lt=given.moment, organisation=given.organisation, role=given.old
    ),
    lambda given: {"role": given.new, "created_at": Greatest(F("created_at"), given.at_least)},
)
COUNTED = PreparedUpdate(
    lambda given: ApiToken.objects.filter(Q(day=None) | ~Q(day=given.today)),
    lambda given: {"day": given.today, "day_requests": F("day_requests") + given.more},
)

PRICED = PreparedUpdate(
    lambda given: ModelPrice.objects.filter(pk=given.price), lambda given: {"input": given.amount}
)
NOTED = PreparedUpdate(
    lambda given: Agent.objects.filter(uid=given.agent),
    lambda given: {"metadata": given.noted, "archived_at": given.moment},
)


@pytest.fixture
def team(db) -> Organisation:
    organisation = Organisation.objects.create(name="Team", slug="team")
    for name, role in (("alice", Role.OWNER), ("bob", Role.MEMBER), ("carol", Role.MEMBER)):
        user = User.objects.create_user(name, f"{name}@example.org", None)
        Membership.objects.create(user=user, organisation=organisation, role=role)
    User.objects.create_user("mallory", "mallory@example.org", None)
    return organisation


def members(organisation: Organisation, username: str) -> list[str]:
    user = User.objects.get(username=username)
    rows = MEMBERS.all(
        user=user.pk, organisation=organisation.pk, moment=timezone.now() + timedelta(hours=1)
    )
    return [row.user.username for row in rows]


def test_what_is_given_decides_each_time_anew(team: Organisation):
    assert members(team, "alice") == ["alice", "bob", "carol"]
    assert members(team, "mallory") == []
    Membership.objects.filter(user__username="bob").delete()
    assert members(team, "bob") == []
    assert members(team, "alice") == ["alice", "carol"]


def test_rows_are_those_of_the_queryset_with_what_they_point_to(
    team: Organisation, django_assert_num_queries
):
    later = timezone.now() + timedelta(hours=1)
    alice = User.objects.get(username="alice")
    asked = Membership.objects.filter(organisation=team).select_related("user", "organisation")
    with django_assert_num_queries(1):
        rows = MEMBERS.all(user=alice.pk, organisation=team.pk, moment=later)
        found = [(row.user.email, row.user.is_active, row.organisation.created_at) for row in rows]
    assert rows == list(asked.order_by("user__username"))
    assert found == [(row.user.email, True, team.created_at) for row in rows]
    rows[1].role = Role.ADMIN
    rows[1].save()
    assert Membership.objects.get(pk=rows[1].pk).role == Role.ADMIN
    early = timezone.now() - timedelta(hours=1)
    assert not MEMBERS.exists(user=alice.pk, organisation=team.pk, moment=early)
    assert MEMBERS.first(user=alice.pk, organisation=team.pk, moment=early) is None


def test_a_slice_of_values_is_cut_and_converted_as_the_queryset_does_it(team: Organisation):
    joined = User.objects.get(username="carol").date_joined
    rows = NAMES.all(role=Role.MEMBER)
    assert [row[0] for row in rows] == ["carol", "bob"]
    assert rows[0] == ("carol", True, joined)
    first = NAMES.first(role=Role.OWNER)
    assert first is not None
    assert first[:2] == ("alice", True)
    assert not NAMES.exists(role=Role.REVIEWER)


def test_values_in_binary_form_are_those_of_the_queryset_and_counted_as_any(
    team: Organisation, django_assert_num_queries
):
    collection = Collection.objects.create(organisation=team, name="Handbooks")
    document = Document.objects.create(collection=collection, name="tea.md")
    every = bytes(range(256))
    for number, text in enumerate(("Tea is green.", "Øl er gult.", "Left out.")):
        passage = Passage.objects.create(document=document, edition=1, number=number, text=text)
        PassageVector.objects.create(
            passage=passage, model="gone" if number == 2 else "m", code=every, data=every[number:]
        )
    later = timezone.now() + timedelta(hours=1)
    with django_assert_num_queries(1):
        rows = KEPT.all(model="m", first=0, moment=later)
    assert [(text, at, bytes(data)) for _pk, text, at, data in rows] == [
        ("Tea ", document.updated_at, every),
        ("Øl e", document.updated_at, every[1:]),
    ]
    assert [row[0] for row in rows] == list(
        PassageVector.objects.filter(model="m").order_by("pk").values_list("pk", flat=True)
    )
    assert [row[1] for row in KEPT.all(model="m", first=1, moment=later)] == ["Øl e"]
    assert KEPT.all(model="m", first=0, moment=later - timedelta(days=1)) == []


@pytest.mark.django_db(transaction=True)
def test_what_locks_rows_is_refused_outside_of_a_transaction_also_the_second_time(team):
    with transaction.atomic():
        assert LOCKED.first(name="bob") == User.objects.get(username="bob")
    with pytest.raises(TransactionManagementError):
        LOCKED.first(name="bob")


def test_what_a_thread_asked_with_ends_with_the_thread(team: Organisation):
    used: list[weakref.ref[object]] = []

    def ask() -> None:
        NAMES.all(role=Role.MEMBER)
        used.append(weakref.ref(connections[DEFAULT_DB_ALIAS]))
        connections.close_all()

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    gc.collect()
    assert [connection() for connection in used] == [None]


def test_an_update_changes_the_rows_that_are_meant_and_says_how_many_there_were(team: Organisation):
    before, later = timezone.now(), timezone.now() + timedelta(hours=1)
    given = {"organisation": team.pk, "new": Role.REVIEWER.value, "at_least": later}
    assert PROMOTED.run(moment=before, old=Role.MEMBER.value, **given) == 2
    changed = Membership.objects.filter(role=Role.REVIEWER).order_by("user__username")
    assert [row.user.username for row in changed] == ["bob", "carol"]
    assert {row.created_at for row in changed} == {later}
    assert PROMOTED.run(moment=before, old=Role.MEMBER.value, **given) == 0
    assert Membership.objects.get(user__username="alice").role == Role.OWNER


def test_an_update_compares_days_as_the_queryset_does(team: Organisation):
    alice = User.objects.get(username="alice")
    token = ApiToken.objects.create(user=alice, organisation=team, digest="d", token_key="k")
    today = timezone.now().date()
    assert COUNTED.run(today=today, more=2) == 1
    assert COUNTED.run(today=today, more=2) == 0
    assert COUNTED.run(today=today + timedelta(days=1), more=3) == 1
    token.refresh_from_db()
    assert (token.day, token.day_requests) == (today + timedelta(days=1), 5)


def test_an_update_sets_amounts_texts_of_json_and_nothing(team: Organisation):
    price = ModelPrice.objects.create(
        provider="p", model="m", input=1, output=1, cache_write=1, cache_read=1
    )
    assert PRICED.run(price=price.pk, amount=Decimal("0.0001")) == 1
    price.refresh_from_db()
    assert price.input == Decimal("0.0001")
    assert ModelPrice.objects.filter(input=Decimal("0.0001")).exists()
    agent = Agent.objects.create(name="Noted", archived_at=timezone.now())
    noted = {"word": "“ß” \\ 😀", "none": None}
    assert NOTED.run(agent=agent.uid, noted=json.dumps(noted), moment=None) == 1
    agent.refresh_from_db()
    assert (agent.metadata, agent.archived_at) == (noted, None)
    assert Agent.objects.filter(metadata__word=noted["word"]).exists()


def test_a_value_that_is_not_given_is_an_error(team: Organisation):
    with pytest.raises(KeyError):
        NAMES.all()


def test_a_query_that_depends_on_what_will_be_given_is_refused(team: Organisation):
    with pytest.raises(AttributeError):
        Prepared(lambda given: Membership.objects.visible_to(given.user)).all(user=1)


def test_what_is_annotated_stands_on_each_row(team: Organisation):
    found = ALONE.all(role=Role.MEMBER)
    assert [(user.username, user.member) for user in found] == [
        ("alice", False),
        ("bob", True),
        ("carol", True),
        ("mallory", False),
    ]


@pytest.mark.parametrize("far", [2**63, 2**70, 10**400])
def test_a_number_that_no_column_holds_is_none_and_lies_behind_or_before_all(alice, bob, far):
    assert (NUMBERED.first(pk=far), NUMBERED.all(pk=-far)) == (None, [])
    assert (BEHIND.all(pk=far), BEHIND.all(pk=-far)) == ([alice, bob], [])
    assert NUMBERED.first(pk=alice.pk) == alice


def test_words_that_are_always_the_same_stand_in_the_statement_and_mean_what_they_say(
    team: Organisation,
) -> None:
    """SQLite compiles a statement anew at each execution where a value may decide about an index."""
    odd = "100% o'hara %s"
    User.objects.create_user(odd)
    User.objects.create_user("owner")
    plain = Prepared(
        lambda given: User.objects.filter(username__in=("bob", Role.OWNER), pk__gt=given.pk)
    )
    others = Prepared(lambda given: User.objects.filter(username=odd, pk__gt=given.pk))
    sent: list[list[Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(list(params))
        return execute(sql, params, many, context)

    with connections[DEFAULT_DB_ALIAS].execute_wrapper(note):
        assert {each.username for each in plain.all(pk=0)} == {"bob", "owner"}
        assert [each.username for each in others.all(pk=0)] == [odd]
    assert sent == [[0], [0, odd]]
