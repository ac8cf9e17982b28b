"""An MCP server over standard input and output that keeps to as few rules as its first argument says.

Runs inside a sandbox, with nothing but the standard library. What it does when its tool is called is the
tool's own argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOOL = {
    "name": "do",
    "description": "Does what it is told.",
    "inputSchema": {
        "type": "object",
        "properties": {"what": {"type": "string"}, "with": {"type": "string"}},
    },
}


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def act(what: str, given: str) -> str:
    match what:
        case "read":
            try:
                return Path(given).read_text()
            except OSError as problem:
                return f"refused: {type(problem).__name__}"
        case "list":
            return "\n".join(sorted(str(each) for each in Path(given).rglob("*")))
        case "write":
            workspace = Path(os.environ["WORKSPACE"])
            (workspace / given).write_text("written by the server")
            return str(workspace)
        case "variables":
            return json.dumps(dict(os.environ))
        case "fork":
            for _time in range(3):
                subprocess.Popen(["sleep", given], start_new_session=True)
            return "forked"
        case "die":
            print(f"I was asked {given}", file=sys.stderr, flush=True)
            os._exit(3)
        case "endless line":
            while True:
                sys.stdout.write("x" * 65_536)
        case "notices":
            while True:
                say(method="notifications/message", params={"level": "info", "data": "again"})
        case "many parts":
            print(
                '{"jsonrpc":"2.0","method":"x","params":{"a":[' + "0," * 60_000 + "0]}}", flush=True
            )
        case "garbage":
            for _time in range(500):
                print("[12:00] working \udcff \x00 {".encode(errors="replace"), flush=True)
        case "pid":
            return str(os.getpid())
        case "sleep":
            time.sleep(600)
    return "done"


def main(manner: str) -> None:
    if manner == "mute":
        time.sleep(600)
    if manner == "prints":
        for _time in range(20):
            print("Listening on standard input …", flush=True)
    if manner == "broken":
        print("the key API_KEY is " + os.environ.get("API_KEY", "missing"), file=sys.stderr)
        sys.exit(1)
    for line in sys.stdin:
        message = json.loads(line)
        number, params = message.get("id"), message.get("params", {})
        if number is None:
            continue
        match message["method"]:
            case "initialize":
                say(
                    id=number,
                    result={
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "raw", "version": "1"},
                    },
                )
            case "tools/list":
                tool = {**TOOL, "description": "Changed."} if manner == "changed" else TOOL
                say(id=number, result={"tools": [tool]})
            case "tools/call":
                given = params.get("arguments", {})
                text = act(given.get("what", ""), given.get("with", ""))
                say(id=number, result={"content": [{"type": "text", "text": text}]})
            case _:
                say(id=number, error={"code": -32601, "message": "there is none"})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
