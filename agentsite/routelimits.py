"""How long the body of a request may be, by its route: of a stranger short everywhere.

`agentsite.bodies` keeps it. Which file may be how long, and what a body may say, the views decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.urls import Resolver404, resolve

from agents.actions.environments import MOST_UPLOAD_BYTES
from agentsite.requestlimits import MB
from mcpdoor.door import MOST_BYTES
from wire.jsonbodies import BODY_BYTES

PAGE_BYTES = 4 * MB
"""What a signed-in person's form may have, unless its route says more."""
FORM_BYTES = MB
"""What a form has around its files."""


@dataclass(frozen=True, slots=True)
class Limit:
    anonymous: int
    """Bytes of a body that shows no valid session or token."""
    signed_in: int


def _files() -> int:
    return int(settings.AGENTSITE_FILE_BYTES) + FORM_BYTES


def _uploads() -> int:
    return MOST_UPLOAD_BYTES + FORM_BYTES


def _skills() -> int:
    return int(settings.AGENTSITE_SKILL_BYTES) + FORM_BYTES


def _documents() -> int:
    return int(settings.AGENTSITE_DOCUMENT_BYTES) + FORM_BYTES


def _encoded() -> int:
    return int(settings.AGENTSITE_DOCUMENT_BYTES) * 4 // 3 + FORM_BYTES


def _mails() -> int:
    # As text in JSON, where signs may be written out.
    return int(settings.AGENTSITE_INBOUND_MAIL_BYTES) * 2 + FORM_BYTES


def _messages() -> int:
    return MOST_BYTES


_PROGRAMS = ("v1/", "v0.1/", "api/", "agui", "mcp")
_LARGE = {
    "v1/files": _files,
    "api/workspace/upload": _uploads,
    "c/<id:uid>/files/upload/": _uploads,
    "attachments/": _uploads,
    "v1/skills": _skills,
    "v1/skills/<str:uid>/versions": _skills,
    "skills/new/": _skills,
    "skills/<id:uid>/edit/": _skills,
    "settings/documents/<id:uid>/": _documents,
    "api/collections/<id:uid>/documents": _encoded,
    "hooks/mail": _mails,
    "mcp": _messages,
}
"""Routes that take files, and such as take less than others, as the URL conf writes them."""


def limit_of_route(route: str) -> Limit:
    """For a route of the URL conf; `""` is also what no route answers to."""
    anonymous: int = settings.AGENTSITE_ANONYMOUS_BODY_BYTES
    if route in _LARGE:
        return Limit(anonymous, _LARGE[route]())
    if route.startswith(_PROGRAMS):
        return Limit(anonymous, BODY_BYTES)
    return Limit(anonymous, PAGE_BYTES)


def limit_of(path: str) -> Limit:
    """For an address, without its query. Only asked for bodies that are longer than an anonymous one."""
    try:
        return limit_of_route(resolve(path).route)
    except Resolver404:
        anonymous: int = settings.AGENTSITE_ANONYMOUS_BODY_BYTES
        return Limit(anonymous, anonymous)
