"""What a server says its tools are, and what of that holds here: released once, held when it changes.

A server that nobody has looked at before is taken as it is by whoever adds it; each of its tools asks before
it runs. From then on what is new and what changed waits for somebody's eyes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict

from harness.schemas import Unsound, require_sound
from reading.foreignjson import Unreadable, kept_json
from reading.unseen import first_unseen, visible

from .models import McpServer, McpTool
from .offers import Offers

if TYPE_CHECKING:
    from mcp_types import Tool as RemoteTool

CONNECT_SECONDS = 15.0
"""Until a server has said what tools it has."""
LONGEST_DESCRIPTION = 10_000
LONGEST_TOGETHER = 400_000
"""Characters of all that a server says of its tools: each run that may use it reads them all."""
LONGEST_NAME = 64
"""Of a tool, as model services take it."""
_REMOTE = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Described(BaseModel):
    """What counts of a tool: whatever of it changes, it is another one."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    hints: dict[str, bool] = {}
    """What it says of itself, which may only make us more careful."""

    @property
    def digest(self) -> str:
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    def words(self) -> str:
        """All of it, for a comparison by people."""
        parts = [self.name, self.title, self.description]
        parts += [json.dumps(self.input_schema, indent=1, sort_keys=True)]
        if self.output_schema is not None:
            parts.append(json.dumps(self.output_schema, indent=1, sort_keys=True))
        parts += [f"{name}: {value}" for name, value in sorted(self.hints.items())]
        return "\n".join(part for part in parts if part)


def described(tool: RemoteTool) -> Described:
    given = tool.annotations
    hints = {
        "destructive": given.destructive_hint if given else None,
        "read only": given.read_only_hint if given else None,
        "idempotent": given.idempotent_hint if given else None,
        "open world": given.open_world_hint if given else None,
    }
    return Described(
        name=tool.name,
        title=tool.title or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        hints={name: value for name, value in hints.items() if value is not None},
    )


def fault_of(tool: Described) -> str:
    """Why it cannot be taken; empty: it can. Takes a moment for a large schema, so: in a thread."""
    if not _REMOTE.fullmatch(tool.name):
        return _("Its name is no tool's name.")
    if len(tool.description) + len(tool.title) > LONGEST_DESCRIPTION:
        return _("Its description is longer than %(most)d characters.") % {
            "most": LONGEST_DESCRIPTION
        }
    for text in (tool.title, tool.description):
        if first_unseen(text.replace("\r", "")):
            return _("Its description holds characters that cannot be seen.")
    try:
        require_sound(tool.input_schema)
        if tool.input_schema.get("type", "object") != "object":
            return _("Its schema is not that of an object.")
        if tool.output_schema is not None:
            require_sound(tool.output_schema)
        schemas = [tool.input_schema, tool.output_schema]
        if first_unseen(json.dumps(schemas, ensure_ascii=False)):
            return _("Its schemas hold characters that cannot be seen.")
        if kept_json(schemas) != schemas:
            return _("Its schemas hold characters that cannot be kept.")
    except (Unsound, Unreadable) as problem:
        return str(problem)[:500]
    return ""


def local_name(server: str, remote: str) -> str:
    """`mcp__server__tool`; what model services would not take of it is written otherwise, and told apart by
    a digest."""
    head = f"mcp__{server}__"
    if re.fullmatch(r"[A-Za-z0-9_-]+", remote) and len(head + remote) <= LONGEST_NAME:
        return head + remote
    mark = sha256(remote.encode()).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", remote)
    return f"{head}{plain[: LONGEST_NAME - len(head) - 9]}_{mark}"


def take_listing(
    server_id: int,
    tools: Sequence[Described],
    *,
    protocol: str = "",
    software: str = "",
    whole: bool = True,
    offers: Offers | None = None,
) -> None:
    """Keep what a server says now. In a thread with tables; nothing is released by it but the first.
    `whole`: what it does not name is gone; else it may be what it has for one person. `offers`: what it has
    beside tools; None: as it was."""
    most: int = settings.AGENTSITE_MCP_TOOLS_PER_SERVER
    faults: dict[str, str] = {}
    room = LONGEST_TOGETHER
    for tool in tools[:most]:
        faults[tool.name] = fault_of(tool)
        if not faults[tool.name]:
            room -= len(tool.words())
            if room < 0:
                faults[tool.name] = _(
                    "What the server says of its tools is longer than %(most)d characters together."
                ) % {"most": LONGEST_TOGETHER}
    with transaction.atomic():
        server = McpServer.objects.select_for_update().filter(pk=server_id).first()
        if server is None:
            return
        known = {row.remote_name: row for row in server.tools.all()}
        first = server.listed_at is None
        told: set[str] = set()
        names = {row.name for row in known.values()}
        for tool in tools[:most]:
            if not (tool.name.isprintable() and 1 <= len(tool.name) <= 128):
                continue
            if tool.name in told:
                continue  # a second one of a name is nobody's
            told.add(tool.name)
            row = known.get(tool.name)
            if row is None:
                row = McpTool(
                    server=server, remote_name=tool.name, name=local_name(server.name, tool.name)
                )
                if row.name in names:
                    continue
                names.add(row.name)
            _take(row, tool, faults[tool.name], first=first)
        for row in (row for name, row in known.items() if whole and name not in told):
            if row.pinned is None:
                row.delete()
            elif row.state != McpTool.State.GONE:
                row.state, row.seen = McpTool.State.GONE, None
                row.save(update_fields=["state", "seen"])
        server.listed_at = timezone.now()
        server.failing_since, server.last_error, server.last_output = None, "", ""
        server.protocol, server.software = protocol[:40], _plain(software)[:200]
        if offers is not None:
            server.offers = offers.model_dump(mode="json")
        server.save(
            update_fields=[
                "listed_at", "failing_since", "last_error", "last_output", "protocol", "software",
                "offers",
            ]
        )  # fmt: skip


def _take(row: McpTool, tool: Described, fault: str, *, first: bool) -> None:
    before = (row.state, row.seen, row.fault)
    now = tool.model_dump(mode="json")
    row.fault = fault
    if fault:
        row.state, row.seen = McpTool.State.REFUSED, None
    elif first:
        row.state, row.pinned, row.digest, row.seen = McpTool.State.RELEASED, now, tool.digest, None
        row.released_by, row.released_at = row.server.created_by, timezone.now()
    elif row.pinned is None:
        row.state, row.seen = McpTool.State.NEW, now
    elif row.digest == tool.digest:
        row.state, row.seen = McpTool.State.RELEASED, None
    else:
        row.state, row.seen = McpTool.State.CHANGED, now
    if row.pk is None or before != (row.state, row.seen, row.fault):
        row.save()


def held(tools: Iterable[McpTool]) -> list[McpTool]:
    return [row for row in tools if row.state in {McpTool.State.NEW, McpTool.State.CHANGED}]


def note_failure(
    server_id: int, words: str, *, unauthorised: bool = False, errors: str | None = None
) -> None:
    """That it cannot be reached; since when stays. `unauthorised`: it wants a token, which is no failure of
    one that was given none, and ends one: it answers. `errors`: what a program wrote when it was looked at;
    None: it was in a conversation, whose words go nowhere else."""
    row = McpServer.objects.filter(pk=server_id).first()
    if row is not None:
        is_fault = bool(row.sealed) or not unauthorised
        row.failing_since = (row.failing_since or timezone.now()) if is_fault else None
        row.last_error = _plain(words)[:500]
        row.wants_authorisation = row.wants_authorisation or unauthorised
        if errors is not None:
            row.last_output = visible(errors)
        row.save(
            update_fields=["failing_since", "last_error", "last_output", "wants_authorisation"]
        )


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable())
