"""The review queue, the audit log, rules and the simulation, as pages."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.template.loader import render_to_string
from django.test import AsyncClient, Client

from accounts.models import Membership, Role
from approvals.models import Approval, PolicyRule
from audit.models import AuditEntry
from conversations.log import append
from conversations.models import Conversation
from harness.events import AgentToolUse, RequiresAction, SessionStatusIdle, UserToolConfirmation
from harness.history import Entry
from tests.cast import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer(bob, acme):
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.REVIEWER)
    return bob


@pytest.fixture
def conversation(converse) -> Conversation:
    begun: Conversation = converse()[0]
    return begun


def ask(conversation: Conversation, name: str = "write_file", **given: Any) -> Approval:
    """A call of the conversation's agent that waits."""
    use = Entry.of(AgentToolUse(name=name, input=given, evaluated_permission="ask", reason="Rule"))
    idle = Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,))))
    append(conversation.pk, [use, idle])
    return Approval.objects.get(call_uid=use.uid)


def answer(client: Client, approval: Approval, verdict: str, **also: Any) -> Any:
    seen = {"input_hash": approval.effective_sha256, "round": approval.round}
    fields = {"verdict": verdict, **seen, **also}
    return client.post(f"/approvals/{approval.uid}/decide/", fields)


def confirmations(approval: Approval) -> list[Any]:
    rows = approval.conversation.events.filter(type="user.tool_confirmation").order_by("seq")
    return [row.value for row in rows]


def test_the_queue_shows_what_waits_to_owner_and_reviewer_and_to_nobody_else(
    client_of, alice, reviewer, mallory, conversation
):
    approval = ask(conversation, path="plan.md", content="A <b>secret</b> plan")
    for person in (alice, reviewer):
        page = client_of(person).get("/approvals/").content.decode()
        assert approval.uid in page
        assert "A &lt;b&gt;secret&lt;/b&gt; plan" in page
    page = client_of(mallory).get("/approvals/").content.decode()
    assert approval.uid not in page
    assert "secret" not in page


def test_a_member_who_does_not_review_sees_nothing_of_anothers(client_of, bob, conversation):
    approval = ask(conversation, path="a", content="b")
    client = client_of(bob)
    assert approval.uid not in client.get("/approvals/").content.decode()
    assert client.get(f"/approvals/{approval.uid}/").status_code == 404
    assert answer(client, approval, "approve").status_code == 404
    assert confirmations(approval) == []


def test_a_reviewer_allows_a_call_from_the_queue(client_of, reviewer, conversation):
    approval = ask(conversation, path="a", content="b")
    response = answer(client_of(reviewer), approval, "approve")
    assert response.status_code == 302
    approval.refresh_from_db()
    assert approval.state == "approved"
    assert approval.closed_by == reviewer
    assert [one.result for one in confirmations(approval)] == ["allow"]


def test_changed_arguments_are_what_runs(client_of, reviewer, conversation):
    approval = ask(conversation, path="a.txt", content="one\ntwo")
    also = {"argument-path": "a.txt", "argument-content": "one\r\nthree"}
    answer(client_of(reviewer), approval, "approve", **also)
    (confirmation,) = confirmations(approval)
    assert confirmation.edited_input == {"path": "a.txt", "content": "one\nthree"}


def test_a_browsers_line_ends_alone_are_no_change(client_of, reviewer, conversation):
    approval = ask(conversation, path="a.txt", content="one\ntwo")
    also = {"argument-path": "a.txt", "argument-content": "one\r\ntwo"}
    answer(client_of(reviewer), approval, "approve", **also)
    (confirmation,) = confirmations(approval)
    assert confirmation.edited_input is None


def test_arguments_that_are_no_json_come_back_with_all_that_was_typed(
    client_of, alice, conversation
):
    approval = ask(conversation, name="read_file", path="a", limit=3)
    also = {"argument-path": "a", "argument-limit": "three", "reason": "My long reason"}
    response = answer(client_of(alice), approval, "approve", **also)
    assert response.status_code == 409
    page = response.content.decode()
    assert "three" in page
    assert "My long reason" in page
    assert "limit" in page
    assert confirmations(approval) == []


def test_an_answer_about_another_input_changes_nothing(client_of, alice, conversation):
    approval = ask(conversation, path="a", content="b")
    response = answer(client_of(alice), approval, "approve", input_hash="0" * 64)
    assert response.status_code == 409
    assert confirmations(approval) == []


def test_denying_tells_the_agent_why(client_of, alice, conversation):
    approval = ask(conversation, path="a", content="b")
    answer(client_of(alice), approval, "deny", reason="Wrong folder")
    (confirmation,) = confirmations(approval)
    assert isinstance(confirmation, UserToolConfirmation)
    assert (confirmation.result, confirmation.deny_message) == ("deny", "Wrong folder")


def test_identical_calls_are_decided_together_and_others_are_not(client_of, reviewer, converse):
    same = [ask(converse()[0], path="a", content="b") for _ in range(3)]
    other = ask(converse()[0], path="a", content="c")
    client = client_of(reviewer)
    shown = [f"{one.uid}:{one.effective_sha256}:{one.round}" for one in (*same, other)]
    mixed = {"approval": [same[0].uid, other.uid], "shown": shown, "verdict": "approve"}
    assert client.post("/approvals/decide/", mixed).status_code == 400
    assert Approval.objects.filter(state="approved").count() == 0
    together = {"approval": [one.uid for one in same], "shown": shown, "verdict": "approve"}
    assert client.post("/approvals/decide/", together).status_code == 302
    assert set(Approval.objects.filter(state="approved")) == set(same)
    again = client.post("/approvals/decide/", together, follow=True)
    said = [str(message).replace("\xa0", " ") for message in again.context["messages"]]
    assert said[1] == f"{same[0].tool}, asked 0 minutes ago: This call was decided before."


def test_what_was_not_shown_is_not_allowed_together(client_of, reviewer, conversation):
    approval = ask(conversation, path="a", content="b")
    unseen = {"approval": [approval.uid], "verdict": "approve"}
    client_of(reviewer).post("/approvals/decide/", unseen)
    approval.refresh_from_db()
    assert approval.state == "pending"


def test_a_form_that_does_not_say_which_question_it_showed_allows_nothing(
    client_of, reviewer, staff, conversation
):
    approval = ask(conversation, path="a", content="b")
    client, seen = client_of(reviewer), f"{approval.uid}:{approval.effective_sha256}"
    for number in ("", "none", "0", "2"):
        assert answer(client, approval, "approve", round=number).status_code == 409
        together = {"approval": [approval.uid], "shown": [f"{seen}:{number}"], "verdict": "approve"}
        client.post("/approvals/decide/", together)
        changelist(client_of(staff), approval, "allow_once", shown=[f"{seen}:{number}"])
    assert confirmations(approval) == []
    assert answer(client, approval, "deny", round="").status_code == 302
    assert [one.result for one in confirmations(approval)] == ["deny"]


def test_the_live_part_brings_new_calls_and_redraws_closed_ones_alone(client_of, alice, converse):
    client = client_of(alice)
    first, second = (ask(converse()[0], path="a", content=str(n)) for n in range(2))
    known = {"known": [first.uid, second.uid], "view": "waiting"}
    assert "approval-card" not in client.get("/approvals/live/", known).content.decode()
    answer(client, first, "deny")
    third = ask(converse()[0], path="a", content="3")
    part = client.get("/approvals/live/", known).content.decode()
    assert f'id="approval-{first.uid}"' in part
    assert f'id="approval-{second.uid}"' not in part
    assert f'id="approval-{third.uid}"' in part
    assert re.search(r'id="approvals-badge"[^>]* hx-swap-oob="true"', part)
    assert '<span class="count">2</span>' in part


def test_seeing_a_question_is_kept_once(client_of, reviewer, conversation):
    approval = ask(conversation, path="a", content="b")
    client = client_of(reviewer)
    for _ in range(2):
        client.get("/approvals/")
        client.get(f"/approvals/{approval.uid}/")
    seen = AuditEntry.objects.filter(approval_uid=approval.uid, action="seen", actor=reviewer)
    assert seen.count() == 1


def test_the_badge_counts_what_waits_for_this_person(client_of, alice, mallory, conversation):
    ask(conversation, path="a", content="b")
    assert (
        '<span class="count">1</span>' in client_of(alice).get("/approvals/badge/").content.decode()
    )
    assert "count" not in client_of(mallory).get("/approvals/badge/").content.decode()


def test_staff_choose_from_the_organisations_of_what_they_see_and_others_from_their_own(
    client_of, staff, alice, acme, mallory, elsewhere, conversation
):
    ask(conversation, path="a", content="b")
    for person, offered in ((staff, {acme}), (alice, {acme}), (mallory, {elsewhere})):
        page = client_of(person).get("/approvals/").content.decode()
        assert [one for one in (acme, elsewhere) if f'<option value="{one.uid}"' in page] == list(
            offered
        )
    found = client_of(staff).get(f"/approvals/?organisation={acme.uid}").content.decode()
    assert f'<option value="{acme.uid}" selected>' in found


def test_the_queue_takes_a_bounded_number_of_queries(
    client_of, alice, converse, django_assert_max_num_queries
):
    client = client_of(alice)
    for number in range(12):
        ask(converse()[0], path="a", content=str(number))
    client.get("/approvals/")  # from now on all of them have been seen
    with django_assert_max_num_queries(60):
        client.get("/approvals/")


@pytest.mark.parametrize(
    "query", ["?after=x", "?risk=huge", "?after=1%00", "?organisation=%00", "?tool=%00"]
)
def test_a_wrong_filter_is_refused_in_words_or_finds_nothing(client_of, alice, query):
    assert client_of(alice).get(f"/approvals/{query}").status_code in {200, 400}


def test_the_audit_log_is_filtered_and_exported_without_formulas(
    client_of, alice, reviewer, mallory, conversation
):
    approval = ask(conversation, path="a", content="b")
    answer(client_of(reviewer), approval, "deny", reason="=1+1")
    page = client_of(reviewer).get("/approvals/audit/?action=denied").content.decode()
    assert approval.uid in page
    exported = client_of(reviewer).get("/approvals/audit/export/?action=denied")
    rows = list(csv.DictReader(io.StringIO(b"".join(exported).decode())))
    assert [row["reason"] for row in rows] == ["'=1+1"]
    assert [row["approval_uid"] for row in rows] == [approval.uid]
    assert approval.uid not in client_of(mallory).get("/approvals/audit/").content.decode()
    assert client_of(alice).get("/approvals/audit/?from=yesterday").status_code == 400
    assert client_of(alice).get("/approvals/audit/export/?from=yesterday").status_code == 400


@pytest.mark.django_db(transaction=True)
async def test_the_server_streams_the_audit_log_piece_by_piece(reviewer, conversation):
    approval = await sync_to_async(ask)(conversation, path="a", content="b")
    client = AsyncClient()
    await client.aforce_login(reviewer)
    exported: Any = await client.get("/approvals/audit/export/")
    assert exported.is_async
    told = b"".join([piece async for piece in exported.streaming_content]).decode()
    assert approval.uid in told


def test_a_rule_is_added_holds_and_is_revoked(client_of, alice, acme, mallory):
    client = client_of(alice)
    rule = {
        "level": "organisation",
        "organisation": acme.uid,
        "tool": "bash",
        "permission": "always_ask",
        "argument": "command",
        "way": "prefix",
        "value": "git push",
        "option": ["two_people"],
        "expires_minutes": "5",
    }
    assert client.post("/approvals/rules/add/", rule).status_code == 302
    saved = PolicyRule.objects.get()
    assert saved.value.when.prefix == "git push"
    assert (saved.value.options.two_people, saved.value.options.expires_seconds) == (True, 300)
    assert "git push" in client.get("/approvals/rules/").content.decode()
    stranger = client_of(mallory)
    assert stranger.post("/approvals/rules/add/", rule).status_code == 422
    assert stranger.post(f"/approvals/rules/{saved.uid}/revoke/").status_code == 404
    assert client.post(f"/approvals/rules/{saved.uid}/revoke/").status_code == 302
    assert not PolicyRule.objects.active().exists()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"permission": "sometimes"}, "permission"),
        ({"tool": ""}, "tool"),
        ({"argument": "command"}, "way"),
        ({"way": "guess"}, "way"),
        ({"expires_minutes": "-1"}, "expires_minutes"),
        ({"level": "galaxy"}, "level"),
    ],
)
def test_a_wrong_rule_comes_back_with_what_was_typed(client_of, alice, acme, wrong, named):
    given = {
        "level": "organisation",
        "organisation": acme.uid,
        "tool": "bash",
        "permission": "always_ask",
        "note": "Because of last week",
        **wrong,
    }
    response = client_of(alice).post("/approvals/rules/add/", given)
    assert response.status_code == 422
    page = response.content.decode()
    assert named in page
    assert "Because of last week" in page
    assert not PolicyRule.objects.exists()


def test_a_simulation_names_verdict_and_rule_and_runs_nothing(
    client_of, alice, acme, mallory, conversation
):
    client = client_of(alice)
    asked = {"conversation": conversation.uid, "tool": "write_file", "input": '{"path": "a"}'}
    page = client.get("/approvals/simulate/", asked).content.decode()
    assert "It would run" in page
    assert "content" in page  # the schema wants it
    client.post(
        "/approvals/rules/add/",
        {
            "level": "organisation",
            "organisation": acme.uid,
            "tool": "write_*",
            "permission": "always_deny",
        },
    )
    assert "It would be denied" in client.get("/approvals/simulate/", asked).content.decode()
    stranger = client_of(mallory).get("/approvals/simulate/", asked)
    assert stranger.status_code == 422
    assert "no such conversation" in stranger.content.decode()
    wrong = client.get("/approvals/simulate/", {**asked, "input": "{"})
    assert wrong.status_code == 422


# --- admin ----------------------------------------------------------------------------------------


def changelist(client: Client, approval: Approval, action: str, **also: Any) -> Any:
    fields = {"action": action, "_selected_action": [approval.pk], **also}
    return client.post("/admin/approvals/approval/", fields)


def test_staff_decide_in_the_admin_on_what_the_page_showed(client_of, staff, conversation):
    client = client_of(staff)
    approval = ask(conversation, path="a", content="<script>")
    assert approval.uid in client.get("/admin/approvals/approval/").content.decode()
    page = client.get(f"/admin/approvals/approval/{approval.pk}/change/").content.decode()
    assert "&lt;script&gt;" in page
    shown = changelist(client, approval, "deny")
    assert shown.status_code == 200
    assert confirmations(approval) == []
    stale = f"{approval.uid}:{'0' * 64}"
    changelist(client, approval, "allow_once", shown=[stale])
    assert confirmations(approval) == []
    seen = f"{approval.uid}:{approval.effective_sha256}"
    changelist(client, approval, "deny", shown=[seen], reason="Not like this")
    assert [one.deny_message for one in confirmations(approval)] == ["Not like this"]


def test_the_admin_shows_a_call_that_is_to_be_confirmed_as_the_queue_does(
    client_of, staff, conversation
):
    approval = ask(conversation, path="a.txt", content='Said "so"\nand more\n', count=3)
    page = changelist(client_of(staff), approval, "allow_once").content.decode()
    in_queue = client_of(staff).get(f"/approvals/{approval.uid}/").content.decode()
    arguments = re.compile(r'<dl class="arguments">.*?</dl>', re.DOTALL)
    assert arguments.findall(page) == arguments.findall(in_queue) != []
    facts = re.compile(r'<dl class="facts">.*?</dl>', re.DOTALL)
    assert facts.findall(page) == facts.findall(in_queue) != []
    assert "Said &quot;so&quot;\nand more" in page
    assert f"{approval.uid}:{approval.effective_sha256}:{approval.round}" in page


def test_the_admin_says_of_a_confirmed_call_that_it_was_decided_meanwhile(
    client_of, staff, alice, conversation
):
    first, second = (ask(conversation, path=path, content="b") for path in ("a", "c"))
    answer(client_of(alice), first, "deny")
    given = {
        "action": "allow_once",
        "_selected_action": [first.pk, second.pk],
        "shown": [f"{one.uid}:{one.effective_sha256}:{one.round}" for one in (first, second)],
    }
    client = client_of(staff)
    page = client.post("/admin/approvals/approval/?state__exact=pending", given, follow=True)
    said = [str(message) for message in page.context["messages"]]
    assert said == [
        "1 call no longer stands in this list; nothing was done about it.",
        "1 call is decided.",
    ]


def test_the_admin_offers_no_way_to_change_the_audit_log(client_of, staff, conversation):
    client = client_of(staff)
    ask(conversation, path="a", content="b")
    entry = AuditEntry.objects.latest("pk")
    address = f"/admin/audit/auditentry/{entry.pk}"
    assert client.get(f"{address}/change/").status_code == 200
    assert client.get(f"{address}/delete/").status_code == 403
    assert client.get("/admin/audit/auditentry/add/").status_code == 403


def test_a_helper_without_the_permission_decides_nothing_in_the_admin(client_of, db, conversation):
    helper = make_user("helper", is_staff=True)
    approval = ask(conversation, path="a", content="b")
    seen = f"{approval.uid}:{approval.effective_sha256}"
    changelist(client_of(helper), approval, "allow_once", shown=[seen])
    assert confirmations(approval) == []


def test_identical_calls_stand_together_and_the_later_ones_are_folded(
    client_of, reviewer, converse
):
    first = ask(converse()[0], path="a", content="same words")
    other = ask(converse()[0], path="b", content="other words")
    again = ask(converse()[0], path="a", content="same words")
    page = client_of(reviewer).get("/approvals/").content.decode()
    assert page.index(first.uid) < page.index(again.uid) < page.index(other.uid)
    assert page.count("Exactly the same call as the one above") == 1


def test_as_many_identical_calls_are_offered_together_as_the_page_shows(
    client_of, reviewer, converse, monkeypatch
):
    monkeypatch.setattr("approvals.queue.PAGE_SIZE", 3)
    for number in range(5):
        ask(converse()[0], path="a", content="other" if number == 1 else "same")
    page = client_of(reviewer).get("/approvals/").content.decode()
    assert page.count('name="approval"') == 3
    assert "Choose this and 1 identical call<" in page


def test_an_answer_in_the_queue_brings_the_card_in_its_place_and_the_new_counts(
    client_of, reviewer, mallory, conversation
):
    approval = ask(conversation, path="a", content="b")
    headers = {"HX-Request": "true"}
    fields = {"verdict": "deny", "reason": "Not here"}
    where = f"/approvals/{approval.uid}/decide/"
    assert client_of(mallory).post(where, fields, headers=headers).status_code == 404
    wrong = {"verdict": "approve", "input_hash": "0" * 64, "reason": "As typed"}
    refused = client_of(reviewer).post(where, wrong, headers=headers)
    assert refused.status_code == 422
    assert "As typed" in refused.content.decode()
    assert 'data-state="pending"' in refused.content.decode()
    answered = client_of(reviewer).post(where, fields, headers=headers)
    assert answered.status_code == 200
    assert "The call is denied." in answered.headers["HX-Trigger"]
    card = answered.content.decode()
    assert 'data-state="denied"' in card
    assert 'id="count-mine" hx-swap-oob="true">0<' in card
    assert 'id="approvals-badge"' in card


def test_a_call_without_arguments_is_no_empty_list():
    html = render_to_string("approvals/_approval_arguments.html", {"item": {"fields": []}})
    assert "It has no arguments." in html
    assert "<dl" not in html
