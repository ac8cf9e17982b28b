"""Every address of the site, found where Django finds them, so that a new one cannot be forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from channels.routing import URLRouter
from django.urls import URLPattern, URLResolver, get_resolver

_PARAMETER = re.compile(r"<(?:\w+:)?(?P<path>\w+)>|\(\?P<(?P<regex>\w+)>(?:[^()]|\([^()]*\))*\)")


@dataclass(frozen=True, slots=True)
class Route:
    name: str
    """With its namespaces; empty for the few that have none."""
    pattern: str
    view: Any = field(default=None, compare=False, repr=False)
    """What answers; a socket's has none here."""

    @property
    def key(self) -> str:
        return self.name or self.pattern

    @property
    def parameters(self) -> tuple[str, ...]:
        found = _PARAMETER.finditer(self.pattern)
        return tuple(match["path"] or match["regex"] for match in found)

    def address(self, values: Mapping[str, Any]) -> str:
        """The path with its parameters filled in; KeyError names one that has no value."""
        filled = _PARAMETER.sub(
            lambda match: str(values[match["path"] or match["regex"]]), self.pattern
        )
        return "/" + filled.replace("^", "").replace("$", "").replace("\\Z", "")

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'} /{self.pattern}"


def page_routes() -> list[Route]:
    return list(_walk(get_resolver(), "", ()))


def _walk(resolver: URLResolver, prefix: str, spaces: tuple[str, ...]) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            inner = (*spaces, entry.namespace) if entry.namespace else spaces
            yield from _walk(entry, pattern, inner)
        elif isinstance(entry, URLPattern):
            name = ":".join([*spaces, entry.name]) if entry.name else ""
            yield Route(name, pattern, entry.callback)


def socket_routes(application: Any) -> list[Route]:
    """What the ASGI application itself serves, seen through whatever wraps it."""
    inner = application.application_mapping["websocket"]
    while not isinstance(inner, URLRouter):
        inner = getattr(inner, "application", None) or inner.inner
    return [Route(route.name or "", str(route.pattern)) for route in inner.routes]
