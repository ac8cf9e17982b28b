#!/usr/bin/env python3
"""The uptime between two times from a CSV file of outages (start, end), as JSON."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TextIO


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--from", dest="begin", required=True)
    parser.add_argument("--to", dest="end", required=True)
    given = parser.parse_args()
    try:
        begin, end = moment(given.begin, "--from"), moment(given.end, "--to")
        if begin >= end:
            raise ValueError("--from lies before --to.")
        with given.file.open(encoding="utf-8-sig", newline="") as file:
            spans = outages(file)
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    whole = (end - begin).total_seconds()
    down, count = within(spans, begin, end)
    told = {
        "uptime": round(100 * (whole - down) / whole, 4),
        "outage_minutes": round(down / 60, 2),
        "outages": count,
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return 0


def moment(text: str, where: str) -> datetime:
    try:
        found = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(f"{where} has no time like 2026-03-01T08:00:00Z.") from None
    if found.tzinfo is None:
        raise ValueError(f"{where} has a time without a zone; add Z or +01:00.")
    return found


def outages(file: TextIO) -> list[tuple[datetime, datetime]]:
    rows = csv.DictReader(file)
    if not {"start", "end"} <= set(rows.fieldnames or ()):
        raise ValueError("The first line names the columns start and end.")
    found = []
    for row in rows:
        where = f"Line {rows.line_num}"
        start, end = moment(row["start"] or "", where), moment(row["end"] or "", where)
        if end < start:
            raise ValueError(f"{where} ends before it begins.")
        found.append((start, end))
    return sorted(found)


def within(
    spans: list[tuple[datetime, datetime]], begin: datetime, end: datetime
) -> tuple[float, int]:
    """Seconds and number of outages between both, those that overlap as one."""
    seconds, count, reached = 0.0, 0, begin
    for first, last in spans:
        start, stop = max(first, begin), min(last, end)
        if start >= stop or stop <= reached:
            continue
        if start > reached or count == 0:
            count += 1
        seconds += (stop - max(start, reached)).total_seconds()
        reached = stop
    return seconds, count


if __name__ == "__main__":
    raise SystemExit(main())
