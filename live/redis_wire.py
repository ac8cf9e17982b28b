"""How hub items travel through Redis: bundles of one tick, and the text of the blocks that are open.

A bundle is `[origin, [[conversation, item], …]]`, an item a list that begins with its letter. The
text of a conversation is a list of encoded deltas, which a reader joins by their offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from .items import BlockClosed, Delta, Interrupted, Item, Kind, Lagged, Nudge, OpenText

Addressed = tuple[str, Item]
"""A conversation's uid and an item for its readers."""


def bundle(origin: str, items: Iterable[Addressed]) -> bytes:
    return _encoded([origin, [[uid, _packed(item)] for uid, item in items]])


def unbundle(data: bytes) -> tuple[str, list[Addressed]]:
    """Raises ValueError for what is no bundle."""
    try:
        origin, items = orjson.loads(data)
        return str(origin), [(str(uid), _unpacked(item)) for uid, item in items]
    except (TypeError, KeyError, IndexError) as problem:
        raise ValueError(f"not a bundle: {problem}") from problem


def piece(delta: Delta) -> bytes:
    """A delta as it is kept for snapshots."""
    return _encoded(_packed(delta))


def join(pieces: Sequence[bytes]) -> tuple[OpenText, ...]:
    """The open blocks that kept pieces make. A block whose beginning is missing is left out: its
    writer is about to keep it anew."""
    texts: dict[str, tuple[Kind, str | None, str]] = {}
    lost: set[str] = set()
    for data in pieces:
        delta = _unpacked(orjson.loads(data))
        if not isinstance(delta, Delta):
            continue
        _kind, _continues, text = texts.get(delta.block, (delta.kind, delta.continues, ""))
        if delta.offset > len(text):
            lost.add(delta.block)
        if delta.offset + len(delta.text) > len(text):
            text = text[: delta.offset] + delta.text
        texts[delta.block] = (delta.kind, delta.continues, text)
    return tuple(
        OpenText(block, kind, continues, text)
        for block, (kind, continues, text) in texts.items()
        if block not in lost
    )


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # Half a surrogate pair is no text. One "?" in its place keeps every offset right.
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(json.loads(whole))


def _packed(item: Item) -> list[Any]:
    match item:
        case Nudge():
            return ["n", item.seq]
        case Delta():
            return ["d", item.block, item.kind, item.offset, item.text, item.continues]
        case BlockClosed():
            return ["c", item.block]
        case Interrupted():
            return ["i"]
        case Lagged():
            return ["l"]


def _unpacked(packed: Sequence[Any]) -> Item:
    match packed[0]:
        case "n":
            return Nudge(packed[1])
        case "d":
            return Delta(*packed[1:])
        case "c":
            return BlockClosed(packed[1])
        case "i":
            return Interrupted()
        case "l":
            return Lagged()
    raise ValueError(f"no item begins with {packed[0]!r}")
