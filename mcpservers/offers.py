"""What an MCP server has for people to attach: resources, and prompts with their arguments, as it says.

Kept for the composer, which shows it to people alone: no model is told, and nothing of it is asked for before
somebody chooses it. Fetching it is `attaching`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from reading.unseen import visible

if TYPE_CHECKING:
    from mcp_types import Prompt as RemotePrompt
    from mcp_types import Resource as RemoteResource

    from .models import McpServer

MOST = 200
"""Of each kind; what a server has beyond is not offered."""
MOST_ARGUMENTS = 20
LONGEST_URI = 1_000
ABOUT = 200
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)


class OfferedResource(_Kept):
    uri: str
    label: str
    """What is typed: one word."""
    about: str = ""


class OfferedArgument(_Kept):
    name: str
    about: str = ""
    required: bool = False


class OfferedPrompt(_Kept):
    name: str
    about: str = ""
    arguments: tuple[OfferedArgument, ...] = ()


class Offers(_Kept):
    resources: tuple[OfferedResource, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()


def offers_of(server: McpServer) -> Offers:
    """As it was kept when the server was last looked at."""
    return Offers.model_validate(server.offers)


def offers_in(resources: Iterable[RemoteResource], prompts: Iterable[RemotePrompt]) -> Offers:
    """Those that can be named; of one name the first."""
    named: dict[str, OfferedResource] = {}
    for resource in resources:
        uri = resource.uri
        if not uri.isascii() or not uri.isprintable() or not 1 <= len(uri) <= LONGEST_URI:
            continue
        label = _label(resource.name) or _label(uri)
        if label in named:
            label = _label(uri)
        about = resource.title or resource.description or uri
        named.setdefault(label, OfferedResource(uri=uri, label=label, about=_about(about)))
    asked: dict[str, OfferedPrompt] = {}
    for prompt in prompts:
        given = prompt.arguments or []
        names = [each.name for each in given]
        odd = len(names) > MOST_ARGUMENTS or len(set(names)) < len(names)
        if odd or not all(map(_NAME.fullmatch, (prompt.name, *names))):
            continue
        arguments = tuple(
            OfferedArgument(
                name=each.name, about=_about(each.description), required=each.required is True
            )
            for each in given
        )
        about = _about(prompt.title or prompt.description)
        asked.setdefault(
            prompt.name, OfferedPrompt(name=prompt.name, about=about, arguments=arguments)
        )
    return Offers(
        resources=tuple(named.values())[:MOST],
        prompts=tuple(asked.values())[:MOST],
    )


def _label(text: str) -> str:
    """As one word, without the sign that begins it."""
    return re.sub(r"[\s@]+", "-", visible(text).strip())[:80]


def _about(text: str | None) -> str:
    return " ".join(visible(text or "").split())[:ABOUT]
