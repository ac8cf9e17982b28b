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

from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Invalid

from .models import AuditEntry
from .models.audit import AuditQuerySet
from .spreadsheets import cell

PAGE_SIZE = 50
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


@dataclass(frozen=True, slots=True)
class AuditPage:
    entries: list[AuditEntry]
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
        if not (after.isascii() and after.isdigit() and len(after) <= 18):
            raise Invalid(
                _("This is not a place in the list."),
                field="after",
                hint=_("Begin again with the first page."),
            )
        entries = entries.filter(pk__lt=int(after))
    rows = list(entries[: PAGE_SIZE + 1])
    page = rows[:PAGE_SIZE]
    return AuditPage(page, str(page[-1].pk) if len(rows) > PAGE_SIZE else "")


def as_csv(user: User, chosen: Mapping[str, str]) -> Iterator[str]:
    """One line an entry, newest first, under a line of names. Times are UTC."""
    yield _line(COLUMNS)
    for entry in found(user, chosen).iterator(chunk_size=500):
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


def _line(values: tuple[str, ...]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(cell(value) for value in values)
    return buffer.getvalue()


def _moment(value: str, at: time, field: str) -> datetime:
    try:
        day = parse_date(value)
    except ValueError:
        day = None
    if day is None:
        raise Invalid(
            _("“%(value)s” is no day.") % {"value": value[:40]},
            field=field,
            hint=_("Write it as 2026-01-31."),
        )
    return timezone.make_aware(datetime.combine(day, at))
