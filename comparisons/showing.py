"""What the page of a comparison shows, and programs are told: its answers side by side, and which one won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import User
from pipelines.figures import Figures, figures_of
from pipelines.models import PipelineRun, StepRun
from pipelines.standing import rest_of
from rendering.markdown import to_html

from .judging import verdict_of
from .models import SCALE, Comparison, Entry
from .running import entries_of
from .standing import answer_of
from .winning import ALONE, QUALITY, TIE, TOKENS, Standing, Won, winner_of

WAITS = "waits"
REASON = 500
"""Characters of what a judge said that are shown."""


@dataclass(frozen=True, slots=True)
class ShownEntry:
    row: Entry
    state: str
    """As `Entry.State`, or `waits`."""
    words: str
    waits_for: str
    figures: Figures
    answer: str
    html: SafeString | str
    reason: str
    """What its judge said."""
    run: str
    """The id of its run, if it is a pipeline's."""
    conversation: str
    """The agent's, for whom it belongs to."""
    won: bool


@dataclass(frozen=True, slots=True)
class Shown:
    comparison: Comparison
    state: str
    words: str
    entries: tuple[ShownEntry, ...]
    won: Won
    won_words: str
    figures: Figures
    """Of all, the judges' as well."""
    may_go_on: bool
    most_points: int = SCALE

    @property
    def live(self) -> bool:
        return self.comparison.state == Comparison.State.RUNNING

    @property
    def mark(self) -> str:
        """Changes where the page has to be drawn anew, with its forms."""
        return f"{self.state}:{self.may_go_on}"


def show(comparison: Comparison, user: User) -> Shown:
    is_own = comparison.root.owner_id == user.pk
    rows = entries_of(comparison)
    figures = {row.place: _figures(row) for row in rows}
    won = Won()
    if comparison.state != Comparison.State.RUNNING:
        won = winner_of([_standing(row, figures[row.place]) for row in rows])
    entries = tuple(_entry(row, figures[row.place], won, is_own=is_own) for row in rows)
    state, words = str(comparison.state), str(comparison.get_state_display())
    waiting = [entry for entry in entries if entry.state == WAITS]
    if waiting and state == Comparison.State.RUNNING:
        state, words = WAITS, _("waits")
    whole = figures_of(
        comparison.root_id,
        steps=sum(each.steps for each in figures.values()),
        began=comparison.started_at,
        ended=comparison.ended_at,
    )
    return Shown(
        comparison=comparison,
        state=state,
        words=words,
        entries=entries,
        won=won,
        won_words=_won_words(won, rows),
        figures=whole,
        may_go_on=any(_may_go_on(entry.row) for entry in waiting),
    )


def _figures(row: Entry) -> Figures:
    top = row.top
    if top is None:
        return Figures(steps=0, model_calls=0, tokens=0, cost=None, seconds=0.0)
    return figures_of(
        top.pk,
        steps=row.run.steps.count() if row.run is not None else 1,
        began=row.comparison.started_at,
        ended=row.ended_at,
        free=row.run is not None and row.run.scripted,
    )


def _standing(row: Entry, figures: Figures) -> Standing:
    return Standing(row.place, row.state == Entry.State.DONE, row.points, figures.tokens)


def _won_words(won: Won, rows: list[Entry]) -> str:
    name = next((row.name for row in rows if row.place == won.place), "")
    words = {
        QUALITY: _("“%(name)s”: its answer is the better one"),
        TOKENS: _("“%(name)s”: it took fewer tokens, and no answer is known to be better"),
        ALONE: _("“%(name)s”: no other came to an answer that passed"),
        TIE: _("Nobody: the answers are equally good, and took the same"),
    }.get(won.by, "")
    return words % {"name": name} if words else ""


def _entry(row: Entry, figures: Figures, won: Won, *, is_own: bool) -> ShownEntry:
    state, words, waits_for = str(row.state), str(row.get_state_display()), ""
    if row.is_open and (waits := _waits_for(row)):
        state, words, waits_for = WAITS, _("waits"), waits
    answer = answer_of(row) if row.state != Entry.State.RUNNING else ""
    reason = ""
    if row.judge is not None and row.points is not None:
        verdict = verdict_of(row.judge)
        # Without points its words were taken out since: nothing is quoted of that.
        reason = verdict.reason[:REASON] if verdict.points is not None else ""
    return ShownEntry(
        row=row,
        state=state,
        words=words,
        waits_for=waits_for,
        figures=figures,
        answer=answer,
        html=to_html(answer) if answer else "",
        reason=reason,
        run=row.run.uid if row.run is not None else "",
        conversation=row.conversation.uid if is_own and row.conversation is not None else "",
        won=row.place == won.place,
    )


def _waits_for(row: Entry) -> str:
    """Why it does not go on by itself; empty: it works."""
    if row.state == Entry.State.JUDGING:
        conversation = row.judge
    elif row.run is not None:
        if row.run.state != PipelineRun.State.RUNNING:
            return ""
        step = row.run.steps.select_related("conversation").order_by("-place").first()
        if step is not None and step.state == StepRun.State.ASKING:
            return _("A person is asked whether it goes on.")
        conversation = step.conversation if step is not None else None
    else:
        conversation = row.conversation
    rest = rest_of(conversation) if conversation is not None else None
    return rest.words if rest is not None and not rest.ended else ""


def _may_go_on(row: Entry) -> bool:
    if row.run is not None and row.judge is None:
        step = row.run.steps.select_related("conversation").order_by("-place").first()
        conversation = step.conversation if step is not None else None
    else:
        conversation = row.judge or row.conversation
    return conversation is not None and conversation.has_stopped_short


def as_json(comparison: Comparison, user: User) -> dict[str, Any]:
    """For programs."""
    shown = show(comparison, user)
    return {
        "id": comparison.uid,
        "state": shown.state,
        "question": comparison.question,
        "judged": comparison.judged,
        "conversation": comparison.root.uid,
        "entries": [
            {
                "place": entry.row.place,
                "name": entry.row.name,
                "state": entry.state,
                "answer": entry.answer,
                "points": entry.row.points,
                "most_points": SCALE,
                "reason": entry.reason,
                "problem": entry.row.problem or entry.waits_for,
                "run": entry.run,
                "conversation": entry.conversation,
                "figures": entry.figures.as_json(),
            }
            for entry in shown.entries
        ],
        "winner": shown.won.place or None,
        "won_by": shown.won.by or None,
        "figures": shown.figures.as_json(),
        "started_at": comparison.started_at.isoformat(),
        "ended_at": comparison.ended_at.isoformat() if comparison.ended_at else None,
    }
