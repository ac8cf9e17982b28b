"""SKILLS: what a thousand skills add to a step and to the prompt, and what a call costs that a composed skill
makes, beside one that the model makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.budgets import NotMeasured, Reading
from bench.stage import Stage
from bench.steps import costs

STEPS = 40
SKILLS = 1_000
FEW, MANY = 10, 50
"""Calls of one turn; what two such turns differ by is the price of calls alone."""


def steps(stage: Stage) -> Iterator[Reading]:
    """Milliseconds, by the processor; and how much of their share of the prompt they take."""
    site = stage.site
    order = f"bench loop {STEPS}"
    plain = median(costs(stage, order, STEPS)[5:35])
    bare = _system(stage)
    given = site.installation.ask(what="with_skills", count=SKILLS)
    own = median(costs(stage, order, STEPS, conversations=given["conversations"])[5:35])
    yield Reading("SKILLS step", (own - plain) * 1_000, own * 1_000, plain * 1_000)
    yield Reading("SKILLS share", (_system(stage) - bare) / given["share"])


def calls(stage: Stage) -> Iterator[Reading]:
    """Milliseconds of a call, by the processor: the sandbox's own is part of what a skill's call costs."""
    times = 1 if stage.quick else 3
    # The stand-in counts the results that a request holds: each turn begins a conversation.
    asked = {"what": "with_composed_skill", "count": 4 * times}
    given = iter(stage.site.installation.ask(**asked)["conversations"])
    found = {
        kind: {
            count: median(
                costs(stage, f"bench {kind} {count}", 1, conversations=[next(given)])[0]
                for _time in range(times)
            )
            for count in (FEW, MANY)
        }
        for kind in ("calls", "nested")
    }
    at_once, nested = (
        (found[kind][MANY] - found[kind][FEW]) / (MANY - FEW) for kind in ("calls", "nested")
    )
    messages = stage.ask_service("GET", "/last-body")["messages"]
    parts = [part for each in messages for part in each["content"] if isinstance(part, dict)]
    results = [part["type"] for part in parts].count("tool_result")
    if results != 1:
        raise NotMeasured(f"the composed skill was answered {results} times")
    # A skill makes its calls one after another, as a model does that asks for one in each step.
    direct = median(costs(stage, f"bench loop {STEPS}", STEPS)[5:35])
    yield Reading("SKILLS nested", nested / direct, nested * 1_000, direct * 1_000)
    yield Reading("SKILLS at once", nested / at_once, nested * 1_000, at_once * 1_000)


def _system(stage: Stage) -> int:
    """Characters of the last request's system prompt."""
    body = stage.ask_service("GET", "/last-body")
    system = body["system"]
    return len(system if isinstance(system, str) else "".join(part["text"] for part in system))
