"""What a prompt's text says once its variables are filled in. Pure.

`{{name}}` stands for a variable that the version declares, or for a fact of the conversation. Whatever else
stands in braces stays as it is, so that a prompt can speak of braces.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.agentconfig import VALUE_LIMIT

FACTS = ("person", "organisation", "agent", "day")
"""Filled in by the conversation: whom it works for, where, as which agent, and the day it began on."""
MOST_FILLED = 1_000_000
"""Characters in all places of a text together: one value may stand in thousands of them."""
_PLACE = re.compile(r"\{\{ ?([a-z][a-z0-9_]{0,63}) ?\}\}", re.ASCII)


class Variable(BaseModel):
    """One that a version declares."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = Field(default="", max_length=300)
    default: str | None = Field(default=None, max_length=VALUE_LIMIT)
    """None: who uses the prompt has to give it a value."""

    @field_validator("description", "default")
    @classmethod
    def _is_one_line(cls, text: str | None) -> str | None:
        if text is not None and text.splitlines() not in ([], [text]):
            raise ValueError("it has several lines; it can have one")
        return text


def places_in(text: str) -> list[str]:
    """The names between double braces, each once, in the order of the text."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def missing_values(variables: Iterable[Variable], values: Mapping[str, str]) -> list[str]:
    return [each.name for each in variables if each.default is None and each.name not in values]


def filled(
    text: str,
    variables: Iterable[Variable],
    values: Mapping[str, str],
    facts: Mapping[str, str],
) -> str:
    """The text with what is known in its places, each looked at once: what is filled in is not read again.
    Places for which there is no room any more stay as they stand."""
    known = dict(facts)
    for each in variables:
        value = values.get(each.name, each.default)
        if value is not None:
            known[each.name] = value
    room = MOST_FILLED

    def put_in(place: re.Match[str]) -> str:
        nonlocal room
        value = known.get(place[1], place[0])
        room -= len(value)
        return value if room >= 0 else place[0]

    return _PLACE.sub(put_in, text)


def digest_of(text: str, variables: Iterable[Variable]) -> str:
    said = [text, [each.model_dump(mode="json") for each in variables]]
    written = json.dumps(said, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
