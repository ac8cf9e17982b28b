"""B9: how many events a second 64 conversations at once bring into the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentsite.local_services import LocalPostgreSQL, Unavailable
from bench.budgets import NotMeasured, Reading
from bench.commands import Helper
from bench.sites import environment
from bench.stage import Stage

WRITERS = 64


def on_sqlite(stage: Stage) -> Iterator[Reading]:
    yield _compare(stage, "SQLite", lambda: "")


def on_postgresql(stage: Stage) -> Iterator[Reading]:
    yield _compare(stage, "PostgreSQL", lambda: postgresql(stage, "appends"))


def postgresql(stage: Stage, name: str) -> str:
    """The address of a server of its own. Raises NotMeasured where there is none."""
    try:
        cluster = LocalPostgreSQL(stage.directory(f"{name}-postgresql"))
        cluster.start()
    except Unavailable as problem:
        raise NotMeasured(str(problem)) from None
    stage.stack.callback(cluster.stop)
    return cluster.url


def _compare(stage: Stage, part: str, database: Callable[[], str]) -> Reading:
    seconds = 1.0 if stage.quick else 4.0

    def prepare() -> tuple[Helper, list[str]]:
        directory = stage.directory(f"appends-{part.lower()}")
        (directory / "data").mkdir()
        env = environment(directory, "http://127.0.0.1:9", AGENTSITE_DATABASE_URL=database())
        with Helper("bench.prepare", env=env) as installation:
            installation.ask(what="prepare")
            made = installation.ask(what="conversations", count=WRITERS)["conversations"]
        work = stage.stack.enter_context(Helper("bench.writers", env=env))
        uids = [uid for uid, _cookie in made]
        work.ask(how="journal", uids=uids, seconds=0.2)
        return work, uids

    work, uids = stage.kept(f"writers on {part}", prepare)
    reference = work.ask(how="acreate", uids=uids, seconds=seconds)["rate"]
    own = work.ask(how="journal", uids=uids, seconds=seconds)["rate"]
    return Reading(f"B9 {part}", own / reference, own, reference)
