"""`python -m tests.conformance [SCENARIO …]`: the official runner, against our client and our server.

Takes the runner and a Node that it needs from npm, into a folder of the cache; nothing of it comes into the
project. Prints what failed, and last `checks: N, failed: M`. Ends with 1 if anything failed, with 2 where
there is no npm. Named scenarios are those of the client; `server` alone is the server's half.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance import servers

RUNNER = "@modelcontextprotocol/conformance"
FOR_CLIENTS, FOR_SERVERS = "0.1.16", "0.2.0-alpha.12"
NODE = "node@22"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentsite-conformance"
SECONDS = 600
"""For one scenario: only a hang takes longer, on a machine that does much else as well."""
SCENARIOS = (
    "initialize",
    "tools_call",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
)
LEFT_OUT = {
    "elicitation-sep1034-client-defaults": "a question during a call, before 2026-07-28, is put away",
    "auth/client-credentials-jwt": "an extension: no agent has an account of its own at a server",
    "auth/client-credentials-basic": "the same",
    "auth/cross-app-access-complete-flow": "an extension that is not taken part in",
}
_PASSED = re.compile(r"^Passed: (\d+)/(\d+)", re.MULTILINE)


def runner(version: str) -> list[str]:
    """How the runner is called. Raises SystemExit where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        print("There is no npm here, from which the official runner comes.")
        raise SystemExit(2)
    folder = FOLDER / version
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    start = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if not start.exists():
        packages = (f"{RUNNER}@{version}", NODE)
        command = [npm, "install", "--silent", "--prefix", str(folder), *packages]
        subprocess.run(command, check=True)
    return [str(modules / ".bin" / "node"), str(start)]


def run(call: Sequence[str], scenario: str) -> tuple[int, int]:
    """How many checks there were, and how many failed."""
    client = f"{sys.executable} -m tests.conformance.client"
    command = [*call, "client", "--command", client, "--scenario", scenario]
    made = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    told = f"{made.stdout}\n{made.stderr}"
    found = _PASSED.search(told)
    passed, checks = (int(found[1]), int(found[2])) if found else (0, 1)
    failed = max(checks - passed, int(made.returncode != 0 and passed == checks))
    if failed:
        print(f"{scenario}: {failed} of {checks} failed")
        print("\n".join(line for line in told.splitlines() if "FAILURE" in line))
    return checks, failed


def of_the_client(chosen: Sequence[str]) -> tuple[int, int]:
    call = runner(FOR_CLIENTS)
    results = [run(call, scenario) for scenario in chosen or SCENARIOS]
    for scenario, why in LEFT_OUT.items():
        print(f"left out: {scenario}: {why}")
    return sum(each for each, _failed in results), sum(failed for _each, failed in results)


def of_the_server() -> tuple[int, int]:
    """Each revision's scenarios, also those that it does not score."""
    call = runner(FOR_SERVERS)
    checks = failed = 0
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as made,
        servers.served(Path(made)) as address,
    ):
        for revision in servers.REVISIONS:
            for result in servers.tried(call, address, revision):
                checks += result.passed + result.failed
                failed += result.failed
    return checks, failed


def main(chosen: Sequence[str]) -> int:
    server_alone = list(chosen) == ["server"]
    halves = [] if server_alone else [of_the_client(chosen)]
    if server_alone or not chosen:
        halves.append(of_the_server())
    failed = sum(each for _checks, each in halves)
    print(f"checks: {sum(each for each, _failed in halves)}, failed: {failed}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
