"""What an organisation keeps for its agents as a part of `/mcp`: skills as resources, named prompts.

A skill is told as its SKILL.md, of the version that agents get; a prompt as the label for use says,
else as its newest version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from django.utils import timezone
from mcp.server.context import HandlerResult
from mcp.shared.exceptions import MCPError

from harness.errors import AgentError, NotFound
from prompts.choosing import LATEST, version_named
from prompts.filling import filled, missing_values
from prompts.models import Prompt, PromptVersion
from skills_app.files import file_of
from skills_app.models import Skill, SkillVersion
from skills_app.names import SKILL

from .parts import Page, Part
from .threads import in_thread
from .tools import MOST_CHARACTERS, READ, Principal

ADDRESS = "agentsite://skills/"
MARKDOWN = "text/markdown"
MOST = 200
"""Skills, and prompts, that are told."""
IN_USE = "production"
"""The label whose version a client gets, where there is one."""


class Library(Part):
    async def resources(self, who: Principal, cursor: str | None) -> Page | None:
        """All on the first page of the list."""
        if cursor is not None:
            return None
        return Page(await in_thread(_listed, who)) if who.may(READ) else Page()

    async def read(self, who: Principal, uri: str) -> Sequence[Any] | None:
        if not (uri.startswith(ADDRESS) and who.may(READ)):
            return None
        try:
            text = await in_thread(_whole, who, uri.removeprefix(ADDRESS))
        except AgentError:
            return None
        return [types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)]

    async def prompts(self, who: Principal) -> Sequence[types.Prompt]:
        found: list[types.Prompt] = await in_thread(_prompts, who) if who.may(READ) else []
        return found

    async def prompt(self, who: Principal, call: types.GetPromptRequestParams) -> HandlerResult:
        if not who.may(READ):
            return None
        try:
            prompt, text = await in_thread(_filled, who, call.name, dict(call.arguments or {}))
        except NotFound:
            return None
        content = types.TextContent(type="text", text=text)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=prompt.description or None, messages=[message])


def _skills(who: Principal) -> Any:
    rows = Skill.objects.visible_to(who.user).usable_in(who.organisation, who.user).on_offer()
    return rows.select_related("stable", "latest")


def _listed(who: Principal) -> list[types.Resource]:
    return [
        types.Resource(
            uri=f"{ADDRESS}{row.uid}",
            name=row.name,
            title=row.title or row.name,
            description=row.description[:1_000],
            mime_type=MARKDOWN,
        )
        for row in _skills(who).order_by("name", "pk")[:MOST]
        if _version(row) is not None
    ]


def _whole(who: Principal, uid: str) -> str:
    """Raises NotFound, and Conflict where what is stored is not what was."""
    row = _skills(who).filter(uid=uid.replace("\0", "")).first()
    version = _version(row) if row is not None else None
    if version is None:
        raise NotFound("There is no such skill.")
    return file_of(version, SKILL).decode("utf-8", "replace")[:MOST_CHARACTERS]


def _version(skill: Skill) -> SkillVersion | None:
    found = skill.stable or skill.latest
    is_offered = found is not None and found.state == SkillVersion.State.RELEASED
    return found if found is not None and is_offered and not found.removed else None


def _prompts(who: Principal) -> list[types.Prompt]:
    told: dict[str, types.Prompt] = {}
    # The organisation's stands in the place of the server's of the same name.
    for row in Prompt.objects.visible_to(who.user).usable_in(who.organisation)[: 2 * MOST]:
        version = _in_use(row) if row.name not in told else None
        if version is not None and len(told) < MOST:
            told[row.name] = types.Prompt(
                name=row.name,
                description=row.description or None,
                arguments=[
                    types.PromptArgument(
                        name=each.name,
                        description=each.description or None,
                        required=each.default is None,
                    )
                    for each in version.variables
                ],
            )
    return list(told.values())


def _in_use(prompt: Prompt) -> PromptVersion | None:
    for label in (IN_USE, LATEST):
        try:
            return version_named(prompt, label)
        except NotFound:
            continue
    return None


def _filled(who: Principal, name: str, given: Mapping[str, str]) -> tuple[Prompt, str]:
    """Raises NotFound, and MCPError for what its variables lack."""
    rows = Prompt.objects.visible_to(who.user).usable_in(who.organisation)
    prompt = rows.filter(name=name.replace("\0", "")).first()
    version = _in_use(prompt) if prompt is not None else None
    if prompt is None or version is None:
        raise NotFound("There is no such prompt.")
    if missing := missing_values(version.variables, given):
        raise MCPError(types.INVALID_PARAMS, f"Missing argument: {', '.join(missing)[:300]}")
    facts = {
        "person": who.user.get_full_name() or who.user.username,
        "organisation": who.organisation.name,
        "day": timezone.localdate().isoformat(),
        # Nobody has chosen one yet.
        "agent": "the agent",
    }
    return prompt, filled(version.text, version.variables, given, facts)[:MOST_CHARACTERS]
