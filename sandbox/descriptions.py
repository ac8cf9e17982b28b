"""What a sandbox is, put together from policy, mounts and what was found of the backend."""

from __future__ import annotations

from collections.abc import Sequence

from .contract import Capabilities, Description, Mounts
from .guarantees import MEANING, Guarantee
from .policy import Policy


def describe(
    policy: Policy,
    mounts: Mounts,
    capabilities: Capabilities,
    *,
    confined: bool,
    scratch: Sequence[str] = (),
    own_places: bool = True,
    notes: Sequence[str] = (),
) -> Description:
    """`own_places`: mounts are shown at their targets, otherwise where they lie on the host."""
    folders = []
    for mount in mounts.all():
        place = mount.target if own_places else mount.source
        writable = mount.writable
        if mount is mounts.workdir:
            writable = writable and policy.filesystem_policy.include_workdir
        folders.append((str(place), "rw" if writable else "ro", mount.label))
    folders += [(path, "rw", "temporary") for path in scratch]
    folders += [(path, "rw", "") for path in policy.filesystem_policy.read_write]
    folders += [(path, "ro", "") for path in policy.filesystem_policy.read_only]
    return Description(
        backend=capabilities.backend,
        confined=confined,
        workdir=str(mounts.workdir.target if own_places else mounts.workdir.source),
        mounts=tuple(folders),
        network=tuple(
            f"{endpoint.host}, port {' and '.join(map(str, endpoint.ports))}"
            + (f", only {', '.join(endpoint.methods)}" if endpoint.methods else "")
            for endpoint in policy.endpoints
        ),
        limits=limits_in_words(policy, capabilities),
        guarantees=tuple(
            MEANING[guarantee] for guarantee in Guarantee if guarantee in capabilities.guarantees
        ),
        notes=tuple(notes),
    )


def limits_in_words(policy: Policy, capabilities: Capabilities) -> dict[str, str]:
    resources = policy.resources
    together = Guarantee.MEMORY_TOTAL in capabilities.guarantees
    return {
        "wall clock": f"{resources.wall_seconds:,} s",
        "processor time": f"{resources.cpu_seconds:,} s a process",
        "memory": f"{resources.memory_mb:,} MB" + ("" if together else " a process"),
        "processes": f"{resources.pids:,}",
        "file size": f"{resources.file_mb:,} MB",
        "open files": f"{resources.open_files:,} a process",
        "output": f"{resources.output_kb:,} kB a stream",
        "temporary files": f"{resources.scratch_mb:,} MB",
        "workspace": f"{resources.workspace_mb:,} MB in {resources.workspace_files:,} files",
    }
