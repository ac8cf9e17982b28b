"""Attacks on files: reading what is outside, changing it, getting out by links and races."""

from __future__ import annotations

import shutil

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from tests.sandbox.attack.case import Case, bash, python
from tests.sandbox.attack.world import World
from tools_app.packagetrees import tree_of

READ = frozenset({Guarantee.FS_READ_CONFINED})
WRITE = frozenset({Guarantee.FS_WRITE_CONFINED})
HIDDEN = frozenset({Guarantee.FS_HIDDEN})
PRIVILEGES = frozenset({Guarantee.NO_NEW_PRIVILEGES})
SYSCALLS = frozenset({Guarantee.SYSCALLS_FILTERED})


def changed_outside(world: World, _result: Result) -> bool:
    secret = world.outside / "secret.txt"
    return (
        not secret.exists()
        or secret.read_text() != world.mark
        or sorted(path.name for path in world.outside.iterdir())
        != sorted(
            ["secret.txt", f"{world.mark}.txt", "db.sqlite3", "service.sock", "datagrams.sock"]
        )
        or sorted(path.name for path in world.theirs.iterdir()) != ["secret.txt"]
        or (world.theirs / "secret.txt").read_text() != world.mark
    )


def mended(world: World) -> None:
    """Puts back what an attack without a sandbox changed."""
    secret = world.outside / "secret.txt"
    for path in world.outside.iterdir():
        if path.name not in {f"{world.mark}.txt", "db.sqlite3", "service.sock", "datagrams.sock"}:
            path.unlink()
    for path in world.theirs.iterdir():
        path.unlink()
    (world.theirs / "secret.txt").write_text(world.mark)
    secret.write_text(world.mark)
    secret.chmod(0o644)
    (world.shared / "notes.txt").write_text("shared")
    if tree_of(world.packages) != world.packages_tree:
        for path in world.packages.iterdir():
            shutil.rmtree(path)
        world.lay_packages()


def metadata_changed(world: World, _result: Result) -> bool:
    status = (world.outside / "secret.txt").stat()
    return status.st_mode & 0o777 != 0o644 or int(status.st_mtime) == 86_400


def shared_changed(world: World, _result: Result) -> bool:
    names = [path.name for path in world.shared.iterdir()]
    return names != ["notes.txt"] or (world.shared / "notes.txt").read_text() != "shared"


def setuid_made(world: World, _result: Result) -> bool:
    return any(path.lstat().st_mode & 0o6000 for path in world.mine.iterdir())


CHANGED = "a file outside is changed, gone or new"
CASES = (
    Case("read_shadow", "the system's password file", READ,
         bash("cat /etc/shadow 2>&1 | grep -q '^root:' && echo {IN}"),
         lambda _w, r: "attack-got-in" in r.stdout.text, root_only=True),
    Case("read_outside", "a file by its full path", READ, bash("cat {outside}/secret.txt")),
    Case("read_by_dots", "a file by going up from the workspace", READ,
         bash("cat ../outside/secret.txt; cat ../../../../../../..{outside}/secret.txt")),
    Case("read_other_conversation", "another conversation's workspace", READ,
         bash("cat {theirs}/secret.txt; cat ../theirs/secret.txt")),
    Case("list_outside", "names in a folder outside", READ,
         bash("ls -la {outside} 2>&1; ls ..; find {root} 2>/dev/null")),
    Case("stat_outside", "whether a file outside exists", HIDDEN,
         bash("test -e {outside}/secret.txt && echo {IN}"),
         lambda _w, r: "attack-got-in" in r.stdout.text),
    Case("read_database", "the server's database", READ,
         python("import sqlite3\nprint(sqlite3.connect('file:{database}?mode=ro&immutable=1', "
                "uri=True).execute('select * from keys').fetchall())")),
    Case("symlink_read", "a link to a file outside", READ,
         bash("ln -sf {outside}/secret.txt link; cat link; cat < link")),
    Case("symlink_folder", "a link to a folder outside", READ,
         bash("ln -sfn {outside} way; cat way/secret.txt; cat way/../outside/secret.txt")),
    Case("symlink_write", "writing through a link", WRITE,
         bash("ln -sf {outside}/planted door; echo x > door; cp door {outside}/planted2"),
         changed_outside, CHANGED),
    Case("hard_link", "a second name for a file outside", READ,
         bash("ln {outside}/secret.txt name 2>&1; cat name; ln -L {theirs}/secret.txt two; cat two")),
    Case("symlink_race", "a link swapped while it is followed", READ,
         bash("mkdir -p a; echo mine > a/secret.txt; (for i in $(seq 200); do ln -sfn {outside} s; "
              "ln -sfn $PWD/a s; done) 2>/dev/null & for i in $(seq 200); do cat s/secret.txt; done; "
              "wait"), timeout=30),
    Case("rename_race", "a folder exchanged for a link while it is walked", WRITE,
         bash("mkdir -p b; (for i in $(seq 100); do mv b c; ln -s {outside} b; rm -f b; mv c b; done) "
              "2>/dev/null & for i in $(seq 100); do echo x > b/planted; done 2>/dev/null; wait"),
         changed_outside, CHANGED, timeout=30, open_field=False),
    Case("rename_out", "moving a file of the workspace outside", WRITE,
         python("open('f', 'w').write('x')\nos.rename('f', '{outside}/planted')"),
         changed_outside, CHANGED),
    Case("rename_in", "moving a file from outside into the workspace", WRITE,
         python("os.rename('{outside}/secret.txt', 'taken')\nprint(open('taken').read())"),
         changed_outside, CHANGED),
    Case("write_outside", "writing over a file", WRITE,
         bash("echo x > {outside}/secret.txt; echo y > {theirs}/secret.txt; echo z > ../outside/new"),
         changed_outside, CHANGED),
    Case("append_outside", "adding to a file", WRITE,
         bash("echo x >> {outside}/secret.txt"), changed_outside, CHANGED),
    Case("truncate_outside", "cutting a file without opening it", WRITE,
         python("os.truncate('{outside}/secret.txt', 3)"), changed_outside, CHANGED),
    Case("remove_outside", "removing files", WRITE,
         bash("rm -f {outside}/secret.txt {theirs}/secret.txt"), changed_outside, CHANGED),
    Case("make_folder_outside", "making a folder and a pipe", WRITE,
         bash("mkdir {outside}/planted; mkfifo {outside}/pipe; mkdir {theirs}/planted"),
         changed_outside, CHANGED, open_field=False),
    Case("chmod_outside", "changing the mode of a file", WRITE,
         bash("chmod 600 {outside}/secret.txt; chmod 777 {outside}/secret.txt"),
         metadata_changed, "the file has another mode or time"),
    Case("touch_outside", "changing the times of a file", WRITE,
         bash("touch -d @86400 {outside}/secret.txt"), metadata_changed,
         "the file has another mode or time"),
    Case("setxattr_outside", "hanging an attribute on a file", WRITE,
         python("os.setxattr('{outside}/secret.txt', 'user.mark', b'x')\ngot_in()"),
         lambda _w, r: "attack-got-in" in r.stdout.text, open_field=False),
    Case("write_system", "changing a program of the system", WRITE,
         bash("echo x > /usr/bin/.attack-probe && echo {IN} && rm -f /usr/bin/.attack-probe"),
         lambda _w, r: "attack-got-in" in r.stdout.text, root_only=True),
    Case("write_read_only_mount", "writing to a folder that is mounted read-only", WRITE,
         bash("for f in /shared {root}/shared; do echo x > $f/notes.txt; echo x > $f/new; "
              "rm -f $f/notes.txt; chmod 777 $f; touch $f/t; done"),
         shared_changed, "the shared folder is changed"),
    Case("remount_writable", "mounting the read-only folder again", WRITE,
         bash("mount -o remount,rw /shared; mount -o bind,rw /shared /workspace; echo x > /shared/new; "
              "echo x > {root}/shared/new"), shared_changed, "the shared folder is changed"),
    Case("names_in_mountinfo", "names of the host's folders that are not shown", HIDDEN,
         bash("cat /proc/self/mountinfo /proc/*/mountinfo /proc/self/mounts /proc/self/mountstats "
              "2>/dev/null | grep -e {outside} -e {theirs} && echo {IN}"),
         lambda _w, r: "attack-got-in" in r.stdout.text, open_field=False),
    Case("own_root_through_proc", "the host's root by /proc", READ,
         bash("for p in /proc/[0-9]*; do cat $p/root{outside}/secret.txt; cat $p/cwd/../outside/*; "
              "done 2>/dev/null; cat /proc/{victim}/root{outside}/secret.txt")),
    Case("inherited_descriptors", "files that the server has open", READ,
         bash("for n in $(seq 3 40); do head -c 100 <&$n; done 2>/dev/null"), open_field=False),
    Case("posix_shared_memory", "another program's shared memory file", READ, bash("cat {posix}")),
    Case("handle_of_root", "opening files by handle, past every mount", READ,
         python("""
place = os.open('.', os.O_RDONLY)
for inode in (2, 128, 256):
    handle = struct.pack('Ii', 8, 1) + struct.pack('q', inode)
    found, problem = call(304, 265, place, handle, os.O_RDONLY)
    if found >= 0:
        got_in(os.listdir(found))
"""), lambda _w, r: "attack-got-in" in r.stdout.text, open_field=False),
    Case("disks_and_memory", "reading disks and the machine's memory", READ,
         bash("for d in /dev/mem /dev/kmem /dev/port /dev/vda /dev/sda /dev/nvme0n1 /dev/dm-0 "
              "/proc/kcore; do head -c 16 $d 2>/dev/null | grep -q . && echo {IN}; done"),
         lambda _w, r: "attack-got-in" in r.stdout.text, open_field=False),
    Case("make_device", "making a device file", PRIVILEGES,
         python("import stat\nos.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(254, 0))\ngot_in()"),
         lambda _w, r: "attack-got-in" in r.stdout.text, root_only=True),
    Case("setuid_file", "leaving a setuid program in the workspace", SYSCALLS,
         bash("cp /bin/true s1; chmod u+s s1; chmod 6755 s1; install -m 4755 /bin/true s2; "
              "python3 -c \"import os; os.open('s3', os.O_CREAT|os.O_WRONLY, 0o4755); "
              "os.chmod('s1', 0o4755)\""), setuid_made, "a file in the workspace is setuid"),
    Case("kernel_settings", "opening settings of the kernel for writing", WRITE,
         python("""
for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/kernel/modprobe',
             '/sys/kernel/uevent_helper', '/proc/sys/vm/overcommit_memory'):
    try:
        os.close(os.open(path, os.O_WRONLY)); got_in(path)
    except OSError as problem: print(path, problem)
for folder, folders, files in os.walk('/proc'):
    folders[:] = [name for name in folders if not name.isdigit() and name not in ('self', 'thread-self')]
    for name in files:
        if os.access(os.path.join(folder, name), os.W_OK): got_in(folder, name); break
"""), lambda _w, r: "attack-got-in" in r.stdout.text, root_only=True),
    Case("control_groups", "making or leaving a control group", WRITE,
         bash("for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/attack && echo {IN} && rmdir "
              "$f/attack; done 2>/dev/null"),
         lambda _w, r: "attack-got-in" in r.stdout.text, root_only=True),
    Case("watch_folder", "being told what happens in a folder outside", READ,
         python("found = libc.inotify_init()\nif libc.inotify_add_watch(found, b'{outside}', 0xfff) "
                ">= 0: got_in()"), lambda _w, r: "attack-got-in" in r.stdout.text),
)  # fmt: skip
