"""What the page of a run shows, and programs are told: how it stands, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import PartialBlock
from rendering.markdown import to_html

from .drawing import Drawing, drawn
from .driving import missing, name_of
from .figures import Figures, figures_of
from .graph.following import RETRY
from .graph.spec import END, REFUSED, rules_of
from .models import PipelineRun, StepRun
from .orchestrating import readable
from .standing import answer_of, final_answer, rest_of, text_for

ARRIVING = 4_000
"""Characters of an answer under way that are shown, the last ones."""
SHOWN = 4_000
"""Characters of an answer that a page draws unless somebody asks for all of it."""


@dataclass(frozen=True, slots=True)
class ShownStep:
    row: StepRun
    state: str
    """As `StepRun.State`, or `waits`."""
    words: str
    waits_for: str
    is_known: bool
    """Whoever asks has what it said."""
    answer: str
    html: SafeString | str
    is_cut: bool
    """Of its answer the beginning is drawn."""
    is_whole: bool
    """All of it was asked for."""
    arriving: str
    conversation: str
    """Its id, for whom it belongs to."""
    seconds: float
    retried: bool

    @property
    def look(self) -> tuple[str, str]:
        """The state as pages show it, and its words: what a person refused has ended, and is nothing done."""
        refused = self.row.decided_by_id is not None and self.row.outcome.get("word") == REFUSED
        return ("failed", _("refused")) if refused else (self.state, self.words)


@dataclass(frozen=True, slots=True)
class Shown:
    run: PipelineRun
    state: str
    """As `PipelineRun.State`, or `waits`."""
    words: str
    steps: tuple[ShownStep, ...]
    drawing: Drawing
    figures: Figures
    answered: int
    """The place of the step whose answer is the run's; 0: none has come to it."""
    answer: str
    html: SafeString | str
    is_cut: bool
    asks: int
    """The place at which a person is asked; 0: none is."""
    question_to_person: str
    may_go_on: bool

    @property
    def engine(self) -> str:
        """What says which step is due, for people; empty: our own rules."""
        return name_of(self.run.version.spec.engine)

    @property
    def missing(self) -> str:
        """What the server lacks for it to go on."""
        return missing(self.run.version.spec) if self.live else ""

    @property
    def live(self) -> bool:
        return self.run.state == PipelineRun.State.RUNNING

    @property
    def ended(self) -> int:
        """How many of its steps have: the first ones."""
        return sum(not step.row.is_open for step in self.steps)

    @property
    def mark(self) -> str:
        """Changes where the page has to be drawn anew, with its forms."""
        return f"{self.state}:{self.asks}"


def show(run: PipelineRun, user: User, *, known: int | None = None, whole: int = 0) -> Shown:
    """`known`: so many of its first steps whoever asks has seen ended, with what they said. That is not read
    again then, and neither is what a person is asked. `whole`: the place of a step whose answer is drawn
    whole, however long."""
    rows = list(run.steps.select_related("conversation", "decided_by").order_by("place"))
    for row in rows:
        row.run = run
    is_own = run.root.owner_id == user.pk
    steps = tuple(
        _step(row, is_own=is_own, known=known or 0, is_whole=row.place == whole) for row in rows
    )
    last = steps[-1] if steps else None
    state, words = run.state, str(run.get_state_display())
    if last is not None and run.state == PipelineRun.State.RUNNING and last.state in _WAITING:
        state, words = "waits", _("waits")
    asking = rows[-1] if rows and rows[-1].state == StepRun.State.ASKING else None
    final = final_answer(run, rows)
    answer = answer_of(final) if final is not None and final.place > (known or 0) else ""
    html, is_cut = _drawn(answer, is_whole=final is not None and final.place == whole)
    conversation = last.row.conversation if last is not None else None
    return Shown(
        run=run,
        state=state,
        words=words,
        steps=steps,
        drawing=drawn(
            run.version.spec,
            {step.row.name: step.look for step in steps},
            frozenset(row.came_by for row in rows) | _ended_by(run, rows),
        ),
        figures=figures_of(
            run.root_id,
            steps=len(rows),
            began=run.started_at,
            ended=run.ended_at,
            free=run.scripted,
        ),
        answered=final.place if final is not None else 0,
        answer=answer,
        html=html,
        is_cut=is_cut,
        asks=asking.place if asking is not None else 0,
        question_to_person=(
            text_for(run, rows[:-1], asking.name, asking.times)
            if asking is not None and known is None
            else ""
        ),
        may_go_on=bool(
            state == "waits" and conversation is not None and conversation.has_stopped_short
        ),
    )


_WAITING = {"waits", StepRun.State.ASKING}


def _ended_by(run: PipelineRun, rows: Sequence[StepRun]) -> frozenset[str]:
    """Nothing keeps the rule by which a run ended; its last step tells enough."""
    if run.state != PipelineRun.State.DONE or not rows:
        return frozenset()
    name = rows[-1].name
    rules = rules_of(run.version.spec, name)
    return frozenset(f"{name}.{number}" for number, rule in enumerate(rules) if rule.to == END)


def _drawn(answer: str, *, is_whole: bool) -> tuple[SafeString | str, bool]:
    """And whether only its beginning is."""
    if not answer:
        return "", False
    if is_whole or len(answer) <= SHOWN:
        return to_html(answer), False
    beginning = answer[:SHOWN]
    return to_html(beginning[: beginning.rfind("\n") + 1] or beginning), True


def _step(row: StepRun, *, is_own: bool, known: int, is_whole: bool) -> ShownStep:
    state, words, waits_for = str(row.state), str(row.get_state_display()), ""
    arriving = ""
    if row.state == StepRun.State.RUNNING and row.conversation is not None:
        rest = rest_of(row.conversation)
        if rest is not None and not rest.ended:
            state, words, waits_for = "waits", _("waits"), rest.words
        else:
            arriving = _arriving(row)
    is_known = not row.is_open and row.place <= known
    answer = "" if row.is_open or is_known else readable(row, answer_of(row))
    html, is_cut = _drawn(answer, is_whole=is_whole)
    until = row.ended_at or timezone.now()
    return ShownStep(
        row=row,
        state=state,
        words=words,
        waits_for=waits_for,
        is_known=is_known,
        answer=answer,
        html=html,
        is_cut=is_cut,
        is_whole=is_whole,
        arriving=arriving,
        conversation=row.conversation.uid if is_own and row.conversation is not None else "",
        seconds=round((until - row.started_at).total_seconds(), 1),
        retried=row.came_by == RETRY,
    )


def _arriving(row: StepRun) -> str:
    """What its agent is saying, as far as it is kept by now."""
    said = PartialBlock.objects.filter(conversation=row.conversation, kind="text")
    text = said.order_by("-pk").values_list("text", flat=True).first() or ""
    return text[-ARRIVING:]


def as_json(run: PipelineRun, user: User) -> dict[str, Any]:
    """For programs."""
    shown = show(run, user)
    return {
        "id": run.uid,
        "pipeline": run.version.pipeline.uid,
        "version": run.version.number,
        "state": shown.state,
        "problem": run.problem,
        "question": run.question,
        "answer": shown.answer,
        "conversation": run.root.uid,
        "asks": shown.asks or None,
        "asked": shown.question_to_person,
        "steps": [
            {
                "place": step.row.place,
                "step": step.row.name,
                "state": step.state,
                "answer": step.answer,
                "outcome": step.row.outcome,
                "problem": step.row.problem or step.waits_for,
                "conversation": step.conversation,
                "started_at": _time(step.row.started_at),
                "ended_at": _time(step.row.ended_at),
            }
            for step in shown.steps
        ],
        "figures": shown.figures.as_json(),
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
