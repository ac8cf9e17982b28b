"""A conversation as a file to keep."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.urls import reverse

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.conversations import rename_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentToolResult,
    AgentToolUse,
    BudgetReached,
    DiffDisplay,
    SessionStatusIdle,
    StopDetails,
    Todo,
    TodosUpdated,
    UserMessage,
    UserToolConfirmation,
)
from harness.history import Entry
from keeping.export import PAGE, as_json, as_markdown
from spending.models import Usage
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, fill, talk


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment, title="Harbour plans")


def everything(conversation: Conversation) -> Conversation:
    """A turn with thinking, a call that asked, its answer, tasks, a limit and what it cost."""
    owner = conversation.owner
    append(
        conversation.pk, [Entry.of(UserMessage(content=(Text(text="Write it down"),)))], actor=owner
    )
    call = Entry.of(
        AgentToolUse(name="write_file", input={"path": "a.md"}, evaluated_permission="ask")
    )
    diff = DiffDisplay(path="a.md", diff="@@ -0,0 +1 @@\n+```\n", added=1, removed=0, created=True)
    append(conversation.pk, [Entry.of(AgentThinking(thinking="First\nthen")), call])
    append(
        conversation.pk,
        [Entry.of(UserToolConfirmation(tool_use_id=call.uid, result="allow"))],
        actor=owner,
    )
    append(
        conversation.pk,
        [
            Entry.of(
                AgentToolResult(tool_use_id=call.uid, content=(Text(text="written"),), display=diff)
            ),
            Entry.of(
                TodosUpdated(
                    todos=(Todo(content="Write", active_form="Writing", status="completed"),)
                )
            ),
            Entry.of(AgentMessage(content=(Text(text="It is *done*."),), interrupted=True)),
            Entry.of(
                SessionStatusIdle(
                    stop_reason=BudgetReached(),
                    stop_details=StopDetails(
                        code="limit_reached", message="The budget is used up."
                    ),
                )
            ),
        ],
    )
    for number, cost in enumerate((Decimal("0.25"), None)):
        Usage.objects.create(
            organisation=conversation.organisation,
            user=owner,
            conversation=conversation,
            model_request_id=f"sevt_{number}",
            purpose="main",
            provider="scripted",
            model="m",
            input_tokens=10,
            output_tokens=5,
            cost=cost,
        )
    conversation.refresh_from_db()
    return conversation


def test_json_holds_the_whole_log_with_tools_approvals_and_costs(conversation: Conversation):
    everything(conversation)
    kept = json.loads("".join(as_json(conversation)))
    assert (kept["format"], kept["version"]) == ("agentsite.conversation", 1)
    assert kept["conversation"]["title"] == "Harbour plans"
    assert kept["conversation"]["agent"]["version"] == 1
    rows = list(Event.objects.filter(conversation=conversation).order_by("seq"))
    assert [event["payload"] for event in kept["events"]] == [row.payload for row in rows]
    assert [event["seq"] for event in kept["events"]] == list(range(1, len(rows) + 1))
    decided = next(event for event in kept["events"] if event["type"] == "user.tool_confirmation")
    assert decided["actor"] == "alice"
    assert [call["cost_usd"] for call in kept["usage"]] == ["0.25000000", None]
    assert kept["totals"]["input_tokens"] == 20
    assert Decimal(kept["totals"]["cost_usd"]) == Decimal("0.25")
    assert kept["totals"]["calls_without_price"] == 1


def test_an_empty_conversation_is_valid_json_too(conversation: Conversation):
    kept = json.loads("".join(as_json(conversation)))
    assert kept["events"] == []
    assert kept["totals"]["cost_usd"] == "0"


def test_markdown_reads_like_the_conversation(conversation: Conversation):
    everything(conversation)
    text = "".join(as_markdown(conversation))
    in_order = [
        "# Harbour plans",
        "Write it down",
        "> First\n> then",
        "Call: write_file (asked for permission)",
        '"path": "a.md"',
        "alice allowed write_file",
        "Result: write_file (ok)",
        "a.md +1 −0",
        "- [x] Write",
        "It is *done*.",
        "(interrupted)",
        "The budget is used up.",
        "input_tokens: 20",
        "$0.25000000 (the price of 1 calls is unknown)",
    ]
    places = [text.find(part) for part in in_order]
    assert -1 not in places, in_order[places.index(-1)]
    assert places == sorted(places)


def test_a_fence_inside_a_result_does_not_end_its_own(conversation: Conversation):
    everything(conversation)
    text = "".join(as_markdown(conversation))
    assert "````diff\n@@ -0,0 +1 @@\n+```\n\n````" in text


def test_no_title_makes_lines_of_its_own(alice: User, conversation: Conversation):
    rename_conversation(actor=alice, conversation=conversation, title="one\n# two")
    conversation.refresh_from_db()
    assert "".join(as_markdown(conversation)).startswith("# one # two\n\n- ")


def test_a_cost_nobody_knows_is_not_zero(conversation: Conversation):
    everything(conversation)
    Usage.objects.update(cost=None)
    assert "Cost: unknown" in "".join(as_markdown(conversation))


def test_a_long_log_is_read_in_pages(conversation: Conversation, django_assert_max_num_queries):
    fill(conversation, PAGE * 2 + 4)
    conversation.last_seq = PAGE * 2 + 4
    with django_assert_max_num_queries(12):
        kept = json.loads("".join(as_json(conversation)))
    assert len(kept["events"]) == PAGE * 2 + 4


@pytest.mark.parametrize(
    ("kind", "media_type", "suffix"),
    [("markdown", "text/markdown", "md"), ("json", "application/json", "json")],
)
def test_an_export_is_a_download_named_after_the_title(
    kind: str,
    media_type: str,
    suffix: str,
    alice: User,
    conversation: Conversation,
    client_of: ClientOf,
):
    talk(conversation, "Where?", "Here.")
    answer = client_of(alice).get(reverse(f"conversations:export-{kind}", args=[conversation.uid]))
    assert answer["Content-Type"] == f"{media_type}; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="harbour-plans.{suffix}"'
    assert "Where?" in b"".join(answer).decode()


@pytest.mark.django_db(transaction=True)
async def test_the_server_streams_the_same_bytes(alice: User, conversation: Conversation):
    await sync_to_async(everything)(conversation)
    client = AsyncClient()
    await client.aforce_login(alice)
    answer: Any = await client.get(reverse("conversations:export-json", args=[conversation.uid]))
    assert answer.is_async
    streamed = b"".join([piece async for piece in answer.streaming_content]).decode()
    assert streamed == await sync_to_async(lambda: "".join(as_json(conversation)))()
