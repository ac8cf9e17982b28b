"""What an agent reads of its skills: their names in the prompt, one whole when it asks for it, a search.

Nothing is decided here: which ones it has stands in rows, whether one may still be used on the skill and its
version as they are at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Declined, ToolError
from harness.events import Keepsake
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from skills_app.files import file_of, folder_of
from skills_app.models import SkillVersion
from skills_app.names import SKILL

from .models import UsedSkill

EXTRA = "skills"
"""The id of the conversation, among a context's extras."""
FOLDER = "/skills"
"""Where commands find the files of each, read-only, where their sandbox has folders of its own."""
FILE_LIMIT = 100_000
"""Characters of one file of a skill that are given at once."""
MOST_LISTED = 200
HEADING = (
    "You have skills: instructions for kinds of work. Before you do what one is about, read it with "
    "read_skill; read it again only if a summary has taken its place."
)
FOUND = 10


def section_of(used: Sequence[UsedSkill], problems: Sequence[str]) -> str:
    """Names and descriptions within the share of the prompt that skills have; the rest can be searched."""
    shown = [each for each in used if not each.version.hidden and not why_not(each)]
    if not shown and not problems:
        return ""
    room = settings.AGENTSITE_SKILLS_PROMPT
    lines: list[str] = []
    for each in shown:
        line = f"- {each.skill.name}: {_line(each.version.description)}"
        if len(line) > room:
            break
        room -= len(line) + 1
        lines.append(line)
    text = [
        HEADING,
        *lines,
    ]
    if len(lines) < len(shown):
        text.append(f"There are {len(shown) - len(lines)} more: search_skills finds them.")
    text += [f"Not to be had: {each}" for each in problems]
    return "\n".join(text)


def why_not(used: UsedSkill) -> str:
    """Why a skill of the conversation may not be used now; empty: it may."""
    if used.skill.killed_at is not None:
        return _("The skill “%(name)s” was stopped: %(why)s") % {
            "name": used.skill.name,
            "why": used.skill.killed_reason,
        }
    version = used.version
    if version.removed:
        words = _("The skill “%(name)s” %(version)s could be used until %(day)s.") % {
            "name": used.skill.name,
            "version": version.label,
            "day": version.removal_on,
        }
        return f"{words} {_instead(version)}".strip()
    return ""


def read_skill(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
    used = _used(context, arguments["name"])
    path = arguments.get("path") or ""
    try:
        if path and path != SKILL:
            return _text_of(file_of(used.version, path), path)
        return ToolOutput(_whole(used), keeps=Keepsake(name=f"skill {used.skill.name}"))
    except Declined as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def search_skills(context: ToolContext, arguments: dict[str, Any]) -> str:
    words = [word for word in arguments["query"].casefold().split() if word][:20]
    ranked = []
    for each in UsedSkill.objects.filter(conversation=_conversation(context)).select_related(
        "skill", "version"
    )[:MOST_LISTED]:
        if each.version.hidden or why_not(each):
            continue
        name, about = each.skill.name.casefold(), each.version.description.casefold()
        score = sum(3 * (word in name) + (word in about) for word in words)
        if score:
            ranked.append((-score, each.skill.name, _line(each.version.description)))
    lines = [f"{name}: {about}" for _score, name, about in sorted(ranked)[:FOUND]]
    return "\n".join(lines) or "No skill matches. Try other words."


def _whole(used: UsedSkill) -> str:
    version = used.version
    folder = folder_of(version)
    others = [path for path in folder.files if path != SKILL]
    parts = [f'<skill name="{used.skill.name}" version="{version.label}">']
    if version.deprecated_at is not None:
        until = f" It can be used until {version.removal_on}." if version.removal_on else ""
        parts.append(f"Warning: this version is deprecated.{until} {_instead(version)}".rstrip())
    parts.append(folder.body)
    if others:
        parts.append(
            f"Its files lie in {FOLDER}/{used.skill.name} for commands, read-only (where commands see the "
            "folders of their host, that place is the one called after the skill). read_skill with a path "
            "reads one:"
        )
        parts += [f"- {path}" for path in others]
    parts.append("</skill>")
    return "\n".join(parts)


def _text_of(data: bytes, path: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ToolError(
            f"{path} is no text.", hint="Commands can use it from the skill's folder."
        ) from None
    if len(text) <= FILE_LIMIT:
        return text
    return f"{text[:FILE_LIMIT]}\n[{len(text) - FILE_LIMIT:,} characters are left out here.]"


def _used(context: ToolContext, name: str) -> UsedSkill:
    rows = UsedSkill.objects.filter(conversation=_conversation(context), skill__name=name)
    used = rows.select_related("skill", "version").first()
    if used is None:
        raise ToolError(
            f"This conversation has no skill “{name}”.", hint="search_skills finds those it has."
        )
    if refusal := why_not(used):
        raise ToolError(refusal)
    return used


def _conversation(context: ToolContext) -> int:
    found: int = context.extras[EXTRA]
    return found


def _instead(version: SkillVersion) -> str:
    return f"Use {version.replacement} in its place." if version.replacement else ""


def _line(text: str) -> str:
    return " ".join(text.split())


READ = Tool(
    name="read_skill",
    description=(
        "Read a skill: instructions for a kind of work, and a list of the files that belong to it. With a "
        "path, read one of these files."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 64},
            "path": {"type": "string", "maxLength": 1_024, "description": "A file of the skill."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    handler=read_skill,
    effect=Effect.READ,
    granted=True,
    intent=lambda arguments: str(arguments.get("name", "")),
    output_limit=250_000,
    owner="skillsets",
)
SEARCH = Tool(
    name="search_skills",
    description="Find skills that this conversation has by what they are about.",
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 300}},
        "required": ["query"],
        "additionalProperties": False,
    },
    handler=search_skills,
    effect=Effect.READ,
    granted=True,
    intent=lambda arguments: str(arguments.get("query", "")),
    owner="skillsets",
)
