"""A process that is killed between the commit and the request loses no delivery."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests import prepared as databases
from tests.webhooks.receiver import Receiver, self_signed

ROOT = Path(__file__).resolve().parents[2]


def process(folder: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENTSITE_", "ANTHROPIC_", "OPENAI_", "DJANGO_"))
    }
    settings = {
        "AGENTSITE_ENV_FILE": "",
        "AGENTSITE_DATA_DIR": str(folder / "data"),
        "AGENTSITE_SECRET_KEY": "only-for-tests-" + "0123456789" * 5,
        "AGENTSITE_VAULT_KEY": "b25seS1mb3ItdGVzdHMtb25seS1mb3ItdGVzdHMtLS0=",
        "AGENTSITE_WEBHOOK_PRIVATE_HOSTS": f"localhost:{port}",
        "SSL_CERT_FILE": str(folder / "certificate.pem"),
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.webhooks.webhook_process", *arguments],
        cwd=ROOT,
        env={**kept, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.usefixtures("django_db_setup")  # to be copied from
def test_a_killed_process_loses_no_delivery_and_the_next_one_sends_it(tmp_path):
    """The receiver speaks TLS under a name, so the judged address is seen to keep the name's proof."""
    databases.place(tmp_path / "data")
    context = self_signed(tmp_path / "certificate.pem")
    with Receiver(context=context) as receiver:
        url = f"https://localhost:{receiver.port}/hooks"
        prepared = process(tmp_path, receiver.port, "prepare", url)
        assert prepared.returncode == 0, prepared.stderr
        killed = process(tmp_path, receiver.port, "archive-and-die")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert receiver.received == []
        swept = process(tmp_path, receiver.port, "sweep")
        assert swept.returncode == 0, swept.stderr
        (request,) = receiver.received
    Webhook(prepared.stdout.split()[-1]).verify(request.body, request.headers)
    assert json.loads(request.body)["data"]["type"] == "session.archived"
