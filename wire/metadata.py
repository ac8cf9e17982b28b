"""The form of notes that programs keep on what is theirs: short names and texts, which mean nothing here."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge

PAIRS = 16
KEY_LIMIT = 64
VALUE_LIMIT = 512


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """As it is stored; Invalid for too many pairs, TooLarge for too long a name or text."""
    if len(metadata) > PAIRS:
        raise Invalid(
            _("There are more than %(limit)d pairs.") % {"limit": PAIRS},
            field="metadata",
            hint=_("Take some away."),
        )
    for key, value in metadata.items():
        if not key or len(key) > KEY_LIMIT or len(value) > VALUE_LIMIT:
            raise TooLarge(
                _("A name has 1 to %(key)d characters, a text up to %(value)d.")
                % {"key": KEY_LIMIT, "value": VALUE_LIMIT},
                field="metadata",
                hint=_("Shorten it."),
            )
    return dict(metadata)
