"""The backend `docker`: a container for each sandbox, made by the client program `docker`.

Needs a running engine and an image on it; images are never pulled here, and the one that was tried out is
used for as long as the engine has it, whatever its tag names by then; what is named after that is tried out
in its place. Programs that are spoken to are those that come as an image of their own (`images`). A container
has no network: a policy that lists hosts is refused, because an engine's own networks cannot keep single
hosts apart.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import AgentError

from .backend import ShellBackend
from .capture import PIECE, Collector
from .contract import Capabilities, Mounts, Program, SandboxFailed
from .diskwatch import DiskWatches
from .environment import environment
from .guarantees import Guarantee
from .images import AttachedProgram, is_image, variables_file
from .limits import limits_of
from .owners import dead_owners, own_name
from .policy import Policy
from .refusals import refuse_rule
from .remote import RemoteShell

NAME = "docker"
HOME, TMP = "/home/agent", "/tmp"  # noqa: S108 - inside the container, its own
CLIENT_SECONDS = 30.0
MB = 1024 * 1024
LABEL = "org.agentsite.sandbox"
OWNER = "org.agentsite.owner"
HELD = frozenset(Guarantee) - {Guarantee.EGRESS_ALLOW_LIST, Guarantee.EGRESS_PUBLIC_ONLY}
ADVICE = re.compile(r"(See|Run) '[^']*--help'")
"""How the client ends what it says of a container that it could not make."""
REFUSED = {
    Guarantee.EGRESS_ALLOW_LIST: "a container's network cannot be limited to single hosts here",
    Guarantee.EGRESS_PUBLIC_ONLY: "a container's network cannot be kept from hosts inside here",
}


class ImageGone(SandboxFailed):
    """The engine has no such image."""


class DockerBackend(ShellBackend[RemoteShell]):
    name = NAME

    def __init__(
        self,
        *,
        image: str = "debian:12",
        program: str = "docker",
        found: Capabilities | None = None,
        owners: Path | None = None,
    ) -> None:
        """`owners`: where processes tell each other that they live (`owners`); None: what this one leaves
        when it is killed nobody ends."""
        super().__init__(found)
        self._owners = owners
        self._image = image
        self._program = program
        self._disks = DiskWatches()
        self._programs: set[AttachedProgram] = set()

    # --- what it is ------------------------------------------------------------------------------

    async def _probe(self) -> Capabilities:
        if shutil.which(self._program) is None:
            return self._absent("the client program is not installed", "install Docker")
        try:
            version = await self._ask("version", "--format", "{{.Server.Version}}")
            digest = await self._ask("image", "inspect", "--format", "{{.Id}}", self._image)
            held = await self._try_out(digest)
        except AgentError as problem:
            return self._absent(problem.message, problem.hint)
        reasons = {
            guarantee: "it did not hold in the probe" for guarantee in HELD if guarantee not in held
        }
        return Capabilities(
            NAME,
            available=True,
            guarantees=held,
            reasons={**reasons, **REFUSED},
            details={"engine": version, "image": self._image, "digest": digest},
        )

    def _absent(self, problem: str, remedy: str) -> Capabilities:
        return Capabilities(NAME, available=False, problem=problem, remedy=remedy)

    async def _try_out(self, digest: str) -> frozenset[Guarantee]:
        """What a container of this engine really holds back."""
        probe = (
            "grep -E '^(NoNewPrivs|CapEff|Seccomp):' /proc/self/status; ls /sys/class/net; "
            "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids/pids.max "
            "/sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; { echo x > /probe; } "
            "2>/dev/null && echo written; echo ended"
        )
        options = self._options(Policy(require=()), None)
        said = await self._ask("run", "--rm", *options, digest, "/bin/sh", "-c", probe)
        words = said.split()
        if "ended" not in words:
            raise SandboxFailed("a container of the image does not run a shell")
        lost: set[Guarantee] = set()
        resources = Policy(require=()).resources
        if set(words) & {"eth0", "eth1", "ens3"}:
            lost |= {Guarantee.NO_NETWORK, Guarantee.HOST_SOCKETS_HIDDEN}
        if "written" in words:
            lost.add(Guarantee.SCRATCH_BOUNDED)
        if "NoNewPrivs: 1" not in " ".join(words):
            lost.add(Guarantee.NO_NEW_PRIVILEGES)
        if "Seccomp: 2" not in " ".join(words):
            lost.add(Guarantee.SYSCALLS_FILTERED)
        if str(resources.pids) not in words:
            lost.add(Guarantee.PIDS_TOTAL)
        if str(resources.memory_mb * MB) not in words:
            lost.add(Guarantee.MEMORY_TOTAL)
        return HELD - lost

    def _tried_out(self, found: Capabilities) -> str:
        """The digest of the image that the probe looked at: a tag may name another one by now."""
        return found.details.get("digest", self._image)

    # --- running ---------------------------------------------------------------------------------

    async def open_program(
        self,
        argv: Sequence[str],
        policy: Policy,
        mounts: Mounts,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """An image by its digest, and what its own program is given; it begins where the image has it
        begin."""
        if not is_image(argv):
            raise refuse_rule(
                "it is a program that is spoken to while it runs",
                f"the sandbox “{self.name}” speaks to those alone that are an image by its digest",
                remedy="For the operator: use the bubblewrap or the process backend, or such an image.",
            )
        await self._require(policy)
        _require_own_folders(policy)
        image, *arguments = argv
        await self._ask("image", "inspect", "--format", "{{.Id}}", image)
        name, folders, limit = _name(), _written(mounts), policy.resources
        given = {**(environment or {}), "WORKSPACE": str(mounts.workdir.target)}
        with variables_file(given) as (descriptor, path):
            process = await self._started(
                ("run", "--rm", "--interactive", *self._options(policy, mounts, own=False)),
                ("--env-file", path, "--name", name, image, *arguments),
                descriptor=descriptor,
            )

        async def remove() -> None:
            with suppress(AgentError):
                await self._ask("rm", "--force", name)

        size, files = limit.workspace_mb * MB, limit.workspace_files
        disk = self._disks.watch(folders, size=size, files=files)
        program = AttachedProgram(process, remove, disk)
        self._programs = {one for one in self._programs if one.alive} | {program}
        return program

    async def end_left(self) -> None:
        """End the containers of processes that were killed. Raises `SandboxFailed`; cheap where none was."""
        if self._owners is None:
            return
        with dead_owners(self._owners) as dead:
            if not dead:
                return
            shown = f'{{{{.ID}}}} {{{{.Label "{OWNER}"}}}}'
            told = await self._ask("ps", "--all", "--filter", f"label={OWNER}", "--format", shown)
            lines = [line.split() for line in told.splitlines()]
            left = [line[0] for line in lines if len(line) == 2 and line[1] in dead]
            if left:
                await self._ask("rm", "--force", *left)

    async def close(self) -> None:
        programs, self._programs = self._programs, set()
        await asyncio.gather(*(program.close() for program in programs))
        await super().close()

    async def _open(self, policy: Policy, mounts: Mounts) -> RemoteShell:
        _require_own_folders(policy)
        name = _name()
        sleep = ("/bin/sleep", str(policy.resources.wall_seconds * 100))
        options = [*self._options(policy, mounts), "--name", name, "--detach"]
        run, found = ("run", "--rm", *options), await self.probe()
        try:
            await self._ask(*run, self._tried_out(found), *sleep)
        except ImageGone:
            # Its tag names a newer one, say, and what has no name was cleared away.
            found = await self._probe_anew(found)
            if not found.available:
                raise
            await self._require(policy)  # by what the newer one holds
            await self._ask(*run, self._tried_out(found), *sleep)
        folders = _written(mounts)
        limit = policy.resources

        async def remove() -> None:
            with suppress(AgentError):
                await self._ask("rm", "--force", name)

        shell = RemoteShell(
            backend=NAME,
            resources=limit,
            workdir=str(mounts.workdir.target),
            limits=limits_of(limit, each_memory=False),
            argv=lambda script: (self._program, "exec", name, "/bin/bash", "-c", script),
            environment=_client_environment(),
            stop=lambda: self._ask("kill", "--signal", "KILL", name),
            remove=remove,
            disk=self._disks.watch(
                folders, size=limit.workspace_mb * MB, files=limit.workspace_files
            ),
        )
        return self._keep(shell)

    # --- the client ------------------------------------------------------------------------------

    def _options(self, policy: Policy, mounts: Mounts | None, *, own: bool = True) -> list[str]:
        """Not its `own`: an image that says itself where its programs are and begin."""
        resources = policy.resources
        scratch = f"rw,nosuid,nodev,size={resources.scratch_mb}m,mode=1777"
        options = ["--init", "--read-only", "--network", "none", "--pull", "never"]
        options += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        options += ["--user", f"{os.geteuid()}:{os.getegid()}", "--ipc", "private"]
        options += ["--pids-limit", str(resources.pids), "--label", LABEL]
        if self._owners is not None:
            options += ["--label", f"{OWNER}={own_name(self._owners)}"]
        memory = f"{resources.memory_mb}m"
        options += ["--memory", memory, "--memory-swap", memory, "--shm-size", "16m"]
        options += ["--ulimit", f"nofile={resources.open_files}", "--ulimit", "core=0"]
        options += ["--ulimit", f"fsize={resources.file_mb * MB}"]
        options += ["--ulimit", f"cpu={resources.cpu_seconds}:{resources.cpu_seconds + 2}"]
        options += ["--tmpfs", f"{TMP}:{scratch}", "--tmpfs", f"{HOME}:{scratch}"]
        for name, value in environment(policy, home=HOME, tmp=TMP).items():
            if own or name not in {"PATH", "SHELL"}:
                options += ["--env", f"{name}={value}"]
        if mounts is not None:
            if own:
                options += ["--workdir", str(mounts.workdir.target)]
            for mount in mounts.all():
                writable = mount.writable and (
                    mount is not mounts.workdir or policy.filesystem_policy.include_workdir
                )
                options += ["--mount", _mount(mount.source, mount.target, writable=writable)]
        return options

    async def _started(
        self, *arguments: Sequence[str], descriptor: int
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._program,
                *(each for part in arguments for each in part),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=PIECE,
                env=_client_environment(),
                pass_fds=(descriptor,),
                start_new_session=True,
            )
        except OSError as problem:
            raise SandboxFailed(f"The docker client cannot be started: {problem}.") from problem

    async def _ask(self, *arguments: str) -> str:
        """What the client answers. Raises `SandboxFailed` with what it says otherwise, `ImageGone` for an
        image."""
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=_client_environment(),
            )
        except OSError as problem:
            raise SandboxFailed(f"The docker client cannot be started: {problem}.") from problem
        collector = Collector(16_384)
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                out, err = await process.communicate()
        except (TimeoutError, asyncio.CancelledError) as problem:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if isinstance(problem, asyncio.CancelledError):
                raise
            raise SandboxFailed("The Docker engine does not answer.", hint="Start it.") from problem
        collector.add(out)
        if process.returncode != 0:
            said = [
                line
                for line in err.decode(errors="replace").strip().splitlines()
                if line.strip() and not ADVICE.match(line)
            ]
            inspected = arguments[0] == "image"
            gone = any("No such image" in line for line in said)
            raise (ImageGone if gone else SandboxFailed)(
                f"Docker refused: {said[-1][:300] if said else process.returncode}",
                hint=_remedy(" ".join(said), arguments[-1] if inspected else self._image),
            )
        return collector.captured().text.strip()


def _name() -> str:
    return f"agentsite-{secrets.token_hex(8)}"


def _written(mounts: Mounts) -> list[Path]:
    return [mount.source for mount in mounts.all() if mount.writable]


def _require_own_folders(policy: Policy) -> None:
    if not policy.filesystem_policy.read_write == ():
        raise refuse_rule(
            "folders of the host are not opened in a container",
            "filesystem_policy.read_write lists some",
            remedy="For the operator: use the bubblewrap backend, or leave them out.",
        )


def _client_environment() -> dict[str, str]:
    """What the client needs to find its engine, and nothing else of the server's."""
    names = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH")
    return {name: os.environ[name] for name in (*names, "DOCKER_TLS_VERIFY") if name in os.environ}


def _mount(source: Path, target: Path, *, writable: bool) -> str:
    for path in (source, target):
        if "," in str(path) or '"' in str(path):
            raise refuse_rule(
                f"the folder “{path}” has a comma or quote in its name",
                "Docker's client cannot name it",
                remedy="For the operator: rename the folder.",
            )
    return f"type=bind,source={source},target={target}" + ("" if writable else ",readonly")


def _remedy(said: str, image: str) -> str:
    if "No such image" in said or "not found" in said:
        return f"put the image on the engine: docker pull {image}"
    if "daemon" in said or "connect" in said:
        return "start the Docker engine and let the server's user reach it"
    return ""
