"""Runs inside a sandbox and starts its commands, one at a time. Only the standard library, no package.

The other end of its control socket is `sandbox.supervised`. A command's end is known from
the kernel, never from what it printed; the command cannot reach the control socket. When the other
end goes away, everything here ends.
"""

# ruff: noqa: PTH116, PTH123, PTH208, S606
# Plain system calls: pathlib would be a third of the time that a shell takes to start.
# Started as `python -I -S supervisor.py FD`, so nothing of the project can be imported here.

from __future__ import annotations

import base64
import ctypes
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import sys
import time

MESSAGE = 1_000_000
GO_FD, COMMAND_FD, STATE_FD = 27, 28, 29
STATE_LIMIT = 96 * 1024
"""Bytes of directory and variables that are kept; they travel as one argument."""

# Each command is evaluated by a shell of its own, which leaves its directory and its exported variables
# in a pipe when it ends, by itself or by `exit`. The next shell begins with them. It is
# started ahead of its command and waits for a line, so that a command need not wait for it.
SCRIPT = r"""
__agentsite_keep() {
  local status=$?
  { builtin printf '\0%s\0' "$PWD"; builtin declare -px; } 2>/dev/null >&29
  return $status
}
eval "$1"
builtin cd -- "$2" 2>/dev/null || builtin cd -- "$3"
builtin read -r -u 27 || exit 127
IFS= builtin read -r -d "" -u 28
exec 27<&- 28<&-
trap __agentsite_keep EXIT
eval "set --;$REPLY"
__agentsite_keep
"""

QUOTED = r"""(?:"(?:[^"\\$`]|\\.)*"|\$'(?:[^'\\]|\\.)*')"""
DECLARATIONS = re.compile(
    r"(?:declare -[a-zA-Z]+ [A-Za-z_][A-Za-z0-9_]*"
    rf"(?:=(?:{QUOTED}|\((?:\[[0-9]+\]={QUOTED} ?)*\)))?\n)+",
    re.DOTALL,
)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Setup = dict[str, Any]


class Confinement:
    """Landlock, a system call filter and a change of user, applied by a child to itself."""

    def __init__(self, libc: ctypes.CDLL, setup: Setup) -> None:
        self.libc = libc
        self.uid = setup.get("uid")
        self.filter = base64.b64decode(setup["filter"]) if setup.get("filter") else b""
        self.landlock: Setup = setup.get("landlock") or {}
        self.ruleset = -1
        if self.landlock:
            self.ruleset = self.make_ruleset()

    def call(self, number: int, *arguments: object) -> int:
        found: int = self.libc.syscall(ctypes.c_long(number), *arguments)
        if found < 0:
            problem = ctypes.get_errno()
            raise OSError(problem, os.strerror(problem))
        return found

    def make_ruleset(self) -> int:
        """A ruleset of the kernel; opening the folders here keeps it true to what stood there."""
        rules = self.landlock
        attributes = b"".join(
            rules[name].to_bytes(8, sys.byteorder) for name in ("files", "network", "scopes")
        )[: rules["length"]]
        number = ctypes.c_long
        ruleset = self.call(LANDLOCK_CREATE, attributes, number(len(attributes)), number(0))
        for path, access in rules["paths"]:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                rule = access.to_bytes(8, sys.byteorder)
                rule += place.to_bytes(4, sys.byteorder, signed=True)
                self.call(LANDLOCK_ADD, number(ruleset), number(1), rule, number(0))
            finally:
                os.close(place)
        return ruleset

    def apply(self) -> None:
        number = ctypes.c_long
        if self.uid is not None:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
        if self.libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError("no_new_privs is refused")
        if self.ruleset >= 0:
            self.call(LANDLOCK_RESTRICT, number(self.ruleset), number(0))
        if self.filter:
            self.install_filter()

    def install_filter(self) -> None:

        class Program(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

        program = Program(len(self.filter) // 8, self.filter)
        if self.libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the system call filter is refused")


class Supervisor:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.setup: Setup = {}
        self.current = self.number = 0
        self.next: Next | None = None
        self.state_pipe = -1
        self.state = ""
        self.directory = ""
        self.confinement: Confinement | None = None
        self.forwarder = 0
        self.own_pids = os.getpid() == 1
        self.ending = False

    # --- life ------------------------------------------------------------------------------------

    def serve(self) -> None:
        read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(read_end, select.POLLIN)
        while True:
            for descriptor, _event in poll.poll():
                if descriptor == read_end:
                    try:
                        os.read(read_end, 4096)
                    except BlockingIOError:
                        pass
                    self.reap()
                elif not self.receive():
                    self.ending = True
                    self.sweep()
                    return

    def receive(self) -> bool:
        message, descriptors, _flags, _address = socket.recv_fds(self.control, MESSAGE, 4)
        if not message:
            return False
        asked = json.loads(message)
        if asked["op"] == "setup":
            self.prepare(asked)
            self.send(event="ready", pid=os.getpid())
        elif asked["op"] == "next":
            self.forget_next()
            self.next = Next(descriptors)
            self.start_next(self.next)
        elif asked["op"] == "run":
            self.run(asked)
        elif asked["op"] == "program":
            self.run_program(asked, descriptors)
        elif asked["op"] == "kill":
            self.sweep()
        return True

    def send(self, **message: object) -> None:
        try:
            self.control.send(json.dumps(message).encode())
        except OSError:
            pass

    # --- set-up ----------------------------------------------------------------------------------

    def prepare(self, setup: Setup) -> None:
        self.setup = setup
        self.directory = setup["workdir"]
        libc = ctypes.CDLL(None, use_errno=True)
        # Neither memory nor descriptors of this process can be opened through /proc.
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        # Orphans come here, so none is ever out of sight.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if setup.get("filter") or setup.get("landlock") or setup.get("uid") is not None:
            self.confinement = Confinement(libc, setup)
        if setup.get("forward"):
            self.forward()

    def forward(self) -> None:
        """Start what carries connections of the sandbox to the proxy outside."""
        self.forwarder = os.fork()
        if self.forwarder == 0:
            self.control.close()
            python, script = sys.executable, self.setup["forward"]["script"]
            arguments = [str(self.setup["forward"]["port"]), self.setup["forward"]["socket"]]
            os.execve(python, [python, "-I", "-S", script, *arguments], {})
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.setup["forward"]["port"])) == 0:
                    return
            time.sleep(0.005)

    # --- commands --------------------------------------------------------------------------------

    def start_next(self, new: Next, limits: Setup | None = None) -> None:
        """Start the shell of the next command."""
        new.go_read, new.go = os.pipe2(os.O_CLOEXEC)
        new.command = os.memfd_create("command", os.MFD_CLOEXEC)
        # A pipe, because no limit of file size applies to it; it never blocks whoever fills it.
        new.state_read, new.state = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.fcntl(new.state, fcntl.F_SETPIPE_SZ, 3 * STATE_LIMIT)
        except OSError:  # a smaller one keeps a smaller state
            pass
        shell = self.setup["shell"]
        script = [SCRIPT, shell, self.state, self.directory, self.setup["workdir"]]
        arguments = [shell, "--norc", "--noprofile", "-c", *script]
        # The shell's own list is complete, also in what was unset.
        environment = {} if self.state else self.setup["env"]
        nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        places = {
            0: nothing, 1: new.output, 2: new.errors,
            GO_FD: new.go_read, COMMAND_FD: new.command, STATE_FD: new.state,
        }  # fmt: skip
        new.pid, new.problem = self.start(
            arguments, environment, places, limits or self.setup["limits"]
        )
        os.close(nothing)
        os.close(new.go_read)

    def start(
        self,
        arguments: list[str],
        environment: dict[str, str],
        places: dict[int, int],
        limits: Setup,
        directory: str = "",
    ) -> tuple[int, str]:
        """The number of a new process, and why it is none; empty: it runs. It begins in the workspace, if not
        in another directory."""
        report, failed = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            try:
                self.become(arguments, environment, places, limits, directory)
            except BaseException as problem:
                os.write(failed, f"{type(problem).__name__}: {problem}".encode()[:1000])
            finally:
                os._exit(127)
        os.close(failed)
        reason = b""
        while piece := os.read(report, 1000):
            reason += piece
        os.close(report)
        return pid, reason.decode(errors="replace")

    def run_program(self, asked: Setup, descriptors: list[int]) -> None:
        """One program, without a shell, whose input is somebody's outside. Nothing else runs beside it.

        It begins in the home folder, which is empty: whatever lies where a program begins may be taken for a
        part of it, and anybody may have written what lies in the workspace.
        """
        self.forget_next()
        given, output, errors = descriptors
        own = {**self.setup["env"], "WORKSPACE": self.setup["workdir"]}
        environment = {**own, **asked["env"]}
        places = {0: given, 1: output, 2: errors}
        self.number = asked["number"]
        self.current, problem = self.start(
            asked["argv"], environment, places, asked["limits"], directory=own["HOME"]
        )
        for descriptor in descriptors:
            os.close(descriptor)
        if problem:
            self.send(event="failed", number=self.number, problem=problem)

    def forget_next(self) -> None:
        if self.next is not None:
            self.next.end()
            self.next.close()
            self.next = None

    def run(self, asked: Setup) -> None:
        new, self.next = self.next, None
        if new is None:
            self.send(event="failed", number=asked["number"], problem="nothing was prepared")
            return
        if new.pid == 0 or asked.get("limits"):
            # Something in the sandbox killed it while it waited, or it has other limits this time.
            new.end()
            new.forget_shell()
            self.start_next(new, asked.get("limits"))
        self.number, self.current, self.state_pipe = asked["number"], new.pid, new.state_read
        new.state_read = -1
        if new.problem:
            self.send(event="failed", number=self.number, problem=new.problem)
            new.close()
            return
        try:
            text = base64.b64decode(asked["command"])
            os.write(new.command, text + b"\0")
            os.lseek(new.command, 0, os.SEEK_SET)
            os.write(new.go, b"\n")
        except OSError:  # it ended meanwhile, and its end is told as any other
            pass
        new.close()

    def become(
        self,
        arguments: list[str],
        environment: dict[str, str],
        places: dict[int, int],
        limits: Setup,
        directory: str,
    ) -> None:
        os.setsid()
        # Duplicated out of the way first, because a number may be both a source and a target.
        safe = {
            target: fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 64) for target, one in places.items()
        }
        for target, one in safe.items():
            os.dup2(one, target)
        os.chdir(directory or self.setup["workdir"])
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for name, (soft, hard) in limits.items():
            kind = getattr(resource, name)
            if name == "RLIMIT_NPROC" and self.setup.get("nproc_above"):
                others = processes_of(os.getuid())
                soft, hard = soft + others, hard + others
            ceiling = resource.getrlimit(kind)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.setrlimit(kind, (soft, hard))
        os.umask(0o077)
        if self.confinement is not None:
            self.confinement.apply()
        execute(arguments, environment)

    def reap(self, wait: bool = False) -> None:
        """Take leave of the dead; with `wait`, until nobody is left who could die."""
        ended = None
        while True:
            try:
                pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.current:
                self.current = 0
                ended = status
            elif self.next is not None and pid == self.next.pid:
                self.next.pid = 0
            elif pid == self.forwarder:
                self.forwarder = 0
        if ended is not None:
            self.remember()
            self.send(
                event="ended",
                number=self.number,
                status=ended,
                directory=self.directory,
                left=self.has_left(),
            )
        if self.forwarder == 0 and self.setup.get("forward") and not self.ending:
            self.forward()

    def has_left(self) -> bool:
        """Does a program of any command still run? One that ends at this moment counts.

        Whatever lost its parent is a child of this process, which alone takes them off the list: so
        nothing that lives is missed, however it tried to get away.
        """
        own = {self.forwarder, self.next.pid if self.next is not None else 0}
        pid = os.getpid()
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                return not own.issuperset(map(int, file.read().split()))
        except OSError:
            return True

    def remember(self) -> None:
        """Keep the directory and the variables that the shell left, if it left any."""
        if self.state_pipe < 0:  # it was no shell
            return
        left = b""
        try:
            while piece := os.read(self.state_pipe, 4 * STATE_LIMIT):
                left += piece
        except OSError:  # somebody in the background still holds it
            pass
        finally:
            os.close(self.state_pipe)
            self.state_pipe = -1
        parts = left.split(b"\0")
        if len(parts) < 3 or len(parts[-1]) > STATE_LIMIT:
            return
        try:
            directory, state = parts[-2].decode(), parts[-1].decode()
        except UnicodeDecodeError:
            return
        # Whatever a command writes there is evaluated before the next one, so it must be nothing
        # but declarations of variables.
        if directory.startswith("/") and len(directory) < 4096 and DECLARATIONS.fullmatch(state):
            self.directory, self.state = directory, state

    # --- ending ----------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Kill everything that was ever started here, however it tried to get away, and only then
        tell of the command's end."""
        if self.own_pids:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass
        else:
            # Orphans come here one by one, so what is seen shrinks until nothing is left.
            while found := descendants(os.getpid()):
                for pid in found:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                time.sleep(0.001)
        self.reap(wait=True)


class Next:
    """The shell that waits for the next command, and what belongs to it."""

    def __init__(self, descriptors: list[int]) -> None:
        self.output, self.errors = descriptors
        self.pid = 0
        self.problem = ""
        self.go_read = self.go = self.command = self.state = self.state_read = -1

    def end(self) -> None:
        if self.pid:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def forget_shell(self) -> None:
        for name in ("go", "command", "state", "state_read"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def close(self) -> None:
        self.forget_shell()
        os.close(self.output)
        os.close(self.errors)


def execute(arguments: list[str], environment: dict[str, str]) -> None:
    """Become the program. Looked for here, because nothing can be imported any more that would do it."""
    name = arguments[0]
    if "/" in name:
        os.execve(name, arguments, environment)
    for folder in environment.get("PATH", "").split(":"):
        try:
            os.execve(f"{folder}/{name}", arguments, environment)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
    raise FileNotFoundError(f"there is no program {name}")


def descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                waiting += children
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [one for one in found if not is_dead(one)]


def is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def processes_of(uid: int) -> int:
    """Tasks of a user; the kernel counts threads as well."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


if __name__ == "__main__":
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    Supervisor(control).serve()
