"""What an endpoint of a webhook says about when to come again."""

from __future__ import annotations

import pytest

from webhooks.requests import _retry_after


@pytest.mark.parametrize(
    "value", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "9" * 5_000, "²", "soon"]
)
def test_a_moment_out_of_reach_is_no_wish(value):
    assert _retry_after(value) == 0.0
