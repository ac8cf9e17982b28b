"""What staff find in the admin: lists that stay cheap, logs nobody edits, content by permission."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from agents.models import Agent, AgentVersion, Environment, Prompt
from agentsite.sidebar import GROUPS
from conversations.log import append
from conversations.models import Conversation, Event, ModelTrace, Run
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.events import UserMessage
from harness.history import Entry
from spending.models import ModelPrice, Usage
from tests.cast import make_user
from tests.tables import table

SECRET = "the plan nobody may read"
READ_ONLY = ("conversation", "event", "run", "usage", "modeltrace")
EDITED = ("agent", "environment", "agents.prompt", "modelprice")
ROWS = 200


def changelist(name: str) -> str:
    return reverse(f"admin:{table(name)}_changelist")


def page_of(name: str, pk: int) -> str:
    return reverse(f"admin:{table(name)}_change", args=[pk])


def staff_with(*permissions: str) -> User:
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def make_conversation(owner, organisation, version, environment) -> Conversation:
    return Conversation.objects.create(
        organisation=organisation,
        owner=owner,
        agent_version=version,
        environment=environment,
        title=SECRET,
    )


@pytest.fixture
def version(make_agent) -> AgentVersion:
    version: AgentVersion = make_agent("Coder", provider="demo").current
    return version


@pytest.fixture
def conversation(alice, acme, version, environment) -> Conversation:
    conversation = make_conversation(alice, acme, version, environment)
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text=SECRET),)))], actor=alice)
    return conversation


def spend(conversation, *, name: str, cost: str | None = "0.5", days_ago: int = 0, **fields):
    row = Usage.objects.create(
        organisation=conversation.organisation,
        user=conversation.owner,
        conversation=conversation,
        model_request_id=name,
        purpose="main",
        provider=fields.pop("provider", "anthropic"),
        model="claude-sonnet-5-5",
        input_tokens=100,
        output_tokens=10,
        cost=None if cost is None else Decimal(cost),
        **fields,
    )
    if days_ago:
        Usage.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days_ago))
    return row


@pytest.fixture
def rows(conversation, environment, version):
    """One row of each model."""
    run = Run.objects.create(conversation=conversation, worker="host:1", lease_until=timezone.now())
    return {
        "agent": version.agent,
        "environment": environment,
        "agents.prompt": Prompt.objects.create(name="stopped-note", text="(Stopped.)"),
        "modelprice": ModelPrice.objects.create(
            provider="demo", model="demo", input=0, output=0, cache_write=0, cache_read=0
        ),
        "conversation": conversation,
        "event": Event.objects.get(conversation=conversation, type="user.message"),
        "run": run,
        "usage": spend(conversation, name="mreq_1"),
        "modeltrace": ModelTrace.objects.create(
            conversation=conversation, model_request_id="mreq_1", request={"system": SECRET}
        ),
    }


# --- who gets in ----------------------------------------------------------------------------------


def test_every_page_of_a_row_opens_for_the_operator(rows, staff, client_of):
    """And every list: `test_a_list_of_200_rows_takes_a_bounded_number_of_queries`."""
    client = client_of(staff)
    for name, row in rows.items():
        assert client.get(page_of(name, row.pk)).status_code == 200, name
    for name in ("agent", "environment", "modelprice"):
        address = reverse(f"admin:{table(name)}_add")
        assert client.get(address).status_code == 200, name


@pytest.mark.parametrize("person", ["alice", "bob", "mallory"])
def test_people_who_are_not_staff_are_sent_to_sign_in(person, rows, client_of, request):
    client = client_of(request.getfixturevalue(person))
    for name, row in rows.items():
        for address in (changelist(name), page_of(name, row.pk)):
            answer = client.get(address)
            assert answer.status_code == 302, address
            assert answer["Location"].startswith("/admin/login/")


def test_staff_without_a_permission_see_nothing(rows, client_of):
    client = client_of(staff_with())
    for name, row in rows.items():
        assert client.get(changelist(name)).status_code == 403, name
        assert client.get(page_of(name, row.pk)).status_code == 403, name
    assert b"conversations/" not in client.get(reverse("admin:index")).content


def test_the_sidebar_leads_where_a_person_may_go(rows, client_of):
    client = client_of(staff_with("view_usage"))
    text = client.get(reverse("admin:index")).content.decode()

    assert changelist("usage") in text
    assert changelist("agent") not in text


def test_every_page_of_the_sidebar_opens(rows, staff, client_of):
    client = client_of(staff)
    for _title, entries in GROUPS:
        for label, _icon in entries:
            address = reverse(f"admin:{label.replace('.', '_')}_changelist")
            assert client.get(address).status_code == 200, label


# --- nobody edits the log -------------------------------------------------------------------------


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_happened_is_neither_added_nor_changed_nor_deleted(name, rows, staff, client_of):
    client, row = client_of(staff), rows[name]
    before = type(row).objects.filter(pk=row.pk).values().get()

    assert client.get(reverse(f"admin:{table(name)}_add")).status_code == 403
    assert client.post(reverse(f"admin:{table(name)}_add"), {}).status_code == 403
    assert client.post(page_of(name, row.pk), {"title": "x", "type": "x"}).status_code == 403
    delete = reverse(f"admin:{table(name)}_delete", args=[row.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    many = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    client.post(changelist(name), many)
    assert type(row).objects.filter(pk=row.pk).values().get() == before


# --- content by permission ------------------------------------------------------------------------


def test_without_the_permission_to_view_events_nothing_people_wrote_is_shown(rows, client_of):
    names = [f"view_{name}" for name in rows if name != "event"]
    client = client_of(staff_with(*names))
    for name in ("conversation", "run", "usage"):
        for address in (changelist(name), page_of(name, rows[name].pk)):
            answer = client.get(address)
            assert answer.status_code == 200, address
            assert SECRET not in answer.content.decode(), address
    for name in ("event", "modeltrace"):
        assert client.get(changelist(name)).status_code == 403, name
        assert client.get(page_of(name, rows[name].pk)).status_code == 403, name


def test_a_title_cannot_be_guessed_through_the_search_or_the_address(rows, client_of):
    client = client_of(staff_with("view_conversation"))
    uid = rows["conversation"].uid

    assert uid not in client.get(changelist("conversation"), {"q": "nobody"}).content.decode()
    for lookup in ("title__startswith", "title", "events__payload__icontains"):
        answer = client.get(changelist("conversation"), {lookup: "the plan"})
        assert uid not in answer.content.decode(), lookup


def test_with_the_permission_titles_and_events_are_read(rows, client_of):
    client = client_of(staff_with("view_conversation", "view_event"))

    assert SECRET in client.get(changelist("conversation")).content.decode()
    found = client.get(changelist("conversation"), {"q": "nobody may"}).content.decode()
    assert rows["conversation"].uid in found
    event = client.get(page_of("event", rows["event"].pk)).content.decode()
    assert SECRET in event
    assert "&quot;type&quot;: &quot;user.message&quot;" in event


def test_what_people_wrote_is_escaped(rows, staff, client_of):
    text = "<script>alert(1)</script>"
    conversation = rows["conversation"]
    (event,) = append(conversation.pk, [Entry.of(UserMessage(content=(Text(text=text),)))])
    page = client_of(staff).get(page_of("event", event.pk)).content.decode()

    assert text not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_conversation_leads_to_its_events_in_order(rows, staff, client_of):
    conversation = rows["conversation"]
    later = [Entry.of(UserMessage(content=(Text(text=f"m{i}"),))) for i in range(3)]
    append(conversation.pk, later)
    only = f"{changelist('event')}?conversation__id__exact={conversation.pk}"
    client = client_of(staff)

    assert only in client.get(page_of("conversation", conversation.pk)).content.decode()
    page = client.get(only).content.decode()
    places = [page.index(entry.uid) for entry in later]
    assert places == sorted(places)


# --- big tables -----------------------------------------------------------------------------------


@pytest.fixture
def many(alice, acme, environment, conversation):
    """200 rows of each table, each with an owner, an organisation and an agent of its own."""
    config = AgentConfig(provider="demo").model_dump(mode="json")
    agents = Agent.objects.bulk_create(Agent(name=f"a{i}", organisation=acme) for i in range(ROWS))
    versions = AgentVersion.objects.bulk_create(
        AgentVersion(agent=agent, number=1, stored_config=config) for agent in agents
    )
    for agent, version in zip(agents, versions, strict=True):
        agent.current = version
    Agent.objects.bulk_update(agents, ["current"])
    Environment.objects.bulk_create(
        Environment(name=f"e{i}", organisation=acme) for i in range(ROWS)
    )
    Prompt.objects.bulk_create(Prompt(name=f"p{i}", text="x") for i in range(ROWS))
    ModelPrice.objects.bulk_create(
        ModelPrice(provider="demo", model=f"m{i}", input=0, output=0, cache_write=0, cache_read=0)
        for i in range(ROWS)
    )
    owners = User.objects.bulk_create(
        User(username=f"u{i}", email=f"u{i}@example.org") for i in range(ROWS)
    )
    made = Conversation.objects.bulk_create(
        Conversation(organisation=acme, owner=owner, agent_version=v, environment=environment)
        for owner, v in zip(owners, versions, strict=True)
    )
    now = timezone.now()
    Run.objects.bulk_create(
        Run(conversation=c, worker="w", lease_until=now, state="rested", ended_at=now) for c in made
    )
    Usage.objects.bulk_create(
        Usage(
            organisation=acme,
            user=c.owner,
            conversation=c,
            model_request_id=f"r{c.pk}",
            provider="demo",
            model="demo",
        )
        for c in made
    )
    ModelTrace.objects.bulk_create(
        ModelTrace(conversation=c, model_request_id=f"r{c.pk}", request={"a": 1}) for c in made
    )
    Event.objects.bulk_create(
        Event(
            conversation=c,
            seq=1,
            uid=f"sevt_{c.pk}",
            type="user.message",
            subject=f"sevt_{c.pk}",
            payload={"type": "user.message", "content": []},
            actor=c.owner,
            created_at=now,
        )
        for c in made
    )


def test_a_list_of_200_rows_takes_a_bounded_number_of_queries(many, staff, client_of):
    client = client_of(staff)
    client.get(changelist(READ_ONLY[0]))
    for name in [*READ_ONLY, *EDITED]:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(changelist(name)).status_code == 200
        assert len(queries) <= 12, (name, [query["sql"][:120] for query in queries])


def test_no_list_of_a_growing_table_counts_its_rows(many, staff, client_of):
    client = client_of(staff)
    for name in READ_ONLY:
        with CaptureQueriesContext(connection) as queries:
            first = client.get(changelist(name))
            second = client.get(changelist(name), {"p": 2})
        rows = f'FROM "{table(name)}"'
        counts = [
            query["sql"]
            for query in queries
            if "COUNT(*)" in query["sql"] and rows in query["sql"] and "SUM(" not in query["sql"]
        ]
        assert not counts, name
        assert len(first.context["cl"].result_list) == 50
        shown = {row.pk for row in first.context["cl"].result_list}
        assert not shown & {row.pk for row in second.context["cl"].result_list}, name


def test_a_list_reads_neither_payloads_nor_traces(many, staff, client_of):
    client = client_of(staff)
    with CaptureQueriesContext(connection) as queries:
        client.get(changelist("modeltrace"))
        client.get(changelist("event"))
    read = [query["sql"] for query in queries]
    assert not [sql for sql in read if '"conversations_modeltrace"."request"' in sql]
    assert not [sql for sql in read if '"conversations_event"."payload"' in sql]


# --- usage ----------------------------------------------------------------------------------------


def totals(client, **query):
    return client.get(changelist("usage"), query).context["totals"]


def test_usage_is_summed_and_an_unknown_cost_is_counted_apart(conversation, staff, client_of):
    spend(conversation, name="a", cost="0.25")
    spend(conversation, name="b", cost="0.50")
    spend(conversation, name="c", cost=None)
    client = client_of(staff)
    found = totals(client)

    assert (found["calls"], found["input"], found["output"]) == (3, 300, 30)
    assert (found["dollars"], found["unknown"]) == (Decimal("0.75"), 1)
    text = client.get(changelist("usage")).content.decode()
    assert "$0.7500" in text
    assert "unknown" in text


@pytest.mark.usefixtures("one_day")
def test_usage_is_filtered_by_day_person_organisation_provider_and_model(
    conversation, mallory, elsewhere, version, environment, staff, client_of
):
    theirs = make_conversation(mallory, elsewhere, version, environment)
    spend(conversation, name="a")
    spend(conversation, name="old", days_ago=400)
    spend(conversation, name="week", days_ago=7)
    spend(theirs, name="b", provider="demo")
    client = client_of(staff)
    today = timezone.localdate()
    week = today - timedelta(days=7)

    assert totals(client)["calls"] == 3  # of the last 30 days
    assert totals(client, created_at_from="2000-01-01")["calls"] == 4
    assert totals(client, created_at_from=week, created_at_to=week)["calls"] == 1
    assert totals(client, created_at_from=today, created_at_to=today)["calls"] == 2
    assert totals(client, user__id__exact=mallory.pk)["calls"] == 1
    assert totals(client, organisation__id__exact=elsewhere.pk)["calls"] == 1
    assert totals(client, provider="demo")["calls"] == 1
    assert totals(client, model__icontains="sonnet")["calls"] == 3
    assert totals(client, purpose__icontains="compaction")["calls"] == 0
    assert totals(client, conversation__id__exact=conversation.pk)["calls"] == 3


@pytest.mark.parametrize("day", ["nonsense", "2026-02-31", "", "9999-12-31"])
def test_a_day_that_is_none_filters_nothing_and_breaks_nothing(day, conversation, staff, client_of):
    spend(conversation, name="a")
    client = client_of(staff)

    assert client.get(changelist("usage"), {"created_at_to": day}).status_code == 200
    assert client.get(changelist("usage"), {"created_at_from": day}).status_code == 200


def test_what_a_deleted_conversation_spent_stays_in_the_list(conversation, staff, client_of):
    row = spend(conversation, name="a")
    conversation.delete()
    client = client_of(staff)

    assert totals(client)["calls"] == 1
    assert client.get(page_of("usage", row.pk)).status_code == 200
