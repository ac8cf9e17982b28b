"""A question that nobody answers: asked, run out, told to the model, and shown for what it was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.signals import post_save
from django.utils import timezone

from accounts.models import User
from approvals.actions.approvals import decide_approval, expire_approvals
from approvals.jobs import expire_overdue_approvals
from approvals.models import Approval
from audit.models import AuditEntry
from conversations.actions.messages import post_message
from conversations.log import append
from harness.errors import Expired, NotWaiting
from harness.events import SpanToolStart
from harness.history import Entry
from jobs.engine import engine
from keeping import export
from providers.scripted import call, reply
from tests.approvals.asking import asks
from tests.conversations.conftest import Converse, rested, types
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

IN_A_MINUTE = (
    '[{"tool": "write_file", "permission": "always_ask", "options": {"expires_seconds": 60}}]'
)


async def swept() -> None:
    await expire_overdue_approvals()


def let_time_pass() -> None:
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_nobody_answers_the_model_is_told_the_turn_goes_on_and_every_page_says_why(
    alice: User, converse: Converse, settings: Any, client_of: Any
) -> None:
    settings.AGENTSITE_TOOL_RULES = IN_A_MINUTE
    conversation, script = converse(
        [reply(call("write_file", path="a.txt", content="one")), reply("I leave it then.")]
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    page = client_of(alice)
    asked = Approval.objects.get()
    assert asked.expires_at is not None
    assert asked.expires_at - asked.asked_at == timedelta(seconds=60)
    assert "Denied by itself" in page.get("/approvals/").content.decode()
    let_time_pass()
    assert asked.uid not in page.get("/approvals/").content.decode(), "even before the sweep"

    engine.submit(swept).result(PATIENCE)
    rested(conversation, 2)

    assert conversation.stop_reason == "end_turn"
    assert "Nobody answered in time" in str(script.requests[-1].messages[-1])
    asked.refresh_from_db()
    assert (asked.state, asked.closed_by) == ("expired", None)
    assert not Approval.objects.waiting().exists()
    decided = page.get("/approvals/decided/").content.decode()
    assert asked.uid in decided
    assert ">expired<" in decided
    assert "because time ran out" in decided
    drawn = page.get(f"/c/{conversation.uid}/").content.decode()
    assert "Denied because nobody answered in time" in drawn
    assert "I leave it then." in drawn
    assert "nobody answered in time about" in "".join(export.as_markdown(conversation))
    trail = AuditEntry.objects.filter(approval_uid=asked.uid).order_by("id")
    assert [entry.action for entry in trail] == ["asked", "seen", "expired"]
    with pytest.raises(Expired):
        decide_approval(
            actor=alice,
            approval=asked,
            verdict="approve",
            input_hash=asked.effective_sha256,
            seen_round=asked.round,
        )


def test_what_runs_by_an_answer_to_another_call_does_not_run_out(
    alice: User, converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its question is needless by then, which the next rest says; nobody denied anything."""
    wrote = call("write_file", path="a.txt", content="one")
    conversation, _script = converse(
        [reply(wrote, wrote), reply("Written.")], features={"approval": True}
    )
    post_message(actor=alice, conversation=conversation, text="Write twice.")
    rested(conversation)
    first, second = Approval.objects.order_by("id")
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    decide_approval(
        actor=alice,
        approval=first,
        verdict="approve",
        input_hash=first.effective_sha256,
        seen_round=first.round,
        scope="conversation",
    )
    began = SpanToolStart(tool_use_id=second.call_uid, effect="workspace")
    append(conversation.pk, [Entry.of(began)])
    let_time_pass()

    assert expire_approvals() == 0
    with pytest.raises(NotWaiting):
        decide_approval(
            actor=alice,
            approval=second,
            verdict="approve",
            input_hash=second.effective_sha256,
            seen_round=second.round,
        )

    second.refresh_from_db()
    assert second.state == "pending"
    assert types(conversation).count("user.tool_confirmation") == 1


def test_one_that_cannot_be_closed_is_logged_and_holds_up_no_other(
    converse: Converse, caplog: pytest.LogCaptureFixture
) -> None:
    conversations = [converse()[0] for _ in range(3)]
    asked = [asks(conversation, expires_seconds=60) for conversation in conversations]
    let_time_pass()
    stuck = asked[0].pk

    def fails(instance: Approval, **_named: Any) -> None:
        if instance.pk == stuck:
            raise RuntimeError("something listens and fails")

    post_save.connect(fails, sender=Approval)
    try:
        assert expire_approvals(limit=2) == 2
    finally:
        post_save.disconnect(fails, sender=Approval)

    states = dict(Approval.objects.values_list("pk", "state"))
    assert [states[one.pk] for one in asked] == ["pending", "expired", "expired"]
    assert "could not be expired" in caplog.text
    assert expire_approvals() == 1, "the next sweep tries it again"
    engine.stop()
