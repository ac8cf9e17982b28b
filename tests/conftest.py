"""What every test may use: the cast. A subject's own stand-ins live beside its tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from django.template import Context, Template
from django.utils.safestring import SafeString
from hypothesis import HealthCheck, settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.intervalsets import IntervalSet
from xdist.remote import Producer

from jobs.engine import engine
from jobs.garbage import collect_seldom
from tests import prepared
from tests.cast import acme, alice, bob, client_of, elsewhere, mallory, staff
from tests.dividing import Division, longest_first
from tests.one_day import one_day
from tests.properties import WHOLE, examples

__all__ = ["acme", "alice", "bob", "client_of", "elsewhere", "mallory", "one_day", "staff"]

found_by_trying = charmap.intervals_from_codec

Started = tuple[bool, Callable[[], None]]

# How fast examples come says how busy the machine is.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=examples(),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")


def pytest_configure() -> None:
    # All that is imported and collected stays to the end; looking through it over and over took a quarter of
    # the collection's time.
    gc.disable()
    if not WHOLE:
        # What our modules hold as constants would be read from the source of all of them, in each process:
        # six seconds for a few of the values that are tried. The full proof does.
        providers._get_local_constants = lambda: providers._local_constants
    charmap.intervals_from_codec = _intervals_from_codec


@cache
def _intervals_from_codec(codec: str) -> tuple[IntervalSet, IntervalSet]:
    """Of the characters that every text may have, known: to find them each process of a new checkout would
    encode a million, three seconds long."""
    if codec == "utf-8":
        return IntervalSet([(0, 0xD7FF), (0xE000, sys.maxunicode)]), IntervalSet([])
    return found_by_trying(codec)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Division | None:
    """In place of xdist's own `--dist loadfile`."""
    return Division(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    collect_seldom()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _pages_alone_are_noted(django_test_environment: None) -> None:
    """A client copies the context of all that is drawn. Of a page that is done once, and not for each
    template that it includes as well: a fifth of what an administration's page takes."""
    noted = Template._render  # type: ignore[attr-defined]

    def render(self: Template, context: Context) -> SafeString:
        if context.template is self:
            drawn: SafeString = noted(self, context)
            return drawn
        return self.nodelist.render(context)

    Template._render = render  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    """What a process cached of a row would be believed of another test's, which has the same number."""
    if isinstance(caches["default"], LocMemCache):
        caches["default"].clear()


@pytest.fixture(autouse=True)
def still_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test started has ended before its database goes away; and what it did not start, such
    as the recurring jobs of a server that another test imported, before it begins. A process that
    ended, such as the command line's, left an engine that takes nothing more."""
    _stop_engine()
    monkeypatch.setattr(engine, "_draining", False)
    yield
    _stop_engine()


def _stop_engine() -> None:
    tools = engine._tool_threads
    engine.stop()
    if tools is not None:
        # What still works there writes into the tables of whichever test comes next.
        for thread in list(tools._threads):
            thread.join(10)


@pytest.fixture(scope="session")
def _together(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings: None
) -> Iterator[Started]:
    """Held until this process's database is there: of several processes the first makes it for all."""
    base = tmp_path_factory.getbasetemp()
    with ExitStack() as stack:
        copied = stack.enter_context(
            prepared.shared(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
        )
        yield copied, stack.close


@pytest.fixture(scope="session")
def django_db_keepdb(_together: Started) -> bool:
    """A copy is not made again."""
    copied, _release = _together
    return copied


@pytest.fixture(scope="session")
def django_db_setup(_together: Started, django_db_setup: None) -> None:
    prepared.keep()
    _copied, release = _together
    release()
