"""Runs inside the sandbox that fetches packages: starts the installer, and keeps it from starting others.

A wheel may need something by an address, and what is no wheel there would be built, which runs it. Imports
nothing of ours, and runs with Python 3.8.
"""

from __future__ import annotations

import runpy
import sys

STARTS = frozenset(
    {
        *("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
        *("os.system", "pty.spawn"),
    }
)
"""What the interpreter says before it starts another program."""


def refuse(event: str, _arguments: object) -> None:
    if event in STARTS:
        raise PermissionError("what has to be built is not installed: nothing of a package is run")


def main(installer: str, *arguments: str) -> None:
    # Nothing takes it away again.
    sys.addaudithook(refuse)
    sys.argv = [installer, *arguments]
    runpy.run_path(installer, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
