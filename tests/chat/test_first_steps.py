"""What somebody new does first: shown until it is done or put away, and only of what is hers."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.models import Conversation, Event
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin
from tests.providers.test_demo import asking, carry_on

PUT_AWAY = "/first-steps/put-away/"


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Coding", provider="auto")


def steps_of(client: Client) -> dict[str, bool]:
    """Title → whether it is done."""
    html = client.get("/").content.decode()
    found = re.search(r'<section class="card first-steps".*?</section>', html, re.DOTALL)
    if found is None:
        return {}
    titles = re.findall(r"<h3>(.*?)</h3>", found[0], re.DOTALL)
    return {title.split(" <")[0]: "badge" in title for title in titles}


def test_somebody_new_is_shown_what_to_do_and_what_is_done_of_it(
    alice: User, acme: Organisation, agent: Agent, environment: Environment, client_of: ClientOf
):
    client = client_of(alice)
    assert steps_of(client)["Begin a conversation"] is False
    begin(alice, acme, agent, environment, title="Harbour plans")
    assert steps_of(client)["Begin a conversation"] is True


def test_what_others_did_is_not_hers(
    alice: User,
    mallory: User,
    acme: Organisation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    begin(alice, acme, agent, environment, title="Harbour plans")
    assert steps_of(client_of(mallory))["Begin a conversation"] is False


def test_put_away_for_one_it_stays_for_another(
    alice: User,
    bob: User,
    acme: Organisation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    client = client_of(alice)
    assert client.get(PUT_AWAY).status_code == 405
    assert client.post(PUT_AWAY).status_code == 302
    assert steps_of(client) == {}
    assert steps_of(client_of(bob))


def begun_with(client: Client, language: str) -> dict[str, str]:
    """What the form of the example sends."""
    html = client.get("/", headers={"accept-language": language}).content.decode()
    part = html.partition("first-steps")[2].partition("</section>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', part))


@pytest.mark.parametrize("language", ["de", "ar", "en"])
def test_the_demo_understands_the_example_whatever_language_it_is_shown_in(
    language: str,
    alice: User,
    acme: Organisation,
    make_agent: MakeAgent,
    environment: Environment,
    client_of: ClientOf,
):
    make_agent("Coding", provider="demo")
    shown = begun_with(client_of(alice), language)
    calls, _last = carry_on(asking(shown["message"]))
    assert {call.name for call in calls} >= {"todo_write", "write_file", "edit_file"}


def test_a_model_is_shown_the_example_in_the_readers_language(
    alice: User,
    acme: Organisation,
    make_agent: MakeAgent,
    environment: Environment,
    client_of: ClientOf,
):
    make_agent("Coding", provider="scripted")
    assert begun_with(client_of(alice), "de")["message"].startswith("Zwei Dateien")


def test_the_example_begins_a_conversation_that_asks_before_it_acts(
    alice: User, acme: Organisation, agent: Agent, environment: Environment, client_of: ClientOf
):
    client = client_of(alice)
    shown = begun_with(client, "en")
    response = client.post("/new/", shown)
    assert response.status_code == 302
    made = Conversation.objects.get()
    assert made.features.approval
    assert Event.objects.filter(conversation=made, type="user.message").exists()
