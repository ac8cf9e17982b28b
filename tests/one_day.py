"""A day that does not end while a test counts by days."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone


@pytest.fixture
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a day's last hour, what asks Django for the time is told that of the next day's first. Only
    forward, and no further: the database has a clock of its own, which leases are kept by."""
    if timezone.localtime().hour < 23:
        return
    real = timezone.now

    def now() -> datetime:
        return real() + timedelta(hours=1)

    monkeypatch.setattr(timezone, "now", now)
