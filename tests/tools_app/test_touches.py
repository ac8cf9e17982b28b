"""What a call would touch is told at once, or left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.heartbeat import seconds_of_work
from tests.hostile import marks
from tools_app.touches import touched_by


def test_the_host_of_an_address_is_told():
    told = touched_by("conv_1", "web_fetch", {"url": "https://a.example/x"})

    assert told == {"kind": "address", "url": "https://a.example/x", "host": "a.example"}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (f"http://{marks(40_000)}/", "address"),
        (f"http://{marks(2_000)}/", "unknown"),
        ("http://a.example/" + "x" * 3_900_000, "address"),
    ],
    ids=["marks", "few marks", "megabytes"],
)
def test_an_address_that_is_dear_to_read_has_no_host(url: str, kind: str):
    told: list[dict[str, Any]] = []

    spent = seconds_of_work(lambda: told.append(touched_by("conv_1", "web_fetch", {"url": url})))

    assert spent < 0.005
    assert told[0]["kind"] == kind
    assert not told[0].get("host")
