"""What runs in the environment of Strands, as a process of its own: its loop, and nothing that acts.

It imports nothing of ours and is told nobody's words, only references to them (`replaying`). Models and
specialists are asked for by a line on its output, and answered by a line on its input; what they do, cost and
may is the host's (`process`).
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NoReturn

from strands import Agent
from strands.models.model import Model
from strands.tools.executors import SequentialToolExecutor
from strands.tools.tools import PythonAgentTool

IDLE_SECONDS = 120
"""Without a question it ends by itself."""
WORK_SECONDS = 60
"""Whatever the host does, it does not work longer on one."""
LINE_LIMIT = 1_000_000
"""Bytes."""
MEMORY = 2 * 1024**3
_REFUSED = (
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "socket.sendto",
    "subprocess.",
    "os.exec",
)
_REFUSED_TOO = {"os.system", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn"}

Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Waits(BaseException):
    """The host has no answer yet: it asks anew once it has. Not caught by what catches mistakes of tools."""


class HostModel(Model):
    """Asks the host with the messages that Strands would send, by their references."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def update_config(self, **_changes: Any) -> None:
        """There is nothing to change."""

    def get_config(self) -> dict[str, Any]:
        return {"context_window_limit": 1_000_000}

    def structured_output(self, *_args: Any, **_more: Any) -> NoReturn:
        raise NotImplementedError

    async def stream(
        self, messages: Any, *_args: Any, **_more: Any
    ) -> AsyncIterator[dict[str, Any]]:
        said = self._ask({"model": list(_references(messages))})
        yield {"messageStart": {"role": "assistant"}}
        for call in said.get("calls", ()):
            use = {"toolUse": {"toolUseId": call["id"], "name": call["name"]}}
            yield {"contentBlockStart": {"start": use}}
            task = json.dumps({"task": f"call:{call['id']}"})
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": task}}}}
            yield {"contentBlockStop": {}}
        if "text" in said:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": said["text"]}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if "calls" in said else "end_turn"}}


def _references(messages: Any) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            if "text" in block:
                yield block["text"]
            elif "toolUse" in block:
                yield block["toolUse"]["input"]["task"]
            elif "toolResult" in block:
                for part in block["toolResult"]["content"]:
                    yield part["text"]


def specialist(ask: Ask, name: str) -> PythonAgentTool:
    async def work(use: Any, **_more: Any) -> Any:
        came = ask({"tool": use["toolUseId"], "name": use["name"]})
        return {
            "toolUseId": use["toolUseId"],
            "status": "error" if came["failed"] else "success",
            "content": [{"text": came["result"]}],
        }

    task = {"type": "string", "description": "What it is to do."}
    schema = {"json": {"type": "object", "properties": {"task": task}, "required": ["task"]}}
    return PythonAgentTool(name, {"name": name, "description": name, "inputSchema": schema}, work)


async def orchestrate(ask: Ask, told: dict[str, Any]) -> str:
    """Go through all of it from the beginning; what was answered before is answered again at once."""
    agent = Agent(
        model=HostModel(ask),
        tools=[specialist(ask, name) for name in told["specialists"]],
        tool_executor=SequentialToolExecutor(),
        callback_handler=None,
        retry_strategy=None,
    )
    return str((await agent.invoke_async("question")).stop_reason)


def confine() -> None:
    """Nothing that it imported has a reason to reach further."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def refuse(event: str, _args: Any) -> None:
        if event in _REFUSED_TOO or event.startswith(_REFUSED):
            raise PermissionError(f"{event} is not for this process")

    sys.addaudithook(refuse)


def main() -> None:
    # Whatever prints does not print into what the host reads.
    lines_out, lines_in = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    confine()

    def say(value: dict[str, Any]) -> None:
        lines_out.write(json.dumps(value).encode() + b"\n")
        lines_out.flush()

    def hear() -> dict[str, Any]:
        line = lines_in.readline(LINE_LIMIT)
        if not line.endswith(b"\n"):
            os._exit(0)  # the host has gone
        heard: dict[str, Any] = json.loads(line)
        return heard

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        say(question)
        answer = hear()
        if answer.get("wait"):
            raise Waits
        return answer

    say({"ready": 1})
    while True:
        signal.alarm(IDLE_SECONDS)
        told = hear()
        signal.alarm(WORK_SECONDS)
        try:
            say({"end": asyncio.run(orchestrate(ask, told))})
        except Waits:
            say({"waits": 1})
        except Exception as fault:
            say({"fault": f"{type(fault).__name__}: {fault}"[:500]})


if __name__ == "__main__":
    main()
