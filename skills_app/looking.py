"""What a source offers now, and one of its skills, whole and as it was offered, or nothing: the same question
for every kind of source. Nothing is stored here; that is `actions.sources`' part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AgentError, Conflict, Forbidden, Invalid

from . import bundles
from .clawhub import fetch_version, newest_version, require_offered
from .fetching import (
    differs,
    fetch_index,
    fetch_open_index,
    fetch_open_skill,
    fetch_skill,
    get,
    require_private_way,
)
from .folder import SkillFolder, read_folder, require_limits, sha256_of
from .models import SkillSource, SourceOffer
from .names import SKILL
from .packing import files_in
from .places import read_place
from .repositories import Checkout, Snapshot
from .signedindex import Offered

MOST_SKILLS = 500
"""Of one repository or folder."""
MOST_REMARKS = 20
Kind = SkillSource.Kind
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Found:
    name: str
    digest: str
    """SHA-256 of what is fetched, without a prefix."""
    label: str = ""
    description: str = ""
    place: str = ""
    content: str = ""
    """Of all its files; empty: not known before it is fetched."""
    size: int = 0
    deprecated: bool = False
    replacement: str = ""
    removal_on: date | None = None


@dataclass(frozen=True, slots=True)
class Look:
    found: tuple[Found, ...]
    issued: int = 0
    """When a signed index was made; 0: nobody says."""
    remarks: tuple[str, ...] = ()
    """What could not be read, in words."""


def look_at(source: SkillSource) -> Look:
    """Raises Declined where it cannot be had, Invalid and Conflict for what cannot be believed."""
    return _LOOKS[Kind(source.kind)](source)


def fetch_offer(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    """Its files. Raises Conflict where one byte is not as it was offered, and as `look_at`."""
    folder = _FETCHES[Kind(source.kind)](source, offer)
    if folder.name != offer.name or offer.content not in {"", folder.digest}:
        raise differs()
    return folder


def folder_on_offer(place: str) -> Path:
    """A folder that the operator lists, or one below it. Raises Forbidden."""
    path = Path(place).resolve()
    roots = [Path(root).resolve() for root in settings.AGENTSITE_SKILLS_FOLDERS]
    if not any(path == root or root in path.parents for root in roots):
        raise Forbidden(
            _("No skills are read from this folder."),
            hint=_("The operator lists folders in AGENTSITE_SKILLS_FOLDERS."),
        )
    return path


# --- another server, a site --------------------------------------------------------------------------


def _look_at_server(source: SkillSource) -> Look:
    index = fetch_index(source)
    return Look(tuple(_offered(each) for each in index.skills), issued=index.issued)


def _offered(each: Offered) -> Found:
    return Found(
        name=each.name,
        digest=each.digest.removeprefix("sha256:"),
        label=each.version,
        description=each.description,
        place=each.url,
        content=each.content.removeprefix("sha256:"),
        size=each.size,
        deprecated=each.deprecated,
        replacement=each.replacement,
        removal_on=each.removal_on,
    )


def _fetch_from_server(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    """By its index as it is now: what was withdrawn meanwhile is not had."""
    for each in fetch_index(source).skills:
        found = _offered(each)
        if (found.name, found.label, found.digest) == (offer.name, offer.label, offer.digest):
            return fetch_skill(source, each)
    raise Conflict(_("The source does not offer this any more."), hint=_("Look at it again."))


def _look_at_index(source: SkillSource) -> Look:
    return Look(
        tuple(
            Found(
                name=each.name,
                digest=each.digest.removeprefix("sha256:"),
                description=each.description,
                place=each.url,
            )
            for each in fetch_open_index(source)
        )
    )


# --- a registry, a bundle ----------------------------------------------------------------------------


def _look_at_clawhub(source: SkillSource) -> Look:
    version = newest_version(source.address)
    folder = fetch_version(source.address, version)
    return Look((replace(_found(folder, version), label=version),))


def _fetch_from_clawhub(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    """What was blocked there since somebody looked is not had."""
    require_offered(source.address)
    return fetch_version(source.address, offer.place)


def _look_at_bundle(source: SkillSource) -> Look:
    files = _bundle(source)
    look = _look(
        {name: name for name in bundles.skills_in(files)},
        lambda name: read_folder(bundles.files_of_skill(files, name), called=name),
    )
    if bundles.SERVERS not in files:
        return look
    told = _("The MCP servers that it names are not added; each has a page of its own.")
    return replace(look, remarks=_few((told, *look.remarks)))


def _fetch_from_bundle(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    return read_folder(bundles.files_of_skill(_bundle(source), offer.place), called=offer.place)


def _bundle(source: SkillSource) -> dict[str, bytes]:
    """Its files, if every byte of the archive is the one that was named."""
    require_private_way(source.address)
    data = get(source.address, settings.AGENTSITE_SKILL_BYTES * 2)
    if sha256_of(data) != source.commit:
        raise Conflict(
            _("The archive is not the one that was named: its SHA-256 is %(digest)s.")
            % {"digest": sha256_of(data)},
            hint=_("If you trust it, name this digest on the page of the source."),
        )
    files = bundles.top_of_bundle(files_in(data))
    bundles.require_manifest(files[bundles.MANIFEST])
    return files


# --- folders, of this machine and of a repository -----------------------------------------------------


def _look_at_folder(source: SkillSource) -> Look:
    root = folder_on_offer(source.address)
    if not root.is_dir():
        raise Invalid(_("There is no such folder."), field="source")
    if (root / SKILL).exists():
        return _look({"": root}, read_place)
    below = ""
    if (root / bundles.MANIFEST).is_file():
        with (root / bundles.MANIFEST).open("rb") as manifest:
            bundles.require_manifest(manifest.read(bundles.LIMIT + 1))
        below = f"{bundles.SKILLS}/"
    if not (root / below).is_dir():
        return Look(())
    places = sorted(each.name for each in (root / below).iterdir() if (each / SKILL).exists())
    return _look({f"{below}{name}": root / below / name for name in places}, read_place)


def _fetch_from_folder(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    return read_place(folder_on_offer(source.address) / offer.place)


def _look_at_repository(source: SkillSource) -> Look:
    require_private_way(source.address)
    with Checkout(source.address, source.commit) as snapshot:
        folders = sorted(
            path.removesuffix(SKILL).rstrip("/")
            for path in snapshot.paths
            if path == SKILL or path.endswith(f"/{SKILL}")
        )
        if folders and folders[0] == "":
            folders = [""]
        return _look({each: each for each in folders}, lambda place: _read(snapshot, place))


def _fetch_from_repository(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    require_private_way(source.address)
    with Checkout(source.address, source.commit) as snapshot:
        return _read(snapshot, offer.place)


def _read(snapshot: Snapshot, folder: str) -> SkillFolder:
    below = f"{folder}/" if folder else ""
    paths = [path for path in snapshot.paths if path.startswith(below)]
    require_limits({path: snapshot.size_of(path) for path in paths})
    if not all(snapshot.is_plain(path) for path in paths):
        raise Invalid(_("It holds a link or another repository."), field="files")
    files = {path.removeprefix(below): data for path, data in snapshot.read(paths).items()}
    return read_folder(files, called=folder.rpartition("/")[2])


def _look(places: Mapping[str, Place], read: Callable[[Place], SkillFolder]) -> Look:
    found: dict[str, Found] = {}
    remarks: list[str] = []
    for name, place in list(places.items())[:MOST_SKILLS]:
        try:
            folder = read(place)
        except AgentError as problem:
            remarks.append(f"{name or SKILL}: {problem.message}"[:300])
            continue
        if folder.name in found:
            remarks.append(_("%(name)s: It is there twice.") % {"name": name})
            continue
        found[folder.name] = _found(folder, name)
    if len(places) > MOST_SKILLS:
        remarks.append(
            _("More than %(most)d skills; the rest is left out.") % {"most": MOST_SKILLS}
        )
    return Look(tuple(found.values()), remarks=_few(remarks))


def _found(folder: SkillFolder, place: str) -> Found:
    return Found(
        name=folder.name,
        digest=folder.digest,
        label=folder.manifest.version,
        description=folder.description,
        place=place,
        content=folder.digest,
        size=folder.size,
    )


def _few(remarks: Iterable[str]) -> tuple[str, ...]:
    return tuple(remarks)[:MOST_REMARKS]


_LOOKS: dict[Kind, Callable[[SkillSource], Look]] = {
    Kind.SERVER: _look_at_server,
    Kind.INDEX: _look_at_index,
    Kind.GIT: _look_at_repository,
    Kind.CLAWHUB: _look_at_clawhub,
    Kind.PLUGIN: _look_at_bundle,
    Kind.FOLDER: _look_at_folder,
}
_FETCHES: dict[Kind, Callable[[SkillSource, SourceOffer], SkillFolder]] = {
    Kind.SERVER: _fetch_from_server,
    Kind.INDEX: fetch_open_skill,
    Kind.GIT: _fetch_from_repository,
    Kind.CLAWHUB: _fetch_from_clawhub,
    Kind.PLUGIN: _fetch_from_bundle,
    Kind.FOLDER: _fetch_from_folder,
}
