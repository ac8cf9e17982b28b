"""An index for clients of the standard, as any site may have one: names, addresses and digests, unsigned.

Pure. What it cannot say, its version and its end, nobody can judge; that it goes back is noticed by who
keeps what it said before (`actions.sources`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from harness.errors import Invalid
from harness.modelfaults import read_as
from reading.foreignjson import Unreadable, read_json

from .names import NAME, NAME_LIMIT
from .signedindex import MOST_BYTES, SHA256

MOST = 2_000
"""Skills of an index."""


class OpenOffer(BaseModel):
    """What else stands in an entry is passed over."""

    name: str = Field(pattern=f"^{NAME.pattern}$", max_length=NAME_LIMIT)
    type: Literal["skill-md", "archive"]
    description: str = Field(default="", max_length=1_024)
    url: str = Field(max_length=2_000)
    """Relative to the index."""
    digest: str = Field(pattern=SHA256)
    """Of what is there, byte by byte."""


class _Index(BaseModel):
    skills: Annotated[list[OpenOffer], Field(max_length=MOST)]


def read_open_index(data: bytes) -> list[OpenOffer]:
    """In its order. Raises Invalid, also where one name stands twice: which is meant nobody knows."""
    try:
        document: Any = read_json(data, limit=MOST_BYTES)
    except Unreadable as problem:
        raise _refused(_("It cannot be read.")) from problem
    try:
        offers = read_as(document, _Index).skills
    except Invalid as problem:
        raise _refused(f"{problem.field}: {problem.message}") from problem
    if len({each.name for each in offers}) < len(offers):
        raise _refused(_("A name stands twice in it."))
    return offers


def _refused(why: str) -> Invalid:
    return Invalid(
        _("The index of the source cannot be used. %(why)s") % {"why": why[:300]},
        field="source",
        hint=_("Check its address; whoever runs it can mend it."),
    )
