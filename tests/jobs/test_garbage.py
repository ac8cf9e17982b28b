"""What a process has loaded is not looked at by every collection, and garbage still goes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType
from weakref import ref

import pytest

from jobs import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What is frozen stays so: to look through all that the tests have imported takes a second each time."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


class Knot:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_loaded_at_the_start_is_not_looked_at_again():
    loaded = [Knot()]

    garbage.collect_seldom()

    assert gc.get_threshold() == garbage.THRESHOLDS
    assert gc.get_freeze_count() > 0
    assert not any(seen is loaded[0] for seen in gc.get_objects())


def test_what_is_made_later_and_points_at_itself_still_goes_by_itself():
    garbage.collect_seldom()
    gone = ref(Knot())

    young, middle, _old = garbage.THRESHOLDS
    alive: list[list[int]] = [[] for _ in range(2 * young * (middle + 1))]

    assert gone() is None
    assert alive


@pytest.mark.parametrize(("modules", "kept"), [(garbage.MANY, True), (garbage.MANY - 1, False)])
def test_only_much_that_is_imported_is_kept(
    modules: int, kept: bool, monkeypatch: pytest.MonkeyPatch
):
    before = gc.get_freeze_count()

    with garbage.keeping_what_is_imported():
        for number in range(modules):
            monkeypatch.setitem(sys.modules, f"imported_{number}", ModuleType("imported"))

    assert (gc.get_freeze_count() > before) is kept


def test_after_loading_collections_are_seldom():
    gc.set_threshold(700, 10, 10)
    pause = garbage.Pause()
    pause.begin()
    assert not gc.isenabled()
    pause.end()
    assert gc.isenabled()
    assert gc.get_threshold() == garbage.THRESHOLDS


def test_who_switched_collections_off_is_not_overruled():
    gc.disable()
    try:
        pause = garbage.Pause()
        pause.begin()
        pause.end()
        assert not gc.isenabled()
    finally:
        gc.enable()
