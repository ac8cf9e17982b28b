"""An organisation's rule deletes what nobody touched: never unseen, never what is needed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.signals import post_delete, pre_delete
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation, User
from audit.models import AuditEntry
from chat.presentation.panels import panels_of
from conversations.actions.messages import post_message
from conversations.models import BackgroundCommand, Conversation, Run, Wake
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from keeping.actions.pins import pin_conversation
from retention.actions import deleting
from retention.actions.deleting import delete_expired
from retention.actions.rules import LONGEST, lift_rule, put_in_force, save_rule
from retention.expiring import extent_of, meant_by
from retention.models import RetentionRule
from tests.cast import ClientOf
from tests.chat.drawing import make_conversation

from .conftest import Old

pytestmark = pytest.mark.django_db
InForce = Callable[..., RetentionRule]
PAGE = "/settings/retention/"


def there(*conversations: Conversation) -> list[bool]:
    return [Conversation.objects.filter(pk=each.pk).exists() for each in conversations]


# --- what a rule in force deletes -----------------------------------------------------------------


def test_what_nobody_touched_for_so_long_goes_and_all_else_stays(
    alice: User, bob: User, mallory: User, elsewhere: Organisation, old: Old, in_force: InForce
):
    hers, his, young = old(alice, 91), old(bob, 500), old(alice, 89)
    theirs = make_conversation(mallory, elsewhere)
    Conversation.objects.filter(pk=theirs.pk).update(active_at=hers.active_at)
    in_force(90)
    assert delete_expired() == 2
    assert there(hers, his, young, theirs) == [False, False, True, True]
    assert delete_expired() == 0
    entries = AuditEntry.objects.filter(action="retention_deleted")
    assert {entry.conversation_uid for entry in entries} == {hers.uid, his.uid}
    assert entries[0].details == {"days": 90, "only_archived": False}


def test_what_cannot_be_deleted_now_keeps_nothing_else_waiting(
    alice: User, old: Old, in_force: InForce
):
    stuck, other = old(alice, 200), old(alice, 100)

    def refuse(instance: Conversation, **_kwargs: Any) -> None:
        if instance.pk == stuck.pk:
            raise OSError("read-only file system")

    in_force(90)
    pre_delete.connect(refuse, sender=Conversation)
    try:
        assert delete_expired() == 1
        assert there(stuck, other) == [True, False]
    finally:
        pre_delete.disconnect(refuse, sender=Conversation)
    assert delete_expired() == 1
    assert not AuditEntry.objects.filter(action="retention_deleted").exclude(
        conversation_uid__in=[stuck.uid, other.uid]
    )


def test_only_archived_ones_where_the_rule_says_so(alice: User, old: Old, in_force: InForce):
    archived, open_ = old(alice, archived_at=timezone.now()), old(alice)
    in_force(90, only_archived=True)
    assert delete_expired() == 1
    assert there(archived, open_) == [False, True]


def test_what_is_needed_stays_however_old(alice: User, bob: User, old: Old, in_force: InForce):
    pinned = old(alice)
    pin_conversation(actor=alice, conversation=pinned, pinned=True)
    running = old(alice)
    Run.objects.create(
        conversation=running, state=Run.State.RUNNING, worker="w", lease_until=timezone.now()
    )
    asks = old(alice, stop_reason="requires_action")
    works_elsewhere = old(alice, stop_reason="waits_for_worker")
    queued, owing = old(alice, queued_count=1), old(alice, owes_run=True)
    retrying = old(alice, status="rescheduling")
    sleeping = old(alice)
    Wake.objects.create(
        conversation=sleeping, kind=Wake.Kind.AGENT, due_at=timezone.now() + timedelta(days=30)
    )
    trial = old(alice, unlisted=True)
    parent = old(alice)
    child = old(alice, 1, parent=parent)
    kept = [
        pinned, running, asks, works_elsewhere, queued, owing, retrying, sleeping, trial, parent, child
    ]  # fmt: skip
    in_force(90)
    assert delete_expired() == 0
    assert all(there(*kept))


def test_what_an_agent_began_goes_with_the_conversation_above_it(
    alice: User, old: Old, in_force: InForce
):
    parent = old(alice)
    child = old(alice, parent=parent)
    deepest = old(alice, parent=child)
    in_force(90)
    assert delete_expired() == 1
    assert there(parent, child, deepest) == [False, False, False]


def nothing(_actor: User, _conversation: Conversation) -> None:
    pass


def wakes_later(_actor: User, conversation: Conversation) -> None:
    due = timezone.now() + timedelta(days=30)
    Wake.objects.create(conversation=conversation, kind=Wake.Kind.AGENT, due_at=due)


def runs(_actor: User, conversation: Conversation) -> None:
    Run.objects.create(
        conversation=conversation, state=Run.State.RUNNING, worker="w", lease_until=timezone.now()
    )


def runs_a_command(_actor: User, conversation: Conversation) -> None:
    BackgroundCommand.objects.create(
        conversation=conversation,
        call_uid="sevt_x",
        command="make serve",
        output_path="x",
        timeout_seconds=9,
        host="elsewhere",
        boot="x",
        pid=1,
        seen_at=timezone.now(),
        started_at=timezone.now(),
    )


def pins(actor: User, conversation: Conversation) -> None:
    pin_conversation(actor=actor, conversation=conversation, pinned=True)


NEEDED = {
    "waits for an answer": ({"stop_reason": "requires_action"}, nothing),
    "waits for a worker": ({"stop_reason": "waits_for_worker"}, nothing),
    "tries again soon": ({"status": "rescheduling"}, nothing),
    "has words waiting": ({"queued_count": 1}, nothing),
    "owes a run": ({"owes_run": True}, nothing),
    "was touched": ({"active_at": timezone.now() - timedelta(days=1)}, nothing),
    "waits for a time": ({}, wakes_later),
    "is at work": ({}, runs),
    "has a command at work": ({}, runs_a_command),
    "is pinned": ({}, pins),
}


@pytest.mark.parametrize("levels", [0, 1, 4])
@pytest.mark.parametrize(("fields", "happens"), NEEDED.values(), ids=NEEDED)
def test_what_is_needed_keeps_its_whole_tree_however_deep_it_is(
    alice: User,
    old: Old,
    in_force: InForce,
    levels: int,
    fields: dict[str, Any],
    happens: Callable[[User, Conversation], None],
):
    tree = [old(alice)]
    for _ in range(levels):
        tree.append(old(alice, parent=tree[-1]))
    beside = old(alice, parent=tree[0])
    other = old(alice)
    Conversation.objects.filter(pk=tree[-1].pk).update(**fields)
    happens(alice, tree[-1])
    rule = in_force(90)
    assert extent_of(rule).conversations == 1
    assert list(meant_by(rule)) == [other]
    assert delete_expired() == 1
    assert all(there(*tree, beside))


def test_a_tree_that_waits_for_nothing_more_goes(alice: User, old: Old, in_force: InForce):
    parent = old(alice)
    child = old(alice, parent=old(alice, parent=parent), stop_reason="requires_action")
    in_force(90)
    assert delete_expired() == 0
    Conversation.objects.filter(pk=child.pk).update(stop_reason="end_turn")
    assert delete_expired() == 1
    assert there(parent, child) == [False, False]


def test_what_is_touched_or_pinned_or_ruled_otherwise_meanwhile_stays(
    alice: User, acme: Organisation, old: Old, in_force: InForce
):
    """Between the list of what is due and the lock of each."""
    touched, pinned = old(alice), old(alice)
    rule = in_force(90)
    due = list(meant_by(rule).values_list("pk", flat=True))
    post_message(actor=alice, conversation=touched, text="Still here.")
    pin_conversation(actor=alice, conversation=pinned, pinned=True)
    assert [deleting._delete(rule, pk) for pk in due] == [False, False]
    last = old(alice)
    save_rule(actor=alice, organisation=acme, days=95)
    assert not deleting._delete(rule, last.pk)
    assert there(touched, pinned, last) == [True, True, True]


def test_much_goes_bit_by_bit(alice: User, old: Old, in_force: InForce):
    made = [old(alice) for _ in range(3)]
    in_force(90)
    most, deleting.AT_A_TIME = deleting.AT_A_TIME, 2
    try:
        assert [delete_expired(), delete_expired(), delete_expired()] == [2, 1, 0]
    finally:
        deleting.AT_A_TIME = most
    assert not any(there(*made))


def test_however_many_cannot_be_deleted_they_keep_no_other(
    alice: User, old: Old, in_force: InForce, monkeypatch: pytest.MonkeyPatch
):
    stuck, other = old(alice, 200), old(alice)
    in_force(90)
    monkeypatch.setattr(deleting, "AT_A_TIME", 1)

    def fails(instance: Conversation, **_kwargs: Any) -> None:
        if instance.pk == stuck.pk:
            raise OSError("it cannot be deleted now")

    post_delete.connect(fails, sender=Conversation)
    try:
        assert [delete_expired(), delete_expired()] == [1, 0]
    finally:
        post_delete.disconnect(fails, sender=Conversation)
    assert there(stuck, other) == [True, False]


# --- the rule -------------------------------------------------------------------------------------


def test_a_saved_rule_is_a_dry_run_and_deletes_nothing(
    alice: User, bob: User, acme: Organisation, old: Old
):
    first, last = old(bob, 300), old(alice, 120)
    rule = save_rule(actor=alice, organisation=acme, days=90)
    extent = extent_of(rule)
    assert (extent.conversations, extent.people) == (2, 2)
    assert (extent.oldest, extent.newest) == (first.active_at, last.active_at)
    assert delete_expired() == 0
    assert all(there(first, last))


def test_put_in_force_it_waits_a_day(alice: User, acme: Organisation, old: Old):
    conversation = old(alice)
    rule = save_rule(actor=alice, organisation=acme, days=90)
    put_in_force(actor=alice, organisation=acme, version=rule.version)
    assert delete_expired() == 0
    RetentionRule.objects.update(in_force_at=timezone.now() - timedelta(hours=23))
    assert delete_expired() == 0
    RetentionRule.objects.update(in_force_at=timezone.now() - timedelta(hours=24))
    assert delete_expired() == 1
    assert there(conversation) == [False]


def test_a_changed_rule_is_a_dry_run_again_and_the_same_one_stays(
    alice: User, acme: Organisation, in_force: InForce
):
    rule = in_force(90)
    assert save_rule(actor=alice, organisation=acme, days=90).in_force_at == rule.in_force_at
    changed = save_rule(actor=alice, organisation=acme, days=30)
    assert changed.in_force_at is None
    assert delete_expired() == 0


def test_what_somebody_else_saved_meanwhile_is_not_put_in_force_unseen(
    alice: User, bob: User, acme: Organisation
):
    seen = save_rule(actor=alice, organisation=acme, days=90).version
    save_rule(actor=alice, organisation=acme, days=1)
    with pytest.raises(Conflict):
        put_in_force(actor=alice, organisation=acme, version=seen)
    assert RetentionRule.objects.get().in_force_at is None


def test_a_lifted_rule_deletes_nothing(
    alice: User, acme: Organisation, old: Old, in_force: InForce
):
    conversation = old(alice)
    in_force(90)
    lift_rule(actor=alice, organisation=acme)
    assert delete_expired() == 0
    assert there(conversation) == [True]
    told = AuditEntry.objects.filter(action__startswith="retention").order_by("pk")
    assert [entry.action for entry in told] == [
        "retention_saved",
        "retention_begun",
        "retention_lifted",
    ]


@pytest.mark.parametrize("days", [0, -1, LONGEST + 1])
def test_days_that_make_no_sense_are_refused(alice: User, acme: Organisation, days: int):
    with pytest.raises(Invalid) as refused:
        save_rule(actor=alice, organisation=acme, days=days)
    assert refused.value.field == "days"
    assert not RetentionRule.objects.exists()


def test_only_who_manages_the_organisation_may(
    alice: User, bob: User, mallory: User, acme: Organisation
):
    rule = save_rule(actor=alice, organisation=acme, days=90)
    for actor, refusal in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(refusal):
            save_rule(actor=actor, organisation=acme, days=1)
        with pytest.raises(refusal):
            put_in_force(actor=actor, organisation=acme, version=rule.version)
        with pytest.raises(refusal):
            lift_rule(actor=actor, organisation=acme)
    assert RetentionRule.objects.get().days == 90


# --- pages ----------------------------------------------------------------------------------------


def test_a_manager_sees_what_would_go_before_she_puts_it_in_force(
    alice: User, bob: User, acme: Organisation, client_of: ClientOf, old: Old
):
    old(alice, title="Harbour plans")
    old(bob, title="Bob's secret")
    client = client_of(alice)
    shown = {"shown_organisation": acme.uid}
    assert client.post(PAGE, {"days": "90", **shown}).status_code == 302
    text = client.get(PAGE).content.decode()
    assert "delete 2 conversations" in text
    assert "2 people" in text
    assert "Harbour plans" in text
    assert "Bob&#x27;s secret" not in text
    version = RetentionRule.objects.get().version
    stale = client.post(f"{PAGE}begin/", {"version": str(version + 1), **shown})
    assert stale.status_code == 409
    assert client.post(f"{PAGE}begin/", {"version": str(version), **shown}).status_code == 302
    assert "90 days are deleted" in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}lift/", shown).status_code == 302
    assert "kept until somebody deletes them" in client.get(PAGE).content.decode()


@pytest.mark.parametrize("days", ["", "x", "0", "9" * 30])
def test_a_wrong_number_is_said_and_loses_nothing(
    alice: User, acme: Organisation, client_of: ClientOf, days: str
):
    answer = client_of(alice).post(PAGE, {"days": days, "shown_organisation": acme.uid})
    assert answer.status_code == 422
    assert f'value="{days}"' in answer.content.decode() or not days
    assert not RetentionRule.objects.exists()


def test_a_member_reads_the_rule_and_changes_nothing(
    bob: User, acme: Organisation, client_of: ClientOf, old: Old, in_force: InForce
):
    soon = old(bob, 85, title="Bob's ship")
    in_force(90)
    client = client_of(bob)
    text = client.get(PAGE).content.decode()
    assert "90 days are deleted" in text
    assert "Bob&#x27;s ship" in text
    assert soon.get_absolute_url() in text
    assert "Save as a dry run" not in text
    for path in ("", "begin/", "lift/"):
        sent: dict[str, Any] = {"days": "1", "version": "1", "shown_organisation": acme.uid}
        assert client.post(f"{PAGE}{path}", sent).status_code == 403
    assert RetentionRule.objects.get().days == 90


def test_another_organisation_s_rule_is_not_seen(
    mallory: User, acme: Organisation, client_of: ClientOf, old: Old, alice: User, in_force: InForce
):
    old(alice, 85, title="Harbour plans")
    in_force(77)
    text = client_of(mallory).get(PAGE).content.decode()
    assert "77 days" not in text
    assert "Harbour" not in text


def test_a_stranger_is_sent_to_sign_in():
    assert "/accounts/login/" in Client().get(PAGE)["Location"]


# --- the notice -----------------------------------------------------------------------------------


def test_a_conversation_says_that_it_goes_soon_until_somebody_keeps_it(
    alice: User, acme: Organisation, old: Old, in_force: InForce
):
    soon, later, fresh = old(alice, 85), old(alice, 60), old(alice, 0)
    in_force(90)

    def notice(conversation: Conversation) -> Any:
        conversation.refresh_from_db()
        return panels_of(conversation, ["retention"])["retention"]

    assert "Untouched for 90 days" in notice(soon)
    assert (notice(later), notice(fresh)) == ("", "")
    pin_conversation(actor=alice, conversation=soon, pinned=True)
    assert notice(soon) == ""


def test_a_dry_run_warns_nobody(alice: User, acme: Organisation, old: Old):
    conversation = old(alice, 89)
    save_rule(actor=alice, organisation=acme, days=90)
    assert panels_of(conversation, ["retention"])["retention"] == ""


def test_the_notice_of_a_conversation_in_use_asks_nothing(
    alice: User, old: Old, in_force: InForce, django_assert_num_queries: Any
):
    conversation = old(alice, 0.4)
    in_force(1)
    with django_assert_num_queries(0):
        assert panels_of(conversation, ["retention"])["retention"] == ""
