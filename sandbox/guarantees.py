"""What a sandbox may promise, each with the words for people and models.

A policy requires guarantees (`sandbox.policy`), a backend's probe finds which of them hold
on this machine, and a command is refused when one is missing (`sandbox.refusals`).
"""

from __future__ import annotations

from enum import StrEnum


class Guarantee(StrEnum):
    FS_WRITE_CONFINED = "fs_write_confined"
    FS_READ_CONFINED = "fs_read_confined"
    FS_HIDDEN = "fs_hidden"
    SCRATCH_BOUNDED = "scratch_bounded"
    WORKSPACE_BOUNDED = "workspace_bounded"
    NO_NETWORK = "no_network"
    EGRESS_ALLOW_LIST = "egress_allow_list"
    EGRESS_PUBLIC_ONLY = "egress_public_only"
    HOST_SOCKETS_HIDDEN = "host_sockets_hidden"
    PROCESSES_ISOLATED = "processes_isolated"
    NO_SURVIVORS = "no_survivors"
    NO_NEW_PRIVILEGES = "no_new_privileges"
    SYSCALLS_FILTERED = "syscalls_filtered"
    CPU_LIMITED = "cpu_limited"
    FILE_SIZE_LIMITED = "file_size_limited"
    OPEN_FILES_LIMITED = "open_files_limited"
    MEMORY_TOTAL = "memory_total"
    PIDS_TOTAL = "pids_total"


MEANING: dict[Guarantee, str] = {
    Guarantee.FS_WRITE_CONFINED: "nothing outside the writable folders can be changed",
    Guarantee.FS_READ_CONFINED: "only the listed folders can be read",
    Guarantee.FS_HIDDEN: "files outside the listed folders are not even visible by name",
    Guarantee.SCRATCH_BOUNDED: "temporary folders cannot fill the disk",
    Guarantee.WORKSPACE_BOUNDED: "a command that overfills its workspace is ended",
    Guarantee.NO_NETWORK: "there is no network at all",
    Guarantee.EGRESS_ALLOW_LIST: "only the listed hosts can be reached",
    Guarantee.EGRESS_PUBLIC_ONLY: "of all hosts only public ones can be reached",
    Guarantee.HOST_SOCKETS_HIDDEN: "sockets of databases and services of the host cannot be reached",
    Guarantee.PROCESSES_ISOLATED: "processes outside can be neither seen into nor signalled",
    Guarantee.NO_SURVIVORS: "no process outlives its command or shell",
    Guarantee.NO_NEW_PRIVILEGES: "no program can gain rights by setuid or capabilities",
    Guarantee.SYSCALLS_FILTERED: "dangerous system calls are filtered",
    Guarantee.CPU_LIMITED: "each process has a limit of processor time",
    Guarantee.FILE_SIZE_LIMITED: "each file has a limit of size",
    Guarantee.OPEN_FILES_LIMITED: "each process has a limit of open files",
    Guarantee.MEMORY_TOTAL: "all processes together have a limit of memory",
    Guarantee.PIDS_TOTAL: "the number of processes is limited",
}
"""What holds when the guarantee is given, as the rest of “guarantees that …”."""
