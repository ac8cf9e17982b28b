"""The backend `openshell`: a sandbox on an OpenShell gateway, through its Python client.

The gateway enforces files, processes and network itself; a workspace travels there and back as an
archive. The client is the extra `openshell` of pyproject.toml: loaded when a gateway is first asked, and
not required where another backend is chosen.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import os
import queue
import shlex
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Protocol

from .backend import ShellBackend
from .busy import OneCommand
from .capture import collectors
from .contract import (
    DEFAULT_TIMEOUT,
    Capabilities,
    Command,
    KilledBy,
    Mounts,
    OnOutput,
    Result,
    SandboxFailed,
)
from .environment import environment
from .guarantees import Guarantee
from .limits import as_ulimits, limits_of
from .policy import Policy, Resources
from .remote import KEPT, SCRIPT

NAME = "openshell"
WORKSPACE = "default"
ARCHIVE_LIMIT = 256 * 1024**2
"""Bytes of a workspace on its way."""
CARRY_SECONDS = 300.0
"""So long it may be on its way."""
HEALTHY = 1
"""`SERVICE_STATUS_HEALTHY` of the gateway's protocol."""
HELD = frozenset(
    {
        Guarantee.FS_WRITE_CONFINED,
        Guarantee.FS_READ_CONFINED,
        Guarantee.NO_NETWORK,
        Guarantee.EGRESS_ALLOW_LIST,
        Guarantee.HOST_SOCKETS_HIDDEN,
        Guarantee.PROCESSES_ISOLATED,
        Guarantee.NO_SURVIVORS,
        Guarantee.NO_NEW_PRIVILEGES,
        Guarantee.SYSCALLS_FILTERED,
        Guarantee.CPU_LIMITED,
        Guarantee.FILE_SIZE_LIMITED,
        Guarantee.OPEN_FILES_LIMITED,
    }
)
"""What the gateway's documentation promises of every sandbox, and the limits set here."""


class Client(Protocol):
    """The part of `openshell.SandboxClient` that is used."""

    def health(self) -> Any: ...
    def create(self, *, workspace: str, spec: Any = None, name: str | None = None) -> Any: ...
    def wait_ready(self, name: str, *, workspace: str, timeout_seconds: float = ...) -> Any: ...
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
    ) -> Iterator[Any]: ...
    def delete(self, name: str, *, workspace: str, allow_missing: bool = False) -> Any: ...
    def close(self) -> None: ...


def policy_document(policy: Policy, mounts: Mounts) -> dict[str, Any]:
    """The policy in OpenShell's own schema, for its parser."""
    writable = [str(mount.target) for mount in mounts.all() if mount.writable]
    files = policy.filesystem_policy
    return {
        "version": 1,
        "filesystem": {
            "include_workdir": files.include_workdir,
            "read_only": [
                *files.read_only,
                *(str(mount.target) for mount in mounts.all() if not mount.writable),
            ],
            "read_write": [*files.read_write, *writable, "/tmp", "/dev/null"],  # noqa: S108
        },
        "landlock": {"compatibility": "hard_requirement"},
        "network_policies": {
            name: {
                "name": rule.name or name,
                "endpoints": [
                    {
                        "host": endpoint.host,
                        "ports": list(endpoint.ports),
                        **(
                            {"allowed_ips": list(endpoint.allowed_ips)}
                            if endpoint.allowed_ips
                            else {}
                        ),
                        **(
                            {
                                "protocol": "rest",
                                "enforcement": "NETWORK_ENFORCEMENT_MODE_ENFORCE",
                                "rules": [
                                    {"allow": {"method": method, "path": "/**"}}
                                    for method in endpoint.methods
                                    if method != "CONNECT"
                                ],
                            }
                            if endpoint.methods
                            else {}
                        ),
                    }
                    for endpoint in rule.endpoints
                ],
                "binaries": [{"path": "/**"}],
            }
            for name, rule in policy.network_policies.items()
        },
    }


LIBRARY, MESSAGES, PARSER = (
    "openshell",
    "openshell._proto.openshell_pb2",
    "google.protobuf.json_format",
)


def real_client(endpoint: str) -> Client:
    """Raises `ImportError` where a part of the client is missing, also one that is needed later."""
    library, _messages, _parser = map(importlib.import_module, (LIBRARY, MESSAGES, PARSER))
    make = library.SandboxClient
    client: Client = make(endpoint) if endpoint else make.from_active_cluster()
    return client


def real_spec(document: Mapping[str, Any]) -> Any:
    """The client's message for a new sandbox with this policy."""
    messages, parser = map(importlib.import_module, (MESSAGES, PARSER))
    return parser.ParseDict({"policy": document}, messages.SandboxSpec())


class OpenShellBackend(ShellBackend["OpenShellShell"]):
    name = NAME

    def __init__(
        self,
        *,
        endpoint: str = "",
        client: Callable[[str], Client] = real_client,
        spec: Callable[[Mapping[str, Any]], Any] = real_spec,
        found: Capabilities | None = None,
    ) -> None:
        super().__init__(found)
        self._endpoint = endpoint
        self._make = client
        self._spec = spec
        self._client: Client | None = None

    async def _probe(self) -> Capabilities:
        return await asyncio.to_thread(self._try_out)

    def _try_out(self) -> Capabilities:
        try:
            health = self._connected().health()
        except ImportError as problem:
            return Capabilities(
                NAME,
                available=False,
                problem="the package “openshell” is not installed"
                if problem.name == LIBRARY
                else f"the package “openshell” cannot be loaded: {str(problem)[:300]}",
                remedy="install the extra “openshell” (pip install --require-hashes "
                "-r requirements-openshell.txt) and point the server at a gateway",
            )
        except Exception as problem:
            return self._absent(problem)
        if int(health.status) != HEALTHY:
            return self._absent(f"its status is {health.status}")
        reason = "it depends on the gateway's compute driver and is not promised"
        return Capabilities(
            NAME,
            available=True,
            guarantees=HELD,
            reasons={guarantee: reason for guarantee in Guarantee if guarantee not in HELD},
            details={"gateway": str(getattr(health, "version", ""))},
        )

    def _connected(self) -> Client:
        """Made where it is first needed: what another loop's backend found is not probed again."""
        if self._client is None:
            self._client = self._make(self._endpoint)
        return self._client

    def _absent(self, problem: object) -> Capabilities:
        return Capabilities(
            NAME,
            available=False,
            problem=f"its gateway does not answer: {str(problem)[:300]}",
            remedy="start the OpenShell gateway and let the server reach it",
        )

    async def _open(self, policy: Policy, mounts: Mounts) -> OpenShellShell:

        def create() -> tuple[Client, str]:
            client = self._connected()
            made = client.create(
                workspace=WORKSPACE, spec=self._spec(policy_document(policy, mounts))
            )
            client.wait_ready(made.name, workspace=WORKSPACE, timeout_seconds=120)
            return client, str(made.name)

        try:
            client, name = await asyncio.to_thread(create)
        except Exception as problem:
            raise SandboxFailed(f"The gateway made no sandbox: {problem}.") from problem
        shell = OpenShellShell(client, name, policy, mounts)
        return self._keep(shell)

    async def close(self) -> None:
        await super().close()
        if self._client is not None:
            await asyncio.to_thread(self._client.close)


class OpenShellShell(OneCommand):
    """See `contract.Shell`. Ends with a command that is killed, because only the whole sandbox can be."""

    def __init__(self, client: Client, name: str, policy: Policy, mounts: Mounts) -> None:
        self._client = client
        self._name = name
        self._policy = policy
        self._mounts = mounts
        self._sent: dict[Path, bytes] = {}
        self._there: dict[Path, Entries] = {}
        """What both sides had when they were last compared."""
        self._interrupted = asyncio.Event()
        self._closed = False

    @property
    def alive(self) -> bool:
        return not self._closed

    async def run(
        self,
        command: Command,
        *,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        with self.taken_by(command) as text:
            try:
                await self._carry_in()
                wall = min(timeout, self._policy.resources.wall_seconds)
                result = await self._run(text, wall, on_output)
                if not self._closed:
                    await self._carry_out()
                return result
            finally:
                self._sent.clear()

    async def _run(self, text: str, timeout: float, on_output: OnOutput | None) -> Result:  # noqa: ASYNC109
        workdir = str(self._mounts.workdir.target)
        script = SCRIPT.format(
            limits=as_ulimits(limits_of(self._policy.resources, each_memory=True)),
            kept=KEPT,
            workdir=shlex.quote(workdir),
            command=shlex.quote(text),
        )
        limit = self._policy.resources.output_kb * 1024
        out, err = collectors(limit, on_output)
        began = time.monotonic()
        self._interrupted.clear()
        exit_code: int | None = None
        reason: KilledBy | None = None
        env = environment(self._policy, home="/tmp", tmp="/tmp")  # noqa: S108
        command = ["/bin/bash", "-c", script]
        chunks = self._stream(command, timeout, workdir=workdir, env=env)
        try:
            async with asyncio.timeout(timeout), aclosing(chunks):
                async for chunk in chunks:
                    if self._interrupted.is_set():
                        reason = KilledBy.INTERRUPT
                        break
                    if hasattr(chunk, "exit_code"):
                        exit_code = int(chunk.exit_code)
                        continue
                    into = out if chunk.stream == "stdout" else err
                    into.add(chunk.data)
                    # The client keeps all it was sent, so an endless printer is ended here.
                    if out.size + err.size > 16 * limit:
                        reason = KilledBy.OUTPUT
                        break
        except TimeoutError:
            reason = KilledBy.TIMEOUT
        except BaseException:
            await asyncio.shield(self.close())
            raise
        if exit_code is None:
            await self.close()
        return Result(
            backend=NAME,
            confined=True,
            exit_code=exit_code,
            duration=time.monotonic() - began,
            stdout=out.captured(),
            stderr=err.captured(),
            killed_by=reason,
            left=self.alive,
        )

    async def _stream(self, command: Sequence[str], timeout: float, **more: Any) -> Any:  # noqa: ASYNC109
        """The client's blocking stream, read in a thread of its own: whatever runs inside may keep it."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Any] = asyncio.Queue()
        room: queue.Queue[None] = queue.Queue(maxsize=64)
        stopped = threading.Event()

        def post(piece: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        def read() -> None:
            try:
                for chunk in self._client.exec_stream(
                    self._name,
                    list(command),
                    workspace=WORKSPACE,
                    timeout_seconds=max(1, int(timeout)),
                    **more,
                ):
                    room.put(None, timeout=timeout + 10)
                    if stopped.is_set():
                        return
                    post(chunk)
            except Exception as problem:
                post(problem)
            else:
                post(None)

        threading.Thread(target=read, daemon=True, name="openshell-exec").start()
        try:
            while (chunk := await pieces.get()) is not None:
                if isinstance(chunk, Exception):
                    raise SandboxFailed(f"The gateway broke off: {chunk}.") from chunk
                room.get_nowait()
                yield chunk
        finally:
            stopped.set()
            while not room.empty():
                room.get_nowait()

    # --- files -----------------------------------------------------------------------------------

    async def _carry_in(self) -> None:
        for mount in self._mounts.all():
            data = await asyncio.to_thread(packed, mount.source)
            given = await asyncio.to_thread(entries_in, data)
            place = shlex.quote(str(mount.target))
            if gone := self._there.get(mount.source, given) - given:
                # Taken away here meanwhile, or something of another kind: it must not come back.
                names = b"\0".join(os.fsencode(name) for name, _is_folder in gone)
                await self._exchange(f"cd {place} && xargs -0 -r rm -rf --", names)
            self._sent[mount.source], self._there[mount.source] = data, given
            await self._exchange(f"mkdir -p {place} && tar -x -f - -C {place}", data)

    async def _carry_out(self) -> None:
        for mount in self._mounts.all():
            if mount.writable:
                place = shlex.quote(str(mount.target))
                data = await self._exchange(f"tar -c -f - -C {place} .", b"")
                self._there[mount.source] = await asyncio.to_thread(
                    unpacked, data, self._sent[mount.source], mount.source, self._policy.resources
                )

    async def _exchange(self, script: str, data: bytes) -> bytes:
        """Ends the sandbox where that takes too long: a program inside could hold it up for ever."""
        got = bytearray()
        chunks = self._stream(["/bin/sh", "-c", script], CARRY_SECONDS, stdin=data)
        exit_code: int | None = None
        try:
            async with asyncio.timeout(CARRY_SECONDS), aclosing(chunks):
                async for chunk in chunks:
                    if hasattr(chunk, "exit_code"):
                        exit_code = int(chunk.exit_code)
                    elif chunk.stream == "stdout":
                        got += chunk.data
                        if len(got) > ARCHIVE_LIMIT:
                            raise SandboxFailed(
                                f"The workspace is larger than {ARCHIVE_LIMIT:,} bytes.",
                                hint="Remove some files.",
                            )
        except TimeoutError:
            exit_code = None
        if exit_code is None:
            await self.close()
            raise SandboxFailed(
                "The workspace was not carried over in time, so its sandbox was ended.",
                hint="Run the command again, and leave nothing running that holds others up.",
            )
        if exit_code != 0:
            raise SandboxFailed("The workspace could not be carried over.")
        return bytes(got)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(
            lambda: self._client.delete(self._name, workspace=WORKSPACE, allow_missing=True)
        )


Entries = frozenset[tuple[str, bool]]
"""Names in an archive, and whether each is a folder."""


def entries_in(data: bytes) -> Entries:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        return frozenset((entry.name, entry.isdir()) for entry in archive)


def packed(folder: Path) -> bytes:
    """Files and folders as an archive. Links and special files stay behind."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(
            folder, ".", filter=lambda entry: entry if entry.isreg() or entry.isdir() else None
        )
    return data.getvalue()


def unpacked(data: bytes, sent: bytes, folder: Path, most: Resources) -> Entries:
    """Take over what the command changed: nothing outside the folder, no links, no special files. Files that
    were sent and did not come back are removed; what came back as it was sent is left as it is here by now.
    All that came back is returned. Raises `SandboxFailed`, and leaves the folder as it was, for more than it
    may hold and for what is no archive."""
    root = folder.resolve()
    with tarfile.open(fileobj=io.BytesIO(sent), mode="r:") as given:
        before = {entry.name: entry for entry in given}
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                plain = [entry for entry in _sound(archive, data) if entry.isreg() or entry.isdir()]
                size = sum(entry.size for entry in plain)
                if size > most.workspace_mb * 1024**2 or len(plain) > most.workspace_files:
                    raise SandboxFailed(
                        "The workspace holds more than it may, so nothing of it was carried back.",
                        hint="Remove some files.",
                    )
                changed = [
                    entry
                    for entry in plain
                    if (old := before.get(entry.name)) is None
                    or not _is_same(entry, archive, old, given)
                ]
                for entry in changed:
                    _make_way(entry, folder, root)
                archive.extractall(folder, members=changed, filter="data")
        except (tarfile.TarError, OSError, ValueError, RecursionError) as problem:
            raise SandboxFailed(f"The workspace could not be carried back: {problem}.") from problem
    back = frozenset((entry.name, entry.isdir()) for entry in plain)
    for name in {entry.name for entry in before.values() if entry.isreg()} - dict(back).keys():
        path = folder / name
        if path.parent.resolve().is_relative_to(root):
            with suppress(IsADirectoryError):  # made here meanwhile
                path.unlink(missing_ok=True)
    return back


def _sound(archive: tarfile.TarFile, data: bytes) -> Iterator[tarfile.TarInfo]:
    """What is in it. A program inside may have worded it: entries that lead back to earlier ones would never
    end, and one whose name goes up would take the place of what lies there. Raises ValueError."""
    most = len(data) // tarfile.BLOCKSIZE
    for number, entry in enumerate(archive):
        if entry.size < 0 or number >= most:
            raise ValueError("it has no end")
        if ".." in entry.name.split("/"):
            raise ValueError("it leads out of the workspace")
        yield entry


def _is_same(
    entry: tarfile.TarInfo, archive: tarfile.TarFile, old: tarfile.TarInfo, given: tarfile.TarFile
) -> bool:
    if entry.isdir() or old.isdir():
        return entry.isdir() == old.isdir()
    if entry.size != old.size or (entry.mode ^ old.mode) & 0o111:
        return False
    here, there = given.extractfile(old), archive.extractfile(entry)
    return here is not None and there is not None and here.read() == there.read()


def _make_way(entry: tarfile.TarInfo, folder: Path, root: Path) -> None:
    """Take away the file where there is a folder now, and the other way round."""
    path = folder / entry.name
    if path.is_dir() == entry.isdir() or not path.parent.resolve().is_relative_to(root):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
