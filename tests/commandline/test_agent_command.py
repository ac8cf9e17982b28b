"""`manage.py agent`: every core action without a page, with clean errors and exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import time
from pathlib import Path

import pytest

from tests.commandline.conftest import Installation
from tests.patience import PATIENCE, until

UID = re.compile(r"conversation (sesn_\w+)")


def conversation_of(notes: str) -> str:
    found = UID.search(notes)
    assert found, notes
    return found.group(1)


def test_ask_prints_the_answer_alone_on_stdout(here: Installation):
    ended = here.agent("ask", "help")
    assert ended.code == 0
    assert "demo agent" in ended.out
    assert "conversation sesn_" not in ended.out
    assert conversation_of(ended.notes)


def test_a_question_may_come_from_standard_input_and_go_on_in_a_conversation(here: Installation):
    first = here.agent("ask", "help")
    uid = conversation_of(first.notes)
    second = here.agent("ask", "-", "--conversation", uid, given="help\n")
    assert second.code == 0
    shown = here.agent("export", uid)
    assert shown.out.count("demo agent") >= 2


def test_with_json_stdout_is_one_event_a_line(here: Installation):
    ended = here.agent("ask", "help", "--json")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "session.status_idle"
    assert any(event["type"] == "agent.message" for event in events)


def test_what_must_be_asked_ends_with_its_own_code_and_says_how_to_answer(here: Installation):
    asked = here.agent("ask", "Plan and write two files", "--agent", "Asking")
    assert asked.code == 3
    uid = conversation_of(asked.notes)
    waiting = re.findall(rf"agent approve {uid} (\w+)", asked.notes)
    assert waiting
    assert here.agent("deny", uid, waiting[0], "--reason", "Not that one", user="mallory").code == 1
    assert here.agent("deny", uid, waiting[0], "--reason", "Not that one").code == 0
    again = here.agent("approve", uid, waiting[0])
    assert again.code == 1
    broken = here.agent("approve", uid, waiting[1], "--edit", "[]")
    assert broken.code == 1
    assert "edit: " in broken.notes
    edited = {"path": "other.txt", "content": "mine\n"}
    assert here.agent("approve", uid, waiting[1], "--edit", json.dumps(edited)).code == 0
    for call in waiting[2:]:
        assert here.agent("approve", uid, call).code == 0
    woken = here.agent("wake", uid)
    assert woken.code in {0, 3}
    log = [json.loads(line) for line in here.agent("events", uid).out.splitlines()]
    answers = {event["tool_use_id"]: event for event in log if event["type"] == "agent.tool_result"}
    assert answers[waiting[0]]["outcome"] == "denied"
    assert "Not that one" in json.dumps(answers[waiting[0]])
    assert "other.txt" in json.dumps(answers[waiting[1]])


def test_conversations_are_listed_for_their_owner_alone(here: Installation):
    uid = conversation_of(here.agent("ask", "help").notes)
    assert uid in here.agent("conversations").out
    assert uid not in here.agent("conversations", user="mallory").out


@pytest.mark.parametrize("command", ["show", "events", "export", "wake", "stop"])
def test_mallory_finds_no_conversation_of_alices(here: Installation, command: str):
    uid = conversation_of(here.agent("ask", "help").notes)
    ended = here.agent(command, uid, user="mallory")
    assert ended.code == 1
    assert "no such conversation" in ended.notes
    assert ended.out == ""


def test_wrong_input_says_what_may_be_given(here: Installation):
    unknown = here.agent("ask", "help", "--agent", "Nobody")
    assert unknown.code == 1
    assert "Coding" in unknown.notes
    assert here.agent("ask", "").code == 1
    unclear = here.manage("agent", "conversations")
    assert unclear.code == 1
    assert "alice" in unclear.notes
    assert here.manage("agent", "dance").code == 2
    stranger = here.agent("conversations", user="nobody")
    assert stranger.code == 1
    assert "no active person" in stranger.notes


def test_an_installation_without_tables_says_so(here: Installation, tmp_path):
    ended = here.manage("agent", "conversations", also={"AGENTSITE_DATA_DIR": str(tmp_path)})
    assert ended.code == 1
    assert "manage.py prepare" in ended.notes
    assert "Traceback" not in ended.notes


class Terminal:
    """A person at `agent chat` on a terminal of its own."""

    def __init__(self, here: Installation, *words: str) -> None:
        self._master, slave = pty.openpty()
        self.text = ""
        self.process = here.forks(str(here.directory)).at_terminal(
            ["agent", *words, "--user", "alice"],
            environment=here.environment,
            directory=here.directory,
            terminal=slave,
            seconds=PATIENCE,
        )
        os.close(slave)

    def until(self, words: str) -> None:
        end = time.monotonic() + PATIENCE
        while words not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self._master, 65536).decode(errors="replace")
                except OSError:
                    assert words in self.text, self.text

    def waits_for_a_key(self) -> bool:
        """Whether it sleeps, which after its prompt it does for nothing else."""
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"

    def type(self, words: str) -> None:
        self.text = ""
        os.write(self._master, words.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._master)


@pytest.fixture
def chat(here: Installation):
    opened = Terminal(here, "chat")
    yield opened
    opened.close()


def test_ctrl_c_asks_for_feedback_and_an_empty_line_goes_on(chat: Terminal):
    chat.until("> ")
    chat.type("count to 200\n")
    chat.until("12")
    chat.type("\x03")
    chat.until("feedback> ")
    chat.type("\n")
    chat.until("**200** makes 20 tens.")
    assert chat.text.count("151 squared is") <= 1


def test_feedback_interrupts_and_is_answered(chat: Terminal):
    chat.until("> ")
    chat.type("count to 200\n")
    chat.until("12")
    chat.type("\x03")
    chat.until("feedback> ")
    chat.type("help\n")
    chat.until("demo agent")


def test_a_second_ctrl_c_stops_the_turn(chat: Terminal, here: Installation):
    chat.until("> ")
    uid = conversation_of(chat.text)
    chat.type("count to 200\n")
    chat.until("12")
    chat.type("\x03")
    chat.until("feedback> ")
    until(chat.waits_for_a_key)  # no person presses one before the line is being read
    chat.type("\x03")
    chat.until("> ")
    chat.type("exit\n")
    assert chat.process.wait(PATIENCE) == 0
    log = [json.loads(line) for line in here.agent("events", uid).out.splitlines()]
    assert [event for event in log if event["type"] == "user.interrupt"]


def test_a_person_at_the_terminal_is_asked(here: Installation):
    asked = Terminal(here, "ask", "Plan and write two files", "--agent", "Asking")
    try:
        asked.until("Allow write_file? ")
        asked.type("y\n")
        asked.until("Allow ")
    finally:
        asked.close()
