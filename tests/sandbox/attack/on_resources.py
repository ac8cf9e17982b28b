"""Attacks on the machine's resources, each with a small bound of its own in case nothing holds."""

from __future__ import annotations

import resource

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from tests.sandbox.attack.case import Case, bash, python, says_so
from tests.sandbox.attack.world import World

MB = 1024 * 1024
SCRATCH = frozenset({Guarantee.SCRATCH_BOUNDED})


def workspace_over(megabytes: int, files: int):
    def over(world: World, _result: Result) -> bool:
        size = count = 0
        for path in world.mine.rglob("*"):
            count += 1
            size += path.lstat().st_blocks * 512
        return size > megabytes * MB or count > files

    return over


def kept_too_much(_world: World, result: Result) -> bool:
    kept = sum(len(part.head) + len(part.tail) for part in (result.stdout, result.stderr))
    return kept > 2 * 64 * 1024 or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 1_500_000


FILL = "dd if=/dev/zero of=%s/fill$i bs=1M count=1 2>/dev/null"


def fills(folder: str, megabytes: int) -> str:
    return (
        f"n=0; for i in $(seq {megabytes}); do {FILL % folder} && n=$((n+1)); done; "
        f"[ $n -ge {megabytes} ] && echo {{IN}}; rm -f {folder}/fill*"
    )


CASES = (
    Case("fork_bomb", "more processes than allowed", frozenset({Guarantee.PIDS_TOTAL}),
         python("""
made = 0
try:
    for _ in range(150):
        if os.fork() == 0:
            time.sleep(1.5); os._exit(0)
        made += 1
except OSError as problem: print(problem)
if made > 64: got_in(made)
"""), says_so, open_field=False),
    Case("thread_bomb", "more threads than allowed", frozenset({Guarantee.PIDS_TOTAL}),
         python("""
import threading
made = 0
try:
    for _ in range(150):
        threading.Thread(target=time.sleep, args=(0.5,)).start(); made += 1
except RuntimeError as problem: print(problem)
if made > 64: got_in(made)
"""), says_so, open_field=False),
    Case("memory_hog", "more memory than allowed in one process", frozenset({Guarantee.MEMORY_TOTAL}),
         python("block = bytearray(300 * 1024 * 1024)\nblock[::4096] = b'x' * len(block[::4096])\n"
                "got_in()"), says_so, resources={"memory_mb": 96}, open_field=False),
    Case("memory_in_many", "more memory than allowed in several processes together",
         frozenset({Guarantee.MEMORY_TOTAL}),
         python("""
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        block = bytearray(50 * 1024 * 1024); block[::4096] = b'x' * len(block[::4096])
        time.sleep(1); os._exit(0)
    children.append(child)
if all(os.waitpid(child, 0)[1] == 0 for child in children): got_in()
"""), says_so, resources={"memory_mb": 96}),
    Case("processor_hog", "a loop without end", frozenset({Guarantee.CPU_LIMITED}),
         bash("while :; do :; done"), lambda _w, r: r.duration > 9, "it runs to the timeout",
         resources={"cpu_seconds": 1}, timeout=10, ends=False, open_field=False),
    Case("large_file", "a file larger than allowed", frozenset({Guarantee.FILE_SIZE_LIMITED}),
         bash("head -c 20000000 /dev/zero > large"),
         lambda w, _r: (w.mine / "large").exists() and (w.mine / "large").stat().st_size > 2 * MB,
         "the file is larger than its limit", resources={"file_mb": 1}, open_field=False),
    Case("disk_filler", "filling the workspace file by file", frozenset({Guarantee.WORKSPACE_BOUNDED}),
         bash("for i in $(seq 200); do head -c 1000000 /dev/zero > fill$i; sleep 0.01; done; "
              "sleep 2; echo {IN}"), workspace_over(110, 100_000),
         "the workspace holds far more than it may", resources={"workspace_mb": 20}, timeout=30,
         ends=False, open_field=False),
    Case("disk_filler_in_steps", "filling the workspace from below the limit in a blink",
         frozenset({Guarantee.WORKSPACE_BOUNDED}),
         bash("for i in $(seq 60); do head -c 1000000 /dev/zero > step$i & done; wait; sleep 3; "
              "for i in $(seq 60); do head -c 1000000 /dev/zero > more$i; done"),
         workspace_over(110, 100_000), "the workspace holds far more than it may",
         resources={"workspace_mb": 20, "pids": 128}, timeout=30, ends=False, open_field=False),
    Case("inode_storm", "more files than allowed", frozenset({Guarantee.WORKSPACE_BOUNDED}),
         python("""
for number in range(20_000):
    open(f'inode{number}', 'w').close()
    if number % 20 == 0: time.sleep(0.005)
"""), workspace_over(10_000, 12_000), "there are far more files than allowed",
         resources={"workspace_files": 500}, timeout=30, ends=False, open_field=False),
    Case("fill_tmp", "filling /tmp", SCRATCH, bash(fills("/tmp", 12)), says_so,
         resources={"scratch_mb": 4}, open_field=False),
    Case("fill_home", "filling the home folder", SCRATCH, bash(fills("$HOME", 12)), says_so,
         resources={"scratch_mb": 4}, open_field=False),
    Case("fill_shared_memory", "filling /dev/shm", SCRATCH, bash(fills("/dev/shm", 12)), says_so,
         resources={"scratch_mb": 4}, open_field=False),
    Case("fill_device_folder", "filling /dev beside the devices", SCRATCH, bash(fills("/dev", 12)),
         says_so, resources={"scratch_mb": 4}, open_field=False),
    Case("fill_root", "filling the root folder, /etc, /run and /var", SCRATCH,
         bash("; ".join(fills(folder, 12) for folder in ("", "/etc", "/run", "/var"))), says_so,
         resources={"scratch_mb": 4}, open_field=False),
    Case("endless_output", "printing without end", frozenset({Guarantee.NO_SURVIVORS}),
         bash("yes"), kept_too_much, "the server keeps more than the limit", timeout=1.5,
         ends=False, open_field=False),
    Case("endless_line_of_errors", "an endless line on the error stream", frozenset({Guarantee.NO_SURVIVORS}),
         bash("cat /dev/zero >&2"), kept_too_much, "the server keeps more than the limit",
         timeout=1.5, ends=False, open_field=False),
    Case("open_files", "more open files than allowed", frozenset({Guarantee.OPEN_FILES_LIMITED}),
         python("""
kept = []
try:
    for _ in range(500): kept.append(os.open('/dev/null', os.O_RDONLY))
except OSError as problem: print(problem)
if len(kept) > 64: got_in(len(kept))
"""), says_so, resources={"open_files": 64}, open_field=False),
    Case("raise_limits", "raising one's own limits again", frozenset({Guarantee.CPU_LIMITED}),
         python("""
import resource
for name in ('RLIMIT_CPU', 'RLIMIT_FSIZE', 'RLIMIT_NOFILE', 'RLIMIT_NPROC'):
    try:
        soft, hard = resource.getrlimit(getattr(resource, name))
        resource.setrlimit(getattr(resource, name), (hard + 1, hard + 1)); got_in(name)
    except (OSError, ValueError) as problem: print(problem)
"""), says_so, root_only=True, open_field=False),
    Case("core_dumps", "leaving memory images on the disk", frozenset({Guarantee.FILE_SIZE_LIMITED}),
         bash("ulimit -c unlimited 2>/dev/null; python3 -c 'import os; os.abort()'; ls core* "
              "2>/dev/null && echo {IN}"), says_so, open_field=False),
    Case("shell_fork_bomb", "the classic of the shell", frozenset({Guarantee.PIDS_TOTAL}),
         bash("(f() { f & f & }; for n in $(seq 6); do f & done) 2>/dev/null & sleep 1; "
              "n=$(ls -d /proc/[0-9]* 2>/dev/null | wc -l); [ $n -gt 80 ] && echo {IN}; exit 0"),
         says_so, resources={"pids": 32}, timeout=5, ends=False, open_field=False),
    Case("memory_in_files", "memory that belongs to no process", frozenset({Guarantee.MEMORY_TOTAL}),
         python("""
kept = []
for _ in range(6):
    place = os.memfd_create('x'); kept.append(place)
    for _ in range(50): os.write(place, b'x' * 1048576)
got_in()
"""), says_so, resources={"memory_mb": 96, "file_mb": 100}, may_end_shell=True, open_field=False),
    Case("memory_in_pipes", "memory in the buffers of pipes", frozenset({Guarantee.MEMORY_TOTAL}),
         python("""
import fcntl
kept, total = [], 0
try:
    while total < 300 * 1048576:
        ours, far = os.pipe(); kept.append((ours, far))
        size = fcntl.fcntl(far, 1031, 1048576); os.set_blocking(far, False)
        total += os.write(far, b'x' * size)
    got_in(total)
except OSError as problem: print(problem)
"""), says_so, resources={"memory_mb": 96}, may_end_shell=True, open_field=False),
    Case("reserved_blocks", "taking the disk without writing", frozenset({Guarantee.WORKSPACE_BOUNDED}),
         python("""
for number in range(40):
    place = os.open(f'kept{number}', os.O_CREAT | os.O_WRONLY)
    try: os.posix_fallocate(place, 0, 10 * 1048576)
    except OSError as problem: print(problem)
    time.sleep(0.05)
time.sleep(2)
"""), workspace_over(110, 100_000), "the workspace holds far more than it may",
         resources={"workspace_mb": 20}, timeout=30, ends=False, open_field=False),
    Case("folder_storm", "more folders and links than allowed", frozenset({Guarantee.WORKSPACE_BOUNDED}),
         python("""
for number in range(10_000):
    os.mkdir(f'folder{number}'); os.symlink('x', f'link{number}')
    if number % 20 == 0: time.sleep(0.005)
"""), workspace_over(10_000, 12_000), "there are far more files than allowed",
         resources={"workspace_files": 500}, timeout=30, ends=False, open_field=False),
    Case("descriptors_in_many", "the machine's open files by many processes",
         frozenset({Guarantee.OPEN_FILES_LIMITED, Guarantee.PIDS_TOTAL}),
         python("""
total = 0
for _ in range(100):
    try:
        if os.fork() == 0:
            try:
                while True: os.open('/dev/null', os.O_RDONLY)
            except OSError: time.sleep(1); os._exit(0)
        total += 1
    except OSError: break
if total * 64 > 64 * 64: got_in(total)
"""), says_so, resources={"open_files": 64, "pids": 32}, open_field=False),
    Case("processor_in_many", "loops without end in several processes", frozenset({Guarantee.CPU_LIMITED}),
         bash("for n in 1 2 3; do (while :; do :; done) & done; wait"), lambda _w, r: r.duration > 14,
         "they run to the timeout", resources={"cpu_seconds": 1}, timeout=15, ends=False,
         open_field=False),
)  # fmt: skip
