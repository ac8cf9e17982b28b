"""The reason that somebody gives for what a rule would not let pass, as the audit log keeps it."""

from __future__ import annotations

from django.utils.translation import gettext as _

from harness.errors import Invalid

LONGEST = 500
"""Characters."""


def reason_in(typed: str) -> str:
    """As one line; empty: none is given. Raises Invalid for too long a one."""
    reason = " ".join(typed.split())
    if len(reason) > LONGEST:
        raise Invalid(
            _("The reason is longer than %(limit)d characters.") % {"limit": LONGEST},
            field="reason",
            hint=_("Shorten it."),
        )
    return reason
