"""Runs inside the sandbox, as the one process of a composed skill's tool: calls the skill's function, and
carries what it asks for to the server and back. Imports nothing of ours, and runs with Python 3.8.

What it may do is not decided here: it is the sandbox's and, for every call that it makes, the server's part.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any, BinaryIO

LONGEST = 1_000_000
"""Bytes of one line; the server ends whoever sends more."""


class CallFailed(Exception):
    """A call that the skill made was refused, or ended with an error; its words are the answer's."""


class Line:
    """To the server and back: one JSON object a line, one call at a time."""

    def __init__(self, up: BinaryIO, down: BinaryIO) -> None:
        self._up = up
        self._down = down
        self._lock = threading.Lock()
        self._number = 0
        self._token = ""

    def first(self) -> dict[str, Any]:
        given: dict[str, Any] = json.loads(self._down.readline())
        self._token = given["token"]
        return given

    def say(self, **message: Any) -> None:
        data = json.dumps({"token": self._token, **message}).encode() + b"\n"
        if len(data) > LONGEST:
            raise ValueError(f"more than {LONGEST:,} bytes at once")
        self._up.write(data)
        self._up.flush()

    def call(self, name: str, given: dict[str, Any]) -> str:
        with self._lock:
            self._number += 1
            self.say(call=name, number=self._number, input=given)
            answer = json.loads(self._down.readline())
        if answer["number"] != self._number:
            raise RuntimeError("the answer to another call came")
        if answer["is_error"]:
            raise CallFailed(answer["text"])
        return str(answer["text"])


def main(folder: str) -> None:
    with (Path(folder) / "down").open("rb") as down, (Path(folder) / "up").open("wb") as up:
        line = Line(up, down)
        given = line.first()
        try:
            result = run(line, given)
            json.dumps(result)
        except BaseException as problem:  # whatever it is, the server is told
            words = "".join(traceback.format_exception_only(type(problem), problem)).strip()
            sys.stderr.write(traceback.format_exc())
            line.say(error=words[:4_000])
            return
        line.say(result=result)


def run(line: Line, given: dict[str, Any]) -> Any:
    # Begun anew it has to ask for the same.
    random.seed(given["seed"])
    sys.modules["agentsite_skill"] = module_for(line)
    path = Path(given["folder"]) / given["file"]
    sys.path[:0] = [str(path.parent), given["folder"]]
    spec = importlib.util.spec_from_file_location("skill_entry", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{given['file']} is no Python file")
    entry = importlib.util.module_from_spec(spec)
    sys.modules["skill_entry"] = entry
    spec.loader.exec_module(entry)
    return getattr(entry, given["function"])(**given["input"])


def module_for(line: Line) -> types.ModuleType:
    """What a skill imports: `from agentsite_skill import call_tool, call_skill, CallFailed`."""

    def call_tool(name: str, **given: Any) -> str:
        """What the tool answered. Raises CallFailed."""
        return line.call(name, given)

    def call_skill(skill: str, tool: str, **given: Any) -> Any:
        """What another skill's tool answered, as it returned it. Raises CallFailed."""
        text = line.call(f"skill__{skill}__{tool}", given)
        try:
            return json.loads(text)
        except ValueError:
            return text

    made = types.ModuleType("agentsite_skill")
    vars(made).update(call_tool=call_tool, call_skill=call_skill, CallFailed=CallFailed)
    return made


if __name__ == "__main__":
    main(sys.argv[1])
