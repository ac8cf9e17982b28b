"""Unmodified clients of other versions and languages against a live server, one line for each.

    python -m tests.clients [--only NAME] [--verbose]

Builds what they need in a temporary folder, which needs the package registries, so that no test of the
suite does. The last line says how many failed; the exit code is 1 if any did.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import shorten

from tests.clients.installing import (
    MCP_PACKAGES,
    NODE_PACKAGES,
    Missing,
    node_with,
    python_with,
)
from tests.clients.playing import delivery, environment_of, played
from tests.contract.live import World, live_world
from tests.examples import fences
from tests.journeys.site import ROOT
from tests.webhooks.receiver import Received, Receiver

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE = 180.0
"""Seconds one script may take."""


STEPS_SHOWN = 160
"""Characters of what a script said."""


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    command: Callable[[Path], list[str]]
    """What runs it, given a folder of its own; raises `Missing`."""


def of_python(version: str) -> Client:
    def command(folder: Path) -> list[str]:
        interpreter = python_with(folder / "python", f"anthropic[webhooks]=={version}")
        return [str(interpreter), str(SCRIPTS / "managed.py")]

    return Client(f"anthropic {version} (Python)", command)


def of_this_environment() -> Client:
    return Client(
        "anthropic as locked (Python)",
        lambda _folder: [sys.executable, str(SCRIPTS / "managed.py")],
    )


def of_node(name: str, code: str, nodes: Callable[[], tuple[Path, Path]]) -> Client:
    def command(_folder: Path) -> list[str]:
        node, packages = nodes()
        # Beside the packages: that is where they are looked for.
        script = packages / f"{abs(hash(name))}.mjs"
        script.write_text(code, encoding="utf-8")
        return [str(node), str(script)]

    return Client(name, command)


def of_mcp(folder: Path) -> list[Client]:
    """Clients of `/mcp`: of both eras, where one knows both."""
    script = SCRIPTS / "mcp_client.py"

    def of_python_era(era: str) -> Client:
        command = [sys.executable, str(script), era]
        return Client(f"mcp as locked (Python), {era}", lambda _folder: command)

    @cache
    def packages() -> Path:
        node_with(folder / "mcp", *MCP_PACKAGES)
        code = (SCRIPTS / "mcp_client.mjs").read_text(encoding="utf-8")
        (folder / "mcp" / "mcp_client.mjs").write_text(code, encoding="utf-8")
        return folder / "mcp"

    def of_package(name: str, which: str) -> Client:
        def command(_folder: Path) -> list[str]:
            node = packages() / "node_modules" / ".bin" / "node"
            return [str(node), str(packages() / "mcp_client.mjs"), which]

        return Client(f"{name} (TypeScript)", command)

    kinds = zip(MCP_PACKAGES, ("handshake", "rounds", "inspector"), strict=False)
    return [
        *(of_python_era(era) for era in ("2026-07-28", "legacy")),
        *(of_package(name, which) for name, which in kinds),
    ]


def all_clients(folder: Path) -> list[Client]:
    @cache
    def nodes() -> tuple[Path, Path]:
        packages = folder / "node"
        return node_with(packages, *NODE_PACKAGES), packages

    managed, agui = NODE_PACKAGES
    found = [of_this_environment(), of_python("1.17.0"), of_python("0.125.0")]
    for name, script in ((managed, "managed.mjs"), (agui, "agui.mjs")):
        code = (SCRIPTS / script).read_text(encoding="utf-8")
        found.append(of_node(f"{name} (TypeScript)", code, nodes))
    for page, number, code in typescript_of_the_pages():
        found.append(of_node(f"docs/{page}, example {number} (TypeScript)", code, nodes))
    return [*found, *of_mcp(folder)]


def typescript_of_the_pages() -> list[tuple[str, int, str]]:
    return [
        (page, number, code)
        for page in ("api.md", "agui.md")
        for number, (_language, code) in enumerate(
            fences(ROOT / "docs" / page, "typescript"), start=1
        )
    ]


def run(client: Client, world: World, came: Received, folder: Path, verbose: bool) -> bool:
    """Whether everything it does holds; says so."""
    begun = time.monotonic()
    folder.mkdir()
    try:
        command = client.command(folder)
    except Missing as missing:
        print(f"FAIL  {client.name}: {missing}", flush=True)
        return False
    with played(world, client.name):
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment_of(world, client.name, came),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            print(f"FAIL  {client.name}: no end within {late.timeout:.0f} seconds", flush=True)
            return False
    steps = shorten(", ".join(done.stdout.splitlines()), STEPS_SHOWN)
    seconds = time.monotonic() - begun
    if done.returncode == 0:
        print(f"ok    {client.name}: {steps} ({seconds:.1f} s)", flush=True)
        return True
    print(f"FAIL  {client.name}: after {steps or 'nothing'}: {last_line(done.stderr)}", flush=True)
    if verbose:
        print(done.stderr, file=sys.stderr, flush=True)
    return False


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Node ends with its version; what went wrong stands before the stack.
    wrong = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return (wrong or lines or ["it said nothing"])[-1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="show what a failed one said")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="clients-") as made, Receiver() as receiver:
        folder = Path(made)
        (folder / "site").mkdir()
        clients = [one for one in all_clients(folder) if options.only in one.name]
        with live_world(folder / "site", hooks=receiver.url) as world:
            came = delivery(world, receiver)
            for number, client in enumerate(clients):
                failed += not run(client, world, came, folder / str(number), options.verbose)
    print(f"clients: {len(clients)}, failed: {failed}", flush=True)
    return 1 if failed or not clients else 0


if __name__ == "__main__":
    sys.exit(main())
