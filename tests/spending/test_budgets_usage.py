"""The usage page and its export: the figures are those of the rows."""

from __future__ import annotations

import csv
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation, User
from conversations.models import Conversation
from harness.ids import new_event_id
from spending import reports
from spending.models import Usage
from tests.cast import ClientOf
from tests.chat.drawing import make_conversation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_day")]

USAGE = "/usage/"
EXPORT = "/usage/export/"


def spend(
    conversation: Conversation,
    *,
    cost: str | None = "0.5",
    days_ago: int = 0,
    model: str = "large",
    purpose: str = "main",
    **tokens: int,
) -> Usage:
    row = Usage.objects.create(
        organisation=conversation.organisation,
        user=conversation.owner,
        conversation=conversation,
        model_request_id=new_event_id(),
        purpose=purpose,
        provider="scripted",
        model=model,
        cost=None if cost is None else Decimal(cost),
        **{"input_tokens": 100, "output_tokens": 10, **tokens},
    )
    Usage.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days_ago))
    return row


@pytest.fixture
def hers(alice: User, acme: Organisation) -> Conversation:
    conversation = make_conversation(alice, acme)
    Conversation.objects.filter(pk=conversation.pk).update(title="Harbour plans")
    conversation.refresh_from_db()
    return conversation


@pytest.fixture
def his(bob: User, acme: Organisation) -> Conversation:
    conversation = make_conversation(bob, acme)
    Conversation.objects.filter(pk=conversation.pk).update(title="Bob's secret")
    return conversation


def lines(client: Client, query: str = "") -> list[dict[str, str]]:
    response: Any = client.get(f"{EXPORT}{query}")
    assert response.status_code == 200
    text = b"".join(response.streaming_content).decode()
    return list(csv.DictReader(StringIO(text)))


def test_every_grouping_adds_up_to_the_rows(alice: User, acme: Organisation, hers: Conversation):
    """Over calls of every purpose."""
    for purpose, model in (("main", "large"), ("compaction", "small"), ("main", "small")):
        spend(hers, purpose=purpose, model=model, cache_read_input_tokens=300)
    spend(hers, cost=None, model="unknown", days_ago=1, cache_creation_input_tokens=7)
    rows = reports.rows_of_person(alice, acme, reports.Span.latest())
    report = reports.report_of_person(rows)
    sums: dict[str, Any] = Usage.objects.aggregate(
        cost=Sum("cost"), output=Sum("output_tokens"), cached=Sum("cache_read_input_tokens")
    )
    for group in (report.days, report.models, report.purposes, report.conversations):
        assert sum(line.cost for line in group) == sums["cost"] == Decimal("1.5")
        assert sum(line.output for line in group) == sums["output"] == 40
        assert sum(line.cached for line in group) == sums["cached"] == 900
        assert sum(line.fresh for line in group) == 407
        assert sum(line.calls for line in group) == 4
        assert sum(line.unpriced for line in group) == 1
    assert {line.label for line in report.purposes} == {"main", "compaction"}
    assert report.total.tokens == sum(row.total_tokens for row in Usage.objects.all())
    assert report.cached_percent == 100 * 900 // 1307


def test_calls_without_a_price_are_counted_apart_and_never_as_free(
    alice: User, acme: Organisation, hers: Conversation, client_of: ClientOf
):
    spend(hers, cost=None, model="mystery")
    rows = reports.rows_of_person(alice, acme, reports.Span.latest())
    assert reports.report_of_person(rows).total.cost_text == "unknown"
    spend(hers, cost="0.25")
    assert reports.report_of_person(rows).total.cost_text == "$0.25 and 1 call without a price"
    assert "$0.25 and 1 call without a price" in client_of(alice).get(USAGE).content.decode()


def test_a_person_sees_her_own_spending_and_nobody_elses(
    alice: User, bob: User, hers: Conversation, his: Conversation, client_of: ClientOf
):
    spend(hers, cost="3.21")
    spend(his, cost="7.65")
    page = client_of(bob).get(USAGE).content.decode()
    assert "$7.65" in page
    assert "$3.21" not in page
    assert "Harbour plans" not in page
    assert [line["person"] for line in lines(client_of(bob))] == ["bob"]


def test_managers_see_each_member_and_the_pool_but_no_titles_of_theirs(
    alice: User, hers: Conversation, his: Conversation, client_of: ClientOf
):
    spend(hers, cost="3")
    spend(his, cost="7")
    page = client_of(alice).get(f"{USAGE}?whose=organisation").content.decode()
    for words in ("$10.00", "$7.00", "$3.00", "bob", "alice"):
        assert words in page
    body = page[page.index("<main") :]
    assert "secret" not in body
    assert "Harbour plans" not in body
    exported = lines(client_of(alice), "?whose=organisation")
    assert {line["person"] for line in exported} == {"alice", "bob"}


@pytest.mark.parametrize("address", [USAGE, EXPORT])
def test_a_member_may_not_see_everybodys(
    bob: User, his: Conversation, client_of: ClientOf, address: str
):
    assert client_of(bob).get(f"{address}?whose=organisation").status_code == 403


def test_mallory_sees_nothing_of_acme(
    mallory: User, elsewhere: Organisation, hers: Conversation, client_of: ClientOf
):
    spend(hers, cost="3.21")
    page = client_of(mallory).get(f"{USAGE}?whose=organisation").content.decode()
    assert "Nothing was spent in these days." in page
    assert lines(client_of(mallory), "?whose=organisation") == []


def test_the_days_are_the_persons_choice(alice: User, hers: Conversation, client_of: ClientOf):
    spend(hers, cost="1", days_ago=40)
    spend(hers, cost="2", days_ago=0)
    client = client_of(alice)
    today = timezone.localdate()
    old = today - timedelta(days=40)
    assert [line["cost_usd"] for line in lines(client)] == ["2.00000000"]
    assert [line["cost_usd"] for line in lines(client, f"?from={old}&to={old}")] == ["1.00000000"]
    both = [line["cost_usd"] for line in lines(client, f"?from={old}&to={today}")]
    assert both == ["1.00000000", "2.00000000"]


@pytest.mark.parametrize(
    "query",
    ["?from=yesterday", "?to=2026-02-30", "?from=2026-02-02&to=2026-02-01", "?from=2020-01-01"],
)
def test_wrong_days_are_refused_with_the_rule(
    alice: User, acme: Organisation, client_of: ClientOf, query: str
):
    response = client_of(alice).get(f"{USAGE}{query}", headers={"Accept": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["hint"]


def test_the_export_holds_every_call_and_nothing_a_spreadsheet_would_run(
    alice: User, hers: Conversation, client_of: ClientOf
):
    spend(hers, model="=cmd|' /C calc'!A0", cost=None)
    spend(hers, cost="0.00000001", cache_read_input_tokens=4, cache_creation_input_tokens=5)
    first, second = lines(client_of(alice))
    assert list(first) == list(reports.COLUMNS)
    assert first["model"].startswith("'=")
    assert first["cost_usd"] == ""
    assert Decimal(second["cost_usd"]) == Decimal("1E-8")
    assert (second["cache_read_tokens"], second["cache_write_tokens"]) == ("4", "5")
    assert second["conversation"] == hers.uid


def test_what_deleted_conversations_spent_stays_counted(
    alice: User, acme: Organisation, hers: Conversation
):
    spend(hers)
    hers.delete()
    rows = reports.rows_of_person(alice, acme, reports.Span.latest())
    (line,) = reports.report_of_person(rows).conversations
    assert (line.label, line.calls) == ("Deleted conversations", 1)


def test_the_page_takes_the_same_number_of_queries_however_much_was_spent(
    alice: User, acme: Organisation, hers: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    taken = []
    for _ in range(2):
        for number in range(20):
            spend(make_conversation(alice, acme), model=f"m{number}", days_ago=number)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(USAGE)
        taken.append(len(queries))
    assert taken[0] == taken[1] <= 18
