"""A skill as a folder of files: what its `SKILL.md` says, how it is named by its content, what keeps it
from being published.

It is read leniently, so that what others wrote for other clients loads, with warnings; `faults_of` is
strict. Where folders come from and where they are kept is not asked here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from reading.unseen import first_hidden

from . import frontmatter
from .manifest import MANIFEST, TOOL_NAME_LIMIT, Manifest, read_manifest
from .names import NAME, NAME_LIMIT, SKILL, name_of, path_of, require_apart
from .pythonneeds import PythonNeeds, needs_of

DESCRIPTION_LIMIT = 1_024
COMPATIBILITY_LIMIT = 500
BODY_LIMIT = 200_000
"""Characters that an agent is given when it reads a skill."""
STANDARD = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""All fields that the standard has."""


@dataclass(frozen=True, slots=True)
class SkillFolder:
    name: str
    description: str
    body: str
    """Below the head."""
    front: Mapping[str, Any]
    """The head's fields, as far as they are texts, numbers, lists and maps."""
    manifest: Manifest
    files: Mapping[str, bytes]
    """By path, SKILL.md among them."""
    python: PythonNeeds
    warnings: tuple[str, ...]

    @property
    def hidden(self) -> bool:
        """Agents are not told of it; a person asks for it by name."""
        return self.front.get("disable-model-invocation") is True

    @property
    def digest(self) -> str:
        return digest_of_files(self.files)

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(files: Mapping[str, str]) -> str:
    """SHA-256 over the lines `<sha256>  <path>` in the order of paths' bytes, as `sha256sum` writes them."""
    lines = sorted((path.encode(), digest) for path, digest in files.items())
    whole = b"".join(digest.encode() + b"  " + path + b"\n" for path, digest in lines)
    return hashlib.sha256(whole).hexdigest()


def digest_of_files(files: Mapping[str, bytes]) -> str:
    """The same, of paths as `placed` has them."""
    return digest_of({path: sha256_of(data) for path, data in files.items()})


def placed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """By the paths that they have in a skill. Raises Invalid for such as no skill may hold, TooLarge past the
    limits."""
    require_limits({path: len(data) for path, data in files.items()})
    found = {path_of(path): data for path, data in files.items()}
    if len(found) < len(files):
        raise Invalid(_("Two files have the same path."), field="files")
    require_apart(found)
    return found


def read_folder(files: Mapping[str, bytes], *, called: str = "") -> SkillFolder:
    """The skill that these files are, `called` as its folder.

    Raises Invalid without a SKILL.md that can be read and has a description, for paths that no skill may
    hold and a manifest that cannot be read, and TooLarge past the limits.
    """
    held = placed(files)
    warnings: list[str] = []
    front, body = _read_head(held, warnings)
    name = _name(front, called, warnings)
    description = _text(front.get("description")).strip()
    if not description:
        raise Invalid(
            _("SKILL.md has no description."),
            field="description",
            hint=_("Say in its head what the skill does and when to use it."),
        )
    _warn_of_lengths(front, description, body, warnings)
    _warn_of_hidden(held, warnings)
    data = held.get(MANIFEST)
    manifest = read_manifest(data) if data is not None else Manifest()
    python = needs_of(held, manifest.needs.python, warnings)
    return SkillFolder(
        name=name,
        description=description[:DESCRIPTION_LIMIT],
        body=body,
        front={key: _plain(value) for key, value in front.items()},
        manifest=manifest,
        files=held,
        python=python,
        warnings=tuple(warnings),
    )


def faults_of(folder: SkillFolder) -> list[str]:
    """What keeps it from being published, in words; none: it is what the standard wants."""
    faults = list(folder.warnings)
    if not folder.body.strip():
        faults.append(_("There is nothing below the head of SKILL.md."))
    for tool in folder.manifest.tools:
        if tool.file not in folder.files:
            faults.append(
                _("The tool %(tool)s has its function in %(file)s, which is not there.")
                % {"tool": tool.name, "file": tool.file}
            )
        if len(tool.called_in(folder.name)) > TOOL_NAME_LIMIT:
            faults.append(
                _(
                    "%(name)s is longer than %(most)d characters; shorten the skill’s or the tool’s name."
                )
                % {"name": tool.called_in(folder.name), "most": TOOL_NAME_LIMIT}
            )
    return faults


def require_limits(sizes: Mapping[str, int]) -> None:
    """Raises TooLarge (`files`) for more files or bytes than a skill may have."""
    if len(sizes) > settings.AGENTSITE_SKILL_FILES:
        raise TooLarge(
            _("A skill has at most %(most)d files.") % {"most": settings.AGENTSITE_SKILL_FILES},
            field="files",
            hint=_("Leave out what it does not need."),
        )
    if sum(sizes.values()) > settings.AGENTSITE_SKILL_BYTES:
        raise TooLarge(
            _("The files of a skill hold at most %(most)d bytes together.")
            % {"most": settings.AGENTSITE_SKILL_BYTES},
            field="files",
            hint=_("Leave out what it does not need."),
        )


def _read_head(files: Mapping[str, bytes], warnings: list[str]) -> tuple[dict[str, Any], str]:
    data = files.get(SKILL)
    if data is None:
        raise Invalid(
            _("There is no SKILL.md at the top of the skill’s folder."),
            field="SKILL.md",
            hint=_("Add one; its name is written in capitals."),
        )
    text = data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(text) > BODY_LIMIT:
        raise TooLarge(
            _("SKILL.md is longer than %(most)d characters.") % {"most": BODY_LIMIT},
            field="SKILL.md",
            hint=_("Put what is not always needed into other files."),
        )
    front, body, mended = frontmatter.read(text)
    if mended:
        warnings.append(_("A value in the head of SKILL.md holds a colon and stands in no quotes."))
    others = sorted(front.keys() - set(STANDARD))
    if others:
        warnings.append(
            _("The standard has no such field: %(names)s.") % {"names": ", ".join(others)[:300]}
        )
    return front, body


def _name(front: Mapping[str, Any], called: str, warnings: list[str]) -> str:
    written = _text(front.get("name")).strip()
    if written and (len(written) > NAME_LIMIT or not NAME.fullmatch(written)):
        warnings.append(
            _("The name “%(name)s” is not what the standard wants.") % {"name": written[:80]}
        )
        written = _tidied(written)
    if not written:
        warnings.append(_("SKILL.md has no name that can be used."))
        written = _tidied(called)
    elif called and written != called:
        warnings.append(
            _("The name “%(name)s” is not the folder’s, “%(folder)s”.")
            % {"name": written, "folder": called[:80]}
        )
    return name_of(written)


def _tidied(text: str) -> str:
    kept = "".join(
        each if each.isascii() and each.isalnum() else "-" for each in text.lower()[:200]
    )
    return "-".join(part for part in kept.split("-") if part)[:NAME_LIMIT].strip("-")


def _warn_of_lengths(
    front: Mapping[str, Any], description: str, body: str, warnings: list[str]
) -> None:
    if len(description) > DESCRIPTION_LIMIT:
        warnings.append(
            _("The description is longer than %(most)d characters.") % {"most": DESCRIPTION_LIMIT}
        )
    if len(_text(front.get("compatibility"))) > COMPATIBILITY_LIMIT:
        warnings.append(
            _("The field compatibility is longer than %(most)d characters.")
            % {"most": COMPATIBILITY_LIMIT}
        )


def _warn_of_hidden(files: Mapping[str, bytes], warnings: list[str]) -> None:
    """Whoever reviews a skill sees what agents read."""
    for path, data in files.items():
        if b"\0" in data:
            continue
        try:
            found = first_hidden(data.decode().replace("\r\n", "\n"))
        except UnicodeDecodeError:
            continue
        if found:
            warnings.append(
                _("The file %(path)s holds a sign that nobody sees: %(sign)s.")
                % {"path": path[:200], "sign": found}
            )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return value.replace("\0", "")
    return value if value is None or isinstance(value, bool | int) else str(value)
