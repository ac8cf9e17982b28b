"""An installation of its own for the command line, with two people who know nothing of each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import prepared

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
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *words],
            env={**self.environment, **(also or {})},
            cwd=self.directory,
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def agent(self, *words: str, user: str = "alice", given: str = "") -> Ended:
        return self.manage("agent", *words, "--user", user, given=given)


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Installation:
    made = Installation(tmp_path_factory.mktemp("installation"))
    prepared.place(made.directory)
    for ended in (made.manage("prepare"), made.manage("shell", "-c", PEOPLE)):
        assert ended.code == 0, ended.notes
    return made
