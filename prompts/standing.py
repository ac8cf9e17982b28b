"""How the labels of a source stand: what each points to there, what to here, what keeps it from following.

Reads rows for pages, programs and terminals; the texts of versions are loaded only where they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from agents.versiondiff import Line, lines_between
from harness.errors import NotFound

from .models import PromptLabel, PromptSource, PromptVersion, PulledLabel
from .pulling import gates_of, holding_agents

MOST_COMPARED = 10
"""Labels whose differences one page draws; the others have a page each."""
MOST_CHARACTERS = 120_000
"""Of texts that are compared for one page."""


@dataclass(frozen=True, slots=True)
class Standing:
    row: PulledLabel
    here: PromptLabel | None
    held_by: list[str] = field(default_factory=list)
    """Agents whose releases wait and that name the prompt so."""

    @property
    def follows(self) -> bool:
        return self.here is not None and self.here.version_id == self.row.version_id


@dataclass(frozen=True, slots=True)
class Compared:
    standing: Standing
    changes: tuple[Line, ...] | None
    """None: it follows, or its differences stand on the version's own page."""


def standings(source: PromptSource) -> list[Standing]:
    """Those that do not follow come first."""
    pulled = PulledLabel.objects.filter(source=source)
    rows = list(pulled.select_related("prompt", "version").defer("version__text"))
    labels = PromptLabel.objects.filter(prompt__in=pulled.values("prompt"))
    here = {
        (each.prompt_id, each.name): each
        for each in labels.select_related("version").defer("version__text")
    }
    gates = gates_of(source.organisation)
    found = []
    for row in rows:
        there = here.get((row.prompt_id, row.label))
        follows = there is not None and there.version_id == row.version_id
        held_by = [] if follows else holding_agents(gates, row.prompt, row.label)
        found.append(Standing(row, there, held_by))
    return sorted(found, key=lambda each: each.follows)


def standing_at(source: PromptSource, prompt: str, label: str) -> Standing:
    """Of one label, by the prompt's id or name. Raises NotFound."""
    for each in standings(source):
        if each.row.label == label and prompt in {each.row.prompt.uid, each.row.prompt.name}:
            return each
    raise NotFound(_("The source has no such prompt with that label."))


def compared(found: list[Standing]) -> list[Compared]:
    """The first of those that do not follow with what differs, as much as one page bears."""
    waiting = [each for each in found if not each.follows][:MOST_COMPARED]
    wanted = {each.row.version_id for each in waiting}
    wanted |= {each.here.version_id for each in waiting if each.here is not None}
    texts = dict(PromptVersion.objects.filter(pk__in=wanted).values_list("pk", "text"))
    room = MOST_CHARACTERS
    shown = []
    for number, each in enumerate(found):
        changes = None
        if number < len(waiting):
            before = texts.get(each.here.version_id, "") if each.here is not None else ""
            after = texts.get(each.row.version_id, "")
            room -= len(before) + len(after)
            if room >= 0:
                changes = tuple(lines_between(before, after))
        shown.append(Compared(each, changes))
    return shown
