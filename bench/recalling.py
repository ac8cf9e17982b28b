"""How well facts are found again in long dialogues (`bench.dialogues`), how sure one can be of that, and how
long a search takes among many memories (B17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from bench import appends
from bench.budgets import Reading
from bench.commands import Helper
from bench.dialogues import Question, generate
from bench.figures import quantile
from bench.sites import environment
from bench.stage import Stage
from memory.dialogues import dialogue_search
from memory.embedding.letters import Letters
from memory.retrieval.turns import Found

FIRST = 5
"""So many hits are looked at."""


def recall(stage: Stage) -> Iterator[Reading]:
    corpus = generate(conversations=60, questions=150) if stage.quick else generate()
    # Vectors by letters need no model, so that everybody has the same.
    for embedder, beside in ((None, ""), (Letters(), " with letters")):
        search = dialogue_search(corpus.turns, embedder)
        good: Counter[str] = Counter()
        every: Counter[str] = Counter()
        for question in corpus.questions:
            for part, is_good in _judged(question, search(question.text, FIRST)):
                every[part] += 1
                good[part] += is_good
        for part, count in every.items():
            yield Reading(f"RECALL {part}{beside}", 100 * good[part] / count, good[part], count)


def _judged(question: Question, found: Found) -> Iterator[tuple[str, bool]]:
    ids = [hit.turn.id for hit in found.hits]
    if not question.evidence:
        yield "unknown", found.low
        return
    is_there = question.newest in ids if question.now else bool(question.evidence & set(ids))
    yield "evidence", is_there
    yield "sure", not found.low
    if question.now:
        yield "now", ids[:1] == [question.newest]
    if question.in_other_words:
        yield "other words", is_there


def many_on_sqlite(stage: Stage) -> Iterator[Reading]:
    yield from _searched(stage, "SQLite")


def many_on_postgresql(stage: Stage) -> Iterator[Reading]:
    yield from _searched(stage, "PostgreSQL")


def _searched(stage: Stage, part: str) -> Iterator[Reading]:
    many = 10_000 if stage.quick else 100_000

    def filled(count: int) -> Helper:
        directory = stage.directory(f"remembered-{part.lower()}-{count}")
        (directory / "data").mkdir()
        url = "" if part == "SQLite" else appends.postgresql(stage, f"remembered-{count}")
        env = environment(directory, "http://127.0.0.1:9", AGENTSITE_DATABASE_URL=url)
        with Helper("bench.prepare", env=env) as installation:
            installation.ask(what="prepare")
        helper = stage.stack.enter_context(Helper("bench.remembered", env=env))
        helper.ask(what="fill", count=count)
        return helper

    helpers = {
        count: stage.kept(f"{count} memories on {part}", partial(filled, count))
        for count in (many // 10, many)
    }
    for vectors, name in ((False, part), (True, f"{part} with letters")):
        first = {
            count: helper.ask(what="ask", count=1, vectors=vectors)["ms"][0]
            for count, helper in helpers.items()
        }
        times: dict[int, list[float]] = {count: [] for count in helpers}
        busy: dict[int, list[float]] = {count: [] for count in helpers}
        # In turn, so that what else the machine does is shared.
        for _ in range(2 if stage.quick else 10):
            for count, helper in helpers.items():
                told = helper.ask(what="ask", count=20, vectors=vectors)
                times[count] += told["ms"]
                busy[count] += told["busy"]
        p95 = {count: quantile(each, 0.95) for count, each in times.items()}
        few = p95[many // 10]
        yield Reading(f"B17 {name}", p95[many], p95[many], few)
        yield Reading(f"B17 {name} growth", p95[many] / few, p95[many], few)
        its = quantile(busy[many], 0.95)
        yield Reading(f"B17 {name} busy", its, its, quantile(busy[many // 10], 0.95))
        if vectors:
            yield Reading(f"B17 {name} first", first[many], first[many], first[many // 10])
            same = helpers[many].ask(what="compare", count=40)["found"]
            yield Reading(f"B17 {name} same", 100 * sum(same) / len(same), sum(same), len(same))
