"""Makes the cast on the database of a live site and prints their tokens as JSON.

Run in a process of its own with the site's environment: `python -m tests.seed_protocol.people`.
"""

from __future__ import annotations

import json
import sys

import django


def main() -> None:
    django.setup()
    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.actions.tokens import create_token  # noqa: PLC0415
    from accounts.models import TokenScope  # noqa: PLC0415
    from tests.cast import join, make_user  # noqa: PLC0415

    scopes = [
        TokenScope.CONVERSATIONS_READ,
        TokenScope.CONVERSATIONS_WRITE,
        TokenScope.APPROVALS_DECIDE,
    ]
    alice, bob, mallory = (make_user(name) for name in ("alice", "bob", "mallory"))
    acme = create_organisation(actor=alice, name="Acme")
    join(bob, acme)
    elsewhere = create_organisation(actor=mallory, name="Elsewhere")
    second = create_organisation(actor=alice, name="Second")

    def token(user, organisation, names=scopes):
        issued = create_token(
            actor=user, organisation=organisation, name="Tests", scopes=[str(n) for n in names]
        )
        return {"secret": issued.secret, "uid": issued.token.uid}

    cast = {
        "alice": token(alice, acme, [*scopes, TokenScope.ADMIN]),
        "alice_again": token(alice, acme),
        "reader": token(alice, acme, [TokenScope.CONVERSATIONS_READ]),
        "writer": token(
            alice, acme, [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
        ),
        "skiller": token(alice, acme, [TokenScope.SKILLS_MANAGE]),
        "elsewhere": token(alice, second),
        "bob": token(bob, acme),
        "mallory": token(mallory, elsewhere, [*scopes, TokenScope.ADMIN]),
    }
    sys.stdout.write(json.dumps(cast))


if __name__ == "__main__":
    main()
