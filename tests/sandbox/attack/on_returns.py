"""Attacks by what comes back of a sandbox whose files are carried there and back: links, bombs, modes."""

from __future__ import annotations

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from tests.sandbox.attack.case import Case, bash, python
from tests.sandbox.attack.on_resources import workspace_over
from tests.sandbox.attack.world import World

WRITE = frozenset({Guarantee.FS_WRITE_CONFINED})


def special(world: World, _result: Result) -> bool:
    return any(
        path.is_symlink() or not (path.is_file() or path.is_dir()) for path in world.mine.rglob("*")
    )


def privileged(world: World, _result: Result) -> bool:
    return any(path.lstat().st_mode & 0o7000 for path in world.mine.rglob("*"))


def larger(megabytes: int):
    """By what files say of themselves: one full of holes takes no blocks."""

    def over(world: World, _result: Result) -> bool:
        files = [path for path in world.mine.rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in files) > megabytes * 1024**2

    return over


def lost(world: World, _result: Result) -> bool:
    return not (world.mine / "d").is_file() or not (world.mine / "f" / "x").is_file()


CASES = (
    Case("return_links", "links to files and folders of the server", WRITE,
         bash("ln -s {outside} way; ln -s {outside}/secret.txt name; mkdir d; ln -s / d/root"),
         special, "a link came back"),
    Case("return_through_link", "a file below a link that was a folder", WRITE,
         bash("mkdir d; echo x > d/planted; mv d away; ln -s {outside} d"), special, "a link came back"),
    Case("return_special_files", "pipes and sockets", WRITE,
         python("os.mkfifo('pipe')\nsocket.socket(socket.AF_UNIX).bind('sock')"), special,
         "a special file came back"),
    Case("return_modes", "programs that run as their owner", WRITE,
         bash("cp /bin/true t; chmod 6755 t; mkdir d; chmod 3777 d"), privileged,
         "such a mode came back"),
    Case("return_many", "more files than allowed", WRITE,
         python("for n in range(20_000): open(f'n{n}', 'w').close()"), workspace_over(110, 2_000),
         "they came back", resources={"workspace_files": 500}, timeout=60, ends=False,
         may_end_shell=True),
    Case("return_much", "more bytes than allowed", WRITE,
         bash("for n in $(seq 60); do head -c 1000000 /dev/zero > n$n; done"), larger(25),
         "they came back", resources={"workspace_mb": 20}, timeout=60, ends=False, may_end_shell=True),
    Case("return_holes", "a file of nearly a terabyte that holds nothing", WRITE,
         bash("truncate -s 900G huge; truncate -s 200M large"), larger(25), "it came back",
         resources={"workspace_mb": 20, "file_mb": 1_048_576}, timeout=60, ends=False,
         may_end_shell=True),
    Case("return_folder_for_file", "a file where a folder was, and a folder where a file was", WRITE,
         bash("rm -rf d f; echo x > d; mkdir f; echo y > f/x"), lost, "what came back is lost"),
)  # fmt: skip
