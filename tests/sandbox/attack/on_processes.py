"""Attacks on other processes: their secrets, their memory, their life; and outliving one's own."""

from __future__ import annotations

import os

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from tests.sandbox.attack.case import Case, bash, python, says_so
from tests.sandbox.attack.world import World

ISOLATED = frozenset({Guarantee.PROCESSES_ISOLATED})
SURVIVORS = frozenset({Guarantee.NO_SURVIVORS})
READ = frozenset({Guarantee.FS_READ_CONFINED})
PRIVILEGES = frozenset({Guarantee.NO_NEW_PRIVILEGES})
SYSCALLS = frozenset({Guarantee.SYSCALLS_FILTERED})


def victim_hurt(world: World, _result: Result) -> bool:
    return not world.victim_lives() or world.victims_state() != world.unhurt


def survives(world: World, _result: Result) -> bool:
    return bool(world.survivors())


HURT = "the process is gone, or has another priority, processor or limit"
LIVES = "a process with the mark is still there"
CASES = (
    Case("own_environment", "printing the environment", READ,
         bash("env; printenv; set; export -p; cat /proc/self/environ | tr '\\0' '\\n'"),
         open_field=False),
    Case("victims_environment", "another process's environment", ISOLATED,
         bash("cat /proc/{victim}/environ 2>&1 | tr '\\0' ' '")),
    Case("every_environment", "every process's environment and arguments", ISOLATED,
         bash("for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done 2>/dev/null | "
              "tr '\\0' '\\n' | grep -a -o 'mark-[0-9a-f]*' | head -3")),
    Case("parents_environment", "the environment of whoever started this", ISOLATED,
         bash("cat /proc/$PPID/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep mark-"),
         open_field=False),
    Case("kill_victim", "killing a process of the host", ISOLATED,
         bash("kill -9 {victim}; kill -TERM {victim}; pkill -9 sleep"), victim_hurt, HURT,
         open_field=False),
    Case("kill_everything", "killing everything within reach", ISOLATED,
         python("os.kill(-1, 9)"), victim_hurt, HURT, open_field=False, ends=False),
    Case("kill_by_descriptor", "a signal by way of a descriptor", ISOLATED,
         python("import signal\nsignal.pidfd_send_signal(os.pidfd_open({victim}), 9)"),
         victim_hurt, HURT, open_field=False),
    Case("slow_victim", "taking away another's priority and processor", ISOLATED,
         python("""
for harm in (lambda: os.setpriority(os.PRIO_PROCESS, {victim}, 15),
             lambda: os.sched_setaffinity({victim}, {max(os.sched_getaffinity(0))}),
             lambda: os.sched_setscheduler({victim}, os.SCHED_IDLE, os.sched_param(0))):
    try: harm()
    except OSError as problem: print(problem)
"""), victim_hurt, HURT),
    Case("limit_victim", "lowering another's limits", ISOLATED,
         python("import resource\nresource.prlimit({victim}, resource.RLIMIT_NOFILE, (7, 7))"),
         victim_hurt, HURT, open_field=False),
    Case("ptrace", "attaching to a process", ISOLATED,
         python("found, problem = call(101, 117, 16, {victim}, 0, 0)\nif found == 0: got_in()\n"
                "call(101, 117, 17, {victim}, 0, 0)"), says_so),
    Case("read_memory", "reading a process's memory", ISOLATED,
         python("""
try:
    open('/proc/{victim}/mem', 'rb', 0); got_in('mem')
except OSError as problem: print(problem)
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(16)
near = Vector(ctypes.cast(buffer, ctypes.c_void_p), 16)
found, problem = call(310, 270, {victim}, ctypes.byref(near), 1, ctypes.byref(Vector(4096, 16)), 1, 0)
print(found, errno.errorcode.get(problem))
if found >= 0 or problem == errno.EFAULT: got_in('vm')
"""), says_so),
    Case("take_descriptor", "copying a descriptor of a process", ISOLATED,
         python("pid = os.pidfd_open({victim})\nfound, problem = call(438, 438, pid, 0, 0)\n"
                "if found >= 0: got_in()"), says_so),
    Case("open_descriptors", "opening a process's files through /proc", ISOLATED,
         bash("ls -l /proc/{victim}/fd/ 2>/dev/null | grep -q -- '->' && echo {IN}"), says_so),
    Case("double_fork", "a process that leaves its family", SURVIVORS,
         bash("(setsid nohup sleep {survivor} >/dev/null 2>&1 &)"), survives, LIVES,
         open_field=False),
    Case("daemon_ignoring_signals", "a process that ignores every signal it can", SURVIVORS,
         python("""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        os.execvp('sleep', ['sleep', '{survivor}'])
    os._exit(0)
os.wait()
"""), survives, LIVES, open_field=False),
    Case("outlive_timeout", "processes that outlive a command that was late", SURVIVORS,
         bash("(setsid sleep {survivor} &); sleep {survivor} & trap '' TERM INT HUP; sleep {survivor}"),
         survives, LIVES, timeout=1.0, ends=False, open_field=False),
    Case("kill_supervisor", "killing what watches over the command, then living on", SURVIVORS,
         bash("(setsid sleep {survivor} >/dev/null 2>&1 &); kill -9 1; kill -9 $PPID; kill -STOP "
              "$PPID; sleep 0.2"), survives, LIVES, open_field=False, ends=False),
    Case("forged_end", "telling the server that the command has ended", SURVIVORS,
         bash("""
lie='{"event":"ended","number":1,"status":0,"directory":"/"}'
for n in $(seq 3 63) ; do echo "$lie" >&$n; done 2>/dev/null
for f in /proc/1/fd/* /proc/$PPID/fd/*; do echo "$lie" > $f; done 2>/dev/null
sleep 0.7"""),
         lambda _w, r: r.duration < 0.7, "the command is taken as ended while it runs",
         open_field=False),
    Case("swallowed_end", "closing and flooding every descriptor at the end", SURVIVORS,
         bash("for n in $(seq 3 63); do eval \"exec $n>&-\"; done 2>/dev/null; head -c 3000000 "
              "/dev/zero | tr '\\0' 'x'; echo"),
         lambda _w, r: r.killed_by is not None or r.exit_code != 0,
         "the end of the command is not noticed", open_field=False),
    Case("no_new_privileges", "programs that gain rights by setuid", PRIVILEGES,
         python("if libc.prctl(39, 0, 0, 0, 0) != 1: got_in()"), says_so),
    Case("become_root", "becoming root by su, sudo or setuid calls", PRIVILEGES,
         bash("su -c 'cat /etc/shadow' </dev/null 2>/dev/null | grep -q . && echo {IN}; sudo -n cat "
              "/etc/shadow 2>/dev/null | grep -q . && echo {IN}; python3 -c 'import os; os.setuid(0); "
              "print(open(\"/etc/shadow\").read())' 2>/dev/null | grep -q . && echo {IN}"),
         says_so, root_only=True),
    Case("capabilities", "holding rights of the system", PRIVILEGES,
         python("""
class Head(ctypes.Structure): _fields_ = [('version', ctypes.c_uint32), ('pid', ctypes.c_int)]
data = (ctypes.c_uint32 * 6)()
libc.capget(ctypes.byref(Head(0x20080522, 0)), data)
if data[0] or data[3]: got_in(hex(data[0]))
"""), says_so, root_only=True),
    Case("nested_user_namespace", "a user namespace in which one is root", SYSCALLS,
         python("""
CLONE_NEWUSER = 0x10000000
if libc.unshare(CLONE_NEWUSER) == 0: got_in('unshare')
found, problem = call(56, 220, CLONE_NEWUSER | 17, 0, 0, 0, 0)
if found == 0: os._exit(0)
if found > 0: got_in('clone')
arguments = struct.pack('=11Q', CLONE_NEWUSER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
found, problem = call(435, 435, arguments, len(arguments))
if found == 0: os._exit(0)
if found > 0: got_in('clone3')
"""), says_so),
    Case("enter_namespace", "entering another process's namespaces", SYSCALLS,
         python("""
for kind in ('mnt', 'net', 'pid', 'user'):
    try:
        place = os.open(f'/proc/{victim}/ns/{kind}', os.O_RDONLY)
        if libc.setns(place, 0) == 0: got_in(kind)
    except OSError as problem: print(problem)
"""), says_so, root_only=True),
    Case("mount", "mounting, pivoting and changing the root", SYSCALLS,
         python("""
os.makedirs('place', exist_ok=True)
if libc.mount(b'none', b'place', b'tmpfs', 0, None) == 0: got_in('mount'); libc.umount2(b'place', 2)
found, _ = call(430, 430, b'tmpfs', 0)
if found >= 0: got_in('fsopen')
try: os.chroot('.'); got_in('chroot')
except OSError as problem: print(problem)
"""), says_so, root_only=True),
    Case("terminal_input", "typing into the terminal that the server reads", SYSCALLS,
         python("""
import fcntl, termios
try: fcntl.ioctl(os.pipe()[0], termios.TIOCSTI, b'x')
except OSError as problem:
    if problem.errno != errno.EPERM: got_in(problem)
"""), says_so),
    Case("kernel_doors", "rarely used doors into the kernel", SYSCALLS,
         python("""
for name, x86, arm, arguments in (
    ('io_uring', 425, 425, (4, ctypes.create_string_buffer(256))),
    ('bpf', 321, 280, (0, ctypes.create_string_buffer(128), 72)),
    ('userfaultfd', 323, 282, (1,)),
    ('keyctl', 250, 219, (0, -3, 1)),
    ('add_key', 248, 217, (b'user', b'attack', b'x', 1, -2)),
):
    found, problem = call(x86, arm, *arguments)
    if found >= 0: got_in(name)
"""), says_so),
    Case("host_name", "renaming the machine", SYSCALLS,
         python("socket.sethostname('attacked')"),
         lambda _w, _r: os.uname().nodename == "attacked", "the host has another name",
         open_field=False),
)  # fmt: skip
