"""A process of the site that archives a conversation and is killed right after the commit, or sweeps twice.

    python -m tests.webhooks.webhook_process prepare URL | archive-and-die | sweep

`prepare` prints the secret of the endpoint. The database is that of AGENTSITE_DATA_DIR.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial

import django

from tests.patience import PATIENCE


def main(what: str, *arguments: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    django.setup()
    # All of it needs the apps that are ready only now.
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import transaction  # noqa: PLC0415

    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.models import User  # noqa: PLC0415
    from agents.models import Agent, AgentVersion, Environment  # noqa: PLC0415
    from conversations.actions.conversations import (  # noqa: PLC0415
        archive_conversation,
        create_conversation,
    )
    from conversations.models import Conversation  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415
    from jobs import here  # noqa: PLC0415
    from jobs.engine import engine  # noqa: PLC0415
    from webhooks.actions.endpoints import create_endpoint  # noqa: PLC0415

    if what == "prepare":
        call_command("migrate", interactive=False, verbosity=0)
        alice = User.objects.create_user("alice", "alice@example.org")
        acme = create_organisation(actor=alice, name="Acme")
        agent = Agent.objects.create(name="Coder")
        config = AgentConfig(provider="demo").model_dump(mode="json")
        agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=config)
        agent.save()
        create_conversation(
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=Environment.objects.create(name="Here"),
        )
        issued = create_endpoint(
            actor=alice, organisation=acme, url=arguments[0], event_types=["session.archived"]
        )
        print(issued.secret)
    elif what == "archive-and-die":
        conversation = Conversation.objects.select_related("owner").get()
        with transaction.atomic():
            # The first that is called after the commit, so before anything could be sent.
            transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
            archive_conversation(actor=conversation.owner, conversation=conversation, archived=True)
    elif what == "sweep":
        for _ in range(2):  # the second finds nothing to send
            here.start_recurring_once()
            engine.submit(partial(engine.settle, PATIENCE)).result(PATIENCE)
        engine.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
