"""Approvals and plans over the socket: bound to their request, once."""

from __future__ import annotations

import pytest

from providers.scripted import call, reply


def ask_to_write(service, opening: str, *names: str) -> None:
    steps = [reply(call("write_file", path=name, content=name)) for name in names]
    service.expect(opening, *steps, "Done.")


def files(alice, uid: str) -> list[str]:
    return [f["path"] for f in alice.get("/api/workspace/files", conversation_id=uid).json]


def test_one_request_covers_the_unsafe_calls_of_a_step_and_nothing_runs_before(alice, service):
    """Safe ones run at once."""
    service.expect(
        "Several",
        reply(
            call("list_files"),
            call("write_file", path="a", content="a"),
            call("write_file", path="b", content="b"),
        ),
        "Done.",
    )
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Several")
        request = chat.until("tool_approval_request")
        assert [f["tool"] for f in chat.of("tool_result")] == ["list_files"]
        assert [set(tool) >= {"name", "input", "id"} for tool in request["tools"]] == [True, True]
        assert request["tools"][0]["input"] == {"path": "a", "content": "a"}
        assert files(alice, uid) == []
        chat.say("tool_approval_response", request_id=request["request_id"], decision="approve")
        assert chat.turn()["status"] == "completed"
        assert not chat.of("tool_approval_result")
        called = {f["tool_use_id"] for f in chat.of("tool_call")}
        assert {tool["id"] for tool in request["tools"]} < called
    assert files(alice, uid) == ["a", "b"]


def test_a_denial_is_told_and_the_model_goes_on(alice, service):
    ask_to_write(service, "Denied", "a")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Denied")
        request = chat.until("tool_approval_request")
        chat.say(
            "tool_approval_response",
            request_id=request["request_id"],
            decision="deny",
            reason="Not there.",
        )
        assert chat.turn()["status"] == "completed"
        (told,) = chat.of("tool_approval_result")
        assert (told["decision"], told["tools"]) == ("denied", ["write_file"])
        (result,) = chat.of("tool_result")
        assert result["outcome"] == "denied"
        assert "Not there." in result["result"]
        assert chat.text == "Done."
    assert files(alice, uid) == []


@pytest.mark.parametrize("decision", ["yes", "APPROVE", "", None, 1, True, ["approve"], {}])
def test_a_decision_nobody_knows_means_deny(alice, service, decision):
    """An unknown word lets nothing run."""
    ask_to_write(service, "Unknown word", "a")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Unknown word")
        request = chat.until("tool_approval_request")
        chat.say("tool_approval_response", request_id=request["request_id"], decision=decision)
        chat.turn()
        assert chat.of("tool_approval_result")
    assert files(alice, uid) == []


def test_a_missing_decision_means_deny(alice, service):
    ask_to_write(service, "No word", "a")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="No word")
        request = chat.until("tool_approval_request")
        chat.say("tool_approval_response", request_id=request["request_id"])
        chat.turn()
    assert files(alice, uid) == []


def test_a_double_click_does_not_approve_the_next_step_unseen(alice, service):
    ask_to_write(service, "Two steps", "a", "b")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Two steps")
        first = chat.until("tool_approval_request")["request_id"]
        chat.say("tool_approval_response", request_id=first, decision="approve")
        chat.say("tool_approval_response", request_id=first, decision="approve", key="twice")
        second = chat.until("tool_approval_request")["request_id"]
        assert second != first
        chat.say("tool_approval_response", request_id=first, decision="approve", key="late")
        late = chat.until("error")
        while late.get("key") != "late":
            late = chat.until("error")
        assert late["code"]
        assert files(alice, uid) == ["a"]
        chat.say("tool_approval_response", request_id=second, decision="deny")
        chat.turn()
    assert files(alice, uid) == ["a"]


def test_an_answer_to_a_foreign_request_changes_nothing(alice, service):
    ask_to_write(service, "Bound", "a")
    ask_to_write(service, "Foreign", "b")
    uid, other = alice.begin(enable_approval=True), alice.begin(enable_approval=True)
    with alice.chat(uid) as chat, alice.chat(other) as foreign:
        chat.say("message", content="Bound")
        foreign.say("message", content="Foreign")
        mine = chat.until("tool_approval_request")["request_id"]
        theirs = foreign.until("tool_approval_request")
        for request_id in (theirs["request_id"], theirs["tools"][0]["id"], "sevt_none", "\0"):
            chat.say("tool_approval_response", request_id=request_id, decision="approve")
            assert chat.until("error")["code"] == "not_found"
        assert files(alice, uid) == files(alice, other) == []
        chat.say("tool_approval_response", request_id=mine, decision="approve")
        chat.turn()
    assert files(alice, uid) == ["a"]


def test_an_answer_without_a_request_means_the_one_that_is_open(alice, service):
    """As simple clients send it."""
    ask_to_write(service, "No id", "a", "b")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("tool_approval_response", decision="approve")
        assert chat.until("error")["code"] == "conflict"
        chat.say("message", content="No id")
        chat.until("tool_approval_request")
        chat.say("tool_approval_response", decision="approve")
        assert chat.until("accepted", "error")["type"] == "accepted"
        chat.until("tool_approval_request")
        assert files(alice, uid) == ["a"]
        chat.say("tool_approval_response")
        assert chat.turn()["status"] == "completed"
        assert chat.of("tool_approval_result")
    assert files(alice, uid) == ["a"]


def test_auto_approve_lasts_for_the_conversation_is_seen_and_can_be_revoked(alice, service):
    ask_to_write(service, "Trust me", "a", "b")
    ask_to_write(service, "Still?", "c")
    ask_to_write(service, "Again?", "d")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat, alice.chat(uid) as other:
        chat.say("message", content="Trust me")
        request = chat.until("tool_approval_request")["request_id"]
        chat.say("tool_approval_response", request_id=request, decision="auto_approve")
        promise = chat.until("accepted")["auto_approve"]
        assert not {"write_file", "read_file"} & set(promise["asks_still"])
        chat.turn()
        assert other.until("approval_changed")["enabled"] is False
        chat.ask("Still?")
        assert len(chat.of("tool_approval_request")) == 1
        chat.say("toggle_approval", enabled=True)
        chat.until("approval_changed")
        chat.say("message", content="Again?")
        chat.until("tool_approval_request")
        assert files(alice, uid) == ["a", "b", "c"]
        chat.say("cancel")
        chat.turn()


def test_a_request_waits_for_whoever_comes_back_and_survives_the_socket(alice, service):
    ask_to_write(service, "Later", "a")
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Later")
        chat.until("tool_approval_request")
    with alice.chat(uid) as chat:
        request = chat.until("tool_approval_request")["request_id"]
        chat.say("tool_approval_response", request_id=request, decision="approve")
        chat.turn()
    assert files(alice, uid) == ["a"]


def test_only_the_named_calls_of_a_request_are_answered(alice, service):
    service.expect(
        "Pick",
        reply(call("write_file", path="a", content="a"), call("write_file", path="b", content="b")),
        "Done.",
    )
    uid = alice.begin(enable_approval=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Pick")
        request = chat.until("tool_approval_request")
        first, second = (tool["id"] for tool in request["tools"])
        about = {"request_id": request["request_id"]}
        chat.say("tool_approval_response", **about, decision="approve", tool_use_ids=[first])
        chat.until("tool_result")
        again = chat.until("tool_approval_request")
        assert [tool["id"] for tool in again["tools"]] == [second]
        about = {"request_id": again["request_id"]}
        chat.say("tool_approval_response", **about, decision="deny", tool_use_ids=[second])
        chat.turn()
    assert files(alice, uid) == ["a"]


# --- plans ------------------------------------------------------------------------------------------


def test_a_plan_is_presented_and_its_approval_carries_it_out(alice, service):
    service.expect(
        "Plan it",
        reply(call("present_plan", plan="1. Write a")),
        reply(call("write_file", path="a", content="a")),
        "Done.",
    )
    uid = alice.begin(enable_plan_mode=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Plan it")
        ready = chat.until("plan_ready")
        assert ready["plan"] == "1. Write a"
        assert not chat.of("tool_approval_request")
        chat.say("plan_approval", decision="approve")
        chat.until("plan_approved")
        assert chat.until("plan_mode_changed")["enabled"] is False
        assert chat.turn()["usage"]["plan_mode"] is False
    assert files(alice, uid) == ["a"]
    assert alice.read(uid)["enable_plan_mode"] is False


def test_a_plan_that_is_rejected_with_feedback_is_revised(alice, service):
    service.expect(
        "Plan again",
        reply(call("present_plan", plan="Bad")),
        reply(call("present_plan", plan="Better")),
        "Done.",
    )
    uid = alice.begin(enable_plan_mode=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Plan again")
        first = chat.until("plan_ready")
        chat.say("plan_approval", decision="reject", feedback="Think harder.")
        assert chat.until("plan_rejected")["feedback"] == "Think harder."
        second = chat.until("plan_ready")
        assert second["plan"] == "Better"
        assert second["request_id"] != first["request_id"]
        stale = {"decision": "approve", "request_id": first["request_id"]}
        chat.say("plan_approval", **stale)
        assert chat.until("error")["code"] == "conflict"
        chat.say("plan_approval", decision="reject")
        assert chat.until("plan_rejected")["feedback"] == ""
        assert chat.turn()["status"] == "cancelled"
    assert alice.read(uid)["enable_plan_mode"] is True


def test_a_plan_that_was_only_said_is_presented_at_the_end_of_its_turn(alice, service):
    service.expect("Say it", "My plan: write a.")
    uid = alice.begin(enable_plan_mode=True)
    with alice.chat(uid) as chat:
        chat.say("message", content="Say it")
        assert chat.until("plan_ready")["plan"] == "My plan: write a."
        assert chat.turn()["usage"]["plan_mode"] is True
        chat.say("plan_approval", decision="approve")
        chat.until("plan_approved")
        assert chat.turn()["status"] == "completed"
    said = [m["content"] for m in alice.read(uid)["messages"] if m["role"] == "user"]
    assert said[0] == "Say it"
    assert "approved" in said[1]


def test_a_plan_that_was_only_said_is_rejected_with_feedback_as_the_next_message(alice, service):
    service.expect("Say again", "My plan.")
    service.expect("More detail", "My longer plan.")
    uid = alice.begin(enable_plan_mode=True)
    with alice.chat(uid) as chat:
        chat.ask("Say again")
        chat.say("plan_approval", decision="whatever", feedback="More detail")
        chat.turn()
        assert [f["plan"] for f in chat.of("plan_ready")] == ["My plan.", "My longer plan."]
        chat.say("plan_approval")
        assert chat.until("plan_rejected")["feedback"] == ""
        assert chat.until("accepted")["event_seq"] is None


def test_an_answer_to_no_plan_is_refused(alice):
    with alice.chat(alice.begin()) as chat:
        chat.say("plan_approval", decision="approve")
        assert chat.until("error")["code"] == "conflict"
