"""Malformed frames against a live socket: `python -m tests.seed_protocol.fuzz [--frames 5000]`.

Each frame must get a clear answer on a socket that stays open, turns sent in between must all be
answered, and the log must hold nothing but them. A seed makes a failing run repeatable.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.journeys.model_service import ModelService
from tests.journeys.site import Site
from tests.seed_protocol.client import TERMINAL, Api, Chat
from tests.seed_protocol.conftest import make_cast

TYPES = (
    "message",
    "interrupt",
    "tool_approval_response",
    "plan_approval",
    "toggle_plan_mode",
    "toggle_teams",
    "toggle_approval",
    "toggle_tracing",
    "auth",
)
JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, 2**70, "", " ", "\0", "\ud800", "x" * 200, [], {}, [[]],
    {"type": "message"}, [1, 2, 3], "💥" * 50, "\u202e", ["message"],
)  # fmt: skip
ROUND = 100
"""Malformed frames between two turns."""


def malformed(chance: random.Random) -> str | bytes:
    """A frame that no rule allows."""
    match chance.randrange(9):
        case 0:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
        case 1:
            return json.dumps(chance.choice([5, -1.5, True, None, "text", [], [{}], ["message"]]))
        case 2:
            whole = json.dumps({"type": "message", "content": "cut off"})
            return whole[: chance.randrange(1, len(whole) - 1)]
        case 3:
            kind = "".join(chance.choices(string.printable, k=chance.randrange(1, 30)))
            return json.dumps({"type": f"?{kind}", "content": "x"})
        case 4:
            return json.dumps({"type": chance.choice(JUNK[:8] + JUNK[12:]), "content": "x"})
        case 5:
            junk = chance.choice([one for one in JUNK if not isinstance(one, str)])
            return json.dumps({"type": "message", "content": junk})
        case 6:
            return json.dumps({"type": "message", "content": " " * chance.randrange(0, 50)})
        case 7:
            kind = chance.choice(TYPES)
            field = {"message": "content", "auth": "token"}.get(kind, "enabled")
            if kind in {"tool_approval_response", "plan_approval", "interrupt"}:
                wrong = {"request_id": [], "decision": "approve", "content": {}, "feedback": 5}
                return json.dumps({"type": kind, **wrong})
            return json.dumps({"type": kind, field: chance.choice([None, {}, [], 3.5])})
        case _:
            depth = chance.randrange(10, 3_000)
            return "[" * depth + "]" * (depth - 1)


def run(api: Api, service: ModelService, frames: int, seed: int) -> Counter[str]:
    """Send so many malformed frames, with a turn after each hundred; what they were answered."""
    chance = random.Random(seed)
    codes: Counter[str] = Counter()
    service.expect("Are you there?", "I am here.")
    uid, turns = api.begin(), 0
    with api.chat(uid) as chat:
        for begin in range(0, frames, ROUND):
            size = min(ROUND, frames - begin)
            chat.say("message", content="Are you there?", key=f"turn-{begin}")
            for _number in range(size):
                chat.say_raw(malformed(chance))
            _hear_round(chat, size, codes)
            turns += 1
        chat.say("ping")
        assert chat.until("pong")
    stored = api.get(f"/api/conversations/{uid}", limit=500).json
    said = [m["content"] for m in stored["messages"] if m["role"] == "user"]
    expected = min(turns, 250)
    assert said[:expected] == ["Are you there?"] * expected, "the log holds something else"
    assert stored["waiting_messages"] == [], "a turn was lost"
    return codes


def _hear_round(chat: Chat, size: int, codes: Counter[str]) -> None:
    """Every malformed frame has its error, and the turn its end."""
    errors = ended = 0
    while errors < size or not ended:
        frame = chat.hear()
        chat.frames.clear()
        if frame["type"] == "error":
            assert frame["code"] != "internal", frame
            assert frame["message"], frame
            errors += 1
            codes[frame["code"]] += 1
        elif frame["type"] in TERMINAL:
            assert frame["status"] == "completed", frame
            ended += 1
    assert (errors, ended) == (size, 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--frames", type=int, default=5_000)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(2**32)
    with ModelService() as service, tempfile.TemporaryDirectory() as directory:
        settings = {
            "ANTHROPIC_API_KEY": "sk-ant-of-the-fuzzer",
            "ANTHROPIC_BASE_URL": service.base_url,
            "AGENTSITE_MESSAGES_PER_MINUTE": "0",
            "AGENTSITE_API_WRITES_PER_MINUTE": "0",
        }
        with Site(Path(directory), settings) as site:
            api = Api(site.address, make_cast(site)["alice"]["secret"])
            began = time.monotonic()
            codes = run(api, service, given.frames, seed)
            seconds = time.monotonic() - began
            faults = site.errors.count("Traceback")
    sys.stdout.write(
        f"{given.frames} frames in {seconds:.1f} s, seed {seed}: {dict(codes)}, {faults} tracebacks\n"
    )
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
