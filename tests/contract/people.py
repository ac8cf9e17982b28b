"""Makes the cast of the contract tests in a site's database and prints their tokens as JSON.

Run as a module with the site's own environment: nothing here is a door. An address as argument
becomes a webhook endpoint of alice's organisation.
"""

from __future__ import annotations

import json
import sys

import django

MACHINES = 4
"""Self-hosted environments, each for a test of its own, so that no worker takes another's work."""


def main() -> None:
    django.setup()
    # All need the apps that the line above made ready.
    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.actions.tokens import create_token  # noqa: PLC0415
    from accounts.models import Membership, TokenScope, User  # noqa: PLC0415
    from agents.actions.environments import create_environment  # noqa: PLC0415
    from agents.models import Environment  # noqa: PLC0415
    from webhooks.actions.endpoints import create_endpoint  # noqa: PLC0415
    from workers.actions.keys import create_key  # noqa: PLC0415

    alice = User.objects.create_user("alice", "alice@example.org", "correct horse")
    staff = User.objects.create_superuser("staff", "staff@example.org", "correct horse")
    mallory = User.objects.create_user("mallory", "mallory@example.org", "correct horse")
    acme = create_organisation(actor=alice, name="Acme")
    elsewhere = create_organisation(actor=mallory, name="Elsewhere")
    Membership.objects.create(user=staff, organisation=acme)
    everything = list(TokenScope.values)
    tokens = {
        "alice": create_token(actor=alice, organisation=acme, name="t", scopes=everything).secret,
        "reader": create_token(
            actor=alice, organisation=acme, name="t", scopes=[TokenScope.CONVERSATIONS_READ]
        ).secret,
        "staff": create_token(
            actor=staff, organisation=acme, name="t", scopes=everything[:-1]
        ).secret,
        "mallory": create_token(
            actor=mallory, organisation=elsewhere, name="t", scopes=everything
        ).secret,
    }
    environment = Environment.objects.filter(archived_at=None).first()
    assert environment is not None
    secret = ""
    if url := "".join(sys.argv[1:]):
        issued = create_endpoint(actor=alice, organisation=acme, url=url, event_types=["*"])
        secret = issued.secret
    machines = []
    for number in range(MACHINES):
        worked = create_environment(
            actor=staff,
            organisation=acme,
            name=f"Machine {number}",
            description="",
            upload_limit=1_000_000,
            backend=Environment.Backend.WORKER,
        )
        key = create_key(actor=staff, environment=worked, name="a worker").secret
        machines.append({"environment": worked.uid, "key": key})
    said = {
        "tokens": tokens,
        "environment": environment.uid,
        "webhook_secret": secret,
        "machines": machines,
    }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
