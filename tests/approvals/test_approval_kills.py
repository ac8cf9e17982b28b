"""A process that is killed over a decision loses nothing of it and repeats nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from accounts.models import Organisation, User
from approvals.actions.approvals import decide_approval
from approvals.models import Approval, ApprovalDecision
from conversations import projections
from conversations.actions.messages import post_message
from conversations.jobs import sweep
from conversations.models import Conversation
from harness.events import UserToolConfirmation
from jobs.engine import engine
from providers.scripted import call, reply
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import Converse, rested, types
from tests.killing.databases import release
from tests.patience import PATIENCE
from tools_app.workspace import Workspace, workspace_for

pytestmark = pytest.mark.django_db(transaction=True)

TWO_PEOPLE = '[{"tool": "write_file", "permission": "always_ask", "options": {"two_people": true}}]'


@pytest.fixture
def rita(acme: Organisation) -> User:
    return a_reviewer(acme)


@pytest.fixture
def asked(alice: User, converse: Converse, settings: Any) -> Approval:
    """Two people must agree, and alice has; rita's answer lets it run."""
    settings.AGENTSITE_TOOL_RULES = TWO_PEOPLE
    conversation, _script = converse(
        [reply(call("write_file", path="a.txt", content="one")), reply("Done.")]
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    return allow(alice, Approval.objects.get())


def allow(who: User, approval: Approval) -> Approval:
    return decide_approval(
        actor=who,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )


def die(*_given: Any, **_named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_over(work: Callable[[], Any]) -> None:
    """Do it in a process of its own, which is killed before it is done with it."""
    engine.stop()
    release()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    _pid, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def before_the_commit(who: User, approval: Approval) -> None:
    """With the vote and its event written, and nothing committed."""
    projections.follow(die, UserToolConfirmation, turn=projections.Turn.AFTER)
    allow(who, approval)


def behind_the_commit(who: User, approval: Approval) -> None:
    """With everything committed, and nobody woken."""
    connection.run_and_clear_commit_hooks = die  # type: ignore[method-assign]
    allow(who, approval)


async def swept() -> None:
    await sweep()


def written(conversation: Conversation) -> bytes:
    return Workspace(workspace_for(conversation.uid)).read_bytes("a.txt")


def test_killed_before_its_commit_an_answer_was_never_given_and_can_be_given_again(
    rita: User, asked: Approval
) -> None:
    killed_over(partial(before_the_commit, rita, asked))

    asked.refresh_from_db()
    assert asked.state == "pending"
    assert ApprovalDecision.objects.count() == 1, "alice's"
    assert "user.tool_confirmation" not in types(asked.conversation)
    allow(rita, asked)
    conversation = rested(asked.conversation, 2)
    assert conversation.stop_reason == "end_turn"
    assert written(conversation) == b"one"


def test_killed_before_it_woke_anybody_an_answer_is_carried_out_by_the_sweep_once(
    rita: User, asked: Approval
) -> None:
    killed_over(partial(behind_the_commit, rita, asked))

    asked.refresh_from_db()
    assert asked.state == "approved"
    assert "agent.tool_result" not in types(asked.conversation)
    engine.submit(swept).result(PATIENCE)
    conversation = rested(asked.conversation, 2)
    engine.submit(swept).result(PATIENCE)
    assert conversation.stop_reason == "end_turn"
    assert written(conversation) == b"one"
    assert types(conversation).count("span.tool_start") == 1
