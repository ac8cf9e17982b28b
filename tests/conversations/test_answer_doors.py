"""The doors through which answers come: the form without script, the socket, and what the page shows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from accounts.models import User
from chat.presentation.frames import page
from conversations.actions.answers import answer_questions
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.agentconfig import CustomTool
from harness.content import text_of
from providers.scripted import call, reply
from tests.cast import ClientOf
from tests.chat.sockets import Browser
from tests.conversations.conftest import Converse, rested
from tools_app.questions import Answer

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = [
    {
        "question": "Which <colour>?",
        "header": "Colour",
        "options": [{"label": "Red  one"}, {"label": "Blue", "description": "Like the sea."}],
    },
    {"question": "Why?"},
]


@pytest.fixture
def questioned(alice: User, converse: Converse) -> Conversation:
    conversation, _ = converse(
        [reply(call("ask_user", questions=QUESTIONS)), reply("Thank you.")], name="Asking"
    )
    post_message(actor=alice, conversation=conversation, text="Paint it.")
    return rested(conversation)


@pytest.fixture
def calling(alice: User, converse: Converse) -> Conversation:
    stock = CustomTool(name="look_up_stock", description="How many are left.")
    conversation, _ = converse(
        [reply(call("look_up_stock", article="A")), reply("Thank you.")],
        custom_tools=(stock,),
        name="Calling",
    )
    post_message(actor=alice, conversation=conversation, text="How many?")
    return rested(conversation)


@pytest.fixture
def make_agent(make_agent):
    """Two agents of one test need two names."""

    def make(_name: str, **config):
        return make_agent(config.pop("name", _name), **config)

    return make


def call_of(conversation: Conversation) -> str:
    return conversation.events.get(type="agent.custom_tool_use").uid


def answered(conversation: Conversation) -> str:
    row = conversation.events.get(type="user.custom_tool_result")
    return text_of(row.value.content)


def door(conversation: Conversation) -> str:
    return reverse("conversations:answer", args=[conversation.uid])


def drawn(conversation: Conversation) -> str:
    return "".join(page(conversation).units)


# --- without script -------------------------------------------------------------------------------


def test_the_form_works_without_script(alice: User, client_of: ClientOf, questioned):
    uid = call_of(questioned)
    html = drawn(questioned)
    assert "Which &lt;colour&gt;?" in html
    assert html.count('type="radio"') == 2
    assert re.findall(r'name="([^"]+)\.text"', html) == [f"{uid}.0", f"{uid}.1"]
    response = client_of(alice).post(
        door(questioned),
        {"answer": uid, f"{uid}.0": "Red  one", f"{uid}.1.text": "It is\r\nmine."},
    )
    assert response.status_code == 302
    rested(questioned, 2)
    assert answered(questioned) == "Which <colour>?\n→ Red  one\n\nWhy?\n→ “It is\nmine.”"


def test_a_refused_form_brings_ones_own_words_back(alice: User, client_of: ClientOf, questioned):
    uid = call_of(questioned)
    client = client_of(alice)
    blank = client.post(door(questioned), {"answer": uid})
    assert blank.status_code == 422
    assert "No question has an answer" in blank.content.decode()
    answer_questions(
        actor=alice, conversation=questioned, call_uid=uid, answers=(Answer(text="First"),)
    )
    late = client.post(door(questioned), {"answer": uid, f"{uid}.1.text": "Typed for long"})
    assert late.status_code == 422
    page_html = late.content.decode()
    assert "has its answer already" in page_html
    assert re.search(r"<textarea[^>]*name=\"content\"[^>]*>Typed for long</textarea>", page_html)
    rested(questioned, 2)
    assert Event.objects.filter(type="user.custom_tool_result").count() == 1


@pytest.mark.parametrize("fields", [{}, {"answer": ""}, {"other": "x"}])
def test_a_form_that_names_no_call_is_refused(
    alice: User, client_of: ClientOf, questioned, fields: dict[str, str]
):
    assert client_of(alice).post(door(questioned), fields).status_code in {400, 422}


def test_mallory_finds_no_form_and_cannot_answer(
    bob: User, mallory: User, client_of: ClientOf, questioned
):
    for stranger in (bob, mallory):
        response = client_of(stranger).post(door(questioned), {"skip": call_of(questioned)})
        assert response.status_code == 404
    assert not Event.objects.filter(type="user.custom_tool_result").exists()


def test_a_program_s_call_is_answered_or_refused_by_hand(alice: User, client_of: ClientOf, calling):
    uid = call_of(calling)
    html = drawn(calling)
    assert "waiting for the program it belongs to" in html
    assert 'data-action="result"' in html
    client = client_of(alice)
    client.post(door(calling), {"refuse": uid, f"{uid}.result": "Closed."})
    rested(calling, 2)
    assert answered(calling) == "The person refused this call. Closed."
    assert "Answered by alice" in drawn(calling)
    assert 'data-action="result"' not in drawn(calling)


async def until_thanked(tab: Browser) -> None:
    await tab.until(lambda: "Thank you." in tab.view.log)


# --- the socket -----------------------------------------------------------------------------------


async def test_an_answer_by_the_socket_is_seen_in_every_tab_and_a_second_is_told_it_is_late(
    alice: User, questioned
):
    uid = await sync_to_async(call_of)(questioned)
    async with Browser(alice, questioned.uid) as one, Browser(alice, questioned.uid) as two:
        await one.until(lambda: 'data-action="answer"' in one.view.log)
        await two.until(lambda: 'data-action="answer"' in two.view.log)
        await one.say(type="answer", call=uid, answers=[{"chosen": ["Blue"]}], key="k")
        await one.hear_a("accepted")
        await two.say(type="answer", call=uid, answers=[{"chosen": ["Red  one"]}], key="l")
        refused = await two.hear_a("error")
        assert (refused["code"], refused["key"]) == ("conflict", "l")
        for tab in (one, two):
            await until_thanked(tab)
            assert "→ Blue" in tab.view.log
            assert "Answered by alice" in tab.view.log
            assert 'data-action="answer"' not in tab.view.log


async def test_a_wrong_answer_by_the_socket_names_its_field_and_loses_nothing(
    alice: User, questioned
):
    uid = await sync_to_async(call_of)(questioned)
    async with Browser(alice, questioned.uid) as tab:
        wrong: tuple[dict[str, Any], ...] = (
            {"answers": [{"chosen": ["Green"]}]},
            {"answers": []},
            {"answers": [{"colour": "Blue"}]},
            {"answers": "Blue"},
        )
        for frame in wrong:
            await tab.say(type="answer", call=uid, key="k", **frame)
            assert (await tab.hear_a("error"))["code"] == "invalid"
        await tab.say(type="answer", call=uid, skip=True, key="k")
        await tab.hear_a("accepted")
        await tab.until(lambda: "Thank you." in tab.view.log)


async def test_a_result_by_the_socket_resumes_the_run(alice: User, calling):
    uid = await sync_to_async(call_of)(calling)
    async with Browser(alice, calling.uid) as tab:
        await tab.say(type="result", call=uid, content="14", key="k")
        await tab.hear_a("accepted")
        await tab.until(lambda: "Thank you." in tab.view.log)
