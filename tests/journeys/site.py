"""The real server as a process with a data directory of its own: started, read, killed, restarted."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsite.local_services import free_port
from tests import prepared

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0
"""Seconds a start may take on a machine that is busy with other tests."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One row of a conversation's log, as it lies in the database."""

    seq: int
    uid: str
    type: str
    payload: dict[str, Any]


class Site:
    """`with Site(directory) as site:` serves on a free port until the end, or until `kill()`."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.port = free_port()
        self.setup_link = ""
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """What the server wrote to its standard output so far, mails among it."""
        return "".join(self._said)

    @property
    def environment(self) -> dict[str, str]:
        """What the server is started with."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENTSITE_", "ANTHROPIC_", "OPENAI_", "DJANGO_"))
        }
        return {
            **kept,
            "DJANGO_SETTINGS_MODULE": "tests.journeys.settings",
            "AGENTSITE_ENV_FILE": str(self.directory / "env"),
            "AGENTSITE_DATA_DIR": str(self._data),
            "PYTHONUNBUFFERED": "1",
            # The services of tests answer in a fixed order, in which no request for a title is meant.
            "AGENTSITE_TITLE_TOKENS_PER_DAY": "0",
            **self._settings,
        }

    def __enter__(self) -> Site:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def start(self) -> None:
        prepared.place(self._data)
        self._lines = queue.Queue()
        is_new = not self._data.exists()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.journeys.serve", "--port", str(self.port)],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.directory / "stderr.txt").open("a", encoding="utf-8"),
            text=True,
            bufsize=1,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self._wait_for_line(re.compile(r"Agentsite is at "))
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/accounts/login/", timeout=60).close()
                break
            except OSError:
                assert time.monotonic() < deadline, self.errors
                time.sleep(0.05)
        self._find_setup_link(PATIENCE if is_new else 1)

    def stop(self) -> None:
        self._end(self._process.terminate if self._process else None)

    def kill(self) -> None:
        """As the machine would: no goodbye, nothing flushed."""
        self._end(self._process.kill if self._process else None)

    def append(self, conversation: str, *events: tuple[str, dict[str, Any]]) -> int:
        """Append events to a log, in the server's process; the number of the last one."""
        return int(self._order(conversation=conversation, events=events).partition(" ")[2])

    def call(self, function: str, **values: str) -> None:
        """Call a function, `module:name`, in the server's process."""
        self._order(function=function, values=values)

    def _order(self, **asked: Any) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._wait_for_line(re.compile(r"^(appended \d+|called)$|^refused: .*$"))
        assert answer[1], answer[0]
        return answer[1]

    def events(self, conversation: str) -> list[Logged]:
        """The log, read straight from the database file."""
        with closing(self._database()) as database:
            rows = database.execute(
                "SELECT event.seq, event.uid, event.type, event.payload"
                " FROM conversations_event AS event"
                " JOIN conversations_conversation AS conversation"
                " ON conversation.id = event.conversation_id"
                " WHERE conversation.uid = ? ORDER BY event.seq",
                (conversation,),
            ).fetchall()
        return [Logged(seq, uid, kind, json.loads(payload)) for seq, uid, kind, payload in rows]

    def let_it_have_waited(self, conversation: str, *, minutes: int) -> None:
        """As if what it asks people had been asked so long before."""
        self._change(
            "UPDATE approvals_approval SET asked_at = datetime(asked_at, ?) WHERE conversation_id ="
            " (SELECT id FROM conversations_conversation WHERE uid = ?)",
            f"-{minutes} minutes",
            conversation,
        )

    def let_nothing_have_waited(self) -> None:
        """As if what is asked so far were asked tomorrow: of other journeys, nobody hears of it here."""
        self._change("UPDATE approvals_approval SET asked_at = datetime('now', '+1 day')", least=0)

    def let_briefs_be_due(self) -> None:
        """As if the time had come of all that are on."""
        self._change("UPDATE brief_briefwish SET next_at = datetime('now') WHERE is_on")

    def _change(self, statement: str, *values: str, least: int = 1) -> None:
        file = f"file:{self._data}/db.sqlite3?mode=rw"
        with closing(sqlite3.connect(file, uri=True, timeout=PATIENCE)) as database, database:
            assert database.execute(statement, values).rowcount >= least

    def partial_text(self, conversation: str) -> str:
        """What is kept of an answer that is still arriving."""
        with closing(self._database()) as database:
            rows = database.execute(
                "SELECT partial.text FROM conversations_partialblock AS partial"
                " JOIN conversations_conversation AS conversation"
                " ON conversation.id = partial.conversation_id WHERE conversation.uid = ?",
                (conversation,),
            )
            return "".join(text for (text,) in rows)

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self._data}/db.sqlite3?mode=ro", uri=True, timeout=PATIENCE)

    @property
    def errors(self) -> str:
        """What the server wrote to its standard error so far."""
        return (self.directory / "stderr.txt").read_text(encoding="utf-8")

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        lines = self._lines
        for line in process.stdout:
            self._said.append(line)
            lines.put(line)
        lines.put(None)

    def _wait_for_line(self, pattern: re.Pattern[str]) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE
        while True:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, f"the server ended: {self.errors[-4000:]}"
            found = pattern.search(line)
            if found:
                return found

    def _find_setup_link(self, seconds: float) -> None:
        """Said a moment after the server serves, where nobody has an account yet."""
        deadline = time.monotonic() + seconds
        while not self.setup_link and time.monotonic() < deadline:
            found = re.search(r"http://\S+/setup/\S+", "".join(self._said))
            if found:
                self.setup_link = found[0]
            time.sleep(0.02)

    def _end(self, how: Any) -> None:
        process, self._process = self._process, None
        if process is None or how is None:
            return
        how()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end: {self.errors[-8000:]}") from None
