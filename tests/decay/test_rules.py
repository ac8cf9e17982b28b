"""Who makes rules for how memories fade, by which doors, and that none is put in force unseen."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import Membership, TokenScope
from audit.models import AuditEntry
from decay.actions.rules import LONGEST, lift_rule, put_in_force, save_rule
from decay.models import GRACE, DecayRule, Step
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from memory.actions.stores import ORGANIZATION, archive_store, create_store
from memory.models import Memory, MemoryStore
from tests.cast import ClientOf

from .conftest import DAYS, LEFT, LONG, InForce, Old, fade

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(alice, acme) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Team", scope=ORGANIZATION)


def page_of(store: MemoryStore, what: str = "") -> str:
    return f"/settings/decay/{store.uid}/{what}"


# --- rules ----------------------------------------------------------------------------------------


def test_a_saved_rule_is_a_dry_run_and_put_in_force_it_waits_a_day(alice, store, old: Old):
    memory = old(5)
    rule = save_rule(actor=alice, store=store, days=DAYS)
    fade()
    put_in_force(actor=alice, store=store, version=rule.version)
    fade()
    DecayRule.objects.update(in_force_at=timezone.now() - GRACE + timedelta(minutes=1))
    fade()
    memory.refresh_from_db()
    assert memory.content == LONG
    DecayRule.objects.update(in_force_at=timezone.now() - GRACE)
    fade()
    memory.refresh_from_db()
    assert memory.content == LEFT


def test_a_changed_rule_is_a_dry_run_again_and_the_same_one_stays(alice, store, in_force: InForce):
    rule = in_force()
    assert save_rule(actor=alice, store=store, days=DAYS).in_force_at == rule.in_force_at
    changed = save_rule(actor=alice, store=store, days=DAYS, also_unconfirmed=True)
    assert (changed.in_force_at, changed.version) == (None, rule.version + 1)


def test_what_somebody_else_saved_meanwhile_is_not_put_in_force_unseen(alice, team):
    seen = save_rule(actor=alice, store=team, days=DAYS).version
    save_rule(actor=alice, store=team, days={Step.GONE: 1})
    with pytest.raises(Conflict):
        put_in_force(actor=alice, store=team, version=seen)
    assert DecayRule.objects.get().in_force_at is None


def test_a_lifted_rule_leaves_what_has_faded(alice, store, old: Old, in_force: InForce):
    memory, later = old(5), old(2)
    in_force()
    fade()
    lift_rule(actor=alice, store=store)
    Memory.objects.filter(pk=later.pk).update(updated_at=memory.updated_at)
    fade()
    assert set(Memory.objects.values_list("content", flat=True)) == {LEFT, LONG}
    actions = list(
        AuditEntry.objects.filter(actor=alice).order_by("pk").values_list("action", flat=True)
    )
    assert actions[-4:] == ["decay_saved", "decay_begun", "decay_done", "decay_lifted"]
    with pytest.raises(NotFound):
        lift_rule(actor=alice, store=store)


@pytest.mark.parametrize(
    ("days", "field"),
    [
        ({}, "summary_days"),
        ({Step.SUMMARY: None}, "summary_days"),
        ({Step.SUMMARY: 0}, "summary_days"),
        ({Step.GONE: LONGEST + 1}, "gone_days"),
        ({Step.SUMMARY: 30, Step.MARKER: 30}, "marker_days"),
        ({Step.SUMMARY: 30, Step.GONE: 3}, "gone_days"),
    ],
)
def test_what_is_no_rule_is_refused(alice, store, days: dict[Step, int | None], field: str):
    with pytest.raises(Invalid) as refused:
        save_rule(actor=alice, store=store, days=days)
    assert refused.value.field == field
    assert not DecayRule.objects.exists()


def test_an_archived_store_takes_no_rule(alice, acme):
    store = create_store(actor=alice, organisation=acme, name="Away")
    rule = save_rule(actor=alice, store=store, days=DAYS)
    archive_store(actor=alice, store=store)
    with pytest.raises(Conflict):
        save_rule(actor=alice, store=store, days={Step.GONE: 9})
    with pytest.raises(Conflict):
        put_in_force(actor=alice, store=store, version=rule.version)


def test_only_who_writes_in_a_store_rules_there(alice, bob, mallory, store, team):
    """Bob reads what is the team's and knows nothing of alice's own; mallory knows neither."""
    Membership.objects.filter(user=bob).update(role="member")
    ruled = [save_rule(actor=alice, store=each, days=DAYS) for each in (store, team)]
    for actor, where, error in (
        (mallory, store, NotFound),
        (mallory, team, NotFound),
        (bob, store, NotFound),
        (bob, team, Forbidden),
    ):
        with pytest.raises(error):
            save_rule(actor=actor, store=where, days={Step.GONE: 1})
        with pytest.raises(error):
            put_in_force(actor=actor, store=where, version=1)
        with pytest.raises(error):
            lift_rule(actor=actor, store=where)
    assert [(each.version, each.in_force_at) for each in DecayRule.objects.order_by("pk")] == [
        (rule.version, None) for rule in ruled
    ]


# --- the page -------------------------------------------------------------------------------------


def test_on_the_page_a_rule_is_tried_looked_at_put_in_force_and_lifted(
    alice, store, old: Old, client_of: ClientOf
):
    old(5)
    old(100, "The kettle is red.")
    page = client_of(alice)
    assert "Memories stay whole" in page.get(page_of(store)).content.decode()
    refused = page.post(page_of(store), {"summary_days": "30", "gone_days": "3"})
    assert refused.status_code == 422
    assert "not later than the step before" in refused.content.decode()
    assert page.post(page_of(store), {"summary_days": "x"}).status_code == 422
    page.post(page_of(store), {"summary_days": "3", "marker_days": "", "gone_days": "90"})
    tried = page.get(page_of(store)).content.decode()
    assert "1 memory to its beginning" in tried
    assert "1 memory gone" in tried
    assert LEFT in tried
    assert page.post(page_of(store, "begin/"), {"version": "7"}).status_code == 409
    page.post(page_of(store, "begin/"), {"version": "1"})
    assert "In force from" in page.get(page_of(store)).content.decode()
    DecayRule.objects.update(in_force_at=timezone.now() - GRACE)
    fade()
    shown = page.get(page_of(store)).content.decode()
    assert "1 to their beginning, 0 to a few words, 1 gone" in shown
    listed = page.get("/settings/memory/").content.decode()
    assert "1 of which the beginning is left" in listed
    assert '<span class="badge">faded</span>' in listed
    one = page.get(f"/settings/memory/{Memory.objects.get().uid}/").content.decode()
    assert "to its beginning" in one
    page.post(page_of(store, "lift/"))
    assert not DecayRule.objects.exists()
    assert page.post(page_of(store, "lift/")).status_code == 404


def test_the_page_shows_mallory_nothing_and_bob_only_what_holds(
    alice, bob, mallory, store, team, old: Old, client_of: ClientOf
):
    Membership.objects.filter(user=bob).update(role="member")
    old(5, store=team)
    for each in (store, team):
        save_rule(actor=alice, store=each, days=DAYS)
    for where, who in ((store, mallory), (team, mallory), (store, bob)):
        client = client_of(who)
        assert client.get(page_of(where)).status_code == 404
        assert client.post(page_of(where), {"gone_days": "1"}).status_code == 404
        assert client.post(page_of(where, "begin/"), {"version": "1"}).status_code == 404
        assert client.post(page_of(where, "lift/")).status_code == 404
    member = client_of(bob)
    shown = member.get(page_of(team)).content.decode()
    assert "after 3 days only its beginning is left" in shown
    assert "Dry run" not in shown
    assert member.post(page_of(team, "begin/"), {"version": "1"}).status_code == 403
    assert DecayRule.objects.filter(in_force_at=None).count() == 2


def test_the_memory_page_asks_as_often_for_many_stores_as_for_one(
    alice, acme, old: Old, in_force: InForce, client_of: ClientOf, django_assert_max_num_queries
):
    page = client_of(alice)
    old(5)
    in_force()
    fade()
    with django_assert_max_num_queries(100) as one:
        page.get("/settings/memory/")
    for number in range(4):
        store = create_store(actor=alice, organisation=acme, name=f"Store {number}")
        old(5, store=store)
        in_force(store=store)
    fade()
    with django_assert_max_num_queries(len(one.captured_queries)):
        page.get("/settings/memory/")


# --- programs -------------------------------------------------------------------------------------


class Program:
    def __init__(self, client, user, organisation) -> None:
        scopes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
        issued = create_token(actor=user, organisation=organisation, name="Program", scopes=scopes)
        self._client, self._bearer = client, {"Authorization": f"Bearer {issued.secret}"}
        self.token = issued.token

    def __call__(
        self, method: str, store: MemoryStore, what: str = "", body: Any = None
    ) -> tuple[int, Any]:
        answer = self._client.generic(
            method,
            f"/api/memories/stores/{store.uid}/decay{what}",
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers=self._bearer,
        )
        return answer.status_code, json.loads(answer.content)


def test_a_program_rules_and_its_token_is_named(alice, acme, store, old: Old, client):
    program = Program(client, alice, acme)
    memory = old(5)
    assert program("GET", store)[1]["rule"] is None
    status, made = program("PUT", store, body={"summary_days": 3, "gone_days": 90})
    assert (status, made["rule"]["version"], made["rule"]["marker_days"]) == (200, 1, None)
    assert made["due"]["summaries"] == 1
    assert made["due"]["tokens_saved"] > 0
    assert made["statistics"]["tokens_saved"] == 0
    assert program("POST", store, "/begin", {"version": 2})[0] == 409
    assert program("POST", store, "/begin", {})[0] == 422
    status, begun = program("POST", store, "/begin", {"version": 1})
    assert (status, begun["rule"]["begins_at"] is None) == (200, False)
    DecayRule.objects.update(in_force_at=timezone.now() - GRACE)
    fade()
    told = program("GET", store)[1]
    assert told["statistics"]["summaries"] == 1
    assert told["statistics"]["tokens_saved"] == made["due"]["tokens_saved"]
    version = memory.store.versions.get(redacted_at=None)
    assert (version.author_kind, version.author_uid) == ("api_actor", program.token.uid)
    assert program("DELETE", store)[1]["rule"] is None
    assert program("DELETE", store)[0] == 404
    assert program("PUT", store, body={"gone_days": 0})[0] == 422
    assert program("PUT", store, body={})[0] == 422


def test_no_program_of_mallorys_and_bobs_learns_or_changes_anything(
    alice, bob, mallory, acme, elsewhere, store, team, client
):
    Membership.objects.filter(user=bob).update(role="member")
    for each in (store, team):
        save_rule(actor=alice, store=each, days=DAYS)
    his, hers = Program(client, bob, acme), Program(client, mallory, elsewhere)
    for program, where in ((hers, store), (hers, team), (his, store)):
        assert program("GET", where)[0] == 404
        assert program("PUT", where, body={"gone_days": 1})[0] == 404
        assert program("POST", where, "/begin", {"version": 1})[0] == 404
        assert program("DELETE", where)[0] == 404
    status, seen = his("GET", team)
    assert (status, seen["rule"]["summary_days"], seen["due"]) == (200, 3, None)
    assert his("PUT", team, body={"gone_days": 1})[0] == 403
    assert his("POST", team, "/begin", {"version": 1})[0] == 403
    assert his("DELETE", team)[0] == 403
    assert list(DecayRule.objects.values_list("version", "in_force_at")) == [(1, None), (1, None)]


def test_the_command_line_shows_and_rules(alice, acme, store, old: Old, capsys):
    old(5)

    def agent(*words: str) -> str:
        call_command("agent", "memory", "decay", *words, "--user", alice.username)
        return str(capsys.readouterr().out)

    assert "whole: 1" in agent()
    assert "due_summary: 1" in agent(store.uid, "--summary-days", "3")
    assert "version: 1" in agent(store.uid)
    agent(store.uid, "--begin", "1")
    assert DecayRule.objects.get().in_force_at is not None
    agent(store.uid, "--lift")
    assert not DecayRule.objects.exists()
