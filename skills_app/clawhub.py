"""One skill of a ClawHub, or of another registry with its API: its newest version, whole, with every file as
the registry's list of files has it.

Several publishers may use one name there, so a skill is named by both, as in the address of its page. What
people say of it there, and how often it was fetched, is no evidence and is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from harness.errors import Conflict, Declined, Invalid
from harness.modelfaults import read_as
from reading.foreignjson import Unreadable, read_json
from reading.hostnames import joined_address, split_address
from reading.unseen import visible

from .fetching import differs, get, require_private_way, server_of
from .folder import SkillFolder, read_folder, sha256_of
from .packing import files_in

ANSWER_BYTES = 1_000_000
META = "_meta.json"
"""What the registry puts beside the files of the archive, and does not list."""
_SHA256 = r"^[0-9a-f]{64}$"
Answer = TypeVar("Answer", bound=BaseModel)


class _Owner(BaseModel):
    handle: str | None = Field(default=None, max_length=200)


class _Version(BaseModel):
    version: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+-]{0,49}$")


class _Moderation(BaseModel):
    is_malware_blocked: bool = Field(default=False, alias="isMalwareBlocked")


class _Skill(BaseModel):
    latest: _Version | None = Field(default=None, alias="latestVersion")
    owner: _Owner | None = None
    moderation: _Moderation | None = None


class _File(BaseModel):
    path: str = Field(max_length=1_024)
    sha256: str = Field(pattern=_SHA256)


class _Listed(_Version):
    files: Annotated[list[_File], Field(min_length=1, max_length=2_000)]


class _OneVersion(BaseModel):
    version: _Listed


class _Elsewhere(BaseModel):
    """That the files lie in a repository, and where."""

    repo: str = Field(max_length=500)
    commit: str = Field(max_length=64)
    path: str = Field(default="", max_length=1_000)


@dataclass(frozen=True, slots=True)
class Place:
    address: str
    """Of the registry."""
    owner: str
    slug: str


def place_in(address: str) -> Place:
    """Of the address of a skill's page: `https://clawhub.ai/owner/skill`. Raises Invalid."""
    parts = split_address(server_of(address))
    names = [each for each in parts.path.split("/") if each]
    if len(names) == 3 and names[1] == "skills":
        del names[1]
    if len(names) != 2 or parts.query or not all(map(_is_word, names)):
        raise Invalid(
            _("This is not the address of a skill’s page."),
            field="source",
            hint=_("Write it like https://clawhub.ai/owner/skill."),
        )
    return Place(f"{parts.scheme}://{parts.netloc}", names[0].removeprefix("@"), names[1])


def address_of_page(address: str) -> str:
    """In one way of writing. Raises Invalid."""
    place = place_in(address)
    return f"{place.address}/{place.owner}/{place.slug}"


def newest_version(address: str) -> str:
    """Of the skill whose page this is. Raises Declined where it cannot be had or is blocked there, Invalid
    for what does not answer as a registry does, Conflict where the name is another publisher's."""
    return _on_offer(place_in(address)).version


def require_offered(address: str) -> None:
    """That it is not blocked there meanwhile. Raises as `newest_version`."""
    _on_offer(place_in(address))


def _on_offer(place: Place) -> _Version:
    found = _asked(place, f"skills/{place.slug}", _Skill)
    handle = found.owner.handle if found.owner else None
    if handle is None or handle.lower() != place.owner.lower():
        raise Conflict(
            _("“%(name)s” is not %(owner)s’s there.") % {"name": place.slug, "owner": place.owner},
            hint=_("Look at the page in a browser: another publisher may use the name."),
        )
    if found.moderation is not None and found.moderation.is_malware_blocked:
        raise Declined(_("The registry has blocked this skill."), hint=_("Do not use it."))
    if found.latest is None:
        raise Declined(_("No version of it is offered."))
    return found.latest


def fetch_version(address: str, version: str) -> SkillFolder:
    """The skill with all its files, each as the registry lists it, or nothing. Raises as `newest_version`,
    and Conflict for one byte that differs."""
    place = place_in(address)
    listed = _asked(place, f"skills/{place.slug}/versions/{quote(version)}", _OneVersion).version
    wanted = {each.path: each.sha256 for each in listed.files}
    if listed.version != version or len(wanted) < len(listed.files):
        raise differs()
    query = f"download?slug={place.slug}&version={quote(version)}&ownerHandle={quote(place.owner)}"
    data = _got(place, query, settings.AGENTSITE_SKILL_BYTES * 2)
    if data.lstrip().startswith(b"{"):
        raise _elsewhere(data)
    files = files_in(data)
    if META not in wanted:
        files.pop(META, None)
    if {path: sha256_of(content) for path, content in files.items()} != wanted:
        raise differs()
    try:
        return read_folder(files)  # what it is called there is no folder's name
    except Invalid:
        return read_folder(files, called=place.slug)


def _asked(place: Place, path: str, shape: type[Answer]) -> Answer:
    data = _got(place, f"{path}?ownerHandle={quote(place.owner)}", ANSWER_BYTES)
    try:
        document: Any = read_json(data, limit=ANSWER_BYTES)
        return read_as(document, shape)
    except (Unreadable, Invalid) as problem:
        raise Invalid(
            _("What is there does not answer as a registry of skills does."),
            field="source",
            hint=_("Check the address."),
        ) from problem


def _got(place: Place, path: str, most: int) -> bytes:
    require_private_way(place.address)
    return get(joined_address(place.address, f"/api/v1/{path}"), most)


def _elsewhere(data: bytes) -> Declined:
    try:
        found = read_as(read_json(data, limit=ANSWER_BYTES), _Elsewhere)
    except (Unreadable, Invalid):
        return Declined(_("The registry sent no archive."), hint=_("Try again later."))
    return Declined(
        _("Its files lie in a Git repository: %(repo)s") % {"repo": visible(found.repo)},
        hint=_("Add that as a source, at the commit %(commit)s.")
        % {"commit": visible(found.commit)},
    )


def _is_word(name: str) -> bool:
    name = name.removeprefix("@")
    return bool(name) and len(name) <= 100 and name.isascii() and ".." not in name and all(
        each.isalnum() or each in "._-" for each in name
    )  # fmt: skip
