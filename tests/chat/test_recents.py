"""The rows beside every page: kept once they are drawn, and yet always what is so now."""

from __future__ import annotations

import re

import pytest
from django.utils import translation

from accounts.models import Organisation, User
from agents.models import Environment
from chat.presentation.recents import drawn
from conversations.models import Conversation
from keeping.listing import ListPage, recent
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, make_agent: MakeAgent, environment: Environment
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment, title="")


def _row(conversation: Conversation, open_uid: str = "", *, pinned: bool = False) -> str:
    rows = [conversation]
    page = ListPage(rows, []) if pinned else ListPage([], rows)
    return " ".join(re.sub(r"<svg.*?</svg>", "", drawn(page, open_uid)).split())


def test_a_row_says_what_is_so_now_though_it_was_drawn_before(conversation: Conversation):
    assert "Untitled" in _row(conversation)
    conversation.title = "Tea & <b>cake</b>"
    assert "Tea &amp; &lt;b&gt;cake&lt;/b&gt;" in _row(conversation)
    assert "at work" not in _row(conversation)
    conversation.status = Conversation.Status.RUNNING
    assert "at work" in _row(conversation)
    conversation.status, conversation.stop_reason = Conversation.Status.IDLE, "requires_action"
    assert "waits for you" in _row(conversation)
    conversation.stop_reason = "budget_reached"
    assert "stopped short" in _row(conversation)
    assert "Pinned:" not in _row(conversation)
    assert "Pinned:" in _row(conversation, pinned=True)


def test_a_row_is_drawn_in_the_language_of_whoever_asks(conversation: Conversation):
    with translation.override("en"):
        english = _row(conversation)
    with translation.override("de"):
        german = _row(conversation)
    assert "Untitled" in english
    assert "Untitled" not in german


def test_the_open_conversation_is_marked_and_never_unread(conversation: Conversation):
    vars(conversation)["unread"] = True
    assert "data-unread" in _row(conversation)
    open_ = _row(conversation, conversation.uid)
    assert 'aria-current="page"' in open_
    assert "data-unread" not in open_
    assert "data-conversation-title" in open_
    assert 'aria-current="page"' not in _row(conversation)


def test_rows_are_those_of_the_list_in_its_order(
    conversation: Conversation, alice: User, acme: Organisation
):
    page = recent(alice, acme)
    told = re.findall(r'id="recent-(\w+)"', drawn(page, ""))
    assert told == [each.uid for each in page.conversations] == [conversation.uid]
