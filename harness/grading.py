"""Judges work by its criteria: what the grader is shown, and what its answer comes to.

Pure. The loop asks the model and stores what follows; which files there are is told by a port
(`Kit.evidence`). The grader has no tools, and what the agent says about its own work is marked as a claim.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.compaction import clip
from harness.content import Block, Text, text_of
from harness.events import (
    AgentMessage,
    ContentSetAside,
    CriterionJudged,
    EvaluationResult,
    InputTaken,
    McpElsewhere,
    ModelUsage,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    SpanToolStart,
    ToolResult,
    ToolUse,
    UserMessage,
    answered_call,
)
from harness.history import Entry, Pursued
from harness.messages import Message, ModelRequest, Usage
from harness.texts import Texts
from reading.digits import is_digits
from reading.foreignjson import Unreadable, read_mended_json

MOST_CRITERIA = 50
MOST_RUBRIC = 262_144
"""Characters, as in the public API."""
MOST_DESCRIPTION = 20_000
ITERATIONS = 3
"""How often work is judged at most unless somebody says otherwise; the public default, as is the limit."""
MOST_ITERATIONS = 20
PIECE_CHARACTERS = 4_000
"""Of one result or claim in the evidence; more is cut in the middle."""
MOST_EXPLANATION = 2_000
TRIES = 2
"""How often a grader is asked in one evaluation when its answer cannot be read."""


def criteria_of(rubric: str) -> tuple[str, ...]:
    """The lines of a list in `rubric` (`-`, `*`, `+`, `1.` or `1)`), indented ones with the line above
    them; without any the whole is one criterion. At most `MOST_CRITERIA`, the last one holding the rest."""
    found: list[str] = []
    for line in rubric.splitlines():
        item = _item_of(line)
        if item is not None:
            found.append(item)
        elif found and line.strip() and line[:1].isspace():
            found[-1] = f"{found[-1]} {line.strip()}"
    if not found:
        return (rubric.strip(),)
    if len(found) > MOST_CRITERIA:
        kept = found[: MOST_CRITERIA - 1]
        return (*kept, "\n".join(found[MOST_CRITERIA - 1 :]))
    return tuple(found)


def _item_of(line: str) -> str | None:
    if line[:1].isspace():
        return None
    mark, _space, rest = line.partition(" ")
    listed = mark in {"-", "*", "+"} or (is_digits(mark[:-1]) and mark[-1:] in {".", ")"})
    return rest.strip() if listed and rest.strip() else None


@dataclass(frozen=True, slots=True)
class Shown:
    """Of files, what a grader is shown."""

    text: str = ""
    untrusted_by: str = ""
    """What of it strangers may have written, in words; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    result: EvaluationResult
    criteria: tuple[CriterionJudged, ...]
    explanation: str


def record_of(entries: Sequence[Entry], room: int) -> str:
    """What was said and done, oldest first, in at most `room` characters. The middle is left out first.

    Each entry begins at the margin and what it quotes is indented: nothing quoted looks like an entry."""
    lines: list[str] = []
    names: dict[str, str] = {}
    begun: set[str] = set()
    aside = {each.event.event_id for each in entries if isinstance(each.event, ContentSetAside)}
    for entry in entries:
        event = entry.event
        match event:
            case UserMessage() if entry.uid in aside:
                continue
            case UserMessage():
                lines.append(f"[a person said] {clip(text_of(event.content), PIECE_CHARACTERS)}")
            case AgentMessage():
                lines.append(f"[the agent claims] {clip(text_of(event.content), PIECE_CHARACTERS)}")
            case SpanToolStart():
                begun.add(event.tool_use_id)
            case InputTaken():
                continue
            case _ if isinstance(event, ToolUse):
                names[entry.uid] = event.name
                given = json.dumps(event.input, ensure_ascii=False, default=str)
                lines.append(f"[the agent calls {event.name}] {clip(given, PIECE_CHARACTERS)}")
            case _ if isinstance(event, ToolResult):
                call = answered_call(event) or ""
                how = "failed" if event.is_error else "answered"
                ran = "" if call in begun else " without running"
                text = clip(_text(event.content), PIECE_CHARACTERS)
                lines.append(f"[{names.get(call, 'a tool')} {how}{ran}] {text}")
            case McpElsewhere(kind="use" | "result", block=block) if block:
                how = "calls" if event.kind == "use" else "is answered by"
                told = json.dumps({"server": event.server, **block}, ensure_ascii=False)
                lines.append(f"[the service {how} an MCP server] {clip(told, PIECE_CHARACTERS)}")
            case _:
                continue
    return clip("\n".join(quoted(line) for line in lines), room)


def quoted(text: str) -> str:
    """The text with all lines but the first indented: at the margin nothing foreign begins."""
    return "\n    ".join(text.splitlines())


def _text(blocks: Sequence[Block]) -> str:
    return "\n".join(
        block.text if isinstance(block, Text) else f"({block.type})" for block in blocks
    )


def grading_request(
    *,
    description: str,
    criteria: Sequence[str],
    record: str,
    files: str,
    checks: str = "",
    marker: str,
    texts: Texts,
    model: str,
    output_tokens: int,
) -> ModelRequest:
    """The request to the grader. `marker` is made after the evidence was, so that nothing in it can close
    the evidence and speak in its own name."""
    numbered = "\n".join(f"{number}. {each}" for number, each in enumerate(criteria, 1))
    ran = f"Checks that were run on the work just now:\n{checks}\n\n" if checks else ""
    evidence = f"{ran}Files as they are now:\n{files or '(none)'}\n\nRecord:\n{record or '(none)'}"
    parts = (
        f"The work was to bring this about:\n{description}",
        f"Criteria:\n{numbered}",
        f"<evidence {marker}>\n{evidence}\n</evidence {marker}>",
        "Judge each criterion by its number. Answer with the JSON object alone.",
    )
    return ModelRequest(
        model=model,
        system=texts.grading_request,
        messages=(Message("user", (Text(text="\n\n".join(parts)),)),),
        max_output_tokens=output_tokens,
        purpose="grading",
    )


class _Judged(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    number: int
    met: bool
    reason: str = ""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    applies: bool = True
    criteria: list[_Judged] = Field(default_factory=list, max_length=10 * MOST_CRITERIA)
    summary: str = ""


def verdict_of(
    answer: str,
    criteria: Sequence[str],
    *,
    last: bool,
    failed: Mapping[int, str] | None = None,
) -> Verdict | None:
    """What `answer` comes to; None when it holds no verdict that can be read.

    The result follows from the criteria, whatever else the answer says: one that is not judged, or judged
    in two ways, is not met. `last`: no further evaluation is left. `failed`: why those of these numbers are
    not met whatever the answer says.
    """
    said = _object_in(answer)
    if said is None:
        return None
    try:
        read = _Answer.model_validate(said)
    except ValidationError:
        return None
    summary = clip(read.summary.strip(), MOST_EXPLANATION)
    if not read.applies:
        return Verdict("failed", (), summary or "The criteria do not fit this work.")
    if not any(1 <= each.number <= len(criteria) for each in read.criteria):
        return None
    judged = tuple(
        CriterionJudged(criterion=text, met=False, reason=clip(why, MOST_EXPLANATION))
        if (why := (failed or {}).get(number))
        else _judged(read.criteria, number, text)
        for number, text in enumerate(criteria, 1)
    )
    if all(each.met for each in judged):
        return Verdict("satisfied", judged, summary)
    return Verdict("max_iterations_reached" if last else "needs_revision", judged, summary)


def _judged(answers: Sequence[_Judged], number: int, criterion: str) -> CriterionJudged:
    said = [each for each in answers if each.number == number]
    reason = next((each.reason for each in said if not each.met), said[0].reason if said else "")
    return CriterionJudged(
        criterion=criterion,
        met=bool(said) and all(each.met for each in said),
        reason=clip(reason.strip(), MOST_EXPLANATION) or ("" if said else "It was not judged."),
    )


def _object_in(answer: str) -> dict[str, object] | None:
    """The JSON object of an answer, alone or in a fence. Text that quotes another one first is not read."""
    begin, end = answer.find("{"), answer.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        # Who is judged may have it quote any sign, and must not be rid of the verdict by it.
        found = read_mended_json(answer[begin : end + 1])
    except Unreadable:
        return None
    return found if isinstance(found, dict) else None


def evaluated(
    pursued: Pursued, verdict: Verdict, used: Usage, *, untrusted_by: str = ""
) -> list[Entry]:
    """What is stored once work was judged, or is not judged any more. `used`: by the grader's requests;
    `untrusted_by`: what strangers' words they held that are not in the log."""
    outcome_id, iteration = pursued.defined.outcome_id, pursued.evaluations
    begun: list[Entry] = []
    start = pursued.evaluating
    if not start:
        event = SpanOutcomeEvaluationStart(outcome_id=outcome_id, iteration=iteration)
        begun.append(Entry.of(event))
        start = begun[0].uid
    end = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start,
        outcome_id=outcome_id,
        iteration=iteration,
        result=verdict.result,
        explanation=verdict.explanation,
        criteria=verdict.criteria,
        usage=ModelUsage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_creation_input_tokens=used.cache_creation_input_tokens,
            cache_read_input_tokens=used.cache_read_input_tokens,
        ),
        untrusted_by=untrusted_by,
    )
    return [*begun, Entry.of(end)]


def explanation_of(event: SpanOutcomeEvaluationEnd) -> str:
    """Which criteria are not met and why, with what the grader said of the whole."""
    unmet = [
        f"Not met: {each.criterion}" + (f" ({each.reason})" if each.reason else "")
        for each in event.criteria
        if not each.met
    ]
    return "\n".join(part for part in (event.explanation, *unmet) if part)
