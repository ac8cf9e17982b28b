"""The filter of system calls, evaluated as the kernel would, on machines that are not at hand too."""

from __future__ import annotations

import errno
import struct

import pytest

from sandbox import seccomp
from sandbox.syscalls import AUDIT_ARCH, NUMBERS

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE = 0x00050000


def answer(program: bytes, arch: str, call: str | int, *arguments: int, audit: int = 0) -> int:
    """What a BPF program says to a call: a small interpreter of the instructions in use."""
    number = NUMBERS[arch][call] if isinstance(call, str) else call
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, audit or AUDIT_ARCH[arch], 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        operation, met, unmet, k = code[at]
        at += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, k)
            case 0x54:
                value &= k
            case 0x15:
                at += met if value == k else unmet
            case 0x35:
                at += met if value >= k else unmet
            case 0x45:
                at += met if value & k else unmet
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(hex(operation))


@pytest.fixture(params=list(NUMBERS))
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_dangerous_calls_are_refused_and_common_ones_are_not(arch: str):
    program = seccomp.program(seccomp.ALWAYS, seccomp.OWN_NETWORK, arch=arch)
    for name in ("ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "process_vm_readv"):
        assert answer(program, arch, name) == REFUSE | errno.EPERM
    assert answer(program, arch, "clone3") == REFUSE | errno.ENOSYS
    assert answer(program, arch, "io_uring_setup") == REFUSE | errno.ENOSYS
    assert answer(program, arch, "clone", 0x11) == ALLOW
    assert answer(program, arch, "clone", 0x10000011) == REFUSE | errno.EPERM
    assert answer(program, arch, "connect") == ALLOW
    assert answer(program, arch, 9_999) == ALLOW


def test_a_setuid_bit_is_refused_and_other_modes_are_not(arch: str):
    program = seccomp.program(seccomp.ALWAYS, arch=arch)
    assert answer(program, arch, "fchmodat", 3, 0, 0o755) == ALLOW
    assert answer(program, arch, "fchmodat", 3, 0, 0o4755) == REFUSE | errno.EPERM
    assert answer(program, arch, "openat", 3, 0, 0x41, 0o2755) == REFUSE | errno.EPERM
    assert answer(program, arch, "openat", 3, 0, 0x41, 0o644) == ALLOW


def test_only_families_of_an_own_network_are_opened(arch: str):
    program = seccomp.program(seccomp.OWN_NETWORK, arch=arch)
    for family in (1, 2, 10):
        assert answer(program, arch, "socket", family, 1, 0) == ALLOW
    assert answer(program, arch, "socket", 16, 3, 0) == ALLOW
    assert answer(program, arch, "socket", 16, 3, 9) == REFUSE | errno.EPROTONOSUPPORT
    for family in (17, 38, 40):
        assert answer(program, arch, "socket", family, 1, 0) == REFUSE | errno.EAFNOSUPPORT


def test_without_a_network_only_connected_pairs_are_made(arch: str):
    program = seccomp.program(seccomp.NO_SOCKETS, arch=arch)
    assert answer(program, arch, "socket", 1, 1, 0) == REFUSE | errno.EACCES
    assert answer(program, arch, "socketpair", 1, 1 | 0o2000000, 0) == ALLOW
    assert answer(program, arch, "socketpair", 1, 5, 0) == ALLOW
    assert answer(program, arch, "socketpair", 1, 2, 0) == REFUSE | errno.EACCES
    assert answer(program, arch, "socketpair", 2, 1, 0) == REFUSE | errno.EACCES


def test_under_the_same_owner_modes_seem_to_change_and_do_not(arch: str):
    program = seccomp.program(seccomp.SAME_OWNER, seccomp.ALWAYS, arch=arch)
    assert answer(program, arch, "fchmodat", 3, 0, 0o777) == REFUSE
    assert answer(program, arch, "utimensat") == REFUSE


def test_others_priorities_and_limits_are_out_of_reach_and_ones_own_are_not(arch: str):
    program = seccomp.program(seccomp.SHARED_NAMESPACES, arch=arch)
    assert answer(program, arch, "prlimit64", 0, 7) == ALLOW
    assert answer(program, arch, "prlimit64", 4242, 7) == REFUSE | errno.EPERM
    assert answer(program, arch, "setpriority", 0, 0, 5) == ALLOW
    assert answer(program, arch, "setpriority", 0, 4242, 5) == REFUSE | errno.EPERM
    assert answer(program, arch, "setpriority", 2, 0, 5) == REFUSE | errno.EPERM


def test_calls_of_another_architecture_end_the_process(arch: str):
    program = seccomp.program(seccomp.ALWAYS, arch=arch)
    assert answer(program, arch, "ioctl", audit=0x40000003) == KILL


def test_the_second_convention_of_x86_is_closed():
    program = seccomp.program(seccomp.ALWAYS, arch="x86_64")
    assert answer(program, "x86_64", 0x40000000 | 1) == REFUSE | errno.ENOSYS
