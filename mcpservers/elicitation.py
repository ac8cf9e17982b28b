"""What a server asks of a person, and what she may answer, as data: read from the wire, checked, in one flat
form.

Pure. A form never asks for secrets, an address is shown by its host before anybody opens it, and whatever
else a server would have of its client (a model, folders) is no question to a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from harness.schemachecks import MOST, Checker, TooCostly
from harness.schemas import Unsound, require_sound
from reading.foreignjson import Unreadable, kept_json
from reading.hostnames import split_address
from reading.unseen import first_unseen

MOST_ASKED = 4
"""Questions of one answer of a server."""
MOST_FIELDS = 20
MOST_CHOICES = 50
LONGEST = 4_000
"""Characters of a message, and of one text that a person types."""
_SECRET = re.compile(
    r"pass[ _-]?(word|phrase|code)|passwd|secret|(api|access|private)[ _-]?key|token|credential"
    r"|card[ _-]?number|\bcvv|\bcvc|\bpin\b|one[ _-]?time",
    re.IGNORECASE,
)


class Refused(Exception):
    """Nobody is asked this; the words are for the model."""


class Field(BaseModel):
    """One value of a form."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    help: str = ""
    kind: Literal["text", "number", "integer", "boolean", "choice", "choices"] = "text"
    format: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    required: bool = False
    default: Any = None


class Asked(BaseModel):
    """One question: a form, or an address to open."""

    model_config = ConfigDict(frozen=True)

    message: str
    url: str = ""
    """Where the person is asked to go; empty: it is a form."""
    fields: tuple[Field, ...] = ()
    form_schema: dict[str, Any] = {}

    @property
    def host(self) -> str:
        return split_address(self.url).netloc


def read_asked(requests: Mapping[str, Any]) -> dict[str, Asked]:
    """What a server asks, by its own names for each: wire objects of `elicitation/create`, as JSON. Raises
    Refused."""
    if not 1 <= len(requests) <= MOST_ASKED:
        raise Refused("It asks for too many things at once.")
    return {str(name)[:200]: _read(held) for name, held in requests.items()}


def _read(held: Any) -> Asked:
    if not isinstance(held, Mapping) or held.get("method") != "elicitation/create":
        raise Refused(
            "It wants a model, folders or something else that servers are not given here."
        )
    given = held.get("params")
    if not isinstance(given, Mapping):
        raise Refused("It asks nothing that can be read.")
    message = _shown(given.get("message", ""), LONGEST)
    if given.get("mode") == "url":
        url = given.get("url")
        if not isinstance(url, str) or not _may_open(url):
            raise Refused("It wants a person to open an address that is none to be opened.")
        return Asked(message=message, url=url)
    schema = given.get("requestedSchema")
    if not isinstance(schema, Mapping):
        raise Refused("It asks by a form that cannot be read.")
    try:
        require_sound(dict(schema))
        schema = kept_json(dict(schema))
    except (Unsound, Unreadable):
        raise Refused("It asks by a form that cannot be read.") from None
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not 0 < len(properties) <= MOST_FIELDS:
        raise Refused(f"Its form does not have 1 to {MOST_FIELDS} fields.")
    required = schema.get("required", [])
    fields = tuple(
        _field(str(name), each, required=isinstance(required, list) and name in required)
        for name, each in properties.items()
    )
    return Asked(message=message, fields=fields, form_schema=dict(schema))


def _may_open(url: str) -> bool:
    if len(url) > 2_000 or not url.isascii() or not url.isprintable() or "\\" in url:
        return False
    try:
        parts = split_address(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


def _field(name: str, held: Any, *, required: bool) -> Field:
    if not isinstance(held, Mapping) or not 1 <= len(name) <= 100:
        raise Refused("Its form has a field that cannot be read.")
    title = _shown(held.get("title") or name, 200)
    words = _shown(held.get("description", ""), 1_000)
    _shown(name, 100)
    if _SECRET.search(f"{name} {title} {words}") or held.get("format") == "password":
        raise Refused("It asks for a secret by a form, where none is ever typed.")
    given: dict[str, Any] = {
        "name": name,
        "title": title,
        "help": words,
        "required": required,
        "default": held.get("default"),
    }
    kind = held.get("type")
    if kind in {"number", "integer", "boolean"}:
        return Field(kind=kind, **given)
    if kind == "string":
        choices = _choices(held)
        if choices:
            return Field(kind="choice", choices=choices, **given)
        shape = held.get("format", "")
        return Field(format=shape if isinstance(shape, str) else "", **given)
    if kind == "array" and isinstance(held.get("items"), Mapping):
        choices = _choices(held["items"])
        if choices:
            return Field(kind="choices", choices=choices, **given)
    raise Refused(f"Its form has a field of a kind that forms do not have: {name}.")


def _choices(held: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    titled = held.get("oneOf") or held.get("anyOf")
    if isinstance(titled, list):
        pairs = [
            (each.get("const"), each.get("title")) for each in titled if isinstance(each, dict)
        ]
    else:
        values = held.get("enum")
        values = values if isinstance(values, list) else []
        names = held.get("enumNames")
        names = names if isinstance(names, list) and len(names) == len(values) else values
        pairs = list(zip(values, names, strict=True))
    if len(pairs) > MOST_CHOICES:
        raise Refused("Its form has a field with too many choices.")
    return tuple(
        (value, _shown(label or value, 200)) for value, label in pairs if isinstance(value, str)
    )


def faults_of(asked: Asked, content: Mapping[str, Any]) -> list[str]:
    """Why the server would not take it; none: it is what its schema describes."""
    schema = {"type": "object", **asked.form_schema}
    try:
        return [str(fault) for fault in Checker(schema).faults(dict(content), steps=MOST)[:5]]
    except (TooCostly, Unsound):
        return ["It cannot be checked."]


def _shown(text: Any, most: int) -> str:
    """A text that people see, without what they cannot see."""
    if not isinstance(text, str) or len(text) > most or first_unseen(text.replace("\r", "")):
        raise Refused("It asks in words that cannot be shown.")
    return text
