"""What every test may use: the cast. A subject's own stand-ins live beside its tests."""

from __future__ import annotations

import pytest
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from hypothesis import HealthCheck, settings

from tests import prepared
from tests.cast import acme, alice, bob, client_of, elsewhere, mallory, staff
from tests.one_day import one_day

__all__ = ["acme", "alice", "bob", "client_of", "elsewhere", "mallory", "one_day", "staff"]

# How fast examples come says how busy the machine is.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    """What a process cached of a row would be believed of another test's, which has the same number."""
    if isinstance(caches["default"], LocMemCache):
        caches["default"].clear()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    prepared.keep()
