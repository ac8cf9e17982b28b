"""A person's search among conversations: which there are, and where in them it is.

Begins with the rows she may see and only narrows them, in one query: nobody's search can tell of what is
somebody else's. The full text is asked by `conversations.search`, what was typed is read by `words`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation, FileResource, ForeignMark, OutputFile
from conversations.models.conversation import ConversationQuerySet
from conversations.search import Hit, Written, hits, matching
from harness.errors import Invalid
from reading.moments import day_of
from tools_app.provenance import UPLOADED

from .models import Pin, Tag
from .words import known, read

NAMED = 8
"""Names that a refusal lists."""
YEARS = range(1970, 9_000)
"""Those whose every moment a database knows, whatever the clocks of a place show."""
BEFORE, AFTER, IS = "before", "after", "is"
ARCHIVED, PINNED = "archived", "pinned"


@dataclass(frozen=True, slots=True)
class Search:
    """What was asked for, understood."""

    words: list[str]
    written: Written
    archived: bool
    condition: Q
    narrowed: bool
    """Whether anything was asked for at all."""

    def among(
        self, visible: ConversationQuerySet, organisation: Organisation
    ) -> ConversationQuerySet:
        """Those of `visible` that are found in the list, or the archive, of the organisation."""
        listed = visible.listed_in(organisation, archived=self.archived).filter(self.condition)
        if self.words:
            return matching(listed, self.words, self.written)
        return listed.filter(self.written.of("active_at"))

    def hits(self, conversations: list[Conversation]) -> dict[int, Hit]:
        """By primary key, the first place in a message; titles that match alone have none."""
        return hits(conversations, self.words, self.written)


def understand(
    user: User, organisation: Organisation, text: str, *, archived: bool = False
) -> Search:
    """Raises Invalid, field `q`, for what is too long and for a filter whose value cannot be."""
    narrows = {**known(), "agent": _agent, "tag": _tag, "has": _has, IS: _is}
    typed = read(text, {*narrows, BEFORE, AFTER})
    condition, since, until = Q(), None, None
    for name, value in typed.filters:
        if not value:
            raise _refusal(
                _("“%(filter)s:” is without a value.") % {"filter": name},
                _("Write it without a space: %(example)s.")
                % {"example": _EXAMPLES.get(name, name)},
            )
        if name == BEFORE:
            until = min(filter(None, (until, _day(name, value))))
        elif name == AFTER:
            since = max(filter(None, (since, _day(name, value))))
        elif name == IS and value.lower() == ARCHIVED:
            archived = True
        else:
            condition &= narrows[name](user, organisation, value)
    narrowed = bool(typed.words or typed.filters)
    return Search(typed.words, Written(since, until), archived, condition, narrowed)


_EXAMPLES = {
    BEFORE: "before:2026-01-31",
    AFTER: "after:2026-01-31",
    IS: "is:pinned",
    "has": "has:file",
    "tag": "tag:tax",
    "agent": 'agent:"…"',
    "in": 'in:"…"',
}


def _agent(user: User, organisation: Organisation, name: str) -> Q:
    """By name or its beginning, among the agents of her conversations there."""
    mine = Conversation.objects.visible_to(user).listed().filter(organisation=organisation)
    rows = mine.order_by().values_list("agent_version__agent", "agent_version__agent__name")
    agents = dict(rows.distinct())
    wanted = name.casefold()
    found = [pk for pk, called in agents.items() if called.casefold() == wanted]
    found = found or [pk for pk, called in agents.items() if called.casefold().startswith(wanted)]
    if not found:
        raise _refusal(
            _("None of your conversations here is with an agent “%(name)s”.") % {"name": name},
            one_of(sorted(set(agents.values()))),
        )
    return Q(agent_version__agent__in=found)


def _tag(user: User, organisation: Organisation, word: str) -> Q:
    rows = Tag.objects.filter(user=user, conversation=OuterRef("pk"), folded=word.casefold())
    return Q(Exists(rows))


def _has(user: User, organisation: Organisation, what: str) -> Q:
    if what.lower() not in {"file", "files"}:
        raise _refusal(
            _("“has:%(value)s” means nothing here.") % {"value": what}, one_of(["has:file"])
        )
    of_it = {"conversation": OuterRef("pk")}
    return (
        Q(Exists(ForeignMark.objects.filter(**of_it, source=UPLOADED)))
        | Q(Exists(FileResource.objects.filter(**of_it)))
        | Q(Exists(OutputFile.objects.filter(**of_it)))
    )


def _is(user: User, organisation: Organisation, what: str) -> Q:
    if what.lower() != PINNED:
        raise _refusal(
            _("“is:%(value)s” means nothing here.") % {"value": what},
            one_of([f"is:{ARCHIVED}", f"is:{PINNED}"]),
        )
    return Q(Exists(Pin.objects.filter(user=user, conversation=OuterRef("pk"))))


def _day(name: str, value: str) -> datetime:
    """The beginning of a day, as clocks show it to her."""
    day = day_of(value) if value.isascii() else None
    moment = None
    if day is not None and day.year in YEARS:
        moment = timezone.make_aware(datetime.combine(day, time.min))
    if moment is None:
        raise _refusal(
            _("“%(value)s” is not a day.") % {"value": value},
            _("Write year, month and day: %(example)s.") % {"example": _EXAMPLES[name]},
        )
    return moment


def one_of(names: list[str]) -> str:
    """What could have been written, for a refusal; empty if nothing could."""
    if not names:
        return ""
    more = " …" if len(names) > NAMED else "."
    return _("Choose from: %(names)s") % {"names": ", ".join(names[:NAMED]) + more}


def _refusal(message: str, hint: str) -> Invalid:
    return Invalid(message, field="q", hint=hint)
