"""What a file of a prompt says, and one line of a form that declares its variables."""

from __future__ import annotations

from typing import Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import Invalid

from .filling import Variable

HIGHEST = 1_000_000
"""Number of a version. Texts that were fetched and never allowed leave gaps."""


class VersionSpec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1, le=HIGHEST)
    text: str = Field(min_length=1, max_length=50_000)
    variables: tuple[Variable, ...] = Field(default=(), max_length=50)
    note: str = Field(default="", max_length=500)


class PromptSpec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    """Of the file's form."""
    name: str = Field(min_length=1, max_length=64)
    description: str = Field(default="", max_length=500)
    versions: tuple[VersionSpec, ...] = Field(min_length=1, max_length=1_000)
    labels: dict[str, int] = Field(default={}, max_length=50)


def read_variables(text: str) -> tuple[Variable, ...]:
    """One a line, as `tone = kind # how it speaks`: name, default and description, the last two if wanted.
    Raises Invalid that names the line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        declared, sign, description = line.rpartition(" # ")
        if not sign:
            declared, description = line, ""
        name, sign, default = declared.partition("=")
        try:
            found.append(
                Variable(
                    name=name.strip(),
                    default=default.strip() if sign else None,
                    description=description.strip(),
                )
            )
        except ValidationError:
            raise Invalid(
                _("Line %(number)d declares no variable.") % {"number": number},
                field="variables",
                hint=_("Write “tone = kind # how it speaks”; names have small letters and “_”."),
            ) from None
    return tuple(found)


def written_variables(variables: tuple[Variable, ...]) -> str:
    lines = []
    for each in variables:
        line = each.name if each.default is None else f"{each.name} = {each.default}"
        lines.append(f"{line} # {each.description}" if each.description else line)
    return "\n".join(lines)
