"""A process of the site that begins what is due, minute by minute of a clock of its own, until it is killed.

    python -m tests.schedules.tick_process

It makes the schedules, then has a child of its own for each line `tick FROM TO` that it is told: the children
are as many processes of a site, and come up without importing all of it anew. A child says a line a minute;
one that is told to `stay` ends by a kill alone, however late that comes.
`found` says what there is. The database is that of AGENTSITE_DATA_DIR.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django

from tests import prepared

BEGIN = datetime(2028, 5, 1, 6, 0, tzinfo=UTC)
ORDERS = 20
MINUTES = 10


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    prepared.place(Path(os.environ["AGENTSITE_DATA_DIR"]))
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    django.setup()
    # All of it needs the apps that are ready only now.
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.models import User  # noqa: PLC0415
    from agents.models import Agent, AgentVersion, Environment  # noqa: PLC0415
    from conversations.models import Conversation  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415
    from harness.content import Text  # noqa: PLC0415
    from harness.events import UserMessage  # noqa: PLC0415
    from schedules import ending, running  # noqa: PLC0415
    from schedules.actions.orders import create_order  # noqa: PLC0415
    from schedules.drafts import Draft  # noqa: PLC0415
    from schedules.models import OrderRun  # noqa: PLC0415

    def prepare() -> None:
        call_command("migrate", interactive=False, verbosity=0)
        alice = User.objects.create_user("alice", "alice@example.org")
        acme = create_organisation(actor=alice, name="Acme")
        agent = Agent.objects.create(name="Nobody")
        config = AgentConfig(provider="demo").model_dump(mode="json")
        agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=config)
        agent.save()
        place = Environment.objects.create(name="Here")
        for number in range(ORDERS):
            draft = Draft(
                name=f"Order {number}",
                agent=agent,
                environment=place,
                messages=(UserMessage(content=(Text(text="Hello"),)),),
                cron=f"{1 + number % (MINUTES - 2)} 6 * * *",
            )
            create_order(actor=alice, organisation=acme, draft=draft, now=BEGIN)

    def tick(first: int, last: int) -> None:
        for minute in range(first, last + 1):
            now = BEGIN + timedelta(minutes=minute)
            running.take_due(now)
            running.begin_queued(now)
            ending.settle_ends(now)
            say([os.getpid(), minute])

    prepare()
    say("prepared")
    for line in sys.stdin:
        what, *arguments = line.split()
        if what == "tick":
            connections.close_all()
            pid = os.fork()
            if pid == 0:
                tick(*map(int, arguments[:2]))
                if "stay" in arguments:
                    signal.pause()
                os._exit(0)
            say(["begun", pid])
        elif what == "wait":
            say(["ended", os.waitpid(int(arguments[0]), 0)[1]])
        elif what == "found":
            rows = OrderRun.objects.values_list("order", "due_at", "state", "session_uid")
            told = [(order, str(due), state, session) for order, due, state, session in rows]
            say({"runs": told, "conversations": Conversation.objects.count()})
    os._exit(0)


if __name__ == "__main__":
    main()
