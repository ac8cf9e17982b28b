"""The backend `bubblewrap`: namespaces of its own, and a view of files that holds only what is listed.

Preferred wherever its probe passes. Needs the program `bwrap` and the right to make user namespaces.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from net.lookups import Resolve, resolve_for_agents

from . import cgroups, seccomp
from .busy import checked
from .contract import Capabilities, Command, Mounts, OnOutput, Result
from .diskwatch import DiskWatch, DiskWatches
from .egress import Connect, EgressProxy, OnDecision, connect_directly
from .environment import environment
from .limits import as_ulimits, limits_of
from .once import Once, run_once
from .policy import Policy
from .probing import ProbeGround, judge
from .programs import ProgramBackend
from .refusals import refuse_rule
from .roots import NO_ROOTS, Roots, is_extra
from .supervised import Start, SupervisedShell, open_supervised
from .traffic import Traffic

NAME = "bubblewrap"
HOME, TMP = "/home/agent", "/tmp"  # noqa: S108 - inside the sandbox, its own
INSIDE = Path(__file__).parent / "inside"
SUPERVISOR, FORWARDER = "/run/agentsite/supervisor.py", "/run/agentsite/forwarder.py"
SOCKET = "/run/agentsite/egress.sock"
PROXY_PORT = 3128
UID = 1_000
"""Whom programs inside take themselves for; outside it is the server's own user."""
MB = 1024 * 1024
ACCOUNTS = {
    "/etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:{UID}:{UID}:agent:{HOME}:/bin/bash\n",
    "/etc/group": f"root:x:0:\nagent:x:{UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}


class BubblewrapBackend(ProgramBackend):
    name = NAME

    def __init__(
        self,
        *,
        program: str = "bwrap",
        on_decision: OnDecision | None = None,
        resolve: Resolve = resolve_for_agents,
        connect: Connect = connect_directly,
        found: Capabilities | None = None,
        roots: Roots = NO_ROOTS,
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        """`resolve` and `connect` replace the proxy's way into the world. `on_start` is told the number of
        each shell's first process on this host."""
        super().__init__(found)
        self._program = program
        self._on_decision = on_decision
        self._resolve = resolve
        self._connect = connect
        self._disks = DiskWatches()
        self._roots = roots
        self._on_start = on_start

    # --- what it is ------------------------------------------------------------------------------

    async def _probe(self) -> Capabilities:
        if shutil.which(self._program) is None:
            return Capabilities(
                NAME,
                available=False,
                problem=f"the program “{self._program}” is not installed",
                remedy="install bubblewrap (on Debian: apt-get install bubblewrap)",
            )
        # What the probe's own command asks its way out for is no news to operators.
        unheard = BubblewrapBackend(program=self._program)
        try:
            with ProbeGround() as ground:
                python = self._python() is not None
                return await judge(unheard, ground, own_view=True, python=python)
        finally:
            await unheard.close()

    # --- running ---------------------------------------------------------------------------------

    async def run_unjudged(
        self,
        command: Command,
        policy: Policy,
        mounts: Mounts,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        if policy.endpoints:
            return await super().run_unjudged(
                command, policy, mounts, timeout=timeout, on_output=on_output
            )
        checked(command)
        wall = policy.resources.wall_seconds if timeout is None else timeout
        disk = self._disk(policy, mounts)
        full = await disk.is_full()
        group = self._group(policy)
        limits = as_ulimits(
            limits_of(policy.resources, each_memory=_needs_own_memory(group), full=full)
        )
        if isinstance(command, str):
            program = ["-c", f'{limits} (eval "set --;$1"); exit $?', "bash", command]
        else:
            program = ["-c", f'{limits} (exec "$@"); exit $?', "bash", *command]
        shell_path = ["/bin/bash", "--norc", "--noprofile"]
        options, descriptors = self._options(policy, mounts, proxy=None)
        # The shell itself is the namespace's first process: when bubblewrap ends, all have ended.
        hidden = _hidden([*options, *_chdir(mounts), "--as-pid-1"])
        return await run_once(
            Once(
                argv=[self._program, "--args", str(hidden), "--", *shell_path, *program],
                backend=NAME,
                confined=True,
                resources=policy.resources,
                timeout=wall,
                group=group,
                disk=disk,
                descriptors=(hidden, *descriptors),
            ),
            on_output,
        )

    async def _open(self, policy: Policy, mounts: Mounts) -> SupervisedShell:
        found = self._python()
        if found is None:
            raise refuse_rule(
                "a shell that lasts needs a Python which the sandbox can see",
                "there is none in the folders that the policy lists",
                remedy="For the operator: install python3 of the distribution.",
            )
        python, folders = found
        proxy: EgressProxy | None = None
        traffic: Traffic | None = None
        setup: dict[str, Any] = {
            "env": self._environment(policy),
            "workdir": str(mounts.workdir.target),
            "shell": "/bin/bash",
        }
        after: list[Callable[[], Awaitable[None]]] = []
        if policy.endpoints:
            traffic = Traffic(also=self._on_decision)
            proxy = EgressProxy(
                policy.endpoints,
                on_decision=traffic.note,
                resolve=self._resolve,
                connect=self._connect,
            )
            await proxy.start()
            after.append(proxy.close)
            setup["forward"] = {"script": FORWARDER, "port": PROXY_PORT, "socket": SOCKET}
        group = self._group(policy)
        options, descriptors = self._options(policy, mounts, proxy=proxy)
        for folder in folders:
            options += ["--ro-bind", folder, folder]
        options += ["--ro-bind", str(INSIDE / "supervisor.py"), SUPERVISOR]
        options += ["--ro-bind", str(INSIDE / "forwarder.py"), FORWARDER]
        hidden = _hidden([*options, *_chdir(mounts), "--as-pid-1"])
        argv = [self._program, "--args", str(hidden), "--"]
        shell = await open_supervised(
            Start(
                argv=[*argv, python, "-I", "-S", SUPERVISOR, "{control}"],
                setup=setup,
                backend=NAME,
                confined=True,
                resources=policy.resources,
                each_memory=_needs_own_memory(group),
                group=group,
                disk=self._disk(policy, mounts),
                descriptors=(hidden, *descriptors),
                traffic=traffic,
                on_start=self._on_start,
                after=after,
            )
        )
        return self._keep(shell)

    # --- the sandbox itself ----------------------------------------------------------------------

    def _options(
        self, policy: Policy, mounts: Mounts, *, proxy: EgressProxy | None
    ) -> tuple[list[str], tuple[int, ...]]:
        """The program's arguments up to the last mount, and the descriptors they name."""
        refuse_nested(mounts)
        self._roots.refuse(policy)
        descriptors: list[int] = []
        argv = ["--unshare-all", "--unshare-user", "--disable-userns"]
        argv += ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
        argv += ["--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox"]
        for name, value in self._environment(policy).items():
            argv += ["--setenv", name, value]
        for path in policy.filesystem_policy.read_only:
            if not is_extra(path):
                argv += _shown(path)
        scratch = str(policy.resources.scratch_mb * MB)
        # Settings of the kernel belong to root by owner alone, so under a server that runs as root
        # they could be written without any capability.
        argv += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        # Device files stay usable; files beside them would escape every limit.
        argv += ["--size", scratch, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        argv += ["--size", scratch, "--perms", "1777", "--tmpfs", TMP]
        argv += ["--size", scratch, "--perms", "0700", "--tmpfs", HOME]
        argv += ["--dir", "/var", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108
        argv += ["--dir", "/run/agentsite"]
        for path in filter(is_extra, policy.filesystem_policy.read_only):
            argv += self._opened(path, descriptors, writable=False)
        for path in policy.filesystem_policy.read_write:
            argv += self._opened(path, descriptors, writable=True)
        for mount in mounts.all():
            writable = mount.writable
            if mount is mounts.workdir:
                writable = writable and policy.filesystem_policy.include_workdir
            argv += ["--bind" if writable else "--ro-bind", str(mount.source), str(mount.target)]
        for path, text in ACCOUNTS.items():
            descriptors.append(_held(text.encode()))
            argv += ["--perms", "0444", "--ro-bind-data", str(descriptors[-1]), path]
        if proxy is not None:
            argv += ["--ro-bind", str(proxy.socket), SOCKET]
        if seccomp.supported():
            program = seccomp.program(seccomp.ALWAYS, seccomp.OWN_NETWORK)
            descriptors.append(_held(program))
            argv += ["--seccomp", str(descriptors[-1])]
        return argv, tuple(descriptors)

    def _opened(self, path: str, descriptors: list[int], *, writable: bool) -> list[str]:
        """The arguments that show the very folder that was judged; none where there is nothing."""
        descriptor = self._roots.open(path, writable=writable)
        if descriptor is None:
            return []
        descriptors.append(descriptor)
        return ["--bind-fd" if writable else "--ro-bind-fd", str(descriptor), path]

    def _environment(self, policy: Policy) -> dict[str, str]:
        proxy = f"http://127.0.0.1:{PROXY_PORT}" if policy.endpoints else ""
        return environment(policy, home=HOME, tmp=TMP, proxy=proxy)

    def _python(self) -> tuple[str, tuple[str, ...]] | None:
        """An interpreter for the supervisor, and the folders that must be shown for it."""
        for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
            if os.access(path, os.X_OK) and Path(path).resolve().is_relative_to("/usr"):
                return path, ()
        own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        if os.access(own, os.X_OK):
            return str(own), (str(Path(sys.base_prefix).resolve()),)
        return None

    def _group(self, policy: Policy) -> cgroups.Group | None:
        hierarchy = cgroups.find()
        if hierarchy.memory is None and hierarchy.pids is None:
            return None
        resources = policy.resources
        # Bubblewrap's own processes count as well.
        return cgroups.Group(hierarchy, memory_mb=resources.memory_mb, pids=resources.pids + 3)

    def _disk(self, policy: Policy, mounts: Mounts) -> DiskWatch:
        folders = tuple(mount.source for mount in mounts.all() if mount.writable)
        resources = policy.resources
        return self._disks.watch(
            folders, size=resources.workspace_mb * MB, files=resources.workspace_files
        )


def refuse_nested(mounts: Mounts) -> None:
    """A mount inside another could be led elsewhere by whoever may write the outer one."""
    targets = [mount.target for mount in mounts.all()]
    for one in targets:
        for other in targets:
            if one is not other and one.is_relative_to(other):
                raise refuse_rule(
                    f"the folder “{one}” would lie inside “{other}”",
                    "folders are mounted side by side",
                    remedy="Mount it at a place of its own.",
                )


def _chdir(mounts: Mounts) -> list[str]:
    # The root last: after this nothing can be added to the sandbox's own file system.
    return ["--remount-ro", "/", "--chdir", str(mounts.workdir.target)]


def _needs_own_memory(group: cgroups.Group | None) -> bool:
    return group is None or cgroups.find().memory is None


def _shown(path: str) -> list[str]:
    """The arguments that show one system path; links stay links."""
    try:
        target = str(Path(path).readlink())
    except OSError:
        return ["--ro-bind-try", path, path]
    return ["--symlink", target, path]


def _hidden(options: list[str]) -> int:
    """A descriptor that holds options: on the command line they would name folders of the host."""
    return _held("\0".join((*options, "")).encode())


def _held(data: bytes) -> int:
    """A descriptor that reads `data`."""
    descriptor = os.memfd_create("agentsite")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
