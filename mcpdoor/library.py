"""What an organisation keeps for its agents as a part of `/mcp`: skills as resources, named prompts.

A skill is told as its SKILL.md, of the version that agents get; a prompt as the label for use says,
else as its newest version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from mcp.server.context import HandlerResult
from mcp.shared.exceptions import MCPError

from harness.agentconfig import USUAL_LABEL
from harness.errors import AgentError, NotFound
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
MOST_FILLED = 2_000_000
"""Characters that a prompt may become by its arguments, at the most, before it is cut."""


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
        found: list[types.Prompt] = await in_thread(prompts_of, who) if who.may(READ) else []
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


def prompts_of(who: Principal) -> list[types.Prompt]:
    rows = list(_in_use(who)[: 2 * MOST])
    versions = PromptVersion.objects.defer("text").in_bulk(
        [row.in_use for row in rows if row.in_use]
    )
    told: dict[str, types.Prompt | None] = {}
    for row in rows:
        # The organisation's stands in the place of the server's of the same name.
        if row.name not in told:
            version = versions.get(row.in_use)
            told[row.name] = _told(row, version) if version is not None else None
    return [each for each in told.values() if each is not None][:MOST]


def _told(prompt: Prompt, version: PromptVersion) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        description=prompt.description or None,
        arguments=[
            types.PromptArgument(
                name=each.name,
                description=each.description or None,
                required=each.default is None,
            )
            for each in version.variables
        ],
    )


def _in_use(who: Principal) -> Any:
    """Prompts, each with the key of the version that is told of it (`in_use`); None: none is."""
    versions = PromptVersion.objects.filter(prompt=OuterRef("pk"), waits=False)
    labelled = versions.filter(labels__name=USUAL_LABEL).values("pk")
    newest = versions.order_by("-number").values("pk")
    rows = Prompt.objects.visible_to(who.user).usable_in(who.organisation)
    return rows.annotate(in_use=Coalesce(Subquery(labelled[:1]), Subquery(newest[:1])))


def _filled(who: Principal, name: str, given: Mapping[str, str]) -> tuple[Prompt, str]:
    """Raises NotFound, and MCPError for what its variables lack."""
    prompt = _in_use(who).filter(name=name.replace("\0", "")).first()
    chosen = [prompt.in_use] if prompt is not None and prompt.in_use else []
    version = PromptVersion.objects.filter(pk__in=chosen).first()
    if prompt is None or version is None:
        raise NotFound("There is no such prompt.")
    # Each may stand in thousands of places.
    if sum(map(len, given.values())) * version.text.count("{{") > MOST_FILLED:
        raise MCPError(types.INVALID_PARAMS, "The arguments are too long for this prompt")
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
