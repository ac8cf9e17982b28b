"""The Docker backend against a stand-in of its client that speaks the part in use."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from sandbox.contract import KilledBy, Mount, Mounts, SandboxFailed, Unavailable
from sandbox.docker import OWNER, DockerBackend
from sandbox.guarantees import Guarantee
from sandbox.owners import dead_owners, own_name
from sandbox.policy import Policy, parse_policy
from sandbox.refusals import missing

CLIENT = """#!{python}
import json, os, subprocess, sys
from pathlib import Path
here = Path({here!r})
asked = sys.argv[1:]
with open(here / "asked", "a") as log:
    log.write(json.dumps(asked) + "\\n")
fault = (here / "fault").read_text() if (here / "fault").exists() else ""
def fail(text):
    print(text, file=sys.stderr)
    sys.exit(1)
there = (here / "there").read_text() if (here / "there").exists() else "sha256:0"
if asked[0] == "run" and "--interactive" not in asked and there not in asked:
    fail("docker: Error response from daemon: No such image: sha256:gone\\n\\n"
         "Run 'docker run --help' for more information")
if fault == "daemon":
    fail("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?")
match asked[0]:
    case "version":
        print("28.2.2")
    case "image":
        if fault == "image":
            fail("Error response from daemon: No such image: " + asked[-1])
        print(there)
    case "run" if "--interactive" in asked:
        image = next(at for at, word in enumerate(asked) if "@sha256:" in word)
        given = Path(asked[asked.index("--env-file") + 1]).read_text()
        (here / "given").write_text(given)
        (here / "client").write_text(str(os.getpid()))
        if (here / "program").exists():
            os.execve(sys.executable, [sys.executable, (here / "program").read_text(), *asked[image + 1:]],
                      dict(line.split("=", 1) for line in given.splitlines()))
        print("begun", file=sys.stderr, flush=True)
        for line in sys.stdin:
            if line == "end\\n":
                sys.exit(3)
            print(line.strip().upper(), *asked[image + 1:], flush=True)
    case "run" if "--detach" in asked:
        print("0123456789ab")
    case "run":
        print("NoNewPrivs:\\t1\\nCapEff:\\t0\\nSeccomp:\\t" + ("0" if fault == "seccomp" else "2"))
        print("lo", "eth0" if fault == "network" else "")
        print(asked[asked.index("--pids-limit") + 1])
        print(int(asked[asked.index("--memory") + 1][:-1]) * 1024 * 1024)
        print("ended")
    case "exec":
        home = here / "home"
        home.mkdir(exist_ok=True)
        running = subprocess.Popen(asked[2:], env={{"HOME": str(home), "PATH": os.environ["PATH"]}},
                                   start_new_session=True, cwd=here)
        (here / "running").write_text(str(running.pid))
        sys.exit(running.wait())
    case "kill":
        os.killpg(int((here / "running").read_text()), 9)
    case "ps":
        print((here / "left").read_text() if (here / "left").exists() else "")
    case "rm":
        client = here / "client"
        there = client.exists() and Path("/proc", client.read_text(), "exe").exists()
        (here / "removed").write_text("beside its client" if there else "alone")
"""


class Client:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "docker"
        self.program.write_text(CLIENT.format(python=sys.executable, here=str(folder)))
        self.program.chmod(0o755)

    def asked(self, verb: str) -> list[list[str]]:
        lines = (self.folder / "asked").read_text().splitlines()
        return [asked for asked in map(json.loads, lines) if asked[0] == verb]

    def break_down(self, fault: str) -> None:
        (self.folder / "fault").write_text(fault)

    def refresh_image(self) -> None:
        """The tag names a newer image, and the one before was cleared away."""
        (self.folder / "there").write_text("sha256:1")


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


@pytest.fixture
def docker(client: Client) -> DockerBackend:
    return DockerBackend(program=str(client.program), image="tools:1")


@pytest.fixture
def place(tmp_path: Path) -> Mounts:
    (tmp_path / "w").mkdir()
    (tmp_path / "s").mkdir()
    work = Mount(tmp_path / "w", tmp_path / "w", writable=True)
    return Mounts(work, (Mount(tmp_path / "s", Path("/shared")),))


async def test_the_image_that_was_tried_out_is_used_by_its_digest(
    client: Client, docker: DockerBackend, place: Mounts
):
    capabilities = await docker.probe()
    assert capabilities.details["digest"] == "sha256:0"
    shell = await docker.open_shell(Policy(require=()), place)
    await shell.close()
    runs = client.asked("run")
    assert len(runs) == 2
    for asked in runs:
        assert "sha256:0" in asked
        assert "tools:1" not in asked


async def test_where_the_image_was_removed_the_one_named_by_now_is_tried_out_and_used(
    client: Client, docker: DockerBackend, place: Mounts
):
    await docker.probe()
    client.refresh_image()
    results = await asyncio.gather(
        *(docker.run(f"echo {number}", Policy(), place) for number in range(3))
    )
    assert [result.stdout.text for result in results] == ["0\n", "1\n", "2\n"]
    assert (await docker.probe()).details["digest"] == "sha256:1"
    assert len(client.asked("version")) == 2, "tried out once for all three"


async def test_a_newer_image_is_held_to_the_policy_like_the_first(
    client: Client, docker: DockerBackend, place: Mounts
):
    await docker.probe()
    client.refresh_image()
    client.break_down("seccomp")
    policy = Policy(require=(Guarantee.SYSCALLS_FILTERED,))
    with pytest.raises(Unavailable, match="it did not hold in the probe"):
        await docker.run("true", policy, place)
    assert not [
        asked for asked in client.asked("run") if "--detach" in asked and "sha256:1" in asked
    ]


async def test_an_image_that_is_gone_altogether_is_looked_for_again_by_the_next_command(
    client: Client, docker: DockerBackend, place: Mounts
):
    await docker.probe()
    client.refresh_image()
    client.break_down("image")
    for _ in range(2):
        with pytest.raises(SandboxFailed, match="No such image: sha256:gone") as refused:
            await docker.run("true", Policy(), place)
        assert refused.value.hint == "put the image on the engine: docker pull tools:1"
    client.break_down("")
    assert (await docker.run("echo back", Policy(), place)).stdout.text == "back\n"


async def test_an_absent_engine_is_refused_with_reason_and_remedy(
    client: Client, docker: DockerBackend
):
    client.break_down("daemon")
    capabilities = await docker.probe()
    assert not capabilities.available
    assert "Cannot connect to the Docker daemon" in capabilities.problem
    with pytest.raises(Unavailable, match="Cannot connect") as refusal:
        await docker.run("true", Policy(), Mounts(Mount(client.folder, client.folder)))
    assert "start the Docker engine" in refusal.value.hint
    assert not (await DockerBackend(program="no-such-client").probe()).available


async def test_a_missing_image_is_not_pulled_but_named(client: Client, docker: DockerBackend):
    client.break_down("image")
    capabilities = await docker.probe()
    assert "No such image: tools:1" in capabilities.problem
    assert capabilities.remedy == "put the image on the engine: docker pull tools:1"


@pytest.mark.parametrize(
    ("fault", "lost"),
    [("seccomp", Guarantee.SYSCALLS_FILTERED), ("network", Guarantee.NO_NETWORK)],
)
async def test_what_did_not_hold_in_the_probe_is_not_promised(
    client: Client, docker: DockerBackend, fault: str, lost: Guarantee
):
    client.break_down(fault)
    capabilities = await docker.probe()
    assert capabilities.available
    assert lost not in capabilities.guarantees
    assert missing(Policy(require=(lost,)), capabilities) is not None


async def test_a_container_is_closed_on_every_side_and_removed(
    client: Client, docker: DockerBackend, place: Mounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    policy = parse_policy({"resources": {"memory_mb": 100, "pids": 20, "file_mb": 2}})
    result = await docker.run("echo out; echo err >&2; exit 4", policy, place)
    assert (result.stdout.text, result.stderr.text, result.exit_code) == ("out\n", "err\n", 4)
    assert result.confined
    made = client.asked("run")[-1]
    for pair in (
        ("--network", "none"),
        ("--pull", "never"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--memory", "100m"),
        ("--memory-swap", "100m"),
        ("--pids-limit", "20"),
        ("--ulimit", f"fsize={2 * 1024**2}"),
        ("--user", f"{os.geteuid()}:{os.getegid()}"),
    ):
        assert pair in list(pairwise(made)), pair
    assert "--read-only" in made
    mounts = [made[at + 1] for at, word in enumerate(made) if word == "--mount"]
    assert mounts[0].endswith(f"target={place.workdir.target}")
    assert mounts[1].endswith("target=/shared,readonly")
    assert "sk-secret" not in json.dumps(client.asked("run") + client.asked("exec"))
    name = made[made.index("--name") + 1]
    assert client.asked("rm")[-1] == ["rm", "--force", name]


async def test_a_shell_in_a_container_keeps_directory_and_variables(
    docker: DockerBackend, place: Mounts
):
    shell = await docker.open_shell(Policy(), place)
    await shell.run("mkdir d; cd d; export A='x y'")
    result = await shell.run('basename "$PWD"; echo "$A"')
    assert result.stdout.text == "d\nx y\n"
    assert result.left, "nobody can tell what still runs in a container"
    await shell.close()


async def test_a_late_command_ends_its_container(
    client: Client, docker: DockerBackend, place: Mounts
):
    shell = await docker.open_shell(Policy(), place)
    result = await shell.run("echo begun; sleep 60", timeout=1)
    assert result.killed_by is KilledBy.TIMEOUT
    assert client.asked("kill")
    assert client.asked("rm")
    assert not shell.alive
    assert not result.left


async def test_single_hosts_and_folders_of_the_host_are_refused(
    docker: DockerBackend, place: Mounts
):
    with pytest.raises(Unavailable, match="cannot be limited to single hosts"):
        await docker.run(
            "true",
            parse_policy({"network_policies": {"a": {"endpoints": [{"host": "a.example"}]}}}),
            place,
        )
    with pytest.raises(Unavailable, match="read_write lists some"):
        await docker.run(
            "true", parse_policy({"filesystem_policy": {"read_write": ["/srv"]}}), place
        )


IMAGE = f"tools.example/notes@sha256:{'0' * 64}"


async def test_an_image_by_its_digest_is_spoken_to_in_the_same_confinement(
    client: Client, docker: DockerBackend, place: Mounts
):
    variables = {"API_KEY": "a-secret-value", "DOCKER_HOST": "tcp://elsewhere.example:1"}
    program = await docker.open_program(
        (IMAGE, "--root=/w"), Policy(), place, environment=variables
    )
    await program.write(b"hello\n")
    assert await program.read() == b"HELLO --root=/w\n"
    assert (program.alive, program.ending) == (True, "")
    (asked,) = (each for each in client.asked("run") if "--interactive" in each)
    assert asked[asked.index("--network") :][:2] == ["--network", "none"]
    assert asked[asked.index("--cap-drop") :][:2] == ["--cap-drop", "ALL"]
    assert {"--read-only", "--rm", "--pull"} <= set(asked)
    assert "--workdir" not in asked
    assert not any(word.startswith("PATH=") for word in asked)
    # What it is given stands on no command line, and is none of the client's own variables.
    assert "a-secret-value" not in str(asked)
    given = dict(line.split("=", 1) for line in (client.folder / "given").read_text().splitlines())
    assert given == {**variables, "WORKSPACE": str(place.workdir.target)}
    await program.close()
    assert not program.alive
    assert client.asked("rm") == [["rm", "--force", asked[asked.index("--name") + 1]]]
    # One that is still at work would begin a container after this.
    assert (client.folder / "removed").read_text() == "alone"


async def test_a_program_of_an_image_that_ends_says_how_and_its_container_goes(
    client: Client, docker: DockerBackend, place: Mounts
):
    program = await docker.open_program((IMAGE,), Policy(), place)
    await program.write(b"end\n")
    assert await program.read() == b""
    assert program.ending == "It ended with exit code 3."
    assert program.last_errors() == "begun\n"
    with pytest.raises(SandboxFailed):
        await program.write(b"more\n")
    await program.close()
    assert client.asked("rm")


@pytest.mark.parametrize("name", ["notes:latest", "notes", "/bin/server", "--privileged@sha256:0"])
async def test_what_is_no_image_by_its_digest_is_not_spoken_to(
    client: Client, docker: DockerBackend, place: Mounts, name: str
):
    with pytest.raises(Unavailable, match="by its digest"):
        await docker.open_program((name,), Policy(), place)


async def test_an_image_that_is_not_on_the_engine_is_named_and_not_pulled(
    client: Client, docker: DockerBackend, place: Mounts
):
    await docker.probe()
    client.break_down("image")
    with pytest.raises(SandboxFailed) as refused:
        await docker.open_program((IMAGE,), Policy(), place)
    assert refused.value.hint == f"put the image on the engine: docker pull {IMAGE}"
    assert not [each for each in client.asked("run") if "--interactive" in each]


async def test_what_a_killed_process_left_is_ended_by_another_one(
    client: Client, place: Mounts, tmp_path: Path
):
    owners = tmp_path / "owners"
    began = (
        "import sys, time; from pathlib import Path; from sandbox.owners import own_name; "
        "print(own_name(Path(sys.argv[1])), flush=True); time.sleep(600)"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", began, str(owners), stdout=asyncio.subprocess.PIPE
    )
    assert other.stdout is not None
    name = (await other.stdout.readline()).decode().strip()
    docker = DockerBackend(program=str(client.program), image="tools:1", owners=owners)
    shell = await docker.open_shell(Policy(), place)
    (run,) = [asked for asked in client.asked("run") if "--detach" in asked]
    (own,) = [word.partition("=")[2] for word in run if word.startswith(f"{OWNER}=")]
    elsewhere = "0123456789abcdef"
    (tmp_path / "left").write_text(f"aaa {name}\nbbb {own}\nccc {elsewhere}\nddd\n")
    await docker.end_left()
    assert client.asked("ps") == [], "while all live"
    other.kill()
    await other.wait()
    client.break_down("daemon")
    with pytest.raises(SandboxFailed):
        await docker.end_left()
    client.break_down("")
    await docker.end_left()
    assert client.asked("rm") == [["rm", "--force", "aaa"]]
    # What its client was still about to begin is looked for as well, and in the end it is forgotten.
    await docker.end_left()
    assert len(client.asked("rm")) == 2
    os.utime(owners / name, (0, 0))
    await docker.end_left()
    assert [path.name for path in owners.iterdir()] == [own]
    await shell.close()


async def test_a_copy_of_the_folder_ends_nothing_of_whoever_lives_in_the_first_one(tmp_path):
    owners, copied = tmp_path / "owners", tmp_path / "copied"
    name = own_name(owners)
    shutil.copytree(owners, copied)
    with dead_owners(copied) as dead:
        assert dead == frozenset()
    assert [path.name for path in owners.iterdir()] == [name]
