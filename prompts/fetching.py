"""Gets texts of prompts from elsewhere: from Langfuse, another Agentsite, or a folder of a Git repository at
a commit. Knows no rows of prompts; what becomes of a text is `pulling`'s part.

Connections are judged like all that somebody's word leads to. Langfuse's wire is its public API for prompts,
version 2.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.agentconfig import PROMPT_NAME
from harness.errors import Declined, Forbidden, Invalid
from net.addresses import Address, parse_address
from net.guarded import guarded_client
from net.hostlists import entries_with_ports, why_refused
from reading.foreignjson import Unreadable, read_json, without_nul
from reading.hostnames import is_web_address, split_address
from skills_app.fetching import require_private_way
from skills_app.repositories import Checkout

from .filling import FACTS, Variable, digest_of, places_in

MOST = 200
"""Prompts of one source."""
MOST_ASKED = 500
"""Requests of one look."""
MOST_BYTES = 2_000_000
"""Of one answer."""
TEXT_LIMIT = 50_000
SECONDS = 20.0
"""Of one answer."""
SECONDS_OF_A_LOOK = 120.0
"""All answers of one look together: other sources wait for it, and whoever pressed a button."""
HIGHEST = 2**31 - 1
PAGE = 100
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """Where is asked, and for what."""

    kind: str
    address: str
    secret: str = ""
    folder: str = ""
    commit: str = ""
    labels: tuple[str, ...] = ()
    """As they are called there."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a label there points to."""

    name: str
    """As it can be called here."""
    remote_name: str
    remote_version: str
    label: str
    text: str
    variables: tuple[Variable, ...]


@dataclass(slots=True)
class Haul:
    found: list[Fetched] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What was not taken, and why."""


class _Listed(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str = Field(min_length=1, max_length=200)
    labels: list[str] = Field(max_length=1_000)


class _Meta(BaseModel):
    model_config = ConfigDict(extra="ignore")

    totalPages: int = Field(default=1, ge=0)  # noqa: N815 - the wire's own name


class _Page(BaseModel):
    model_config = ConfigDict(extra="ignore")

    data: list[_Listed] = Field(max_length=1_000)
    meta: _Meta = _Meta()


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: str = ""
    content: str = ""


class _OfLangfuse(BaseModel):
    model_config = ConfigDict(extra="ignore")

    version: int = Field(ge=0, le=HIGHEST)
    prompt: str | list[_Said]


class _OnSite(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(max_length=64)
    name: str = Field(max_length=64)
    labels: dict[str, Annotated[int, Field(ge=0, le=HIGHEST)]]


class _VersionOnSite(BaseModel):
    model_config = ConfigDict(extra="ignore")

    version: int = Field(ge=0, le=HIGHEST)
    sha256: str
    text: str = Field(max_length=TEXT_LIMIT)
    variables: list[Variable] = Field(max_length=50)


def fetch(place: Place) -> Haul:
    """What the labels of this place point to now. Raises Declined where it cannot be had, Invalid for what is
    no answer of such a place, and what the judge of addresses raises."""
    require_way(place.kind, place.address)
    if place.kind == "git":
        return _of_repository(place)
    asked = 0
    end = monotonic() + SECONDS_OF_A_LOOK

    def ask(path: str, query: Mapping[str, Any] | None = None) -> Any:
        nonlocal asked
        asked += 1
        if asked > MOST_ASKED:
            raise Declined(_("The source has too many prompts to be asked for."))
        if monotonic() > end:
            raise Declined(_("The source takes too long to tell what it has."))
        return _asked(place, path, query or {})

    return _of_langfuse(place, ask) if place.kind == "langfuse" else _of_site(place, ask)


Ask = Callable[..., Any]


def _of_langfuse(place: Place, ask: Ask) -> Haul:
    haul = Haul()
    listed: list[_Listed] = []
    page = pages = 1
    while page <= pages and len(listed) < MOST:
        answer = _read(_Page, ask("/api/public/v2/prompts", {"page": page, "limit": PAGE}))
        listed += answer.data
        pages, page = answer.meta.totalPages, page + 1
    for one in _few(listed, haul):
        for label in place.labels:
            if label not in one.labels:
                continue
            path = f"/api/public/v2/prompts/{quote(one.name, safe='')}"
            said = _read(_OfLangfuse, ask(path, {"label": label}))
            text = _text_of(said.prompt)
            if text is None:
                haul.remarks.append(
                    _("%(name)s: it is a dialogue, not one text.") % {"name": without_nul(one.name)}
                )
                continue
            _take(haul, one.name, str(said.version), label, text, _declared(text))
    return haul


def _of_site(place: Place, ask: Ask) -> Haul:
    haul = Haul()
    answer = ask("/api/prompts")
    if not isinstance(answer, list):
        raise _no_answer()
    for one in _few([_read(_OnSite, each) for each in answer[: MOST + 1]], haul):
        known: dict[int, _VersionOnSite] = {}
        for label in place.labels:
            number = one.labels.get(label)
            if number is None:
                continue
            if number not in known:
                path = f"/api/prompts/{quote(one.id, safe='')}/versions/{number}"
                known[number] = _read(_VersionOnSite, ask(path))
            said = known[number]
            variables = tuple(said.variables)
            if digest_of(said.text, variables) != said.sha256:
                haul.remarks.append(_("%(name)s: its digest is another.") % {"name": one.name})
                continue
            _take(haul, one.name, str(said.version), label, said.text, variables)
    return haul


def _of_repository(place: Place) -> Haul:
    """Each `.md` and `.txt` of the folder is a prompt; all its labels point to it."""
    haul = Haul()
    folder = f"{place.folder.strip('/')}/" if place.folder.strip("/") else ""
    with Checkout(place.address, place.commit) as snapshot:
        paths = [
            path
            for path in snapshot.paths
            if path.startswith(folder)
            and "/" not in path[len(folder) :]
            and path.endswith((".md", ".txt"))
            and snapshot.is_plain(path)
            and snapshot.size_of(path) <= TEXT_LIMIT * 4
        ]
        files = snapshot.read(_few(paths, haul))
    for path, data in files.items():
        name = path[len(folder) :].rpartition(".")[0]
        try:
            text = data.decode().replace("\0", "")
        except UnicodeDecodeError:
            haul.remarks.append(_("%(name)s: it is no text.") % {"name": path[:200]})
            continue
        for label in place.labels:
            _take(haul, name, place.commit, label, text, _declared(text))
    return haul


def _few(found: Sequence[T], haul: Haul) -> list[T]:
    if len(found) > MOST:
        haul.remarks.append(_("Only the first %(most)d prompts are taken.") % {"most": MOST})
    return list(found[:MOST])


def _take(
    haul: Haul,
    remote_name: str,
    remote_version: str,
    label: str,
    text: str,
    variables: tuple[Variable, ...],
) -> None:
    remote_name = without_nul(remote_name)
    name = _NOT_IN_NAMES.sub("-", remote_name.lower()).strip("-")[:64].strip("-")
    if not PROMPT_NAME.fullmatch(name):
        haul.remarks.append(
            _("%(name)s: it cannot be called so here.") % {"name": remote_name[:200]}
        )
    elif not text.strip() or len(text) > TEXT_LIMIT:
        haul.remarks.append(
            _("%(name)s: its text is empty or too long.") % {"name": remote_name[:200]}
        )
    elif any(
        each.name == name and each.label == label and each.remote_name != remote_name
        for each in haul.found
    ):
        haul.remarks.append(
            _("%(name)s: another one is called so here.") % {"name": remote_name[:200]}
        )
    else:
        haul.found.append(Fetched(name, remote_name, remote_version, label, text, variables))


def _declared(text: str) -> tuple[Variable, ...]:
    """There nothing is declared: every name between braces is a variable, which needs a value."""
    return tuple(Variable(name=name) for name in places_in(text) if name not in FACTS)[:50]


def _text_of(prompt: str | list[_Said]) -> str | None:
    """A dialogue is one text where nobody but the system speaks."""
    if isinstance(prompt, str):
        return prompt
    if not prompt or any(said.role != "system" for said in prompt):
        return None
    return "\n\n".join(said.content for said in prompt)


def address_of(kind: str, text: str) -> str:
    """An address of the web without its last slash. Raises Invalid."""
    text = text.strip().rstrip("/")
    if len(text) > 500 or not is_web_address(text) or not text.isprintable() or "?" in text:
        raise Invalid(
            _("This is no address of a server."),
            field="address",
            hint=_("Write it like https://prompts.example.org."),
        )
    require_way(kind, text)
    return text


def require_way(kind: str, address: str) -> None:
    """Raises Invalid for an address at which everybody on the way could read the secret and change the
    texts, unless it is one of the operator's own. Repositories are reached as those of skills are."""
    if kind == "git":
        require_private_way(address)
        return
    parts = split_address(address)
    host, port = parts.hostname or "", parts.port or 80
    if parts.scheme != "https" and not any(
        entry.covers(host, parse_address(host), port) for entry in _listed()
    ):
        raise Invalid(
            _("Its address has to begin with https."),
            field="address",
            hint=_("Or the operator lists it in AGENTSITE_PROMPTS_PRIVATE_HOSTS."),
        )


def _read(form: type[M], answer: Any) -> M:
    try:
        # A name is asked by as it is; all else is kept.
        return form.model_validate(answer if form is _Page else without_nul(answer))
    except ValidationError:
        raise _no_answer() from None


def _no_answer() -> Invalid:
    return Invalid(
        _("The source answers otherwise than such a source does."), hint=_("Check its kind.")
    )


def _headers(place: Place) -> dict[str, str]:
    if not place.secret:
        return {}
    if place.kind == "site":
        return {"x-api-key": place.secret}
    pair = base64.b64encode(place.secret.encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _asked(place: Place, path: str, query: Mapping[str, Any]) -> Any:
    address = f"{place.address}{path}" + (f"?{urlencode(query)}" if query else "")
    data = async_to_sync(_got)(address, _headers(place))
    try:
        return read_json(data.decode(), limit=MOST_BYTES)
    except (UnicodeDecodeError, Unreadable):
        raise _no_answer() from None


async def _got(address: str, headers: dict[str, str]) -> bytes:
    try:
        async with guarded_client(
            _judge, timeout=httpx2.Timeout(SECONDS), seconds=SECONDS, most_bytes=MOST_BYTES
        ) as client:
            answer = await client.get(address, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise Declined(
            _("The source cannot be reached: %(why)s") % {"why": str(problem)[:200]},
            hint=_("What was fetched before goes on to be used."),
        ) from problem
    if answer.status_code != 200:
        raise Declined(
            _("The source answered %(code)d.") % {"code": answer.status_code},
            hint=_("Check its address and what it is asked with."),
        )
    return bytes(answer.content)


def _judge(host: str, address: Address, port: int) -> None:
    if why_refused(host, address, port, _listed()):
        raise Forbidden(
            _("The address of the source leads to a private or local address, which is refused."),
            hint=_("Ask the operator to list it in AGENTSITE_PROMPTS_PRIVATE_HOSTS."),
        )


def _listed() -> Any:
    return entries_with_ports(settings.AGENTSITE_PROMPTS_PRIVATE_HOSTS)
