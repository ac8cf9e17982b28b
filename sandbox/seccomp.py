"""A filter of system calls as a BPF program, written by hand so that no library is needed.

Everything is allowed but what reaches past a sandbox or into rarely used parts of the kernel. The
bytes are what `bwrap --seccomp` and `seccomp(2)` take. Which filter goes with which backend is said
here; where it is installed, by the backends.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .syscalls import AUDIT_ARCH, NUMBERS

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
"""Numbers from here on belong to another calling convention of x86-64."""

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_SEQPACKET = 1, 5
CLONE_NEW = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
S_ISUID_OR_GID = 0o6000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C


@dataclass(frozen=True, slots=True)
class Test:
    """One condition on the low half of an argument; arguments of interest are 32 bits wide."""

    argument: int
    kind: str
    """`equals`, `differs` or `has`: all tests of a rule must be met."""
    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Rule:
    calls: tuple[str, ...]
    answer: int
    """An errno; 0 means: say it worked and do nothing."""
    tests: tuple[Test, ...] = ()


def _calls(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ALWAYS: tuple[Rule, ...] = (
    # Other processes, and whatever could be done in their name.
    Rule(_calls("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp"), errno.EPERM),
    # Namespaces and mounts: a nested sandbox would open parts of the kernel that are closed here.
    Rule(_calls("mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen"), errno.EPERM),
    Rule(_calls("fsconfig fsmount fspick mount_setattr setns unshare chroot"), errno.EPERM),
    Rule(("clone",), errno.EPERM, (Test(0, "has", CLONE_NEW),)),
    # Its flags lie in memory, where a filter cannot look; callers fall back to clone.
    Rule(("clone3",), errno.ENOSYS),
    # Rings perform calls that no filter sees.
    Rule(_calls("io_uring_setup io_uring_enter io_uring_register"), errno.ENOSYS),
    Rule(_calls("keyctl add_key request_key bpf perf_event_open userfaultfd"), errno.EPERM),
    Rule(_calls("kexec_load kexec_file_load init_module finit_module delete_module"), errno.EPERM),
    Rule(_calls("swapon swapoff reboot settimeofday clock_settime clock_adjtime"), errno.EPERM),
    Rule(_calls("adjtimex sethostname setdomainname quotactl quotactl_fd nfsservctl"), errno.EPERM),
    Rule(_calls("acct syslog iopl ioperm vhangup open_by_handle_at"), errno.EPERM),
    Rule(_calls("name_to_handle_at lookup_dcookie fanotify_init migrate_pages"), errno.EPERM),
    Rule(_calls("move_pages modify_ldt uselib ustat sysfs _sysctl"), errno.EPERM),
    # Typing into the terminal somebody else reads.
    Rule(("ioctl",), errno.EPERM, (Test(1, "equals", TIOCSTI),)),
    Rule(("ioctl",), errno.EPERM, (Test(1, "equals", TIOCLINUX),)),
    # A setuid file in a workspace would lend the server's rights to any user of the host.
    Rule(("chmod", "fchmod", "mknod", "mkdir", "creat"), errno.EPERM,
         (Test(1, "has", S_ISUID_OR_GID),)),
    Rule(("fchmodat", "fchmodat2", "mknodat", "mkdirat", "open"), errno.EPERM,
         (Test(2, "has", S_ISUID_OR_GID),)),
    Rule(("openat",), errno.EPERM, (Test(3, "has", S_ISUID_OR_GID),)),
    # Its mode lies in memory; callers fall back to openat.
    Rule(("openat2",), errno.ENOSYS),
)  # fmt: skip
"""Refused in every sandbox."""

_FAMILIES = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
OWN_NETWORK: tuple[Rule, ...] = (
    # vsock reaches the machine's host from any network namespace; the rest is rarely tested code.
    Rule(
        ("socket", "socketpair"),
        errno.EAFNOSUPPORT,
        tuple(Test(0, "differs", family) for family in _FAMILIES),
    ),
    Rule(
        ("socket",),
        errno.EPROTONOSUPPORT,
        (Test(0, "equals", AF_NETLINK), Test(2, "differs", 0)),
    ),
)
"""For a sandbox with a network namespace of its own."""

NO_SOCKETS: tuple[Rule, ...] = (
    Rule(_calls("socket connect bind listen accept accept4"), errno.EACCES),
    # A pair of datagram sockets could still be pointed at a socket of the host.
    Rule(("socketpair",), errno.EACCES, (Test(0, "differs", AF_UNIX),)),
    Rule(
        ("socketpair",),
        errno.EACCES,
        (Test(1, "differs", SOCK_STREAM, 0xF), Test(1, "differs", SOCK_SEQPACKET, 0xF)),
    ),
)
"""For a sandbox that shares the host's network and file names: no socket at all."""

SHARED_NAMESPACES: tuple[Rule, ...] = (
    Rule(_calls("shmget shmat shmctl shmdt semget semop semctl semtimedop"), errno.EACCES),
    Rule(_calls("msgget msgsnd msgrcv msgctl mq_open mq_unlink"), errno.EACCES),
    # Landlock keeps signals from other processes, but not their priorities and limits.
    Rule(("setpriority", "ioprio_set"), errno.EPERM, (Test(0, "differs", 0, 0xFFFF),)),
    Rule(("setpriority", "ioprio_set"), errno.EPERM, (Test(1, "differs", 0),)),
    Rule(
        _calls("sched_setaffinity sched_setscheduler sched_setparam sched_setattr prlimit64"),
        errno.EPERM,
        (Test(0, "differs", 0),),
    ),
    # Landlock does not keep a folder's events from whoever may not read the folder.
    Rule(("inotify_add_watch",), errno.EACCES),
)
"""For a sandbox without namespaces of its own."""

SAME_OWNER: tuple[Rule, ...] = (
    # Landlock does not guard modes, owners and times, and this sandbox owns the server's files. As
    # on file systems without them, changes seem to work and do nothing: programs then go on.
    Rule(_calls("chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat"), 0),
    Rule(_calls("utime utimes futimesat utimensat"), 0),
    Rule(_calls("setxattr lsetxattr fsetxattr setxattrat"), errno.ENOTSUP),
    Rule(_calls("removexattr lremovexattr fremovexattr removexattrat file_setattr"), errno.ENOTSUP),
)
"""For a sandbox that runs under the server's own user without a view of files of its own."""


def machine() -> str:
    return platform.machine()


def supported() -> bool:
    return machine() in NUMBERS


def program(*groups: Iterable[Rule], arch: str = "") -> bytes:
    """The BPF program for these rules, in their order: the first that fits answers.

    Raises `KeyError` for a machine that is not known; ask `supported` first.
    """
    arch = arch or machine()
    numbers = NUMBERS[arch]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JEQ, 1, 0, AUDIT_ARCH[arch]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if arch == "x86_64":
        code += [(_JGE, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for group in groups:
        for rule in group:
            known = [numbers[name] for name in rule.calls if name in numbers]
            for number in known:
                code += _rule(number, rule.tests, _ERRNO | rule.answer)
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _rule(number: int, tests: Sequence[Test], answer: int) -> list[tuple[int, int, int, int]]:
    """The instructions for one call; each leaves the call's number loaded when it does not fit."""
    body: list[tuple[int, int, int, int]] = []
    checks: list[list[tuple[int, int, int, int]]] = []
    for test in tests:
        check = [(_LOAD, 0, 0, _ARGUMENTS + 8 * test.argument)]
        if test.mask != 0xFFFFFFFF:
            check.append((0x54, 0, 0, test.mask))
        checks.append(check)
    # Layout: jeq number; each test's load and jump; return; reload of the number.
    length = sum(len(check) + 1 for check in checks)
    after = length + 1  # the instruction that loads the number again
    position = 0
    for test, check in zip(tests, checks, strict=True):
        body += check
        position += len(check) + 1
        failed = after - position
        jump = _JSET if test.kind == "has" else _JEQ
        met, unmet = (failed, 0) if test.kind == "differs" else (0, failed)
        body.append((jump, met, unmet, test.value))
    body.append((_RETURN, 0, 0, answer))
    if not tests:
        return [(_JEQ, 0, 1, number), *body]
    return [(_JEQ, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER)]
