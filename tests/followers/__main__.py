"""Hundreds of clients at one conversation of a live server, who lose the line and come back.

    python -m tests.followers [--clients 200] [--turns 5]

As many follow by server-sent events as by WebSocket. The last line says how many of their transcripts
differ from the log; the exit code is 1 if any does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.contract.live import live_world
from tests.followers.crowd import gather_crowd


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.followers")
    parser.add_argument("--clients", type=int, default=200, help="of each of the two doors")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="followers-") as made, live_world(Path(made)) as world:
        found = asyncio.run(gather_crowd(world, options.clients, options.turns))
    print(
        f"{found.clients} clients made {found.connections} connections to a conversation of"
        f" {found.events} events in {found.seconds:.0f} seconds;"
        f" the server took {found.worked:.1f} seconds of processor time and {found.threads} threads"
        f" more; {found.lost} connections failed"
    )
    print(f"transcripts: {found.clients}, wrong: {sum(found.wrong.values())} {dict(found.wrong)}")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
