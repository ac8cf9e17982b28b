"""The examples of a page of docs/, so that tests can run what a reader would."""

from __future__ import annotations

import re
from pathlib import Path


def fences(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and code of each fenced example in these languages, in their order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [(language, code) for language, code in found if language in languages]
