"""What `docs/webhooks.md` shows works as it stands there, and names what there is."""

from __future__ import annotations

import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings as site
from django.db import transaction

from agentsite import settings as defaults
from agentsite.local_services import free_port
from agentsite.metrics import exposition
from tests.conversations.conftest import still, until
from tests.patience import PATIENCE
from webhooks import outbox
from webhooks.actions import endpoints as actions
from webhooks.models import WebhookDelivery
from webhooks.types import TEST, TYPES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def receiver(text, port, tmp_path):
    """Starts the example as a process of its own; gives the lines it prints."""
    code = tmp_path / "receiver.py"
    code.write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], encoding="utf-8")
    processes: list[subprocess.Popen[str]] = []

    def start(secret: str) -> queue.Queue[str]:
        process = subprocess.Popen(
            [sys.executable, str(code)],
            env={**os.environ, "PORT": str(port), "WEBHOOK_SECRET": secret},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        processes.append(process)
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line.strip())

        threading.Thread(target=read, daemon=True).start()
        deadline = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return lines
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def loopback(settings, port) -> None:
    settings.AGENTSITE_WEBHOOK_ALLOW_HTTP = True
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = [f"127.0.0.1:{port}"]


@pytest.mark.django_db(transaction=True)
def test_the_receiver_of_the_docs_takes_an_event_once_and_refuses_what_is_forged(
    alice, acme, receiver, port, loopback
):
    url = f"http://127.0.0.1:{port}/"
    issued = actions.create_endpoint(actor=alice, organisation=acme, url=url, event_types=["*"])
    lines = receiver(issued.secret)
    with transaction.atomic():
        outbox.announce(acme.pk, "session.archived", subject="sesn_1")
    assert lines.get(timeout=PATIENCE) == "session.archived sesn_1"
    delivered = until(lambda: WebhookDelivery.objects.filter(state="delivered").first())
    actions.redeliver(actor=alice, delivery=delivered)
    still()
    assert WebhookDelivery.objects.get().attempt_log.count() == 2
    forged = urllib.request.Request(url, data=delivered.body.encode(), method="POST")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(forged, timeout=PATIENCE)
    with transaction.atomic():
        outbox.announce(acme.pk, "session.deleted", subject="sesn_1")
    # Neither the repetition nor the forgery was printed in between.
    assert lines.get(timeout=PATIENCE) == "session.deleted sesn_1"
    still()


def test_every_type_is_in_the_docs(text):
    named = set()
    for line in text.splitlines():
        base = ""
        for name in re.findall(r"`([a-z_.]+)`", line) if line.startswith("| `") else ():
            if name.startswith("."):
                named.add(base + name)
            else:
                base = name.rpartition(".")[0]
                named.add(name)
    assert set(TYPES) | {TEST} <= named


def test_every_setting_of_the_docs_exists_with_that_default(text):
    for name in re.findall(r"AGENTSITE_\w+", text):
        assert hasattr(site, name) or name == "AGENTSITE_EMAIL_URL", name
    for name, value in re.findall(r"`(AGENTSITE_(?:WEBHOOK|MAIL)_\w+)` \((\d+)\)", text):
        assert getattr(defaults, name) == int(value), name


@pytest.mark.django_db
def test_every_metric_of_the_docs_is_there(text):
    shown = exposition().decode()
    for name in re.findall(r"agentsite_(?:webhook|mail)\w+", text):
        assert re.search(rf"^# TYPE {name.removesuffix('_total')}", shown, re.MULTILINE), name
