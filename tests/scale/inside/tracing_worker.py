"""A worker of one's own that does one call with spans of its own: below the call's, by what it was told.

Run as a module with the server's address, the environment, the collector's address and the call's tool; its
key is in the environment of the process.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import urllib.request
from typing import Any

SPAN = "f0f0f0f0f0f0f0f0"


def ask(address: str, secret: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    request = urllib.request.Request(address, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def main() -> None:
    server, environment, collector, tool = sys.argv[1:5]
    key, queue = os.environ["WORKER_KEY"], f"{server}/v1/environments/{environment}/work"
    while (work := ask(f"{queue}/poll?block_ms=900", key)) is None:
        pass
    ask(f"{queue}/{work['id']}/ack", key, {})
    told = work["secret"]
    told = json.loads(base64.urlsafe_b64decode(told + "=" * (-len(told) % 4)))
    secret, session = told["sessions_token"], f"{server}/v1/sessions/{work['data']['id']}/events"
    ask(f"{queue}/{work['id']}/heartbeat", secret, {})
    [call] = [each for each in ask(session, secret)["data"] if each["type"] == "agent.tool_use"]
    assert call["name"] == tool, call
    _version, trace, parent, _flags = call["x_traceparent"].split("-")
    now = str(time.time_ns())
    span = {"traceId": trace, "spanId": SPAN, "parentSpanId": parent, "name": "at the worker"}
    span |= {"startTimeUnixNano": now, "endTimeUnixNano": now}
    ask(
        f"{collector}/v1/traces",
        "none",
        {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
    )
    answer = {"type": "user.tool_result", "tool_use_id": call["id"], "content": []}
    ask(session, secret, {"events": [answer]})
    ask(f"{queue}/{work['id']}/stop", secret, {"force": True})


if __name__ == "__main__":
    main()
