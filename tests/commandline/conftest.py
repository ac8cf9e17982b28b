"""An installation of its own for the command line, with two people who know nothing of each other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests import prepared
from tests.commandline.forks import Forks

ROOT = Path(__file__).resolve().parents[2]

PEOPLE = """
from accounts.actions.organisations import ensure_personal_organisation
from accounts.models import User
from agents.actions.agents import create_agent
from agents.models import Agent
from harness.agentconfig import Features

for name in ("alice", "mallory"):
    person = User.objects.create_user(name, f"{name}@example.org", "a-long-Passw0rd")
    ensure_personal_organisation(user=person)
boss = User.objects.create_superuser("boss", "boss@example.org", "a-long-Passw0rd")
config = Agent.objects.filter(name="Coding").get().current.config
asking = config.model_copy(update={"features": Features(approval=True)})
create_agent(actor=boss, organisation=None, name="Asking", description="", config=asking)
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    notes: str


@dataclass(frozen=True)
class Installation:
    directory: Path
    started: dict[str, Forks] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {
            **kept,
            "AGENTSITE_DATA_DIR": str(self.directory),
            "AGENTSITE_ENV_FILE": "",
            "AGENTSITE_DEBUG": "true",
            "PYTHONUNBUFFERED": "1",
        }

    def manage(self, *words: str, given: str = "", also: Mapping[str, str] | None = None) -> Ended:
        environment = {**self.environment, **(also or {})}
        with TemporaryFile() as put_in, TemporaryFile() as out, TemporaryFile() as notes:
            put_in.write(given.encode())
            for file in (put_in, out, notes):
                file.seek(0)
            code = self.forks(environment["AGENTSITE_DATA_DIR"]).run(
                words,
                environment=environment,
                directory=self.directory,
                files=(put_in.fileno(), out.fileno(), notes.fileno()),
                seconds=300,
            )
            out.seek(0)
            notes.seek(0)
            return Ended(code, out.read().decode(), notes.read().decode())

    def forks(self, data: str) -> Forks:
        if data not in self.started:
            self.started[data] = Forks({**self.environment, "AGENTSITE_DATA_DIR": data})
        return self.started[data]

    def agent(self, *words: str, user: str = "alice", given: str = "") -> Ended:
        return self.manage("agent", *words, "--user", user, given=given)


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Installation]:
    made = Installation(tmp_path_factory.mktemp("installation"))
    prepared.place(made.directory)
    for ended in (made.manage("prepare"), made.manage("shell", "-c", PEOPLE)):
        assert ended.code == 0, ended.notes
    yield made
    for forks in made.started.values():
        forks.close()
