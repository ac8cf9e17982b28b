"""Packages of Office files (ECMA-376, Open Packaging Conventions): their parts, and who refers to whom."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_USUAL = {
    "rels": "application/vnd.openxmlformats-package.relationships+xml",
    "xml": "application/xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
}

Relation = tuple[str, str, bool]
"""Kind, target, and whether that is outside the package."""


def text_of(words: str) -> str:
    """For XML, which knows no control characters."""
    return escape("".join(each for each in words if each >= " " or each in "\t\n"))


def relations(found: Iterable[Relation]) -> str:
    """Their part; the first is `rId1`. A kind that is no address is one of Office's."""
    told = "".join(
        f'<Relationship Id="rId{number}" Type="{kind if ":" in kind else f"{OFFICE}/{kind}"}" '
        f"Target={quoteattr(target)}{MODES[outside]}/>"
        for number, (kind, target, outside) in enumerate(found, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{told}</Relationships>'


MODES = {True: ' TargetMode="External"', False: ""}


def save(place: Path, parts: Mapping[str, str | bytes], kinds: Mapping[str, str]) -> None:
    """Parts by name, and the content types of those that have one of their own. The same parts give the same
    bytes."""
    usual = "".join(
        f'<Default Extension="{ending}" ContentType="{kind}"/>' for ending, kind in _USUAL.items()
    )
    own = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in kinds.items()
    )
    types = f'<Types xmlns="{PACKAGE}/content-types">{usual}{own}</Types>'
    with zipfile.ZipFile(place, "w") as archive:
        for name, content in {"[Content_Types].xml": types, **parts}.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, _HEAD + content if isinstance(content, str) else content)
