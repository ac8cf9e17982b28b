"""What a skill says about itself that the standard has no field for: `agentsite.yaml` beside `SKILL.md`."""

from __future__ import annotations

import yaml
from django.utils.translation import gettext as _
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.errors import Invalid
from harness.modelfaults import read_as

from .frontmatter import LIMIT, fields_of
from .names import NAME

MANIFEST = "agentsite.yaml"
MOST_REQUIRED = 50


class Manifest(BaseModel):
    """Everything may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: str = Field(default="", max_length=50)
    """As packaging orders versions; empty: the number that the library gives."""
    requires: tuple[str, ...] = Field(default=(), max_length=MOST_REQUIRED)
    """Other skills, each as `name` and conditions on its version: `tables>=1.2,<2`."""

    @field_validator("version")
    @classmethod
    def _is_a_version(cls, version: str) -> str:
        if not version:
            return version
        try:
            return str(Version(version))
        except InvalidVersion:
            raise ValueError("a version is written like 1.4.0") from None

    @field_validator("requires")
    @classmethod
    def _are_requirements(cls, requires: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(requirement_of(each)) for each in requires)


def read_manifest(data: bytes) -> Manifest:
    """Raises Invalid, naming the file and what in it is wrong."""
    try:
        text = data.decode()
        if len(text) > LIMIT:
            raise ValueError(_("It is longer than %(most)d characters.") % {"most": LIMIT})
        return read_as(fields_of(text) if text.strip() else {}, Manifest)
    except Invalid as problem:
        raise problem.under(MANIFEST) from problem
    except (ValueError, yaml.YAMLError) as problem:
        raise Invalid(
            _("%(file)s cannot be read: %(why)s") % {"file": MANIFEST, "why": problem},
            field=MANIFEST,
            hint=_("It may hold version: and requires:."),
        ) from problem


def requirement_of(text: str) -> Requirement:
    """A skill and conditions on its version. Raises `ValueError` for anything else."""
    if len(text) > 200:
        raise ValueError("a requirement has 200 characters at most")
    try:
        found = Requirement(text)
    except InvalidRequirement:
        raise ValueError(
            f"“{text[:100]}” is no skill with conditions such as tables>=1.2"
        ) from None
    if found.url or found.extras or found.marker or not NAME.fullmatch(found.name):
        raise ValueError(f"“{text[:100]}” may only name a skill and conditions on its version")
    return found
