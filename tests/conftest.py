"""What every test may use: the cast. A subject's own stand-ins live beside its tests."""

from __future__ import annotations

from tests.cast import acme, alice, bob, client_of, elsewhere, mallory, staff

__all__ = ["acme", "alice", "bob", "client_of", "elsewhere", "mallory", "staff"]
