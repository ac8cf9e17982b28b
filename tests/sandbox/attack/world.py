"""What an attack is after: secrets, neighbours and services around a workspace, all with marks.

Everything is made for one run and removed afterwards; nothing of the machine itself is touched.
"""

from __future__ import annotations

import ctypes
import os
import resource
import secrets
import selectors
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
from pathlib import Path

from sandbox.contract import Mount, Mounts
from skills_app.installing import LAUNCHER, make_plain, packages_folder, put_program
from tools_app.packagetrees import tree_of

IPC_CREAT, IPC_RMID = 0o1000, 0
PUBLIC = "93.184.216.34"
"""An address of the public network that stands for this world's own server."""


class Services:
    """Sockets of every kind that answer with the mark and count who came."""

    def __init__(self, mark: str, folder: Path) -> None:
        self._mark = mark
        self._select = selectors.DefaultSelector()
        self.visits: list[str] = []
        self.requests: list[str] = []
        self.tcp = self._listen(socket.create_server(("0.0.0.0", 0)), "tcp")
        try:
            six = socket.create_server(("::1", 0), family=socket.AF_INET6)
            self.tcp6 = self._listen(six, "tcp6")
        except OSError:
            self.tcp6 = 9
        self.web = self._listen(socket.create_server(("127.0.0.1", 0)), "web")
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        self.udp = udp.getsockname()[1]
        self._add(udp, "udp")
        self.path = folder / "service.sock"
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(str(self.path))
        unix.listen(8)
        self.path.chmod(0o777)
        self._add(unix, "unix")
        self.datagrams = folder / "datagrams.sock"
        notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notes.bind(str(self.datagrams))
        self.datagrams.chmod(0o777)
        self._add(notes, "unix datagram")
        self.abstract = f"agentsite-{secrets.token_hex(6)}"
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind(f"\0{self.abstract}")
        hidden.listen(8)
        self._add(hidden, "abstract")
        self._end, self._ended = socket.socketpair()
        self._select.register(self._ended, selectors.EVENT_READ, "end")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _listen(self, server: socket.socket, kind: str) -> int:
        self._add(server, kind)
        return int(server.getsockname()[1])

    def _add(self, server: socket.socket, kind: str) -> None:
        server.setblocking(False)
        self._select.register(server, selectors.EVENT_READ, kind)

    def _serve(self) -> None:
        while True:
            for key, _events in self._select.select():
                if key.data == "end":
                    return
                assert isinstance(key.fileobj, socket.socket)
                self.visits.append(key.data)
                if "datagram" in key.data or key.data == "udp":
                    key.fileobj.recv(65_536)
                    continue
                threading.Thread(
                    target=self._answer, args=(key.fileobj.accept()[0], key.data), daemon=True
                ).start()

    def _answer(self, connection: socket.socket, kind: str) -> None:
        connection.settimeout(2)
        with connection:
            try:
                if kind != "web":
                    connection.sendall(self._mark.encode())
                    return
                request = connection.recv(65_536).decode(errors="replace")
                self.requests.append(request)
                if request.startswith("GET /redirect"):
                    place = f"Location: http://127.0.0.1:{self.web}/inner\r\n"
                    connection.sendall(
                        f"HTTP/1.1 302 Found\r\n{place}Content-Length: 0\r\n\r\n".encode()
                    )
                    return
                inner = request.startswith("GET /inner") or "unlisted" in request
                body = self._mark if inner else "welcome"
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall((head + body).encode())
                # What else is sent on the same connection?
                connection.settimeout(0.3)
                more = connection.recv(65_536).decode(errors="replace")
                if more:
                    self.requests.append(more)
            except OSError:
                pass

    def close(self) -> None:
        self._end.send(b"x")
        self._thread.join()
        for key in list(self._select.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._end.close()


class World:
    """A context manager. `mark` appears wherever something should not be read."""

    def __enter__(self) -> World:
        self.mark = f"mark-{secrets.token_hex(12)}"
        self._folder = tempfile.TemporaryDirectory(
            prefix="agentsite-attack-", ignore_cleanup_errors=True
        )
        self.root = Path(self._folder.name)
        self.root.chmod(0o711)
        self.mine = self._make("mine")
        self.theirs = self._make("theirs")
        self.outside = self._make("outside")
        self.shared = self._make("shared")
        (self.theirs / "secret.txt").write_text(self.mark)
        (self.outside / "secret.txt").write_text(self.mark)
        (self.outside / f"{self.mark}.txt").write_text("")
        (self.shared / "notes.txt").write_text("shared")
        self.packages = self._make("packages")
        self.lay_packages()
        self.packages_tree = tree_of(self.packages)
        self.database = self.outside / "db.sqlite3"
        with sqlite3.connect(self.database) as database:
            database.execute("create table keys (text)")
            database.execute("insert into keys values (?)", (self.mark,))
        database.close()
        self.services = Services(self.mark, self.outside)
        self.outside.chmod(0o711)
        self.victim = subprocess.Popen(
            ["/bin/sleep", "3600"], env={"SECRET": self.mark}, start_new_session=True
        )
        self.unhurt = self.victims_state()
        os.environ["ANTHROPIC_API_KEY"] = os.environ["AGENTSITE_SECRET_KEY"] = self.mark
        self.inherited = os.open(self.outside / "secret.txt", os.O_RDONLY)
        os.set_inheritable(self.inherited, True)
        self._shared_memory()
        self.lookups = 0
        self.survivor = f"300.{secrets.randbelow(10**9):09d}977"
        return self

    def _make(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(mode=0o700)
        return folder

    def lay_packages(self) -> None:
        """As they are installed for a skill."""
        (self.packages / "site").mkdir()
        (self.packages / "site" / "tables.py").write_text("def read(): return []\n")
        put_program(self.packages, LAUNCHER)
        make_plain(self.packages)

    def _shared_memory(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.shmat.restype = ctypes.c_void_p
        self.memory_key = secrets.randbelow(2**30) + 1
        self.memory = self._libc.shmget(self.memory_key, 4096, IPC_CREAT | 0o666)
        place = self._libc.shmat(self.memory, None, 0)
        if self.memory >= 0 and place:
            ctypes.memmove(place, self.mark.encode(), len(self.mark))
        self.posix = Path("/dev/shm") / f"agentsite-{secrets.token_hex(6)}"
        try:
            self.posix.write_text(self.mark)
        except OSError:
            pass

    def __exit__(self, *_details: object) -> None:
        self.victim.kill()
        self.victim.wait()
        self.services.close()
        os.close(self.inherited)
        os.environ.pop("ANTHROPIC_API_KEY", None)
        os.environ.pop("AGENTSITE_SECRET_KEY", None)
        self._libc.shmctl(self.memory, IPC_RMID, None)
        self.posix.unlink(missing_ok=True)
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._folder.cleanup()

    # --- what the sandbox is given ---------------------------------------------------------------

    def mounts(self) -> Mounts:
        return Mounts(
            Mount(self.mine, Path("/workspace"), writable=True, label="your workspace"),
            (
                Mount(self.shared, Path("/shared"), label="shared by all"),
                Mount(self.packages, packages_folder("attack"), label="a skill's Python packages"),
            ),
        )

    async def resolve(self, host: str, _port: int) -> list[str]:
        """The names of this world's internet."""
        self.lookups += 1
        if host == "rebind.example":
            return [PUBLIC] if self.lookups % 2 else ["127.0.0.1"]
        known = {
            "good.example": [PUBLIC],
            "readonly.example": [PUBLIC],
            "loop.example": ["127.0.0.1"],
            "private.example": ["10.0.0.5"],
            "meta.example": ["169.254.169.254"],
            "mixed.example": [PUBLIC, "127.0.0.1"],
            "mapped.example": ["::ffff:127.0.0.1"],
        }
        if host in known:
            return known[host]
        raise OSError("no such name")

    # --- what became of it -----------------------------------------------------------------------

    def victim_lives(self) -> bool:
        return self.victim.poll() is None

    def victims_state(self) -> tuple[object, ...]:
        """Priority, processors, scheduling and limit of files of the victim."""
        pid = self.victim.pid
        return (
            os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getaffinity(pid),
            os.sched_getscheduler(pid),
            resource.prlimit(pid, resource.RLIMIT_NOFILE),
        )

    def survivors(self) -> list[int]:
        """Processes that carry this world's mark of survival in their arguments."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.survivor.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return found
