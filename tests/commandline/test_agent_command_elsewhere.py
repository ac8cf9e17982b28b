"""`manage.py agent --url …`: the same from another machine, with a token and the official SDK."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentsite.local_services import free_port
from tests.commandline.conftest import ROOT, Ended, Installation
from tests.patience import PATIENCE

TOKENS = """
import json, pathlib
from accounts.actions.organisations import ensure_personal_organisation
from accounts.actions.tokens import create_token
from accounts.models import User
scopes = ["conversations:read", "conversations:write", "approvals:decide"]
made = {}
for name in ("alice", "mallory"):
    person = User.objects.get(username=name)
    organisation = ensure_personal_organisation(user=person)
    made[name] = create_token(
        actor=person, organisation=organisation, name="Terminal", scopes=scopes
    ).secret
pathlib.Path("tokens.json").write_text(json.dumps(made))
"""


@dataclass(frozen=True)
class Elsewhere:
    """A terminal on a machine that has nothing but an address and tokens."""

    here: Installation
    address: str
    tokens: dict[str, str]
    directory: Path

    def agent(self, *words: str, user: str = "alice", token: str = "") -> Ended:
        also = {
            "AGENTSITE_DATA_DIR": str(self.directory),
            "AGENTSITE_URL": self.address,
            "AGENTSITE_TOKEN": token or self.tokens[user],
        }
        return self.here.manage("agent", *words, also=also)


@pytest.fixture(scope="module")
def elsewhere(here: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    made = here.manage("shell", "-c", TOKENS)
    assert made.code == 0, made.notes
    tokens = json.loads((here.directory / "tokens.json").read_text())
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)],
        env=here.environment,
        cwd=here.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{address}/healthz", timeout=10).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.1)
        yield Elsewhere(here, address, tokens, tmp_path_factory.mktemp("elsewhere"))
    finally:
        server.terminate()
        server.wait(PATIENCE)


def test_ask_follow_and_export_need_nothing_but_a_token(elsewhere: Elsewhere):
    asked = elsewhere.agent("ask", "help")
    assert asked.code == 0, asked.notes
    assert asked.out.count("demo agent") == 1
    found = re.search(r"conversation (sesn_\w+)", asked.notes)
    assert found
    uid = found[1]
    assert uid in elsewhere.agent("conversations").out
    exported = json.loads(elsewhere.agent("export", uid, "--format", "json").out)
    assert exported["conversation"]["id"] == uid
    assert exported["events"][-1]["type"] == "session.status_idle"
    assert "demo agent" in elsewhere.agent("export", uid, "--format", "markdown").out
    for command in ("show", "events", "export", "stop"):
        refused = elsewhere.agent(command, uid, user="mallory")
        assert refused.code == 1, command
        assert refused.out == "", command


def test_a_wake_is_taken_of_ones_own_and_changes_no_log(elsewhere: Elsewhere):
    asked = elsewhere.agent("ask", "help")
    found = re.search(r"conversation (sesn_\w+)", asked.notes)
    assert found, asked.notes
    log = elsewhere.agent("events", found[1]).out
    woken = elsewhere.agent("wake", found[1])
    assert (woken.code, woken.out) == (0, ""), woken.notes
    assert elsewhere.agent("events", found[1]).out == log
    refused = elsewhere.agent("wake", found[1], user="mallory")
    assert refused.code == 1
    assert "no such session" in refused.notes


def test_a_call_is_approved_and_another_denied_from_elsewhere(elsewhere: Elsewhere):
    asked = elsewhere.agent("ask", "Plan and write two files", "--agent", "Asking")
    assert asked.code == 3, asked.notes
    waiting = re.findall(r"agent approve (sesn_\w+) (\w+)", asked.notes)
    uid, call = waiting[0]
    assert elsewhere.agent("approve", uid, call, user="mallory").code == 1
    assert elsewhere.agent("deny", uid, call, "--reason", "Another name").code == 0
    edited = {"path": "elsewhere.txt", "content": "mine\n"}
    given = elsewhere.directory / "edited.json"
    given.write_text(json.dumps(edited))
    for _uid, other in waiting[1:]:
        assert elsewhere.agent("approve", uid, other, "--edit", f"@{given}").code == 0
    assert elsewhere.agent("approve", uid, call).code == 1
    log = [json.loads(line) for line in elsewhere.agent("events", uid).out.splitlines()]
    answers = [event for event in log if event["type"] == "user.tool_confirmation"]
    assert answers[0]["tool_use_id"] == call
    assert answers[0]["deny_message"] == "Another name"
    assert [answer["x_edited_input"] for answer in answers[1:]] == [edited] * (len(answers) - 1)


def test_a_wrong_token_and_a_wrong_address_are_said_so(elsewhere: Elsewhere):
    wrong = elsewhere.agent("conversations", token="not-a-token")
    assert wrong.code == 1
    assert "token" in wrong.notes
    nowhere = elsewhere.here.manage(
        "agent", "conversations", "--url", "http://127.0.0.1:9", also={"AGENTSITE_TOKEN": "x"}
    )
    assert nowhere.code == 1
    assert "cannot be reached" in nowhere.notes
    without = elsewhere.here.manage("agent", "conversations", "--url", elsewhere.address)
    assert without.code == 1
    assert "AGENTSITE_TOKEN" in without.notes
