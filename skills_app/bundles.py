"""Agent Plugins bundles: `plugin.json`, and skills below `skills`. Pure.

Of a bundle the skills are taken, each by itself: one that cannot be read is told of and keeps no other back.
A manifest that is not as the specification wants it refuses all. MCP servers that it names are not added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from harness.errors import Invalid
from harness.modelfaults import read_as
from reading.foreignjson import Unreadable, read_json

from .names import SKILL

MANIFEST, SERVERS, SKILLS = "plugin.json", "mcp.json", "skills"
LIMIT = 100_000


class _Manifest(BaseModel):
    """Other fields are the business of other readers."""

    model_config = ConfigDict(populate_by_name=True)

    kind: str = Field(
        alias="$schema",
        pattern=r"^https://agent-plugins\.org/schemas/1\.[0-9]{1,4}\.[0-9]{1,4}/plugin\.schema\.json$",
    )
    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$")


def top_of_bundle(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """By their paths in the bundle, also where all stand in one folder. Raises Invalid without a manifest."""
    files = {path: data for path, data in files.items() if not path.startswith("__MACOSX/")}
    if MANIFEST in files:
        return dict(files)
    tops = {path.partition("/")[0] for path in files}
    top = next(iter(tops)) if len(tops) == 1 else ""
    if f"{top}/{MANIFEST}" not in files:
        raise _refused(_("It has no plugin.json at its top or in its one folder."))
    return {path.removeprefix(f"{top}/"): data for path, data in files.items()}


def require_manifest(data: bytes) -> None:
    """Raises Invalid for what no reader of bundles may take."""
    try:
        document: Any = read_json(data, limit=LIMIT)
        read_as(document, _Manifest)
    except Unreadable as problem:
        raise _refused(_("Its plugin.json cannot be read.")) from problem
    except Invalid as problem:
        raise _refused(f"plugin.json: {problem.field}: {problem.message}"[:300]) from problem


def skills_in(paths: Mapping[str, object]) -> list[str]:
    """The names of its folders with a SKILL.md."""
    found = (path.split("/") for path in paths)
    return sorted(
        parts[1] for parts in found if len(parts) == 3 and parts[0] == SKILLS and parts[2] == SKILL
    )


def files_of_skill(files: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    below = f"{SKILLS}/{name}/"
    return {
        path.removeprefix(below): data for path, data in files.items() if path.startswith(below)
    }


def _refused(why: str) -> Invalid:
    return Invalid(
        _("The bundle cannot be used. %(why)s") % {"why": why},
        field="source",
        hint=_("Whoever made it can mend it."),
    )
