"""The graph of a pipeline as places on a drawing, and its rules in words. Pure, without a browser's script.

Steps stand below each other in their order; what leads further down bows out behind them, what leads back
before them. Everything that is drawn is told in words as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .graph.spec import END, FAIL, STRANDS, Condition, PipelineSpec, Rule, rules_of

WIDTH, HEIGHT, GAP = 240, 46, 30
LEFT, TOP = 110, 10
BOW = 22
"""How far the first of several lines bows out; each further one goes a little further."""
MOST_BOW = 90


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    words: str
    """Of its state; empty: it has none."""
    state: str
    x: int
    y: int
    asks_person: bool

    @property
    def middle(self) -> int:
        return self.x + WIDTH // 2

    @property
    def name_y(self) -> int:
        return self.y + (19 if self.words else 28)

    @property
    def words_y(self) -> int:
        return self.y + 37


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    back: bool
    taken: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    box_width: int = WIDTH
    box_height: int = HEIGHT


def drawn(
    spec: PipelineSpec,
    states: Mapping[str, tuple[str, str]] | None = None,
    ways: frozenset[str] = frozenset(),
) -> Drawing:
    """`states`: word and words by step; `ways`: the rules that were followed."""
    states = states or {}
    place = {step.name: number for number, step in enumerate(spec.steps)}
    place[END] = len(spec.steps)
    nodes = [
        Node(
            name=step.name,
            state=states.get(step.name, ("", ""))[0],
            words=states.get(step.name, ("", ""))[1],
            x=LEFT,
            y=_top(place[step.name]),
            asks_person=bool(step.approval),
        )
        for step in spec.steps
    ]
    nodes.append(Node(_("end"), "", "end", LEFT, _top(place[END]), asks_person=False))
    lines: list[Line] = []
    seen: dict[tuple[int, int], int] = {}
    bows = {True: 0, False: 0}
    for step in spec.steps:
        for number, rule in enumerate(rules_of(spec, step.name)):
            if rule.to == FAIL:
                continue
            start, goal = place[step.name], place[rule.to]
            taken = f"{step.name}.{number}" in ways
            known = seen.get((start, goal))
            if known is not None:
                if taken:
                    lines[known] = Line(lines[known].path, lines[known].back, taken=True)
                continue
            seen[start, goal] = len(lines)
            back = goal <= start
            if goal == start + 1:
                path = _straight(start)
            else:
                path = _bow(start, goal, bows[back])
                bows[back] += 1
            lines.append(Line(path, back, taken))
    return Drawing(tuple(nodes), tuple(lines), LEFT + WIDTH + LEFT, _top(place[END]) + HEIGHT + TOP)


def rule_words(spec: PipelineSpec, name: str) -> list[str]:
    """Where a step leads, a sentence for each rule."""
    if spec.engine == STRANDS:
        first = spec.steps[0].name
        if name != first:
            return [_("Back to “%(name)s”") % {"name": first}]
        return [_("Its agent decides which of the others it asks, for what, and when it answers")]
    return [_sentence(rule) for rule in rules_of(spec, name)]


def _sentence(rule: Rule) -> str:
    to = {END: _("the end"), FAIL: _("a failed end")}.get(rule.to, f"“{rule.to}”")
    if rule.when is None:
        said = (
            _("Else to %(to)s") % {"to": to}
            if rule.at_most is None
            else _("To %(to)s") % {"to": to}
        )
    else:
        said = _("If %(condition)s: to %(to)s") % {"condition": _condition(rule.when), "to": to}
    if rule.at_most is None:
        return said
    often = ngettext("at most %(count)d time", "at most %(count)d times", rule.at_most)
    return f"{said}, {often % {'count': rule.at_most}}"


def _condition(condition: Condition) -> str:
    whose = _("“%(step)s” ") % {"step": condition.of} if condition.of else ""
    if condition.word:
        return _("%(whose)sanswered %(words)s") % {
            "whose": whose,
            "words": _(" or ").join(condition.word),
        }
    tests = []
    if condition.equals is not None:
        tests.append(_("is %(value)s") % {"value": condition.equals})
    if condition.at_least is not None:
        tests.append(_("is at least %(value)s") % {"value": condition.at_least})
    if condition.below is not None:
        tests.append(_("is below %(value)s") % {"value": condition.below})
    met = _(" and ").join(tests)
    return f"{whose}{condition.field} {met}"


def _top(place: int) -> int:
    return TOP + place * (HEIGHT + GAP)


def _straight(start: int) -> str:
    x, y = LEFT + WIDTH // 2, _top(start) + HEIGHT
    return f"M{x} {y} L{x} {y + GAP - 3}"


def _bow(start: int, goal: int, number: int) -> str:
    """Behind the steps downwards, before them upwards."""
    back = goal <= start
    out = min(MOST_BOW, BOW + 14 * number)
    edge = LEFT if back else LEFT + WIDTH
    far = edge - out if back else edge + out
    begin, end = _top(start) + HEIGHT * 3 // 4, _top(goal) + HEIGHT // 4
    return f"M{edge} {begin} C{far} {begin} {far} {end} {edge} {end}"
