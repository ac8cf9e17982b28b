"""What every test may use: the cast. A subject's own stand-ins live beside its tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.cast import acme, alice, bob, client_of, elsewhere, mallory, staff

__all__ = ["acme", "alice", "bob", "client_of", "elsewhere", "mallory", "staff"]

# How fast examples come says how busy the machine is.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
