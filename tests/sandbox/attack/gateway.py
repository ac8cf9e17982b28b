"""A stand-in of an OpenShell gateway for attacks: each sandbox is a bubblewrap one with folders of its own,
without a network unless the policy it was told opens some.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from types import SimpleNamespace
from typing import Any

from tests.sandbox.attack.engine import sandbox


@dataclass
class Chunk:
    stream: str
    data: bytes


@dataclass
class Ended:
    exit_code: int


class Gateway:
    """What `openshell.SandboxClient` is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._specs: dict[str, dict[str, Any]] = {}
        self._running: dict[str, list[tuple[subprocess.Popen[bytes], int]]] = {}
        """With the end of a pipe that every process of the command holds the other end of."""

    def health(self) -> object:
        return SimpleNamespace(status=1, version="stand-in")

    def create(self, *, workspace: str, spec: Any = None, name: str | None = None) -> object:
        name = name or f"box-{len(self._specs)}"
        self._specs[name] = spec or {}
        return SimpleNamespace(name=name)

    def wait_ready(self, name: str, *, workspace: str, timeout_seconds: float = 300) -> object:
        return SimpleNamespace(name=name)

    def _line(self, name: str) -> list[str]:
        spec = self._specs[name]
        network = "some" if spec.get("network_policies") else "none"
        line = sandbox(["--network", network, "--cap-drop", "ALL"])
        files = spec["filesystem"]
        for place in dict.fromkeys(["/tmp", *files["read_only"], *files["read_write"]]):
            if place != "/tmp" and Path(place).exists():
                continue  # the system's, as in every sandbox
            inside = self._folder / name / place.lstrip("/")
            inside.mkdir(parents=True, exist_ok=True)
            line += ["--bind", str(inside), place]
        return line

    def exec_stream(
        self,
        sandbox: str,
        command: Sequence[str],
        *,
        workspace: str,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout_seconds: int | None = None,
    ) -> Iterator[object]:
        line = self._line(sandbox)
        for name, value in (env or {"PATH": "/usr/bin:/bin"}).items():
            line += ["--setenv", name, value]
        if workdir:
            line += ["--chdir", workdir]
        lives, held = os.pipe()
        running = subprocess.Popen(
            [*line, *command],
            pass_fds=[held],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
        )
        os.close(held)
        self._running.setdefault(sandbox, []).append((running, lives))
        assert running.stdin is not None
        assert running.stdout is not None
        ends = time.monotonic() + (timeout_seconds or 60)
        try:
            with suppress(BrokenPipeError):
                running.stdin.write(stdin or b"")
                running.stdin.close()
            while data := os.read(running.stdout.fileno(), 65_536):
                yield Chunk("stdout", data)
                if time.monotonic() > ends:
                    return
            yield Ended(running.wait())
        finally:
            running.kill()
            running.wait()
            running.stdout.close()

    def delete(self, name: str, *, workspace: str, allow_missing: bool = False) -> object:
        """A gateway's answer comes when the sandbox is gone."""
        for running, lives in self._running.pop(name, []):
            running.kill()
            running.wait()
            while select([lives], [], [], 5)[0] and os.read(lives, 65_536):
                pass
            os.close(lives)
        return SimpleNamespace()

    def close(self) -> None:
        pass
