"""A live server with a loopback model service behind it and the cast's tokens, for unmodified clients.

What is asked of it is the tests' (`tests.contract`) and that of clients of other versions and
languages (`tests.clients`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anthropic

from tests.journeys.model_service import ModelService
from tests.journeys.site import ROOT, Site


@dataclass(frozen=True, slots=True)
class World:
    address: str
    tokens: dict[str, str]
    environment: str
    site: Site
    service: ModelService
    webhook_secret: str = ""
    """Of alice's organisation's endpoint, if one was asked for."""
    machines: tuple[dict[str, str], ...] = ()
    """Self-hosted environments, each with a key for its workers."""

    def client(self, who: str = "alice", **options: object) -> anthropic.Anthropic:
        """The SDK as anybody installs it, with every answer checked against its types."""
        return anthropic.Anthropic(
            base_url=self.address,
            api_key=self.tokens[who],
            _strict_response_validation=True,
            **options,  # type: ignore[arg-type]
        )


@contextmanager
def live_world(
    directory: Path, *, hooks: str = "", settings: Mapping[str, str] | None = None
) -> Iterator[World]:
    """Serves until the end. `hooks` is an address on loopback that is told what happens."""
    with ModelService() as service:
        chosen = {
            "ANTHROPIC_API_KEY": "key-of-the-contract",
            "ANTHROPIC_BASE_URL": service.base_url,
            "AGENTSITE_API_WRITES_PER_MINUTE": "0",
            "AGENTSITE_API_READS_PER_MINUTE": "0",
            "AGENTSITE_MESSAGES_PER_MINUTE": "0",
            "AGENTSITE_STREAM_PING_SECONDS": "1",
            "AGENTSITE_WORK_LEASE_SECONDS": "6",
            "AGENTSITE_WEBHOOK_PRIVATE_HOSTS": urlsplit(hooks).netloc,
            "AGENTSITE_WEBHOOK_ALLOW_HTTP": "true",
            **(settings or {}),
        }
        with Site(directory, chosen) as site:
            made = subprocess.run(
                [sys.executable, "-m", "tests.contract.people", hooks],
                cwd=ROOT,
                env=site.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert made.returncode == 0, made.stderr
            said = json.loads(made.stdout)
            yield World(
                site.address,
                said["tokens"],
                said["environment"],
                site,
                service,
                said["webhook_secret"],
                tuple(said["machines"]),
            )
