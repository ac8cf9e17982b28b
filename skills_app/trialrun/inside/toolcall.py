"""Runs inside the sandbox of a trial run: calls one function of a skill as a tool would be called. Each call
that it makes itself is refused and written down. Imports nothing of ours, and runs with Python 3.8.
"""

# ruff: noqa: T201

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any


class CallFailed(Exception):
    """As a skill knows it."""


def main(folder: str, file: str, function: str, given: str, log: str) -> None:
    sys.modules["agentsite_skill"] = module_for(Path(log))
    path = Path(folder) / file
    sys.path[:0] = [str(path.parent), folder]
    spec = importlib.util.spec_from_file_location("skill_entry", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    entry = importlib.util.module_from_spec(spec)
    sys.modules["skill_entry"] = entry
    spec.loader.exec_module(entry)
    print(json.dumps(getattr(entry, function)(**json.loads(Path(given).read_text()))))


def module_for(log: Path) -> types.ModuleType:
    def call_tool(name: str, **_given: Any) -> str:
        with log.open("a") as file:
            file.write(f"{name}\n")
        raise CallFailed("In a trial run no tool is called.")

    def call_skill(skill: str, tool: str, **given: Any) -> Any:
        return call_tool(f"skill__{skill}__{tool}", **given)

    made = types.ModuleType("agentsite_skill")
    vars(made).update(call_tool=call_tool, call_skill=call_skill, CallFailed=CallFailed)
    return made


if __name__ == "__main__":
    main(*sys.argv[1:])
