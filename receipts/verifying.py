"""Receipts read and checked with nothing but the receipt and a public key: no Django, no tables.

    python -m receipts.verifying receipt.json key.pem

A receipt is one JSON document in one spelling (`canonical`). Every event of the log, and every statement
beside it, is a leaf: its value with a random salt or, where it was taken out, only their commitment. Those
are chained in the order of the log; the head names the end of the chain and is signed (Ed25519, RFC 8032).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

FORMAT = "agentsite-receipt/1"
LIMIT = 200_000_000
"""Bytes of a receipt that are read."""
_HEAD = {"format", "conversation", "made_at", "key", "events", "chain", "statements"}
_WHOLE = {"head", "events", "statements", "signature"}


class Refused(ValueError):
    """The receipt is not what the server signed; the message says what does not fit."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a receipt proves."""

    conversation: str
    made_at: str
    events: int
    redacted: int
    """Events and statements whose content was taken out."""
    statements: Mapping[str, Any]
    """Those that are there, by name."""


def canonical(value: Any) -> bytes:
    """The one way in which a value is written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii")


def commitment_of(salt: str, value: Any) -> str:
    return _digest("leaf", salt, canonical(value).decode())


def link(before: str, number: int, commitment: str) -> str:
    """The chain behind one more leaf."""
    return _digest("link", before, str(number), commitment)


def start_of(conversation: str) -> str:
    return _digest("start", FORMAT, conversation)


def root_of(commitments: Mapping[str, str]) -> str:
    """Of the statements, whatever order they stand in."""
    return _digest("statements", canonical(dict(commitments)).decode())


def fingerprint(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()


def public_key(pem: bytes) -> Ed25519PublicKey:
    """Raises `Refused` for anything but an Ed25519 key in PEM."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, TypeError) as problem:
        raise Refused("the public key cannot be read") from problem
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("the public key is no Ed25519 key")
    return key


def verify(data: bytes, key: Ed25519PublicKey) -> Verified:
    """What the receipt proves. Raises `Refused` for whatever differs from what was signed."""
    receipt = _read(data)
    head, signature = receipt["head"], receipt["signature"]
    if not isinstance(head, dict) or head.keys() != _HEAD or head["format"] != FORMAT:
        raise Refused("the head is not that of a receipt of this format")
    if head["key"] != fingerprint(key):
        raise Refused("it names another key than the one it is checked with")
    try:
        raw = bytes.fromhex(signature) if isinstance(signature, str) else b""
        if raw.hex() != signature:
            raise Refused("the signature is not written as it should be")
        key.verify(raw, canonical(head))
    except (InvalidSignature, ValueError) as problem:
        if isinstance(problem, Refused):
            raise
        raise Refused("the signature is not that of this key over this head") from None
    chain, redacted = start_of(str(head["conversation"])), 0
    events = receipt["events"]
    if not isinstance(events, list) or len(events) != head["events"]:
        raise Refused("events are missing or were added")
    for number, leaf in enumerate(events, start=1):
        commitment, hidden = _commitment(leaf, f"event {number}")
        chain, redacted = link(chain, number, commitment), redacted + hidden
    if chain != head["chain"]:
        raise Refused("an event was changed, dropped, added or put elsewhere")
    statements = receipt["statements"]
    if not isinstance(statements, dict):
        raise Refused("the statements cannot be read")
    commitments, shown = {}, {}
    for name, leaf in statements.items():
        commitments[name], hidden = _commitment(leaf, f"statement {name}")
        redacted += hidden
        if not hidden:
            shown[name] = leaf["value"]
    if root_of(commitments) != head["statements"]:
        raise Refused("a statement was changed, dropped or added")
    return Verified(str(head["conversation"]), str(head["made_at"]), len(events), redacted, shown)


def verify_files(verified: Verified, files: Mapping[str, bytes]) -> None:
    """Raise `Refused` unless these are files that the receipt names, each with the content it had."""
    named = verified.statements.get("files")
    if not isinstance(named, list):
        raise Refused("the receipt does not show which files there were")
    known = {file["path"]: file["sha256"] for file in named}
    for path, content in files.items():
        if path not in known:
            raise Refused(f"the receipt names no file {path}")
        if hashlib.sha256(content).hexdigest() != known[path]:
            raise Refused(f"the file {path} is not what it was")


def redacted(
    data: bytes,
    *,
    events: Callable[[Mapping[str, Any]], bool] = lambda _event: False,
    statements: Iterable[str] = (),
) -> bytes:
    """The same receipt without the content of the events for which `events` says so, and of these
    statements. It is still verified with the same key; what was taken out cannot be guessed."""
    receipt = _read(data)
    receipt["events"] = [
        _without(leaf) if "value" in leaf and events(leaf["value"]) else leaf
        for leaf in receipt["events"]
    ]
    for name in statements:
        if name in receipt["statements"]:
            receipt["statements"][name] = _without(receipt["statements"][name])
    return canonical(receipt)


def _without(leaf: Mapping[str, Any]) -> dict[str, Any]:
    if "commitment" in leaf:
        return dict(leaf)
    return {"commitment": commitment_of(leaf["salt"], leaf["value"])}


def _commitment(leaf: Any, where: str) -> tuple[str, bool]:
    """The leaf's, and whether its content was taken out."""
    if isinstance(leaf, dict) and leaf.keys() == {"commitment"}:
        return str(leaf["commitment"]), True
    if not isinstance(leaf, dict) or leaf.keys() != {"salt", "value"}:
        raise Refused(f"{where} cannot be read")
    return commitment_of(str(leaf["salt"]), leaf["value"]), False


def _read(data: bytes) -> dict[str, Any]:
    if len(data) > LIMIT:
        raise Refused("it is too long to be a receipt")
    try:
        receipt = json.loads(data)
        plain = canonical(receipt)
    except (ValueError, RecursionError) as problem:
        raise Refused("it is no JSON") from problem
    if not isinstance(receipt, dict) or receipt.keys() != _WHOLE:
        raise Refused("it is no receipt")
    if plain != data:
        raise Refused("it is not written as a receipt is")
    return receipt


def _digest(*parts: str) -> str:
    """Of parts that cannot be taken for others, whatever stands in them."""
    whole = b"".join(b"%d:%s" % (len(part.encode()), part.encode()) for part in parts)
    return hashlib.sha256(whole).hexdigest()


def main(arguments: list[str]) -> int:
    """`receipt.json key.pem [folder]`: 0 where it holds, 1 where it does not, with a line that says why."""
    if len(arguments) not in {2, 3}:
        sys.stderr.write("usage: python -m receipts.verifying RECEIPT KEY [FOLDER OF FILES]\n")
        return 2
    try:
        data, key = Path(arguments[0]).read_bytes(), public_key(Path(arguments[1]).read_bytes())
        verified = verify(data, key)
        if len(arguments) == 3:
            root = Path(arguments[2])
            there = (path for path in root.rglob("*") if path.is_file())
            verify_files(verified, {str(p.relative_to(root)): p.read_bytes() for p in there})
    except (Refused, OSError) as problem:
        sys.stdout.write(f"refused: {problem}\n")
        return 1
    sys.stdout.write(
        f"verified: {verified.conversation}, {verified.events} events, made {verified.made_at}"
        f", {verified.redacted} without content\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
