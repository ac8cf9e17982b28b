"""What a person does while a turn runs: cancel, interrupt, write on, switch, come back."""

from __future__ import annotations

import pytest

from providers.scripted import Hold, call, reply, say
from tests.seed_protocol.client import TERMINAL, Chat


def test_a_cancel_ends_the_turn_at_once_and_the_socket_stays(alice, service):
    """Streaming stops, one terminal frame comes, the next message is answered here."""
    hold = Hold()
    service.expect("Never ending", reply(say("It begins ", hold, "and never ends")))
    service.expect("Next", "Still here.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="Never ending")
        chat.until("text_delta")
        chat.say("cancel", key="stop-1")
        done = chat.turn()
        assert (done["type"], done["status"]) == ("done", "cancelled")
        assert [f for f in chat.of("accepted") if f.get("key") == "stop-1"]
        assert not chat.of("error")
        assert chat.ask("Next")["status"] == "completed"
        assert len(chat.of(*TERMINAL)) == 2
    hold.release.set()
    assert alice.read(uid)["messages"][1]["content"][0]["text"] == "It begins "


def test_a_cancel_stops_a_running_tool(alice, service):
    service.expect("Sleep", reply(call("bash", command="sleep 600", timeout=600)), "Slept.")
    with alice.chat(alice.begin()) as chat:
        chat.say("message", content="Sleep")
        chat.until("tool_call")
        chat.say("cancel")
        assert chat.turn()["status"] == "cancelled"


def test_a_cancel_with_nothing_to_cancel_is_answered(alice):
    with alice.chat(alice.begin()) as chat:
        chat.say("cancel", key="k")
        answer = chat.until("accepted")
        assert (answer["key"], answer["event_seq"]) == ("k", None)
        assert chat.nothing_for(0.3)


def test_an_interrupt_ends_the_turn_and_its_text_becomes_the_next_one(alice, service):
    """By itself, with a history that the model service accepts."""
    hold = Hold()
    service.expect("Wrong way", reply(say("I go left ", hold)))
    service.expect("Go right", "Going right.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="Wrong way")
        chat.until("text_delta")
        chat.say("interrupt", content="Go right")
        assert chat.turn()["type"] == "interrupted"
        assert chat.turn()["status"] == "completed"
        assert not chat.of("error")
    hold.release.set()
    said = [m["content"] for m in alice.read(uid)["messages"] if m["role"] == "user"]
    assert said == ["Wrong way", "Go right"]


@pytest.mark.parametrize("content", ["", "   "])
def test_an_empty_interrupt_is_a_cancel_and_stores_nothing(alice, service, content):
    """The conversation goes on as before."""
    hold = Hold()
    service.expect("Endless", reply(say("On and on ", hold)))
    service.expect("Again", "Yes.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="Endless")
        chat.until("text_delta")
        chat.say("interrupt", content=content)
        assert chat.turn()["status"] == "cancelled"
        assert chat.ask("Again")["status"] == "completed"
    hold.release.set()
    said = [m["content"] for m in alice.read(uid)["messages"] if m["role"] == "user"]
    assert said == ["Endless", "Again"]


def test_a_message_sent_while_a_turn_runs_waits_and_is_answered(alice, service):
    hold = Hold()
    service.expect("First", reply(say("One ", hold, "done.")))
    service.expect("Second", "Two.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="First")
        chat.until("text_delta")
        chat.say("message", content="Second", key="second")
        accepted = chat.until("accepted")
        assert accepted["key"] == "second"
        assert [m["content"] for m in alice.read(uid)["waiting_messages"]] == ["Second"]
        hold.release.set()
        chat.turn()
        chat.turn()
    assert alice.read(uid)["waiting_messages"] == []
    said = [m["content"] for m in alice.read(uid)["messages"] if m["role"] == "user"]
    assert said == ["First", "Second"]


@pytest.mark.parametrize("feature", ["plan_mode", "teams", "approval", "tracing"])
def test_a_switch_is_turned_at_any_time_stored_and_told_to_every_socket(alice, service, feature):
    """Also in the middle of a turn; turning it as it stands is answered too."""
    hold = Hold()
    service.expect("Busy", reply(say("Busy ", hold)))
    uid = alice.begin()
    with alice.chat(uid) as chat, alice.chat(uid) as other:
        chat.say("message", content="Busy")
        chat.until("text_delta")
        chat.say(f"toggle_{feature}", enabled=True)
        assert chat.until(f"{feature}_changed")["enabled"] is True
        assert other.until(f"{feature}_changed")["enabled"] is True
        assert alice.read(uid)[f"enable_{feature}"] is True
        chat.say(f"toggle_{feature}", enabled=True, key="again")
        answer = chat.until(f"{feature}_changed")
        assert (answer["enabled"], answer["key"]) == (True, "again")
        hold.release.set()
        chat.turn()
        chat.say(f"toggle_{feature}", enabled=False)
        assert chat.until(f"{feature}_changed")["enabled"] is False


def test_whoever_reconnects_gets_each_missed_frame_once_and_in_order(alice, service):
    """From the last number, and from the beginning."""
    service.expect("Work", reply("I look. ", call("list_files")), reply("All done."))
    service.expect("More", "More done.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.ask("Work")
        whole = [f for f in chat.frames if "seq" in f]
    half = whole[len(whole) // 2]["seq"]
    with alice.chat(uid, after=half) as again:
        again.turn()
        assert [f["seq"] for f in again.frames if "seq" in f] == [
            f["seq"] for f in whole if f["seq"] > half
        ]
        again.ask("More")
    with alice.chat(uid, after=0) as anew:
        anew.turn()
        anew.turn()
        assert anew.text == "I look. All done.More done."
        numbers = [f["seq"] for f in anew.frames if "seq" in f]
        assert numbers == sorted(set(numbers))


def test_whoever_comes_back_without_a_number_gets_only_what_is_new(alice, service):
    service.expect("Before", "Said before.")
    service.expect("After", "Said after.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.ask("Before")
    with alice.chat(uid) as chat:
        assert chat.nothing_for(0.3)
        chat.ask("After")
        assert chat.text == "Said after."


def test_a_dropped_connection_stops_nothing(alice, service):
    """The work goes on and the answer is read later."""
    hold = Hold()
    service.expect("Go on without me", reply(say("Begun ", hold, "and ended.")))
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="Go on without me")
        chat.until("text_delta")
        last = max((f["seq"] for f in chat.frames if "seq" in f), default=0)
    hold.release.set()
    with alice.chat(uid, after=last) as chat:
        assert chat.turn()["status"] == "completed"
        assert chat.text == "Begun and ended."


@pytest.mark.parametrize("after", ["x", "-1", "", "1e3", "99999999"])
def test_a_number_that_is_none_is_refused_with_a_remedy(alice, after):
    uid = alice.begin()
    with Chat(alice, uid, {"after": after}, waits=False) as chat:
        assert chat.until_closed() == 4400
    assert chat.frames[0]["code"] == "invalid"
    assert chat.frames[0]["hint"]


def test_a_parameter_of_the_address_that_nobody_knows_is_refused_by_its_name(alice):
    with Chat(alice, alice.begin(), {"afterr": 7}, waits=False) as chat:
        assert chat.until_closed() == 4400
    assert (chat.frames[0]["code"], chat.frames[0]["field"]) == ("invalid", "afterr")
    assert "after" in chat.frames[0]["hint"]


def test_the_same_key_twice_is_one_message(alice, service):
    service.expect("Once", "Once.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say("message", content="Once", key="same")
        chat.say("message", content="Once", key="same")
        first, second = chat.until("accepted"), chat.until("accepted")
        assert first["event_id"] == second["event_id"]
        chat.turn()
        assert chat.nothing_for(0.3)
    assert len(alice.read(uid)["messages"]) == 2
