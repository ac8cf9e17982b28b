"""`manage.py up` in a process of its own, which also takes orders on its standard input.

Each line is JSON. `{"conversation": uid, "events": [[event id, payload], …]}`: they are appended to
the log as a run would append them, so that a journey can show what no short script makes happen.
`{"function": "module:name", "values": {…}}`: it is called, which spares a process that would import the site.
`JOURNEYS_FIRST` names one that is called before the site is prepared.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import django
from django.core.management import call_command

from agentsite import environment


def append_events(asked: dict[str, Any]) -> str:
    # All need the apps that `main` made ready.
    from conversations.log import append  # noqa: PLC0415
    from conversations.models import Conversation  # noqa: PLC0415
    from harness.events import load  # noqa: PLC0415
    from harness.history import Entry  # noqa: PLC0415

    conversation = Conversation.objects.get(uid=asked["conversation"])
    entries = [Entry(uid, load(payload)) for uid, payload in asked["events"]]
    return f"appended {append(conversation.pk, entries)[-1].seq}"


def call(asked: dict[str, Any]) -> str:
    function_of(asked["function"])(**asked["values"])
    return "called"


def function_of(name: str) -> Callable[..., None]:
    module, _, function = name.partition(":")
    found: Callable[..., None] = getattr(import_module(module), function)
    return found


def listen() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = (call if "function" in asked else append_events)(asked)
        except Exception as error:
            answer = f"refused: {error}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def main() -> None:
    # So that a journey can ask a server that hangs where it does.
    faulthandler.register(signal.SIGUSR1)
    environment.ensure_secrets()
    django.setup()
    if first := os.environ.get("JOURNEYS_FIRST"):
        function_of(first)()
    threading.Thread(target=listen, daemon=True).start()
    call_command("up", *sys.argv[1:])


if __name__ == "__main__":
    main()
