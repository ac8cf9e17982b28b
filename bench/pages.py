"""B11–B14: pages of long logs and long lists, memory, and how soon a server is there.

Pages are counted in the server's processor time, which other work on the machine moves least.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from urllib.parse import quote

from agentsite.local_services import free_port
from bench import machine
from bench.budgets import Reading
from bench.commands import ROOT
from bench.sites import Site, environment, one_process
from bench.stage import Stage


def _cost(site: Site, path: str, times: int, cookie: str = "") -> float:
    """Processor seconds of one GET, after a first one that fills caches."""
    site.get(path, cookie)
    before = machine.family_seconds(site.pids)
    for _ in range(times):
        site.get(path, cookie)
    return (machine.family_seconds(site.pids) - before) / times


def long_log(stage: Stage) -> Iterator[Reading]:
    site = stage.site
    times = 5 if stage.quick else 20
    made = site.installation.ask
    short, long = (made(what="history", events=events)["uid"] for events in (100, 10_000))
    _cost(site, f"/c/{short}/", 3)
    own, reference = _cost(site, f"/c/{long}/", times), _cost(site, f"/c/{short}/", times)
    yield Reading("B11 screen", own / reference, own * 1000, reference * 1000)
    replayed = made(what="history", events=5_000)
    cost = _cost(site, f"/c/{replayed['uid']}/export/json/", 2 if stage.quick else 5)
    serializer = made(what="serialize", pk=replayed["pk"])["seconds"]
    yield Reading("B11 replay", cost / serializer, cost * 1000, serializer * 1000)


def long_list(stage: Stage) -> Iterator[Reading]:
    site = stage.site
    many, few = (20_000 if stage.quick else 100_000), 1_000
    crowds = {count: site.crowd(count) for count in (few, many)}
    times = 5 if stage.quick else 20
    for name in ("list", "search"):
        costs = {}
        for count, crowd in crowds.items():
            path = "/" if name == "list" else f"/?q={quote(crowd['word'])}"
            costs[count] = _cost(site, path, times, crowd["cookie"])
        ratio = costs[many] / costs[few]
        yield Reading(f"B12 {name}", ratio, costs[many] * 1000, costs[few] * 1000)


def memory(stage: Stage) -> Iterator[Reading]:
    """On a server of its own: what earlier rounds left free would hide what is needed now."""
    sockets, streams = (60, 30) if stage.quick else (300, 150)
    with one_process(
        stage.directory(f"memory-{time.monotonic_ns()}"),
        stage.service,
        pinned=machine.server_cores(),
    ) as site:
        ask = stage.browsers.ask
        ask(what="first", port=site.port, conversations=site.conversations(10))
        ask(what="idle", port=site.port, conversations=site.conversations(20), watched=site.pids)
        idle = ask(
            what="idle",
            port=site.port,
            conversations=site.conversations(sockets),
            watched=site.pids,
        )
        yield Reading("B13 idle", idle["kb"])
        busy = ask(
            what="streaming",
            port=site.port,
            conversations=site.conversations(streams),
            watched=site.pids,
        )
        yield Reading("B13 streaming", busy["kb"])


def start(stage: Stage) -> Iterator[Reading]:
    """The second start of an installation, as a person would make it: `manage.py up`, on all cores."""
    env = environment(stage.directory("up"), "http://127.0.0.1:9")
    _seconds_to_first_page(env)
    yield Reading("B14", _seconds_to_first_page(env))


def _seconds_to_first_page(env: dict[str, str]) -> float:
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port)],
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                url = f"http://127.0.0.1:{port}/accounts/login/"
                with urllib.request.urlopen(url, timeout=30):
                    return time.monotonic() - began
            except OSError:
                if process.poll() is not None or time.monotonic() - began > 120:
                    raise TimeoutError("`manage.py up` did not come up") from None
                time.sleep(0.02)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
