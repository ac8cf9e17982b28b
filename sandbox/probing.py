"""Finding out by trying what a sandbox holds back on this machine.

A backend starts one command in a sandbox with tiny limits, which tries what is forbidden next to a
secret, a listening port and this very process. What did not work is promised; what worked is not,
with the reason.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import Protocol

from harness.errors import AgentError

from . import cgroups, seccomp
from .contract import Capabilities, Command, Mount, Mounts, OnOutput, Result
from .guarantees import Guarantee
from .policy import Endpoint, FilesystemPolicy, NetworkPolicy, Policy, Resources

WORKDIR = Path("/workspace")
PROBE_POLICY = Policy(
    require=(),
    filesystem_policy=FilesystemPolicy(),
    resources=Resources(
        cpu_seconds=10,
        wall_seconds=20,
        memory_mb=64,
        pids=24,
        file_mb=1,
        open_files=64,
        output_kb=64,
        scratch_mb=2,
    ),
)
NETWORK = {"probe": NetworkPolicy(endpoints=(Endpoint(host="probe.invalid"),))}

SCRIPT = r"""
echo begun
cat "$OUTSIDE/secret" 2>/dev/null
test -e "$OUTSIDE/secret" && echo visible
{ echo x > "$OUTSIDE/written"; } 2>/dev/null
{ exec 5<>/dev/tcp/127.0.0.1/$PORT; } 2>/dev/null && echo connected
kill -0 $SERVER 2>/dev/null && echo signalled
cat /proc/$SERVER/environ >/dev/null 2>&1 && echo looked_into
unshare -U true 2>/dev/null && echo unshared
echo "files $(ulimit -n)"; echo "cpu $(ulimit -t)"
head -c 2000000 /dev/zero 2>/dev/null > big
for name in 1 2 3 4; do head -c 900000 /dev/zero 2>/dev/null > "$TMPDIR/$name" || echo scratch_full; done
rm -f "$TMPDIR"/[1-4]
(setsid sleep 0$MARK >/dev/null 2>&1 &)
sh -c 'i=0; while [ $i -lt 40 ]; do sleep 0.5 & i=$((i+1)); echo "forked $i"; done' 2>/dev/null
echo ended
"""
MEMORY = "head -c 100000000 /dev/zero | tail -c 95000000 | wc -c"


class Probed(Protocol):
    name: str

    async def run_unjudged(
        self,
        command: Command,
        policy: Policy,
        mounts: Mounts,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result: ...


class ProbeGround:
    """A workspace, a secret beside it, a port that listens. A context manager; gone afterwards."""

    def __enter__(self) -> ProbeGround:
        self._folder = tempfile.TemporaryDirectory(prefix="agentsite-probe-")
        root = Path(self._folder.name)
        root.chmod(0o711)
        self.workspace = root / "workspace"
        self.outside = root / "outside"
        self.workspace.mkdir(mode=0o700)
        self.outside.mkdir(mode=0o700)
        self.secret = secrets.token_hex(16)
        (self.outside / "secret").write_text(self.secret)
        self.mark = f".{secrets.randbelow(10**12):012d}30"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        return self

    def __exit__(self, *_details: object) -> None:
        self._listener.close()
        self._folder.cleanup()

    def mounts(self, *, own_view: bool) -> Mounts:
        target = WORKDIR if own_view else self.workspace
        return Mounts(Mount(self.workspace, target, writable=True))

    def script(self) -> str:
        values = f"OUTSIDE={self.outside} PORT={self.port} SERVER={os.getpid()} MARK={self.mark}"
        return f"{values}\n{SCRIPT}"

    def survivors(self) -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
        return False


async def judge(
    backend: Probed,
    ground: ProbeGround,
    *,
    own_view: bool,
    python: bool,
    details: dict[str, str] | None = None,
    reasons: dict[Guarantee, str] | None = None,
) -> Capabilities:
    """What `backend` may promise. `own_view`: it has namespaces, so egress can be filtered.

    `reasons` name what it never promises. Never raises.
    """
    mounts = ground.mounts(own_view=own_view)
    try:
        result = await backend.run_unjudged(ground.script(), PROBE_POLICY, mounts)
    except AgentError as problem:
        return _unusable(backend.name, problem.message, problem.hint)
    except OSError as problem:
        return _unusable(backend.name, str(problem), "")
    lines = result.stdout.text.splitlines()
    if "ended" not in lines:
        said = result.stderr.text.strip().splitlines()
        return _unusable(
            backend.name, said[-1] if said else f"it ended with {result.killed_by}", ""
        )
    refused = dict(reasons or {})
    held = _findings(ground, lines, refused, own_view=own_view)
    if cgroups.find().memory is not None:
        try:
            hog = await backend.run_unjudged(MEMORY, PROBE_POLICY, mounts)
            if "95000000" not in hog.stdout.text:
                held.add(Guarantee.MEMORY_TOTAL)
        except AgentError as problem:
            refused[Guarantee.MEMORY_TOTAL] = problem.message
    else:
        refused.setdefault(Guarantee.MEMORY_TOTAL, cgroups.find().problem)
    if own_view and Guarantee.NO_NETWORK in held:
        if python and await _way_out_is_filtered(backend, mounts):
            held |= {Guarantee.EGRESS_ALLOW_LIST, Guarantee.EGRESS_PUBLIC_ONLY}
        else:
            refused.setdefault(
                Guarantee.EGRESS_ALLOW_LIST,
                "the filtering proxy cannot be reached from inside"
                if python
                else "there is no Python inside to carry connections to the proxy",
            )
    return Capabilities(
        backend.name,
        available=True,
        guarantees=frozenset(held - set(reasons or {})),
        reasons=dict(refused),
        details=details or {},
    )


def _unusable(name: str, problem: str, remedy: str) -> Capabilities:
    closed = "namespace" in problem or "Operation not permitted" in problem
    if closed and not remedy:
        remedy = (
            "let the server's user create user namespaces (sysctl kernel.unprivileged_userns_clone "
            "or kernel.apparmor_restrict_unprivileged_userns; in a container, its security profile)"
        )
    return Capabilities(
        name, available=False, problem=f"it does not work here: {problem}", remedy=remedy
    )


def _findings(
    ground: ProbeGround, lines: list[str], refused: dict[Guarantee, str], *, own_view: bool
) -> set[Guarantee]:
    """The guarantees for which nothing spoke against them."""
    big = ground.workspace / "big"
    forks = sum(line.startswith("forked") for line in lines)
    filtered = seccomp.supported()
    checks: dict[Guarantee, tuple[bool, str]] = {
        Guarantee.FS_READ_CONFINED: (
            ground.secret not in "\n".join(lines),
            "a file outside could be read in the probe",
        ),
        Guarantee.FS_WRITE_CONFINED: (
            not (ground.outside / "written").exists(),
            "a file outside could be written in the probe",
        ),
        Guarantee.FS_HIDDEN: (
            "visible" not in lines,
            "names of files outside can be asked for",
        ),
        Guarantee.NO_NETWORK: (
            "connected" not in lines and (own_view or filtered),
            "a port of this machine could be reached in the probe",
        ),
        Guarantee.HOST_SOCKETS_HIDDEN: (
            "connected" not in lines and ("visible" not in lines or filtered),
            "sockets can be opened",
        ),
        Guarantee.PROCESSES_ISOLATED: (
            "signalled" not in lines and "looked_into" not in lines,
            "the server's process could be reached in the probe",
        ),
        Guarantee.NO_NEW_PRIVILEGES: (True, ""),
        Guarantee.SYSCALLS_FILTERED: (
            filtered and "unshared" not in lines,
            f"the filter does not know the machine {seccomp.machine()}",
        ),
        Guarantee.NO_SURVIVORS: (
            not ground.survivors(),
            "a process outlived its command in the probe",
        ),
        Guarantee.WORKSPACE_BOUNDED: (True, ""),
        Guarantee.FILE_SIZE_LIMITED: (
            big.exists() and big.stat().st_size <= 1024**2,
            "a file grew over its limit in the probe",
        ),
        Guarantee.OPEN_FILES_LIMITED: ("files 64" in lines, "the limit was not set"),
        Guarantee.CPU_LIMITED: ("cpu 10" in lines, "the limit was not set"),
        Guarantee.PIDS_TOTAL: (
            0 < forks < 40,
            "nothing counts the processes of one sandbox apart from others of the same user",
        ),
        Guarantee.SCRATCH_BOUNDED: (
            "scratch_full" in lines,
            "temporary folders lie on the host's disk",
        ),
    }
    for guarantee, (holds, why) in checks.items():
        if not holds:
            refused.setdefault(guarantee, why)
    return {guarantee for guarantee, (holds, _why) in checks.items() if holds}


async def _way_out_is_filtered(backend: Probed, mounts: Mounts) -> bool:
    policy = PROBE_POLICY.model_copy(update={"network_policies": NETWORK})
    ask = (
        "exec 5<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT unlisted.invalid:443 HTTP/1.1\\r\\n\\r\\n'"
        " >&5 && head -n 1 <&5"
    )
    try:
        result = await backend.run_unjudged(ask, policy, mounts)
    except (AgentError, OSError):
        return False
    return " 403 " in result.stdout.text
