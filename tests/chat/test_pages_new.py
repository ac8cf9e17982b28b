"""The form for a new conversation, a person's settings, and pages for what went wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from accounts.actions.organisations import create_organisation
from accounts.models import Organisation, User
from agents import switches
from agents.models import Agent, Environment
from conversations.actions.preferences import set_defaults
from conversations.models import Conversation, Event, Preference
from harness.agentconfig import Features
from harness.errors import Invalid
from tests.cast import ClientOf, shown
from tests.conversations.conftest import MakeAgent

NEW = "/new/"


def given(
    organisation: Organisation, agent: Agent, environment: Environment, **more: str
) -> dict[str, str]:
    return shown(organisation, agent=agent.uid, environment=environment.uid, **more)


def test_without_an_agent_the_page_says_what_to_do(
    alice: User, acme: Organisation, staff: User, client_of: ClientOf
):
    assert "Ask a member of staff" in client_of(alice).get(NEW).content.decode()
    html = client_of(staff).get(NEW).content.decode()
    assert "Add the first one in the administration" in html
    assert 'href="/admin/' in html


def test_the_first_message_begins_the_work_and_names_the_conversation(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    agent = make_agent("Coding")
    answer = client_of(alice).post(
        NEW, given(acme, agent, environment, message="Plan the harbour", approval="on", memory="on")
    )
    conversation = Conversation.objects.get()
    assert answer["Location"] == conversation.get_absolute_url()
    assert conversation.title == "Plan the harbour"
    assert conversation.organisation == acme
    assert conversation.features == Features(approval=True)
    assert Event.objects.filter(conversation=conversation, type="user.message").count() == 1


def test_an_empty_conversation_is_fine(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    client_of(alice).post(NEW, given(acme, make_agent(), environment, message="  "))
    assert not Event.objects.exists()
    assert Conversation.objects.get().title == ""


def test_a_refused_first_message_keeps_the_text_and_leaves_nothing_behind(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
    settings,
):
    settings.AGENTSITE_MESSAGE_CHARACTERS = 10
    answer = client_of(alice).post(
        NEW, given(acme, make_agent(), environment, message="far too long a text", tracing="on")
    )
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "far too long a text</textarea>" in html
    assert "at most 10" in html
    assert re.search(r'name="tracing"[^>]* checked', html)
    assert not Conversation.objects.exists()


def test_an_agent_that_is_not_on_offer_is_refused_in_the_form(
    alice: User,
    acme: Organisation,
    elsewhere: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    make_agent("Coding")
    theirs = make_agent("Theirs", organisation=elsewhere)
    client = client_of(alice)
    assert "Theirs" not in client.get(NEW).content.decode()
    answer = client.post(NEW, given(acme, theirs, environment, message="Ahoy"))
    assert answer.status_code == 422
    assert "not on offer" in answer.content.decode()
    assert "Ahoy</textarea>" in answer.content.decode()
    assert not Conversation.objects.exists()


def test_a_stale_tab_begins_no_conversation_in_the_organisation_switched_to(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    client, agent = client_of(alice), make_agent()
    begun = given(acme, agent, environment, message="A secret of Acme")
    assert f'name="shown_organisation" value="{acme.uid}"' in client.get(NEW).content.decode()
    second = create_organisation(actor=alice, name="Second")
    client.post(reverse("accounts:organisation-switch"), {"organisation": second.uid})

    refused = client.post(NEW, begun)

    html = refused.content.decode()
    assert refused.status_code == 409
    assert "in another tab" in html
    assert "A secret of Acme</textarea>" in html
    assert f'name="shown_organisation" value="{second.uid}"' in html
    unsaid = client.post(NEW, {**begun, "shown_organisation": ""})
    assert unsaid.status_code == 422
    assert not Conversation.objects.exists()


def test_the_switches_begin_as_the_chosen_agent_has_them(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    make_agent("Bold")
    careful = make_agent("Careful", features={"approval": True})
    client = client_of(alice)
    checked = r'name="approval"[^>]* checked'
    assert not re.search(checked, client.get(NEW).content.decode())
    html = client.get(NEW, {"agent": careful.uid}).content.decode()
    assert re.search(checked, html)
    assert re.search(rf'value="{careful.uid}"[^>]* checked', html)


def test_what_a_person_prefers_is_chosen_already(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    make_agent("A first one")
    mine = make_agent("Mine", features={"tracing": True})
    client = client_of(alice)
    saved = client.post(
        "/settings/", {"default_agent": mine.uid, "default_environment": environment.uid}
    )
    assert saved.status_code == 302
    html = client.get(NEW).content.decode()
    assert re.search(rf'value="{mine.uid}"[^>]* checked', html)
    assert re.search(r'name="tracing"[^>]* checked', html)
    assert re.search(rf'value="{mine.uid}" selected', client.get("/settings/").content.decode())
    mine.archived_at = timezone.now()
    mine.save(update_fields=["archived_at"])
    html = client.get(NEW).content.decode()
    assert mine.uid not in html
    assert " checked" in html


def test_a_switch_that_changes_nothing_is_shown_to_staff_alone(
    alice: User,
    acme: Organisation,
    make_agent: MakeAgent,
    environment: Environment,
    client_of: ClientOf,
    settings: Any,
):
    make_agent()
    assert "teammates" in str(switches.help_text("teams"))
    assert 'name="teams"' in client_of(alice).get(NEW).content.decode()
    settings.AGENTSITE_TEAMMATES = settings.AGENTSITE_SUBAGENT_DEPTH = 0
    assert "No team tools are installed" in str(switches.help_text("teams"))
    assert set(switches.LABELS) == set(Features.model_fields)
    page = client_of(alice).get(NEW).content.decode()
    assert 'name="approval"' in page
    assert 'name="teams"' not in page


def test_mallorys_agent_is_nobodys_default_but_her_own(
    alice: User,
    acme: Organisation,
    elsewhere: Organisation,
    mallory: User,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    hers = make_agent("Hers", organisation=elsewhere)
    with pytest.raises(Invalid):
        set_defaults(actor=alice, agent=hers, environment=None)
    answer = client_of(alice).post("/settings/", {"default_agent": hers.uid})
    assert answer.status_code == 422
    set_defaults(actor=mallory, agent=hers, environment=None)
    assert not Preference.objects.filter(user=alice).exists()


def test_settings_lead_to_keys_address_password_and_second_factor(
    alice: User, acme: Organisation, client_of: ClientOf
):
    html = client_of(alice).get("/settings/").content.decode()
    for name in ("accounts:keys", "account_email", "account_change_password", "mfa_index"):
        assert f'href="{reverse(name)}"' in html


def test_strangers_get_neither_the_form_nor_settings(client: Client, db):
    for place in (NEW, "/settings/"):
        assert client.get(place)["Location"].startswith(reverse("account_login"))


def test_a_theme_is_remembered_by_the_browser(alice: User, acme: Organisation, client_of: ClientOf):
    client = client_of(alice)
    answer = client.post("/theme/", {"theme": "dark", "next": "/settings/"})
    assert answer["Location"] == "/settings/"
    assert 'data-theme="dark"' in client.get("/settings/").content.decode()
    assert client.post("/theme/", {"theme": "</html>"}).status_code == 400


@pytest.mark.parametrize("wanted", ["1", "nowhere", "admin:index", "settings/", "²"])
def test_what_names_no_place_of_the_site_is_no_place_to_go_on(client: Client, db, wanted: str):
    answer = client.post("/theme/", {"theme": "dark", "next": wanted})
    assert answer["Location"] == reverse("conversations:list")


def test_a_forged_theme_cookie_is_only_text(alice: User, acme: Organisation, client_of: ClientOf):
    client = client_of(alice)
    client.cookies["theme"] = '"><script>alert(1)</script>'
    assert "<script>alert" not in client.get("/settings/").content.decode()


@pytest.mark.parametrize("status", ["400", "403", "403_csrf", "404", "429", "500"])
def test_each_error_page_stands_alone_and_leads_back(status: str):
    html = render_to_string(f"{status}.html")
    assert html.count("<h1") == 1
    assert 'href="/"' in html
    assert status[:3] in html


def test_an_unknown_address_is_not_found_in_the_same_style(
    alice: User, acme: Organisation, client_of: ClientOf
):
    answer = client_of(alice).get("/no/such/place/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()
    assert "Agentsite" in answer.content.decode()


def test_a_request_without_a_user_gets_the_server_error_page_too():
    assert "wrong on our side" in render_to_string("500.html", request=RequestFactory().get("/"))
