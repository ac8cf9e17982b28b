"""What calls of tools came to is counted by day, and kept for a month."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Organisation, User
from mcpservers.actions.servers import add_server
from mcpservers.counting import Counted, count_call, counted, prune
from mcpservers.models import McpServer, McpTool, McpToolDay

pytestmark = pytest.mark.django_db


@pytest.fixture
def tool(alice: User, acme: Organisation) -> McpTool:
    server = add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.ORGANISATION,
        name="quiet",
        url="https://mcp.example.org/",
        look=False,
    )
    return McpTool.objects.create(
        server=server, remote_name="x", name="mcp__quiet__x", state=McpTool.State.RELEASED
    )


def test_a_tools_calls_are_a_row_a_day_with_how_long_they_took_and_how_the_last_failed(
    tool: McpTool,
):
    count_call(tool.pk, 0.1)
    count_call(tool.pk, 0.5, McpTool.Failure.LATE)
    assert counted([tool]) == {tool.pk: Counted(2, 1, 300, 500)}
    tool.refresh_from_db()
    assert tool.failure == "late"
    assert tool.failed_at is not None
    assert McpToolDay.objects.count() == 1


def test_what_is_older_than_a_month_is_neither_told_nor_kept(tool: McpTool):
    before = timezone.now().date() - timedelta(days=31)
    McpToolDay.objects.create(tool=tool, day=before, calls=9, milliseconds=9)
    assert counted([tool]) == {}
    count_call(tool.pk, 1)
    assert counted([tool])[tool.pk].calls == 1
    tool.state = McpTool.State.GONE
    tool.save()
    assert (prune(), prune()) == (1, 0)
    assert not McpToolDay.objects.filter(day=before).exists()


def test_a_call_of_a_tool_that_is_gone_meanwhile_counts_nowhere(tool: McpTool):
    pk = tool.pk
    tool.delete()
    count_call(pk, 1.0)
    assert not McpToolDay.objects.exists()
