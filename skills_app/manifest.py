"""What a skill says about itself that the standard has no field for: `agentsite.yaml` beside `SKILL.md`."""

from __future__ import annotations

from typing import Annotated, Any

import yaml
from django.utils.translation import gettext as _
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.errors import Invalid
from harness.modelfaults import read_as
from harness.schemas import require_sound

from .frontmatter import LIMIT, fields_of
from .names import NAME
from .pythonneeds import MOST, package_of

MANIFEST = "agentsite.yaml"
MOST_REQUIRED = 50
MOST_TOOLS = 20
MOST_CALLED = 50
TOOL_NAME_LIMIT = 64
"""Characters that model services take."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Exposed(_Strict):
    """A tool that the skill brings along: a function of its own, called with what the schema allows."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    description: str = Field(min_length=1, max_length=2_000)
    entry: str
    """`scripts/report.py:write`."""
    input: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )
    output: dict[str, Any] | None = None
    """What it returns has to match; None: text, or anything that JSON can say."""

    @field_validator("entry")
    @classmethod
    def _is_an_entry(cls, entry: str) -> str:
        file, _colon, function = entry.partition(":")
        parts = file.split("/")
        sound = file.isascii() and file.endswith(".py") and not {"", ".", ".."} & set(parts)
        if not sound or not (function.isascii() and function.isidentifier()) or len(entry) > 300:
            raise ValueError("an entry names a file and a function: scripts/report.py:write")
        return entry

    @field_validator("input")
    @classmethod
    def _takes_an_object(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") != "object":
            raise ValueError("an input schema has “type”: “object” at its top")
        return schema

    @property
    def file(self) -> str:
        return self.entry.partition(":")[0]

    @property
    def function(self) -> str:
        return self.entry.partition(":")[2]

    def called_in(self, skill: str) -> str:
        """As agents and other skills call it."""
        return f"skill__{skill}__{self.name}"


class SkillPolicy(_Strict):
    """What the process of one of its tools may use by itself; never more than the environment's commands."""

    seconds: int = Field(default=60, ge=1, le=600)
    """Of time, without the calls that it makes."""
    cpu_seconds: int = Field(default=30, ge=1, le=600)
    memory_mb: int = Field(default=256, ge=64, le=4_096)


class Exposes(_Strict):
    """Its tools, and what they may call and use."""

    tools: tuple[Exposed, ...] = ()
    calls: tuple[str, ...] = ()
    policy: SkillPolicy = SkillPolicy()


Name = Annotated[str, Field(min_length=1, max_length=253)]


class Needs(_Strict):
    """What its files name that reaches out of its folder. It gives no right: a review holds it against what
    is found (`scanning`)."""

    hosts: tuple[Name, ...] = Field(default=(), max_length=100)
    binaries: tuple[Name, ...] = Field(default=(), max_length=100)
    environment: tuple[Name, ...] = Field(default=(), max_length=100)
    """Names of variables."""
    files: tuple[Name, ...] = Field(default=(), max_length=100)
    """What it writes in a workspace: paths, with `*` for any part of one. A trial run holds it against what
    is written."""
    python: tuple[Name, ...] = Field(default=(), max_length=MOST)
    """Packages for its Python files, beside those that its scripts name themselves (`pythonneeds`). They
    alone are more than words: they are installed."""

    @field_validator("python")
    @classmethod
    def _are_packages(cls, python: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(package_of(each) for each in python)


class Manifest(_Strict):
    """Everything may be left out."""

    version: str = Field(default="", max_length=50)
    """As packaging orders versions; empty: the number that the library gives."""
    requires: tuple[str, ...] = Field(default=(), max_length=MOST_REQUIRED)
    """Other skills, each as `name` and conditions on its version: `tables>=1.2,<2`."""

    tools: tuple[Exposed, ...] = Field(default=(), max_length=MOST_TOOLS)
    calls: tuple[Annotated[str, Field(max_length=128)], ...] = Field(
        default=(), max_length=MOST_CALLED
    )
    """Names of the tools that its own tools may call; those of skills as `skill__tables__read`."""
    policy: SkillPolicy = SkillPolicy()
    needs: Needs = Needs()

    @property
    def exposes(self) -> Exposes:
        return Exposes(tools=self.tools, calls=self.calls, policy=self.policy)

    @field_validator("tools")
    @classmethod
    def _have_names_of_their_own(cls, tools: tuple[Exposed, ...]) -> tuple[Exposed, ...]:
        if len({tool.name for tool in tools}) < len(tools):
            raise ValueError("two tools have the same name")
        for tool in tools:
            for schema in filter(None, (tool.input, tool.output)):
                require_sound(schema)
        return tools

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
            hint=_("It may hold version:, requires:, tools:, calls:, policy: and needs:."),
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
