"""API and BASH: what programs wait for at `/v1`, and what a sandbox adds to one command."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from bench.budgets import NotMeasured, Reading
from bench.commands import Helper
from bench.stage import Stage

PAUSE = 0.05
"""Seconds between two requests: the run that a message begins is over by then."""
BACKENDS = ("bubblewrap", "process", "docker", "openshell")


def api(stage: Stage) -> Iterator[Reading]:
    """Milliseconds from request to answer, in turn with those of a view that only signs in."""
    site = stage.site
    given = site.installation.ask(what="token")
    client = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    headers = {"Authorization": f"Bearer {given['secret']}", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        client.request(method, path, json.dumps(body) if body else None, headers)
        response = client.getresponse()
        data = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {data[:300]!r}")
        answer: dict[str, Any] = json.loads(data)
        return answer

    wanted = {"agent": given["agent"], "environment_id": given["environment"]}
    said = {"type": "user.message", "content": [{"type": "text", "text": "bench stream 1 0"}]}
    session = ask("POST", "/v1/sessions", wanted)["id"]
    ways: dict[str, Callable[[], object]] = {
        "empty": lambda: ask("GET", "/bench/empty"),
        "create": lambda: ask("POST", "/v1/sessions", wanted),
        "send": lambda: ask("POST", f"/v1/sessions/{session}/events", {"events": [said]}),
        "list": lambda: ask("GET", "/v1/sessions?limit=20"),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(12 if stage.quick else 40):
        for name, act in ways.items():
            time.sleep(PAUSE)
            began = time.perf_counter()
            act()
            if number > 1:  # the first ones fill caches
                taken[name].append((time.perf_counter() - began) * 1000)
    client.close()
    reference = median(taken["empty"])
    for name in ("create", "send", "list"):
        own = median(taken[name])
        yield Reading(f"API {name}", own / reference, own, reference)


def sandboxes(stage: Stage) -> Iterator[Reading]:
    """Milliseconds of `echo` through each sandbox of this machine, in turn with a plain one."""
    missing = []
    with Helper("bench.echo") as helper:
        for name in BACKENDS:
            told = helper.ask(backend=name, rounds=15 if stage.quick else 40)
            if told["problem"]:
                missing.append(f"{name}: {told['problem']}")
                continue
            plain = told["ms"]["none"]
            for way, part in ((name, name), (f"{name} shell", f"{name}, shell kept")):
                yield Reading(f"BASH {part}", told["ms"][way] / plain, told["ms"][way], plain)
    if missing:
        raise NotMeasured("; ".join(missing))
