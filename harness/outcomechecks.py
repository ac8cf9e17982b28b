"""What the checks of an outcome come to: commands that the server runs, and what a grader is shown of them.

Who asked for the outcome chose the commands; the agent has no part in them but the files that they look at.
How a command runs is told by a port (`Kit.checks`), whether it may by the rules (`Loop`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.compaction import clip
from harness.events import OutcomeCheck, OutcomeCheckRan

OUTPUT_CHARACTERS = 4_000
"""Of one check's output; more is cut in the middle."""


@dataclass(frozen=True, slots=True)
class Ran:
    exit_code: int | None = None
    output: str = ""
    problem: str = ""
    untrusted_by: str = ""
    """What brought strangers' words into the output, or into why it did not run; empty: nothing did."""


@dataclass(frozen=True, slots=True)
class CheckRunner:
    tool: str
    """The tool whose rules hold for the commands."""
    run: Callable[[str, float, str], Awaitable[Ran]]
    """A command in a sandbox of its own, for so many seconds, and what of strangers had come in before.
    Never raises for a command."""


def ran_event(check: OutcomeCheck, ran: Ran, *, outcome: str, start: str) -> OutcomeCheckRan:
    return OutcomeCheckRan(
        outcome_evaluation_start_id=start,
        outcome_id=outcome,
        run=check.run,
        criterion=check.criterion,
        exit_code=ran.exit_code,
        output=clip(ran.output, OUTPUT_CHARACTERS),
        problem=ran.problem,
        untrusted_by=ran.untrusted_by,
    )


def ending_of(ran: OutcomeCheckRan) -> str:
    """How it ended, without a word of what it printed."""
    code = "" if ran.exit_code is None else f"exit code {ran.exit_code}"
    return ", ".join(part for part in (code, ran.problem) if part)


def told(checked: Sequence[OutcomeCheckRan]) -> str:
    """For the grader: entries at the margin, all that they quote indented."""
    lines = []
    for number, each in enumerate(checked, 1):
        about = f" on criterion {each.criterion}" if each.criterion else ""
        how = "passed" if each.passed else "failed"
        command = json.dumps(each.run, ensure_ascii=False)
        output = "".join(f"\n    {line}" for line in each.output.splitlines())
        ending = " ".join(ending_of(each).split())
        lines.append(f"[check {number}{about} {how}] {command} ({ending}){output}")
    return "\n".join(lines)


def failures(checked: Sequence[OutcomeCheckRan]) -> Mapping[int, str]:
    """By the number of its criterion, why a check keeps it from being met. What was printed is not said again
    here: the agent is told of it, and nobody has marked whose words they are."""
    return {
        each.criterion: f"The check {json.dumps(each.run, ensure_ascii=False)} failed ({ending_of(each)})."
        for each in reversed(checked)
        if each.criterion and not each.passed
    }
