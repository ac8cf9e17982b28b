#!/usr/bin/env python3
"""How services do by recorded probes, as JSON. Probes are lines of a CSV file: time, service, ok, ms."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

COLUMNS = ("time", "service", "ok", "ms")
YES = {"yes", "true", "1", "ok", "up"}
NO = {"no", "false", "0", "fail", "down"}
MOST_SERVICES = 200


@dataclass(frozen=True)
class Probe:
    at: datetime
    ok: bool
    ms: float | None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--slow-ms", type=float, default=1000.0)
    given = parser.parse_args()
    try:
        found = health(given.file.read_text(encoding="utf-8-sig"), given.slow_ms)
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return 0


def health(text: str, slow_ms: float) -> dict[str, Any]:
    """Raises ValueError, naming the line, for what is no table of probes."""
    if not (math.isfinite(slow_ms) and slow_ms > 0):
        raise ValueError("An answer is slow from a number of milliseconds above 0.")
    services = probes_of(text)
    times = [probe.at for probes in services.values() for probe in probes]
    first, last = min(times), max(times)
    return {
        "from": told(first),
        "to": told(last),
        "days": round((last - first).total_seconds() / 86_400, 4),
        "services": [of_one(name, services[name], slow_ms) for name in sorted(services)],
    }


def probes_of(text: str) -> dict[str, list[Probe]]:
    rows = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise ValueError(f"The first line names the columns; there is no {', '.join(missing)}.")
    found: dict[str, list[Probe]] = {}
    for row in rows:
        name = (row["service"] or "").strip()
        if not name:
            raise ValueError(f"Line {rows.line_num} names no service.")
        found.setdefault(name, []).append(probe_of(row, rows.line_num))
        if len(found) > MOST_SERVICES:
            raise ValueError(f"There are more than {MOST_SERVICES} services.")
    if not found:
        raise ValueError("There is no probe in the file.")
    for probes in found.values():
        probes.sort(key=lambda probe: probe.at)
    return found


def probe_of(row: dict[str, str], line: int) -> Probe:
    said = (row["ok"] or "").strip().lower()
    if said not in YES | NO:
        raise ValueError(f"Line {line} says neither yes nor no: {said[:40]!r}.")
    written = (row["time"] or "").strip()
    try:
        at = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", written))
    except ValueError:
        raise ValueError(f"Line {line} has no time like 2026-03-01T08:00:00Z.") from None
    if at.tzinfo is None:
        raise ValueError(f"Line {line} has a time without a zone; add Z or +01:00.")
    taken = (row["ms"] or "").strip()
    try:
        ms = float(taken) if taken else None
    except ValueError:
        ms = -1.0
    if ms is not None and not (math.isfinite(ms) and ms >= 0):
        raise ValueError(f"Line {line} has no number of milliseconds: {taken[:40]!r}.")
    # datetime.UTC is newer than the Python that has to do.
    return Probe(at.astimezone(timezone.utc), said in YES, ms)  # noqa: UP017


def of_one(name: str, probes: list[Probe], slow_ms: float) -> dict[str, Any]:
    failed = sum(not probe.ok for probe in probes)
    timed = sorted(probe.ms for probe in probes if probe.ok and probe.ms is not None)
    p95 = timed[math.ceil(0.95 * len(timed)) - 1] if timed else None
    longest, since = outages(probes)
    state = "down" if since else "slow" if p95 is not None and p95 >= slow_ms else "up"
    return {
        "service": name,
        "state": state,
        "probes": len(probes),
        "failed": failed,
        "availability": round(100 * (len(probes) - failed) / len(probes), 3),
        "p95_ms": p95,
        "longest_outage_minutes": longest,
        "down_since": told(since) if since else None,
    }


def outages(probes: list[Probe]) -> tuple[float, datetime | None]:
    """The longest one in minutes, and since when it is down, if it is."""
    longest, since = 0.0, None
    for probe in probes:
        if since is not None:
            longest = max(longest, (probe.at - since).total_seconds() / 60)
        if probe.ok:
            since = None
        elif since is None:
            since = probe.at
    return round(longest, 2), since


def told(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def as_tool(path: str, slow_ms: float = 1000.0) -> dict[str, Any]:
    # There only where the server runs it as a tool.
    from agentsite_skill import (  # type: ignore[import-not-found]  # noqa: PLC0415
        call_tool,
    )

    lines: list[str] = []
    total = 1
    while len(lines) < total:
        shown = call_tool("read_file", path=path, start_line=len(lines) + 1)
        head, _, rest = shown.partition("\n")
        counted = re.search(r" of (\d+)$", head)
        part = [line.partition("\t")[2] for line in rest.split("\n") if re.match(r" *\d+\t", line)]
        if counted is None or not part:
            raise ValueError(f"{path} holds no probes.")
        total = int(counted[1])
        lines += part
    return health("\n".join(lines), slow_ms)


if __name__ == "__main__":
    raise SystemExit(main())
