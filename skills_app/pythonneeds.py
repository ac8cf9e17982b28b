"""What a skill's Python files need of a package index: declared in its scripts (PEP 723) and in its manifest.

It is read here and nothing is fetched: `installing` does that, once, and `packages` says what there is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict

MOST = 50
"""Of one skill."""
LONGEST = 200
LONGEST_BLOCK = 4_000
LONGEST_IN_ALL = 40_000
"""Characters, of one script and of a skill's together: the reader of TOML takes the square of them."""
_BEGIN, _END = "# /// script", "# ///"


class PythonNeeds(BaseModel):
    """Of one version, all its files together."""

    model_config = ConfigDict(frozen=True)

    packages: tuple[str, ...] = ()
    """Each as packaging writes it, in the order of their names."""
    python: str = ""
    """Conditions on the interpreter's version; empty: any will do."""


def package_of(text: str) -> str:
    """A package and conditions on its version. Raises `ValueError` for anything else."""
    if len(text) > LONGEST:
        raise ValueError(f"a Python package is named in {LONGEST} characters at most")
    try:
        found = Requirement(text)
    except InvalidRequirement:
        raise ValueError(
            f"“{text[:100]}” is no Python package with conditions such as httpx>=0.27"
        ) from None
    if found.url:
        raise ValueError(f"“{text[:100]}” is named by an address, and only indexes are asked")
    for each in found.specifier:
        # It takes any text, and installers take one with a slash for a path.
        if each.operator == "===" and not _is_version(each.version):
            raise ValueError(f"“{text[:100]}” compares with what is no version")
    return str(found)


def needs_of(
    files: Mapping[str, bytes], declared: Iterable[str], warnings: list[str]
) -> PythonNeeds:
    """`declared`: those of the manifest. What cannot be read is left out, and told in the warnings."""
    packages, conditions, room = list(declared), [], LONGEST_IN_ALL
    for path, data in files.items():
        if not path.endswith(".py") or _BEGIN.encode() not in data:
            continue
        try:
            block = _block_of(data.decode(errors="replace"))
            room -= len(block)
            if room < 0:
                raise ValueError(_("all such blocks together are too long."))
            named, python = _said_in(block) if block else ([], "")
        except ValueError as problem:
            warnings.append(
                _("What %(path)s says it needs cannot be read: %(why)s")
                % {"path": path[:200], "why": str(problem)[:300]}
            )
            continue
        packages += named
        conditions += [python] if python else []
    kept = sorted(set(packages), key=lambda each: (canonicalize_name(Requirement(each).name), each))
    if len(kept) > MOST:
        warnings.append(_("It needs more than %(most)d Python packages.") % {"most": MOST})
        return PythonNeeds()
    if not kept:
        return PythonNeeds()
    python = str(SpecifierSet(",".join(conditions)))
    return PythonNeeds(packages=tuple(kept), python=python)


def _block_of(text: str) -> str:
    """What a script says of itself; empty: nothing. Raises ValueError."""
    blocks = list(_blocks(text))
    if len(blocks) > 1:
        raise ValueError(_("it holds two such blocks"))
    if blocks and len(blocks[0]) > LONGEST_BLOCK:
        raise ValueError(_("it is longer than %(most)d characters.") % {"most": LONGEST_BLOCK})
    return blocks[0] if blocks else ""


def _said_in(block: str) -> tuple[list[str], str]:
    """Packages, and conditions on the interpreter. Raises ValueError."""
    try:
        found = tomllib.loads(block)
    except RecursionError:
        raise ValueError(_("it opens too many brackets")) from None
    named = found.get("dependencies", [])
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise ValueError(_("“dependencies” is no list of texts"))
    return [package_of(each) for each in named[: MOST + 1]], _python_of(found)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _python_of(found: Mapping[str, Any]) -> str:
    python = found.get("requires-python", "")
    if not isinstance(python, str) or len(python) > LONGEST:
        raise ValueError(_("“requires-python” is no condition on a version"))
    try:
        return str(SpecifierSet(python))
    except InvalidSpecifier:
        raise ValueError(_("“requires-python” is no condition on a version")) from None


def _blocks(text: str) -> Iterator[str]:
    """Each line is looked at once. A block ends with the last line of its comment that can end it; one that
    nothing ends is a slip, and told."""
    held: list[str] | None = None
    end = 0
    for line in (*text.replace("\r\n", "\n").split("\n"), ""):
        if held is None:
            held = [] if line == _BEGIN else None
            continue
        if line == "#" or line.startswith("# "):
            held.append(line[2:])
            end = len(held) if line == _END else end
            continue
        if not end:
            raise ValueError(_("it has no end, a line “# ///”"))
        yield "\n".join(held[: end - 1])
        held, end = None, 0
