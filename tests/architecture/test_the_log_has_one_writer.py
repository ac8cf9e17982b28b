"""Only `conversations/log.py` writes events: numbers, projections and nudges hang on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import MODULES, parsed

WRITER = Path("conversations/log.py")

WRITES = frozenset(
    {
        "create",
        "acreate",
        "bulk_create",
        "abulk_create",
        "get_or_create",
        "aget_or_create",
        "update_or_create",
        "aupdate_or_create",
        "update",
        "aupdate",
        "bulk_update",
        "abulk_update",
        "delete",
        "adelete",
    }
)


def event_writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of whatever makes, changes or deletes rows of `Event` in a module."""
    names = set(_names_of_the_table(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if _is_table(called, names):
            yield node.lineno, ast.unparse(node)
        elif isinstance(called, ast.Attribute) and called.attr in WRITES:
            start = _start_of(called.value)
            if start is not None and (_is_table(start, names) or _is_relation(start)):
                yield node.lineno, ast.unparse(node)


def _names_of_the_table(tree: ast.Module) -> Iterator[str]:
    """What the module calls the table: `harness.events.Event` is another thing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            of_tables = (node.module or "").split(".")[-1] in {"models", "event"} and not (
                node.module or ""
            ).startswith("harness")
            for alias in node.names:
                if alias.name == "Event" and of_tables:
                    yield alias.asname or alias.name


def _is_table(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "Event"
        and isinstance(node.value, ast.Name)
        and node.value.id == "models"
    )


def _is_relation(node: ast.expr) -> bool:
    """`conversation.events`."""
    return isinstance(node, ast.Attribute) and node.attr == "events"


def _start_of(node: ast.expr) -> ast.expr | None:
    """Where a chain of managers and filters begins: the table, or a relation to it."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            if node.attr in {"events", "Event"}:
                return node
            node = node.value
        elif isinstance(node, ast.Name):
            return node
        else:
            return None


@pytest.mark.parametrize(
    "source",
    [
        "from conversations.models import Event\nEvent(seq=1).save()",
        "from .models import Event\nEvent.objects.create(seq=1)",
        "from conversations.models import Event as Row\nRow.objects.bulk_create([])",
        "from .models.event import Event\nEvent.objects.filter(seq=1).update(seq=2)",
        "from conversations.models import Event\nEvent.objects.filter(seq=1).order_by('id').delete()",
        "from conversations import models\nmodels.Event.objects.get_or_create(seq=1)",
        "def f(conversation):\n    conversation.events.create(seq=1)",
        "def f(conversation):\n    conversation.events.filter(seq=1).delete()",
    ],
)
def test_a_writer_is_found_however_it_is_written(source):
    assert list(event_writes(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "from conversations.models import Event\nEvent.objects.filter(seq=1).first()",
        "from harness.events import Event\nEvent.create()",
        "import asyncio\nasyncio.Event()",
        "def f(conversation):\n    return list(conversation.events.after(3))",
        "from conversations.models import Conversation\nConversation.objects.create(title='a')",
        "def f(names):\n    names.update({'events': 1})",
    ],
)
def test_reading_and_other_things_of_that_name_are_let_be(source):
    assert not list(event_writes(ast.parse(source)))


def test_the_log_itself_is_recognised_as_a_writer():
    assert list(event_writes(parsed(WRITER)))


def test_nobody_else_writes_events():
    found = [
        f"{path}:{line}: {text}"
        for path in MODULES
        if path != WRITER
        for line, text in event_writes(parsed(path))
    ]
    assert not found, "\n".join(found)
