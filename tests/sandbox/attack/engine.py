"""A stand-in of Docker's client and engine for attacks: each container is a bubblewrap sandbox that holds
exactly as much as the options it was made with ask for, and not a bit more.

Run as a program by the `docker` backend, with its own folder as the first argument (`client_in`).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

from sandbox import cgroups

MB = 1024 * 1024
LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
    "fsize": resource.RLIMIT_FSIZE,
    "cpu": resource.RLIMIT_CPU,
}


def client_in(folder: Path) -> Path:
    """The program `docker`, made in `folder`."""
    program = folder / "docker"
    root = Path(__file__).resolve().parents[3]
    program.write_text(
        f"#!/bin/sh\nPYTHONPATH='{root}' exec '{sys.executable}' -m tests.sandbox.attack.engine"
        f" '{folder}' \"$@\"\n"
    )
    program.chmod(0o755)
    return program


def values(options: list[str], name: str) -> list[str]:
    return [options[at + 1] for at, word in enumerate(options) if word == name]


def probed(options: list[str]) -> str:
    """What the backend's probe would find in a container with these options."""
    lines = []
    if "no-new-privileges" in values(options, "--security-opt"):
        lines += ["NoNewPrivs:\t1", "Seccomp:\t2"]
    lines += ["lo" if values(options, "--network") == ["none"] else "lo eth0"]
    lines += values(options, "--pids-limit")
    lines += [str(int(one[:-1]) * MB) for one in values(options, "--memory")]
    if "--read-only" not in options:
        lines.append("written")
    return "\n".join([*lines, "ended"])


def sandbox(options: list[str]) -> list[str]:
    """The container as a command line of bubblewrap."""
    line = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    if values(options, "--network") != ["none"]:
        line.append("--share-net")
    for folder in ("/usr", "/etc/alternatives", "/etc/ld.so.cache"):
        line += ["--ro-bind-try", folder, folder]
    for name in ("bin", "sbin", "lib", "lib64"):
        line += ["--symlink", f"usr/{name}", f"/{name}"]
    line += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    for place in values(options, "--tmpfs"):
        folder, _, how = place.partition(":")
        size = next(one for one in how.split(",") if one.startswith("size="))
        line += ["--size", str(int(size[5:-1]) * MB), "--tmpfs", folder]
    for mount in values(options, "--mount"):
        told = dict(part.partition("=")[::2] for part in mount.split(","))
        line += ["--ro-bind" if "readonly" in told else "--bind", told["source"], told["target"]]
    if "--read-only" in options:
        line += ["--remount-ro", "/", "--remount-ro", "/dev"]
    for one in values(options, "--cap-drop"):
        line += ["--cap-drop", one]
    for one in values(options, "--env"):
        name, _, value = one.partition("=")
        line += ["--setenv", name, value]
    for folder in values(options, "--workdir"):
        line += ["--chdir", folder]
    return line


def limited(options: list[str]) -> None:
    for one in values(options, "--ulimit"):
        name, _, value = one.partition("=")
        soft, _, hard = value.partition(":")
        resource.setrlimit(LIMITS[name], (int(soft), int(hard or soft)))


def run_in(folder: Path, name: str, command: list[str]) -> int:
    options = json.loads((folder / name).read_text())
    group = cgroups.Group(
        cgroups.find(),
        memory_mb=int((values(options, "--memory") or ["100000m"])[0][:-1]),
        pids=int((values(options, "--pids-limit") or ["10000"])[0]),
    )
    running = subprocess.Popen(
        [*group.prefix(), *sandbox(options), *command],
        start_new_session=True,
        preexec_fn=lambda: limited(options),
    )
    (folder / f"{name}.pid").write_text(str(running.pid))
    try:
        code = running.wait()
    finally:
        group.remove()
    return 128 - code if code < 0 else code


def end(folder: Path, name: str) -> None:
    pid = folder / f"{name}.pid"
    if pid.exists():
        try:
            os.killpg(int(pid.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            pass


def main() -> int:
    folder, asked = Path(sys.argv[1]), sys.argv[2:]
    match asked[0]:
        case "version":
            sys.stdout.write("28.2.2\n")
        case "image":
            sys.stdout.write("sha256:0\n")
        case "run" if "--detach" in asked:
            (folder / values(asked, "--name")[0]).write_text(json.dumps(asked))
            sys.stdout.write("0123456789ab\n")
        case "run":
            sys.stdout.write(probed(asked) + "\n")
        case "exec":
            return run_in(folder, asked[1], asked[2:])
        case "kill" | "rm":
            end(folder, asked[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
