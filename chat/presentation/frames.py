"""What a page or a socket is given: units as HTML with their places, and the panels.

Both read the log in a fixed number of queries, whatever its size. Whether somebody may see the
conversation was asked before; here it is only drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypedDict

from django.template.loader import get_template
from django.utils.safestring import SafeString

from accounts.models import User
from conversations.branches import branches_of, within
from conversations.models import Conversation, Event
from conversations.models.event import EventQuerySet
from conversations.waiting import places
from harness.branches import Branches, Path, anywhere_types
from harness.events import InputTaken
from jobs.prepared import Prepared

from .arrows import Arrows, arrows_of
from .panels import Drawn, affected_panels, every_panel, panels_of
from .touched import touched_in
from .units import Unit, may_begin, units_of

PAGE_EVENTS = 100
"""Some screens full: what is above is fetched while one scrolls up."""
LINKED_EVENTS = 1_000
"""So many behind a place that a link leads to are shown together with it."""
REDRAWN_EVENTS = 300
"""Of a branch that was chosen; where there are more, loading the page again is cheaper."""
BEHIND_ALL = 1 << 62
"""No event has this number, nor a larger one."""
SUBJECTS = 64
"""Events about more subjects than these at once are rare, and asked for with a query of their own."""

_AFTER = Prepared(
    lambda given: (
        Event.objects.filter(conversation=given.conversation)
        .after(given.seq)
        .select_related("actor")
    )
)
_CURRENT = Prepared(
    lambda given: Conversation.objects.select_related("agent_version").filter(pk=given.pk)
)
_QUEUED = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="user.message", processed_at=None
    ).values_list("uid")
)
_WHOLE = Prepared(lambda given: Conversation.objects.with_what_a_page_shows().filter(pk=given.pk))


class UnitFrame(TypedDict):
    """One unit for a socket."""

    key: str
    kind: str
    place: str
    order: int
    html: str
    members: list[str]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different since `after_seq`: units to put or replace, keys to remove, panels to redraw.

    `panels` holds the inner HTML of `#panel-<name>`, plain text for `title` and `model`, and for `features`
    how each switch stands.
    """

    seq: int
    units: list[UnitFrame] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    panels: dict[str, Drawn] = field(default_factory=dict)
    cut: int | None = None
    """Another branch was chosen: what stands behind this number is to be taken away first."""
    reload: bool = False
    """There is more to draw than is worth it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of the transcript. An older one has no queue and no panels."""

    conversation: Conversation
    """As it was when the log had at least `seq` events, so that whatever else a page shows of it is
    not older than its panels: nothing that comes later would mend that."""
    units: list[SafeString]
    queue: list[SafeString]
    first_seq: int
    """Give it as `before` to get what comes before this stretch."""
    has_older: bool
    seq: int
    """Give it as `after` to a socket, to get what came since."""
    panels: dict[str, Drawn] = field(default_factory=dict)


def render_unit(unit: Unit) -> SafeString:
    """The one element of `unit`, without space around it."""
    html = get_template(unit.template).render({"unit": unit, **unit.context})
    return SafeString(html.strip())


def changes(conversation: Conversation, after_seq: int, *, reader: User | None = None) -> Changes:
    """Everything that is drawn differently because of the events behind `after_seq`. `reader` as for
    `touched_in`."""
    new = _AFTER.all(conversation=conversation.pk, seq=after_seq)
    if not new:
        return Changes(seq=after_seq)
    end = new[-1].seq
    rewound = any(row.type == "x.rewound" for row in new)
    branches = _branches(conversation, end, rewound=rewound)
    taken = {**_taken_before(conversation, new, branches), **_taken(new)}
    subjects = {row.subject for row in new} | set(taken)
    if any(row.type == "x.queue_ordered" for row in new):
        subjects.update(uid for (uid,) in _QUEUED.all(conversation=conversation.pk))
    panels = affected_panels(new)
    withdrawn = {row.subject for row in new if row.type == "x.message_withdrawn"}
    cut: int | None = None
    if rewound and branches is not None:
        cut = branches.path(after_seq).shared_with(branches.path())
        # What is said of a unit that both have stands on the branch that was left.
        types = anywhere_types()
        anywhere = [row for row in new if row.type in types]
        new = list(_counting(conversation, branches, cut, end)[: REDRAWN_EVENTS + 1])
        if len(new) > REDRAWN_EVENTS:
            return Changes(seq=end, reload=True)
        # What stands right where the branches part says how many there are.
        parting = _rows(conversation).filter(seq=cut)
        about_all = [*anywhere, *new]
        taken = {**_taken_before(conversation, about_all, branches), **_taken([*parting, *new])}
        subjects, withdrawn = {row.subject for row in about_all} | set(taken), set()
    about = [row for row in _about(conversation, subjects, branches) if not _stands(row, taken)]
    units = units_of(
        about,
        taken=taken,
        places=_places(conversation, about),
        more=_arrows(conversation, branches),
        touched=touched_in(conversation, about, reader),
    )
    current = _CURRENT.first(pk=conversation.pk) or conversation
    return Changes(
        seq=end,
        units=[_frame(unit) for unit in units],
        removed=sorted(withdrawn - {unit.key for unit in units}),
        panels=panels_of(current, panels),
        cut=cut,
    )


def page(
    conversation: Conversation,
    before: int | None = None,
    limit: int = PAGE_EVENTS,
    *,
    since: int | None = None,
    reader: User | None = None,
) -> Page:
    """The units that stand in the last `limit` events before seq `before` (None: the end of the log);
    more where `since` is further up, so that what stands there is among them if that does.

    A unit belongs to where it stands, however late its last event came; so pages neither overlap nor
    leave anything out. `reader` as for `touched_in`.
    """
    if since is not None and before is None:
        limit = max(limit, min(conversation.last_seq - since + limit, LINKED_EVENTS))
    end_of_page = BEHIND_ALL if before is None else before
    branches = _branches(conversation, conversation.last_seq)
    here = _here(conversation, branches, end_of_page, limit)
    if before is None and any(row.type == "x.rewound" for row in here[-limit:]):
        branches = _branches(conversation, here[-1].seq, rewound=True)
        here = _here(conversation, branches, end_of_page, limit)
    taken = _taken(here)
    subjects = set(taken)
    subjects.update(
        row.subject
        for row in here
        if may_begin(row.type) and row.type != "user.message" and row.uid == row.subject
    )
    if before is None:
        subjects.update(uid for (uid,) in _QUEUED.all(conversation=conversation.pk))
    first_seq = here[0].seq if here else 1
    end = here[-1].seq if here else 0
    about = list(_about(conversation, subjects, branches))
    units = [
        unit
        for unit in units_of(
            about,
            taken=taken,
            places=_places(conversation, about),
            more=_arrows(conversation, branches),
            touched=touched_in(conversation, about, reader),
        )
        if unit.place == "queue" or first_seq <= unit.order <= end
    ]
    # Last: an event behind `end` is sent to the page, one before it is not sent again.
    current = _WHOLE.first(pk=conversation.pk) or conversation
    return Page(
        conversation=current,
        units=[render_unit(unit) for unit in units if unit.place == "log"],
        queue=[render_unit(unit) for unit in units if unit.place == "queue"],
        first_seq=first_seq,
        has_older=len(here) == limit and first_seq > 1,
        seq=end,
        panels=panels_of(current, every_panel()) if before is None else {},
    )


# --- branches -------------------------------------------------------------------------------------


def _branches(conversation: Conversation, last: int, *, rewound: bool = False) -> Branches | None:
    """None where nobody ever went back: all of the log counts."""
    if conversation.rewound_seq is None and not rewound:
        return None
    return branches_of(conversation.pk, last, siblings=True)


def _here(
    conversation: Conversation, branches: Branches | None, before: int, limit: int
) -> list[Event]:
    """The last events that count before a number, in order."""
    if branches is None:
        return _last(limit).all(conversation=conversation.pk, before=before)[::-1]
    rows = _counting(conversation, branches, 0, min(before - 1, branches.last))
    return list(rows.reverse()[:limit])[::-1]


def _counting(
    conversation: Conversation, branches: Branches, after: int, end: int
) -> EventQuerySet:
    rows = _rows(conversation).filter(seq__gt=after, seq__lte=end)
    return rows.filter(within(branches.path())).order_by("seq")


def _arrows(
    conversation: Conversation, branches: Branches | None
) -> Mapping[str, Mapping[str, Arrows]]:
    return {} if branches is None else arrows_of(conversation.pk, branches)


def _rows(conversation: Conversation) -> EventQuerySet:
    return Event.objects.filter(conversation_id=conversation.pk).select_related("actor")


@cache
def _last(limit: int) -> Prepared[Event]:
    """The last `limit` events before a number, the last one first."""
    return Prepared(
        lambda given: (
            Event.objects.filter(conversation=given.conversation, seq__lt=given.before)
            .select_related("actor")
            .order_by("-seq")[:limit]
        )
    )


def _about(
    conversation: Conversation, subjects: set[str], branches: Branches | None = None
) -> Iterable[Event]:
    """Of what counts. Unsorted, as `units_of` takes them: asked for by seq, SQLite would read the whole
    log."""
    rows = list(_all_about(conversation, subjects))
    for row in rows:
        row.conversation = conversation  # links of units name it: each row would ask for it anew
    if branches is None:
        return rows
    path: Path = branches.path()
    anywhere = anywhere_types()
    return [row for row in rows if row.seq in path or row.type in anywhere]


def _all_about(conversation: Conversation, subjects: set[str]) -> Iterable[Event]:
    if not 0 < len(subjects) <= SUBJECTS:
        return _rows(conversation).about(subjects).order_by()
    places = 1 << (len(subjects) - 1).bit_length()
    named = [*subjects, *[min(subjects)] * (places - len(subjects))]
    return _about_some(places).all(
        conversation=conversation.pk,
        **{f"subject{place}": subject for place, subject in enumerate(named)},
    )


@cache
def _about_some(places: int) -> Prepared[Event]:
    """`_about` for so many subjects; one may be given more than once."""
    return Prepared(
        lambda given: (
            Event.objects.filter(conversation=given.conversation)
            .about({getattr(given, f"subject{place}") for place in range(places)})
            .select_related("actor")
            .order_by()
        )
    )


def _places(conversation: Conversation, rows: Iterable[Event]) -> Mapping[str, int]:
    """Where messages of these wait, as far as somebody ordered that."""
    waits = any(row.type == "user.message" and row.processed_at is None for row in rows)
    return places(conversation.pk) if waits else {}


def _stands(row: Event, taken: Mapping[str, int]) -> bool:
    """Whether `row` is a message that left the queue outside the events at hand: where it stands was
    drawn before, or will be with the event that took it."""
    return row.type == "user.message" and row.processed_at is not None and row.uid not in taken


def _taken(rows: Iterable[Event]) -> dict[str, int]:
    taken: dict[str, int] = {}
    for row in rows:
        if row.type != "x.input_taken":
            continue
        value = row.value
        if isinstance(value, InputTaken):
            taken.update({uid: row.seq for uid in value.event_ids if uid not in taken})
    return taken


def _taken_before(
    conversation: Conversation, new: Sequence[Event], branches: Branches | None
) -> dict[str, int]:
    """Where the messages stand that were set aside or redacted just now: they are drawn again in their place.
    That is rare, so all of a conversation's takings are read for it."""
    rare = ("x.content_set_aside", "x.content_redacted")
    aside = {row.subject for row in new if row.type in rare}
    if not aside:
        return {}
    takings = Event.objects.filter(conversation_id=conversation.pk, type="x.input_taken")
    if branches is not None:
        takings = takings.filter(within(branches.path()))
    return {uid: seq for uid, seq in _taken(takings.order_by("seq")).items() if uid in aside}


def _frame(unit: Unit) -> UnitFrame:
    return UnitFrame(
        key=unit.key,
        kind=unit.kind,
        place=unit.place,
        order=unit.order,
        html=render_unit(unit),
        members=list(unit.members),
    )
