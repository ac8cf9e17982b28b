"""What docs/api-chat.md says is what is served: its example runs, its tables are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from api import incoming, projection, stream
from api.errors import CODES
from providers.scripted import call, reply
from tests.journeys.site import ROOT
from tests.patience import PATIENCE

TEXT = (ROOT / "docs" / "api-chat.md").read_text(encoding="utf-8")


def test_the_client_of_the_documentation_works(site, cast, service, program):
    opening = "Write hello into a file."
    service.expect(
        opening, reply("I write. ", call("write_file", path="a", content="hello")), "Written."
    )
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(code.strip().splitlines()) <= 30
    environment = {**os.environ, "AGENTSITE": site.address}
    environment["AGENTSITE_TOKEN"] = cast["alice"]["secret"]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "I write. Written."


def test_every_code_is_in_the_table_with_its_status():
    for code, status, words in CODES:
        assert f"| `{code}` | {status} | {words} |" in TEXT


def test_every_frame_is_described():
    sources = "".join(
        Path(module.__file__ or "").read_text(encoding="utf-8") for module in (projection, stream)
    )
    sent = set(re.findall(r'"type": "([a-z_]+)"', sources))
    sent |= set(stream.FRAMES.values()) | {"thinking", "text_replaced", "thinking_replaced"}
    missing = {name for name in sent | set(incoming.TYPES) if f"`{name}" not in TEXT}
    assert missing - {"terminated", "auth"} == set()
