"""What the model answers to the scripts, and the environment that each of them is told of the server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from providers.scripted import Hold, call, reply, say
from tests.contract.live import World
from tests.webhooks.receiver import Received, Receiver


@contextmanager
def played(world: World, name: str) -> Iterator[None]:
    """While the client of this name runs, its openings get these replies."""
    write = call("write_file", path="a.txt", content="x")
    hold = Hold()
    scripts = {
        **{opening: [reply(write), reply("Written.")] for opening in ("write", "edit", "deny")},
        "weather": [reply(call("weather", city="Oslo")), reply("It snows.")],
        "both": [reply(call("weather", city="Oslo"), write), reply("Both are done.")],
        "show": [reply(call("show_file", path="a.py")), reply("You see.")],
        "count": [reply(say("Counting ", hold, "on and on"))],
        "hello": [reply(say("Hello ", "there."))],
    }
    for opening, replies in scripts.items():
        world.service.expect(f"{name}: {opening}", *replies)
    try:
        yield
    finally:
        hold.release.set()


def delivery(world: World, receiver: Receiver) -> Received:
    """The webhook that tells of a session which is made for it."""
    client = world.client()
    agent = next(iter(client.beta.agents.list()))
    made = client.beta.sessions.create(agent=agent.id, environment_id=world.environment)
    while True:
        for came in receiver.wait_for(1):
            data = json.loads(came.body)["data"]
            if (data["type"], data["id"]) == ("session.created", made.id):
                return came
        receiver.wait_for(len(receiver.received) + 1)


def environment_of(world: World, name: str, came: Received) -> dict[str, str]:
    """Nothing of this process's own environment but where programs are."""
    signed = {"secret": world.webhook_secret, "headers": came.headers, "body": came.body}
    return {
        "PATH": os.environ["PATH"],
        "CLIENT_NAME": name,
        "CLIENT_ADDRESS": world.address,
        "CLIENT_TOKEN": world.tokens["alice"],
        "CLIENT_READER": world.tokens["reader"],
        "CLIENT_ENVIRONMENT": world.environment,
        "CLIENT_DELIVERY": json.dumps(signed),
        "AGENTSITE_URL": world.address,
        "AGENTSITE_TOKEN": world.tokens["alice"],
    }
