"""The fast writer of JSON refuses numbers past 64 bits and halves of characters, which others write: what may
hold any is written by `reading.wholetext.json_of`, or by whoever hears of the refusal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .sources import PRODUCT, parsed

OF_OURS = {
    "api/pages.py": "places in a list, bounded",
    "chat/protocol.py": "frames with texts of ours and pages drawn here",
    "conversations/logsql.py": "numbers of events",
    "live/redis_wire.py": "made valid right before",
    "providers/anthropic_request.py": "who asks for one part writes the whole otherwise",
}
"""Modules that write what nobody else wrote, or hear of the refusal elsewhere."""


def unheard_in(tree: ast.Module) -> Iterator[int]:
    """The lines of calls of the writer which no handler around them hears fail."""
    heard = {
        id(call)
        for attempt in ast.walk(tree)
        if isinstance(attempt, ast.Try)
        if any("TypeError" in ast.unparse(each.type or ast.Name("")) for each in attempt.handlers)
        for statement in attempt.body
        for call in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_the_writer(node):
            if id(node) not in heard:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "orjson":
            yield from (node.lineno for one in node.names if one.name == "dumps")


def _is_the_writer(node: ast.Attribute) -> bool:
    return node.attr == "dumps" and ast.unparse(node) == "orjson.dumps"


def test_what_others_wrote_is_written_whatever_it_holds():
    found = {path.as_posix() for path in PRODUCT if any(unheard_in(parsed(path)))}
    assert found == set(OF_OURS), "use reading.wholetext.json_of"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("orjson.dumps(value)", [1]),
        ("try:\n    orjson.dumps(value)\nexcept ValueError:\n    pass", [2]),
        ("try:\n    orjson.dumps(value)\nexcept TypeError:\n    pass", []),
        ("from orjson import dumps", [1]),
        ("write = orjson.dumps", [1]),
    ],
)
def test_the_judge_knows_who_hears_of_a_refusal(source, lines):
    assert list(unheard_in(ast.parse(source))) == lines
