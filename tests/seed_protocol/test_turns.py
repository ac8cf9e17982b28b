"""A turn over a socket: streaming, reasoning, tools, one terminal frame."""

from __future__ import annotations

import threading

from harness.messages import Usage
from providers.scripted import Hold, call, reply, say, think
from tests.seed_protocol.client import TERMINAL


def test_an_answer_streams_and_joins_exactly_to_the_stored_text(alice, service):
    text = "One sentence, with a café. " * 40
    service.expect("Tell me", reply(text, chunk=7, delay=0.002))
    uid = alice.begin()
    with alice.chat(uid) as chat:
        done = chat.ask("Tell me")
    assert len(chat.of("text_delta")) > 2
    assert chat.text == text
    offset = 0
    for frame in chat.of("text_delta"):
        assert frame["offset"] == offset
        offset += len(frame["content"])
    assert done["status"] == "completed"
    stored = alice.read(uid)["messages"]
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert stored[0]["content"] == "Tell me"
    assert stored[1]["content"][0]["text"] == text
    assert stored[1]["content"][0]["id"] == chat.of("text_delta")[0]["id"]


def test_reasoning_comes_first_carries_its_effort_and_is_not_repeated(alice, service):
    """`thinking_delta` streams; `thinking` is said only of what did not stream."""
    thought = "First I look, then I say. " * 5
    service.expect("Think", reply(think(thought), say("Done."), chunk=9, delay=0.02))
    uid = alice.begin(enable_thinking=True, thinking_effort="xhigh")
    with alice.chat(uid) as chat:
        chat.ask("Think")
        kinds = [f["type"] for f in chat.of("thinking_delta", "thinking", "text_delta")]
        assert kinds[0] == "thinking_delta"
        assert kinds[-1] == "text_delta"
        assert "".join(f["content"] for f in chat.of("thinking_delta")) == thought
        assert not chat.of("thinking")
        assert {f["effort"] for f in chat.of("thinking_delta")} == {"max"}
    with alice.chat(uid, after=0) as again:
        again.turn()
        assert [f["content"] for f in again.of("thinking")] == [thought]
        assert not again.of("thinking_delta")


def test_each_result_carries_the_id_of_its_call_and_whether_it_failed(alice, service):
    """Two calls of one tool in one step can be told apart."""
    service.expect(
        "Work",
        reply(
            call("write_file", path="a.txt", content="A"),
            call("read_file", path="missing.txt"),
            call("write_file", path="b.txt", content="B"),
        ),
        "Done.",
    )
    with alice.chat(alice.begin()) as chat:
        done = chat.ask("Work")
    calls = {f["tool_use_id"]: f for f in chat.of("tool_call")}
    results = {f["tool_use_id"]: f for f in chat.of("tool_result")}
    assert len(calls) == 3
    assert calls.keys() == results.keys()
    for uid, result in results.items():
        assert result["tool"] == calls[uid]["tool"]
        assert result["is_error"] == (calls[uid]["tool"] == "read_file")
    assert [f["name"] for f in done["files"]] == ["a.txt", "b.txt"]
    assert done["files_complete"] is True


def test_a_long_result_is_cut_to_two_thousand_characters_and_says_so(alice, service):
    text = "x" * 5_000
    service.expect(
        "Read it back",
        reply(call("write_file", path="long.txt", content=text)),
        reply(call("read_file", path="long.txt")),
        "Done.",
    )
    with alice.chat(alice.begin()) as chat:
        chat.ask("Read it back")
    result = next(f for f in chat.of("tool_result") if f["tool"] == "read_file")
    assert len(result["result"]) == 2_001
    assert result["result"].endswith("…")
    assert result["truncated"] is True


def test_exactly_one_terminal_frame_ends_each_turn_with_its_usage(alice, service):
    """What the turn used, the size of its last prompt, and whether plan mode is on."""
    usage = Usage(input_tokens=100, output_tokens=20)
    service.expect(
        "Two steps",
        reply(call("list_files"), usage=usage),
        reply("Done.", usage=Usage(input_tokens=150, output_tokens=30)),
    )
    service.expect("One step", reply("Done.", usage=usage))
    uid = alice.begin()
    with alice.chat(uid) as chat:
        first, second = chat.ask("Two steps"), chat.ask("One step")
        assert chat.nothing_for(0.3)
    assert len(chat.of(*TERMINAL)) == 2
    expected = {"input_tokens": 250, "output_tokens": 50, "last_input_tokens": 150}
    assert first["usage"] == {**expected, "plan_mode": False}
    assert second["usage"]["input_tokens"] == 100
    read = alice.read(uid)
    assert (read["total_input_tokens"], read["total_output_tokens"]) == (350, 70)


def test_a_failure_says_its_error_and_ends_the_turn_once(alice, service):
    """The text that had arrived is kept, and the cause is the true one."""
    from harness.errors import BadRequest  # noqa: PLC0415
    from providers.scripted import Fail  # noqa: PLC0415

    service.expect("Fail", reply(say("Half of ", Fail(BadRequest("The model is unwell.")))))
    uid = alice.begin()
    with alice.chat(uid) as chat:
        done = chat.ask("Fail")
        assert chat.nothing_for(0.3)
    assert done["type"] == "done"
    assert done["status"] == "failed"
    errors = chat.of("error")
    assert len(errors) == 1
    assert errors[0]["code"]
    assert chat.text == "Half of "
    assert alice.read(uid)["messages"][1]["content"][0]["text"] == "Half of "


def test_frames_of_the_log_are_numbered_dated_and_identified(alice, service):
    """`seq`, time, ids."""
    service.expect("Number", reply(call("list_files")), "Done.")
    with alice.chat(alice.begin()) as chat:
        chat.ask("Number")
    numbers = [frame["seq"] for frame in chat.frames if "seq" in frame]
    assert numbers == sorted(set(numbers))
    for frame in chat.frames:
        if "seq" in frame:
            assert frame["id"]
            assert frame["at"]


def test_two_sockets_that_post_at_once_get_two_whole_turns(alice, service):
    for name in ("left", "right"):
        service.expect(f"From the {name}", reply(f"To the {name}. " * 20, chunk=5, delay=0.001))
    uid = alice.begin()
    with alice.chat(uid) as left, alice.chat(uid) as right:
        threads = [
            threading.Thread(target=chat.say, args=("message",), kwargs={"content": text})
            for chat, text in ((left, "From the left"), (right, "From the right"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for chat in (left, right):
            chat.turn()
            chat.turn()
            kinds = [f["type"] for f in chat.of("turn_start", *TERMINAL)]
            assert kinds == ["turn_start", "done", "turn_start", "done"]
    roles = [message["role"] for message in alice.read(uid)["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]


def test_the_first_message_gives_a_title_that_a_second_one_leaves_alone(alice, service):
    long = "A question that goes on and on " * 10
    service.expect(long.strip(), "Yes.")
    service.expect("Another", "Yes.")
    uid = alice.begin()
    assert alice.read(uid)["title"] is None
    with alice.chat(uid) as chat:
        chat.ask(long)
        title = alice.read(uid)["title"]
        assert title
        assert len(title) <= 100
        assert chat.of("title_changed")[0]["title"] == title
        chat.ask("Another")
    assert alice.read(uid)["title"] == title


def test_a_todo_list_is_told_as_a_whole(alice, service):
    items = [
        {"content": "Look", "active_form": "Looking", "status": "completed"},
        {"content": "Say", "active_form": "Saying", "status": "in_progress"},
    ]
    service.expect("Plan it", reply(call("todo_write", todos=items)), "Done.")
    with alice.chat(alice.begin()) as chat:
        chat.ask("Plan it")
    (update,) = chat.of("todo_update")
    assert [set(todo) for todo in update["todos"]] == [{"content", "status", "activeForm"}] * 2
    assert update["todos"][1]["status"] == "in_progress"


def test_with_tracing_on_each_request_is_paired_with_its_response_and_shows_no_secret(
    alice, service
):
    """Paired by `seq`; keys never appear, long harmless text does."""
    secret = "sk-ant-0123456789abcdef0123456789"
    harmless = "a" * 60
    asked = f"My key is {secret}, password: hunter2hunter2, and {harmless}"
    service.expect(asked, reply(call("list_files")), "Done.")
    with alice.chat(alice.begin(enable_tracing=True)) as chat:
        chat.ask(asked)
    requests, responses = chat.of("llm_request"), chat.of("llm_response")
    assert [f["seq"] for f in requests] == [f["seq"] for f in responses]
    assert len(requests) == 2
    for field in ("model", "system", "messages", "tools", "max_tokens", "temperature"):
        assert field in requests[0]
    assert requests[0]["message_count"] == len(requests[0]["messages"])
    assert requests[0]["tool_count"] == len(requests[0]["tools"])
    assert responses[0]["tool_calls"][0]["name"] == "list_files"
    assert responses[0]["done"] is False
    assert responses[1]["done"] is True
    assert responses[1]["content"] == "Done."
    said = str(requests) + str(responses)
    assert secret not in said
    assert "hunter2" not in said
    assert harmless in said


def test_traces_are_their_owners_whoever_else_follows(alice, bob, service):
    """They hold what the owner's agent is told of her memories; what was said is there for all who read."""
    service.expect("Traced", "Done.")
    uid = alice.begin(enable_tracing=True)
    with alice.chat(uid) as chat:
        chat.ask("Traced")
    assert chat.of("llm_request", "llm_response")
    shared = alice.post(f"/api/conversations/{uid}/shares", {"user_id": None, "role": "decider"})
    assert shared.status < 300
    with bob.chat(uid, after=0) as his:
        his.until("done")
    assert not his.of("llm_request", "llm_response")


def test_without_tracing_no_trace_is_sent(alice, service):
    service.expect("Quiet", "Done.")
    with alice.chat(alice.begin()) as chat:
        chat.ask("Quiet")
    assert not chat.of("llm_request", "llm_response")


def test_a_socket_that_comes_in_mid_answer_gets_the_text_from_its_first_character(alice, service):
    hold = Hold()
    service.expect("Slowly", reply(say("The first half. ", hold, "The second half.")))
    uid = alice.begin()
    with alice.chat(uid) as first:
        first.say("message", content="Slowly")
        first.until("text_delta")
        with alice.chat(uid) as second:
            second.until("text_delta")
            assert second.text == "The first half. "
            hold.release.set()
            second.turn()
            assert second.text == "The first half. The second half."
        first.turn()
        assert first.text == "The first half. The second half."
