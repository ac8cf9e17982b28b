"""One command through one sandbox; a helper process (`bench.commands`)."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from bench.commands import answer_tasks
from sandbox import overhead
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import SandboxBackend
from sandbox.docker import DockerBackend
from sandbox.openshell import OpenShellBackend
from sandbox.process import ProcessBackend


def _backend(name: str) -> SandboxBackend:
    match name:
        case "bubblewrap":
            return BubblewrapBackend()
        case "process":
            return ProcessBackend()
        case "docker":
            return DockerBackend(image=os.environ.get("AGENTSITE_DOCKER_IMAGE", "debian:12"))
        case "openshell":
            return OpenShellBackend(endpoint=os.environ.get("AGENTSITE_OPENSHELL_ENDPOINT", ""))
    raise ValueError(f"unknown backend {name!r}")


async def perform(task: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds by way, or why this machine has no such sandbox."""
    backend = _backend(task["backend"])
    try:
        found = await backend.probe()
        if not found.available:
            return {"problem": found.problem or "not available"}
        costs = await overhead.measure(backend, rounds=task["rounds"])
        return {"problem": "", "ms": {cost.way: cost.median for cost in costs}}
    finally:
        await backend.close()


if __name__ == "__main__":
    asyncio.run(answer_tasks(perform))
