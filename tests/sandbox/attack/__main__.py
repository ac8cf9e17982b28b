"""`python -m tests.sandbox.attack [--backend NAME] [--as-user] [--case NAME] [--verbose]`

Attacks each backend and prints a line for it. Ends with 1 if anything escaped, could not be tried, or
if fewer than sixty attacks were run. `--as-user`, for root: give up all rights first.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures.thread
import encodings.idna  # noqa: F401 - imported late otherwise, when files may be out of reach
import os
import sys
import tempfile

from tests.sandbox.attack.suite import BACKENDS, STAND_INS, attack

ORDINARY_UID = 54_321
"""A user that nobody has, so that nothing of the machine belongs to the attacks."""

_ = concurrent.futures.thread


def become_ordinary() -> None:
    os.setgroups([])
    os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
    os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
    os.environ["HOME"] = tempfile.gettempdir()
    os.chdir("/")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.sandbox.attack")
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--as-user", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    if asked.as_user and os.geteuid() == 0:
        become_ordinary()
    print(f"as {'root' if os.geteuid() == 0 else 'an ordinary user'}:")
    failed = False
    for name in asked.backend or ("bubblewrap", "process", *STAND_INS):
        report = asyncio.run(attack(name, only=asked.case, verbose=asked.verbose))
        print(report.line(), flush=True)
        for text in report.escaped:
            print(f"  escaped: {text}")
        for case, said in report.untried.items():
            print(f"  not tried: {case}: {said}")
        failed = failed or bool(report.escaped or report.untried)
        failed = failed or (report.cases < 60 and not asked.case)
    return 1 if failed and "none" not in (asked.backend or ()) else 0


if __name__ == "__main__":
    sys.exit(main())
