"""At most so many at once, each person once; whoever is slow keeps nobody out who is quick."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from harness.errors import Busy
from jobs.turnstile import SLOW_SECONDS, Turnstile
from mcpservers.actions import attaching


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(turnstile: Turnstile, who: object, **more: object) -> bool:
    try:
        with turnstile.place(who, **more):
            return False
    except Busy:
        return True


def test_each_person_has_one_place_and_all_are_so_many():
    turnstile = Turnstile(2)
    with ExitStack() as inside:
        inside.enter_context(turnstile.place("alice"))
        assert refused(turnstile, "alice")
        inside.enter_context(turnstile.place("bob"))
        assert refused(turnstile, "mallory")
    assert not refused(turnstile, "mallory")


def test_who_has_waited_long_moves_on_to_the_places_for_that():
    clock = Clock()
    turnstile = Turnstile(2, slow=3, clock=clock)
    with ExitStack() as inside:
        for who in range(2):
            inside.enter_context(turnstile.place(who))
        assert refused(turnstile, "alice")
        clock.now += SLOW_SECONDS
        assert not refused(turnstile, "alice")
        assert refused(turnstile, 0)
        for who in range(2, 4):
            inside.enter_context(turnstile.place(who))
        clock.now += SLOW_SECONDS
        inside.enter_context(turnstile.place(4))
        assert refused(turnstile, "alice"), (
            "three are counted as slow, one is not, and one is quick"
        )


def test_those_of_one_organisation_take_half_of_all_at_most():
    clock = Clock()
    turnstile = Turnstile(2, slow=4, clock=clock)
    with ExitStack() as inside:
        for who in range(3):
            inside.enter_context(turnstile.place(who, among="acme"))
            clock.now += SLOW_SECONDS
        assert refused(turnstile, "alice", among="acme")
        assert not refused(turnstile, "mallory", among="elsewhere")


def test_four_slow_servers_keep_nobody_from_attaching():
    """Before that time is over they do: a place that is taken is no slow one yet."""
    clock = Clock()
    turnstile = Turnstile(attaching._asking._places, slow=attaching._asking._slow, clock=clock)
    with ExitStack() as inside:
        for who in range(4):
            inside.enter_context(turnstile.place(who, among="acme"))
        with pytest.raises(Busy), turnstile.place("alice", among="acme"):
            pass
        clock.now += SLOW_SECONDS
        assert not refused(turnstile, "alice", among="acme")
