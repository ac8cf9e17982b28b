"""Names and descriptions that people give to what they make, as every form of it demands them.

Whether a name is taken is for those who know the others.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge

NAME_LIMIT = 100
"""Characters of `Agent.name` and `Environment.name`."""
DESCRIPTION_LIMIT = 500
"""Of their `description`."""


def one_line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())


def named(name: str, description: str, *, missing: str) -> tuple[str, str]:
    """Both tidied up. Raises Invalid, saying `missing`, for no name, and TooLarge naming the field."""
    name, description = one_line(name), one_line(description)
    if not name:
        raise Invalid(missing, field="name", hint=_("Type at least one character."))
    for field, value, limit in (
        ("name", name, NAME_LIMIT),
        ("description", description, DESCRIPTION_LIMIT),
    ):
        if len(value) > limit:
            raise TooLarge(
                _("The text is longer than %(limit)d characters.") % {"limit": limit},
                field=field,
                hint=_("Shorten it."),
            )
    return name, description
