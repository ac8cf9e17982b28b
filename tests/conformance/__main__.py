"""`python -m tests.conformance [SCENARIO …]`: the official runner, against our client and our server.

Both halves, by all that each revision requires. Prints what failed and what is left out and why, and last
`checks: N, failed: M`. Ends with 1 if anything failed, with 2 where there is no npm. Named scenarios are
those of the client; `client` and `server` alone are one half.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance import clients, servers
from tests.conformance.runner import REVISIONS, Result, Runner, found


def of_the_client(runner: Runner, chosen: Sequence[str]) -> Iterator[Result]:
    for revision in (*REVISIONS, *clients.EARLIER):
        yield from clients.tried(runner, revision, chosen)


def of_the_server(runner: Runner) -> Iterator[Result]:
    """Each revision's scenarios, also those that it does not score."""
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as made,
        servers.served(Path(made)) as address,
    ):
        for revision in REVISIONS:
            yield from servers.tried(runner, address, revision)


def main(chosen: Sequence[str]) -> int:
    runner = found()
    half = chosen[0] if len(chosen) == 1 and chosen[0] in ("client", "server") else ""
    results: list[Result] = []
    if half != "server":
        results += of_the_client(runner, () if half else chosen)
    if half == "server" or not chosen:
        results += of_the_server(runner)
    failed = sum(each.failed for each in results)
    print(f"checks: {sum(each.passed for each in results) + failed}, failed: {failed}")
    return int(failed > 0 or not results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
