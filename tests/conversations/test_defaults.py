"""What a conversation begins with where nobody chose, and that nothing goes by name."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.organisations import ensure_personal_organisation
from accounts.actions.tokens import create_token
from agents.models import Agent, Environment
from agentsite.seeding import seed
from conversations.actions.preferences import (
    clear_shared_defaults,
    set_defaults,
    set_shared_defaults,
)
from conversations.defaults import default_agent, default_environment
from conversations.models import Defaults
from harness.errors import Forbidden, Invalid, NotFound
from tests.architecture.sources import MODULES, ROOT

pytestmark = pytest.mark.django_db


@pytest.fixture
def shipped(db) -> Agent:
    seed()
    return Agent.objects.get(seed_name="coding")


def test_what_somebody_adds_never_becomes_what_others_begin_with(alice, acme, shipped, make_agent):
    make_agent("0 first")
    make_agent("0 ours", organisation=acme)
    Environment.objects.create(name="0 first")
    assert default_agent(alice, acme) == shipped
    assert default_environment(alice, acme).seed_name == "default"


def test_without_anything_shipped_the_oldest_is_taken(alice, acme, make_agent):
    first = make_agent("Zebra")
    make_agent("Ant")
    assert default_agent(alice, acme) == first


def test_a_persons_choice_counts_before_the_organisations_and_that_before_the_servers(
    alice, acme, staff, shipped, make_agent
):
    on_server, at_acme, hers = (make_agent(name) for name in ("Server", "Acme", "Alice"))
    staff.is_superuser = True
    staff.save()
    shared = {"environment": None}
    set_shared_defaults(actor=staff, organisation=None, agent=on_server, **shared)
    assert default_agent(alice, acme) == on_server
    set_shared_defaults(actor=staff, organisation=acme, agent=at_acme, **shared)
    assert default_agent(alice, acme) == at_acme
    set_defaults(actor=alice, agent=hers, environment=None)
    assert default_agent(alice, acme) == hers
    for gone, left in ((hers, at_acme), (at_acme, on_server), (on_server, shipped)):
        gone.archived_at = timezone.now()
        gone.save()
        assert default_agent(alice, acme) == left


def test_only_who_manages_sets_what_others_begin_with(
    alice, bob, mallory, acme, other_org_agent, shipped
):
    with pytest.raises(NotFound):
        set_shared_defaults(actor=mallory, organisation=acme, agent=None, environment=None)
    with pytest.raises(Forbidden):
        set_shared_defaults(actor=bob, organisation=acme, agent=None, environment=None)
    with pytest.raises(Forbidden):
        set_shared_defaults(actor=alice, organisation=None, agent=None, environment=None)
    with pytest.raises(Invalid):
        set_shared_defaults(actor=alice, organisation=acme, agent=other_org_agent, environment=None)
    assert not Defaults.objects.exists()


def test_only_who_manages_clears_them_and_then_the_next_level_counts(
    alice, bob, mallory, staff, acme, shipped, make_agent
):
    staff.is_superuser = True
    staff.save()
    on_server, at_acme = make_agent("Server"), make_agent("Acme")
    set_shared_defaults(actor=staff, organisation=None, agent=on_server, environment=None)
    set_shared_defaults(actor=alice, organisation=acme, agent=at_acme, environment=None)
    with pytest.raises(NotFound):
        clear_shared_defaults(actor=mallory, organisation=acme)
    for person, place in ((bob, acme), (alice, None)):
        with pytest.raises(Forbidden):
            clear_shared_defaults(actor=person, organisation=place)
    assert default_agent(bob, acme) == at_acme
    clear_shared_defaults(actor=alice, organisation=acme)
    assert default_agent(bob, acme) == on_server
    row = Defaults.objects.get(organisation=None)
    browser = Client()
    browser.force_login(staff)
    page = reverse("admin:conversations_defaults_delete", args=[row.pk])
    assert browser.post(page, {"post": "yes"}).status_code == 302
    assert default_agent(bob, acme) == shipped


@pytest.fixture
def other_org_agent(make_agent, mallory):
    return make_agent("Theirs", organisation=ensure_personal_organisation(user=mallory))


def test_a_manager_sets_them_on_the_settings_page_and_a_member_may_not(
    alice, bob, acme, shipped, make_agent
):
    agent = make_agent("Usual")
    page = reverse("conversations:settings-organisation")
    for person, status in ((bob, 403), (alice, 302)):
        browser = Client()
        browser.force_login(person)
        assert browser.post(page, {"default_agent": agent.uid}).status_code == status
    assert default_agent(bob, acme) == agent


def test_a_program_reads_and_sets_its_own_and_its_organisations(
    alice, bob, acme, shipped, make_agent
):
    make_agent("Usual")
    make_agent("Shared")

    def of(person) -> Client:
        scopes = ["conversations:read", "conversations:write"]
        issued = create_token(actor=person, organisation=acme, name="p", scopes=scopes)
        return Client(headers={"authorization": f"Bearer {issued.secret}"})

    def put(person, **body):
        return of(person).put("/api/defaults", body, "application/json")

    assert of(bob).get("/api/defaults").json()["preset"]["id"] == shipped.uid
    assert put(bob, preset="Usual").json()["preset"]["name"] == "Usual"
    assert put(bob, preset="Shared", **{"for": "organisation"}).status_code == 403
    told = put(alice, preset="Shared", **{"for": "organisation"})
    assert told.json()["preset"]["name"] == "Shared"
    assert of(bob).get("/api/defaults").json()["preset"]["name"] == "Usual"
    assert put(bob).json()["preset"]["name"] == "Shared"
    assert put(bob, preset="None such").status_code == 422


def test_no_place_takes_the_first_on_offer():
    """Whoever wants a default asks `conversations.defaults`."""
    first = re.compile(
        r"(on_offer\(\)|offered)(\.select_related\([^)]*\))?(\.first\(\)|\[:1\]|\[0\])"
    )
    taking = [
        str(path)
        for path in MODULES
        if first.search(text := (ROOT / path).read_text(encoding="utf-8"))
        or "next(iter(agents)" in text
    ]
    assert taking == []
