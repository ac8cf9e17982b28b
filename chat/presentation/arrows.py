"""How a page says that a dialogue has branches: "2 / 3" with an arrow to each side, where they part.

Behind a message several answers may have been given, in the place of one several may have been written.
Where branches part is `harness.branches`' word; choosing one is `actions.branching`'s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from conversations.models import Event
from harness.branches import Branches, Siblings
from harness.events import InputTaken, Rewound


@dataclass(frozen=True, slots=True)
class Arrows:
    """Ids of an event on the branches before and behind the one that counts; empty: there is none."""

    number: int
    all: int
    before: str
    behind: str


def arrows_of(conversation_id: int, branches: Branches) -> dict[str, dict[str, Arrows]]:
    """By unit: `answers`, how many came of this message, and `versions`, how many stand in its place."""
    siblings = branches.siblings()
    if not siblings:
        return {}
    path = branches.path()
    rows = Event.objects.filter(
        conversation=conversation_id,
        seq__in={seq for each in siblings.values() for seq in each.choices},
    )
    begins = {row.seq: row for row in rows}
    uids = {seq: row.uid for seq, row in begins.items()}
    takings = [
        (row.seq, row.value)
        for row in Event.objects.filter(
            conversation=conversation_id, type="x.input_taken"
        ).order_by("seq")
        if row.seq in path
    ]
    numbers = [seq for seq, _value in takings]
    found: dict[str, dict[str, Arrows]] = {}
    for place, parted in siblings.items():
        arrows = _arrows(parted, uids)
        chosen = begins.get(parted.choices[parted.chosen])
        word = chosen.value if chosen is not None else None
        if chosen is not None and isinstance(word, Rewound) and word.why == "rewind":
            # It is told on the page, and stands there whatever comes behind it.
            found.setdefault(chosen.uid, {})["versions"] = arrows
            continue
        at = bisect_right(numbers, place)
        if at and numbers[at - 1] == place:
            _put(found, takings[at - 1][1], "answers", arrows)
        elif at < len(takings):
            _put(found, takings[at][1], "versions", arrows)
    return found


def _put(found: dict[str, dict[str, Arrows]], value: object, name: str, arrows: Arrows) -> None:
    """Of several messages that were taken together, the first one shows it."""
    if isinstance(value, InputTaken) and value.event_ids:
        found.setdefault(value.event_ids[0], {})[name] = arrows


def _arrows(parted: Siblings, uids: Mapping[int, str]) -> Arrows:
    def uid(place: int) -> str:
        return uids.get(parted.choices[place], "") if 0 <= place < len(parted.choices) else ""

    return Arrows(
        parted.chosen + 1, len(parted.choices), uid(parted.chosen - 1), uid(parted.chosen + 1)
    )
