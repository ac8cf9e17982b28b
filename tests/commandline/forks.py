"""Runs `manage.py` in forks of one process that has imported everything, for the tests that start dozens.

A fork is a process of its own with the words, the environment, the folder and the files that it was given;
what it shares with a fresh start is all but the imports, which cost more than the commands do. Settings are
read once, so that one such process serves one data directory.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 1024 * 1024


class Begun:
    """A fork that runs; whoever began it waits for its end before the next one begins."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line
        self._code: int | None = None

    def wait(self, seconds: float) -> int:
        """The code with which `manage.py` ended."""
        if self._code is None:
            self._line.settimeout(seconds)
            self._code = int(self._line.recv(100))
        return self._code

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):  # it has ended, and nobody has waited for it yet
                os.kill(self.pid, signal.SIGKILL)


class Forks:
    """The process and the line to it; `run` may be called again and again, by one thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.commandline.forks", str(theirs.fileno())],
                env=dict(environment),
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        files: tuple[int, int, int],
        seconds: float,
    ) -> int:
        """The code with which `manage.py` ended; `files` become its input, output and errors."""
        return self._begin(words, environment, directory, files, seconds).wait(seconds)

    def at_terminal(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        terminal: int,
        seconds: float,
    ) -> Begun:
        """In a session of its own, whose terminal this file is."""
        return self._begin(words, environment, directory, (terminal,), seconds)

    def _begin(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        files: Sequence[int],
        seconds: float,
    ) -> Begun:
        asked = json.dumps([list(words), dict(environment), str(directory)]).encode()
        self.line.settimeout(seconds)
        socket.send_fds(self.line, [asked], list(files))
        return Begun(int(self.line.recv(100)), self.line)

    def close(self) -> None:
        self.line.close()
        self.process.wait(60)


def serve(line: socket.socket) -> None:
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    import django  # noqa: PLC0415
    from anthropic import Anthropic  # noqa: PLC0415
    from django.urls import get_resolver  # noqa: PLC0415

    django.setup()
    # Each imports more than the last.
    _ = get_resolver().url_patterns, Anthropic(api_key="-").beta.sessions.events
    while True:
        asked, files, _flags, _address = socket.recv_fds(line, LONGEST, 3)
        if not asked:
            return
        child = os.fork()
        if child == 0:
            line.close()
            os._exit(carry_out(asked, files))
        for file in files:
            os.close(file)
        line.send(str(child).encode())
        _pid, status = os.waitpid(child, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def carry_out(asked: bytes, files: Sequence[int]) -> int:
    """In the fork: what the interpreter does around `manage.py`."""
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    words, environment, directory = json.loads(asked)
    if len(files) == 1:
        os.login_tty(files[0])
    else:
        for place, file in enumerate(files):
            os.dup2(file, place)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = [str(ROOT / "manage.py"), *words]
    code = 0
    try:
        execute_from_command_line(sys.argv)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
