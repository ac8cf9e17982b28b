"""`manage.py up` in a process of its own, which also takes events on its standard input.

Each line is JSON: `{"conversation": uid, "events": [[event id, payload], …]}`. They are appended to
the log as a run would append them, so that a journey can show what no short script makes happen.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading

import django
from django.core.management import call_command

from agentsite import environment


def listen() -> None:
    # Both need the apps that `main` made ready.
    from conversations.log import append  # noqa: PLC0415
    from conversations.models import Conversation  # noqa: PLC0415
    from harness.events import load  # noqa: PLC0415
    from harness.history import Entry  # noqa: PLC0415

    for line in sys.stdin:
        asked = json.loads(line)
        conversation = Conversation.objects.get(uid=asked["conversation"])
        entries = [Entry(uid, load(payload)) for uid, payload in asked["events"]]
        try:
            answer = f"appended {append(conversation.pk, entries)[-1].seq}"
        except Exception as error:
            answer = f"refused: {error}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def main() -> None:
    # So that a journey can ask a server that hangs where it does.
    faulthandler.register(signal.SIGUSR1)
    environment.ensure_secrets()
    django.setup()
    threading.Thread(target=listen, daemon=True).start()
    call_command("up", *sys.argv[1:])


if __name__ == "__main__":
    main()
