"""Pages and export of the audit log: who asked, saw, decided, and why.

Which entries a person sees is `AuditEntry.objects.visible_to`; writing them is `audit`'s.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from io import StringIO
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.reviewing import reviewed_organisations
from accounts.staff import has_staff_permission
from harness.errors import Invalid
from reading.digits import number_of
from reading.moments import day_of
from wire.spreadsheets import cell

from .models import VIEW_AUDIT, AuditEntry, AuditQuerySet

PAGE_SIZE = 50
EXPORT_PAGE = 500
"""Rows of one query of the file: between two of them no cursor stays open."""
FILTERS = ("action", "tool", "who", "approval", "conversation", "from", "to")
COLUMNS = (
    "at",
    "action",
    "actor_name",
    "organisation",
    "conversation_uid",
    "approval_uid",
    "call_uid",
    "rule_uid",
    "tool",
    "input_sha256",
    "reason",
    "details",
)


FACT_CHARACTERS = 300
"""Of one detail on the page; the file has all of it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One entry as the page tells it."""

    entry: AuditEntry
    facts: tuple[tuple[str, str], ...]
    """Names and words of the details: what was changed, from what to what. Of an approval none, as its
    own page tells them."""

    @classmethod
    def of(cls, entry: AuditEntry) -> Line:
        if entry.approval_uid:
            return cls(entry, ())
        pairs = [(name, _words(value)) for name, value in entry.details.items()]
        return cls(entry, tuple((name.replace("_", " "), words) for name, words in pairs if words))


@dataclass(frozen=True, slots=True)
class AuditPage:
    lines: list[Line]
    after: str


def found(user: User, chosen: Mapping[str, str]) -> AuditQuerySet:
    """Newest first. Raises Invalid naming the filter whose value makes no sense."""
    entries = AuditEntry.objects.visible_to(user).select_related("organisation").order_by("-pk")
    for name, raw in chosen.items():
        value = raw.replace("\0", "").strip()
        if not value:
            continue
        match name:
            case "action":
                if value not in AuditEntry.Action.values:
                    raise Invalid(_("There is no such choice."), field="action")
                entries = entries.filter(action=value)
            case "tool":
                entries = entries.filter(tool=value)
            case "who":
                entries = entries.filter(actor_name__icontains=value)
            case "approval":
                entries = entries.filter(approval_uid=value)
            case "conversation":
                entries = entries.filter(conversation_uid=value)
            case "from":
                entries = entries.filter(at__gte=_moment(value, time.min, "from"))
            case "to":
                entries = entries.filter(at__lte=_moment(value, time.max, "to"))
            case _:
                raise Invalid(_("There is no such filter."), field=name)
    return entries


def audit_page(user: User, chosen: Mapping[str, str], after: str = "") -> AuditPage:
    entries = found(user, chosen)
    if after:
        pk = number_of(after)
        if pk is None:
            raise Invalid(
                _("This is not a place in the list."),
                field="after",
                hint=_("Begin again with the first page."),
            )
        entries = entries.filter(pk__lt=pk)
    rows = list(entries[: PAGE_SIZE + 1])
    page = rows[:PAGE_SIZE]
    return AuditPage(
        [Line.of(entry) for entry in page], str(page[-1].pk) if len(rows) > PAGE_SIZE else ""
    )


def reach_of(user: User) -> frozenset[int | None]:
    """What the person may read of others: organisations by key, and None for all that there is."""
    if not user.is_active:
        return frozenset()
    reviewed = frozenset[int | None](reviewed_organisations(user).values_list("pk", flat=True))
    return reviewed | {None} if has_staff_permission(user, VIEW_AUDIT) else reviewed


def as_csv(user: User, chosen: Mapping[str, str]) -> Iterator[str]:
    """One line an entry, newest first, under a line of names. Times are UTC."""
    yield _line(COLUMNS)
    for entry in _in_pages(found(user, chosen)):
        yield _line(
            (
                entry.at.isoformat(),
                entry.action,
                entry.actor_name,
                entry.organisation.uid if entry.organisation else "",
                entry.conversation_uid,
                entry.approval_uid,
                entry.call_uid,
                entry.rule_uid,
                entry.tool,
                entry.input_sha256,
                entry.reason,
                json.dumps(entry.details, ensure_ascii=False, sort_keys=True),
            )
        )


def _in_pages(entries: AuditQuerySet) -> Iterator[AuditEntry]:
    page = list(entries[:EXPORT_PAGE])
    while page:
        yield from page
        page = list(entries.filter(pk__lt=page[-1].pk)[:EXPORT_PAGE])


def _words(value: Any) -> str:
    """A detail in words; what is named by an id and a name as both; empty for nothing."""
    match value:
        case None | "":
            words = ""
        case bool():
            words = _("yes") if value else _("no")
        case {"id": str(uid), "name": str(name), **rest} if not rest:
            words = f"{name} ({uid})"
        case dict():
            pairs = ((str(name).replace("_", " "), _words(each)) for name, each in value.items())
            words = ", ".join(f"{name}: {each or '–'}" for name, each in pairs)
        case list():
            words = ", ".join(_words(each) for each in value)
        case _:
            words = str(value)
    return words if len(words) <= FACT_CHARACTERS else f"{words[:FACT_CHARACTERS]}…"


def _line(values: tuple[str, ...]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(cell(value) for value in values)
    return buffer.getvalue()


def _moment(value: str, at: time, field: str) -> datetime:
    day = day_of(value)
    if day is None:
        raise Invalid(
            _("“%(value)s” is no day.") % {"value": value[:40]},
            field=field,
            hint=_("Write it as 2026-01-31."),
        )
    return timezone.make_aware(datetime.combine(day, at))
