"""Moments that a query names, with their offset. Reading a text as one is the part of `reading.moments`."""

from __future__ import annotations

from datetime import datetime

from django.utils.timezone import is_naive
from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.moments import moment_of


def moment_given(text: str | None, *, field: str) -> datetime | None:
    """None where nothing is given. Raises Invalid for what is no moment, or says no offset."""
    if text is None:
        return None
    found = moment_of(text)
    if found is None or is_naive(found):
        raise Invalid(
            _("This is no moment with its offset."),
            field=field,
            hint=_("Write it like 2026-11-28T12:00:00Z."),
        )
    return found
