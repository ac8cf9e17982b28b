"""The parts of an upload's form: those that its address has, each once but for lists, and nothing beside
them is passed over. What they hold is the address's question.
"""

from __future__ import annotations

from collections.abc import Collection

from django.utils.translation import gettext as _
from rest_framework.request import Request

from harness.errors import Invalid

SHOWN = 60
"""Characters of a field's name that are repeated in the answer."""


def check_form(
    request: Request,
    *,
    files: Collection[str],
    texts: Collection[str] = (),
    several: bool = False,
    hint: str,
) -> None:
    """`several`: a name of `files` may come more than once. Raises Invalid."""
    for given, known, once in ((request.POST, texts, True), (request.FILES, files, not several)):
        for name, parts in given.lists():
            if name not in known:
                raise Invalid(_unknown(name, files), field=name[:SHOWN], hint=hint)
            if once and len(parts) > 1:
                raise Invalid(
                    _("The field “%(name)s” is sent twice.") % {"name": name},
                    field=name,
                    hint=_("Give it once."),
                )


def _unknown(name: str, files: Collection[str]) -> str:
    if name in files:
        return _("The field “%(name)s” holds no file.") % {"name": name}
    return _("An upload has no field “%(name)s”.") % {"name": name[:SHOWN]}
