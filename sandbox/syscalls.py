"""Numbers of the system calls that the filter names, for the machines it knows.

Source: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `scripts/syscall.tbl`. A call that a
machine does not have is missing from its table.
"""

from __future__ import annotations

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_UNIFIED = {
    "pidfd_getfd": 438, "move_mount": 429, "open_tree": 428, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "mount_setattr": 442, "clone3": 435, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "quotactl_fd": 443, "openat2": 437,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467,
    "file_setattr": 469, "pidfd_send_signal": 424,
}  # fmt: skip
"""Since Linux 5.1 new calls have the same number everywhere."""

NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41,
        "connect": 42, "accept": 43, "sendto": 44, "bind": 49, "listen": 50, "socketpair": 53,
        "clone": 56, "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68,
        "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mkdir": 83, "creat": 85, "chmod": 90,
        "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "syslog": 103,
        "utime": 132, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144,
        "sched_setaffinity": 203, "ioprio_set": 251, "prlimit64": 302, "sched_setattr": 314,
        "mknod": 133, "uselib": 134, "personality": 135, "ustat": 136, "sysfs": 139,
        "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "adjtimex": 159,
        "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
        "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "nfsservctl": 180, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "lookup_dcookie": 212,
        "semtimedop": 220, "clock_settime": 227, "utimes": 235, "mq_open": 240, "mq_unlink": 241,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
        "inotify_add_watch": 254, "migrate_pages": 256, "openat": 257, "mkdirat": 258,
        "mknodat": 259, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272,
        "move_pages": 279, "utimensat": 280, "accept4": 288, "perf_event_open": 298,
        "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
        "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        **_UNIFIED,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "lookup_dcookie": 18, "inotify_add_watch": 27, "ioctl": 29,
        "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
        "setpriority": 140, "prlimit64": 261, "sched_setattr": 274,
        "mknodat": 33, "mkdirat": 34, "umount2": 39, "mount": 40, "pivot_root": 41,
        "nfsservctl": 42, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
        "fchown": 55, "openat": 56, "vhangup": 58, "quotactl": 60, "utimensat": 88, "acct": 89,
        "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142,
        "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
        "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188,
        "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193,
        "shmget": 194, "shmctl": 195, "shmat": 196, "shmdt": 197, "socket": 198,
        "socketpair": 199, "bind": 200, "listen": 201, "accept": 202, "connect": 203,
        "sendto": 206, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
        "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239,
        "perf_event_open": 241, "accept4": 242, "fanotify_init": 262, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294,
        **_UNIFIED,
    },
}  # fmt: skip
