"""A process of the site that begins what is due, minute by minute of a clock of its own, until it is killed.

    python -m tests.schedules.tick_process prepare | tick FROM TO | found

It says a line a minute; `found` says what there is. The database is that of AGENTSITE_DATA_DIR.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import django

BEGIN = datetime(2028, 5, 1, 6, 0, tzinfo=UTC)
ORDERS = 40
MINUTES = 20


def main(what: str, *arguments: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    django.setup()
    # All of it needs the apps that are ready only now.
    from django.core.management import call_command  # noqa: PLC0415

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

    if what == "prepare":
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
    elif what == "tick":
        first, last = map(int, arguments)
        for minute in range(first, last + 1):
            now = BEGIN + timedelta(minutes=minute)
            running.take_due(now)
            running.begin_queued(now)
            ending.settle_ends(now)
            print(minute, flush=True)
    elif what == "found":
        rows = OrderRun.objects.values_list("order", "due_at", "state", "session_uid")
        told = [(order, str(due), state, session) for order, due, state, session in rows]
        print(json.dumps({"runs": told, "conversations": Conversation.objects.count()}))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
