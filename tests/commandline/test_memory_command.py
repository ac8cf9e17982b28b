"""`manage.py agent memory`: a person's own memory, and turns of any dialogue ranked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.commandline.conftest import Installation

TURNS = (
    {"id": "1", "text": "Where is the office?", "speaker": "Ana"},
    {"id": "2", "text": "In Lisbon.", "speaker": "Ben", "at": "2026-01-31T09:30:00Z"},
    {"id": "3", "text": "The weather is fine.", "speaker": "Ana"},
)


def as_lines(path: Path, rows: Iterable[object]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_turns_of_any_dialogue_are_ranked_for_each_question(here: Installation, tmp_path: Path):
    turns = as_lines(tmp_path / "turns.jsonl", TURNS)
    asked = (
        '{"id": "q", "query": "Where is the office?"}\n{"id": "r", "query": "Who painted it?"}\n'
    )
    ended = here.agent("memory", "rank", turns, "-", "--limit", "2", given=asked)
    assert ended.code == 0, ended.notes
    first, second = map(json.loads, ended.out.splitlines())
    assert [hit["id"] for hit in first["hits"]] == ["2", "1"]
    assert first["hits"][0]["near"] == ["offic"]
    assert not first["low"]
    assert second["low"]
    broken = as_lines(tmp_path / "broken.jsonl", [["no object"]])
    refused = here.agent("memory", "rank", broken, "-", given=asked)
    assert refused.code == 1
    assert "line 1" in refused.notes


def test_a_person_sees_and_forgets_her_own(here: Installation):
    assert here.agent("memory", "list").code == 0
    gone = here.agent("memory", "forget", "mem_none")
    assert gone.code == 1
    assert "There is no such memory." in gone.notes
    assert here.agent("memory", "why", "sesn_none").code == 1
    assert here.agent("memory", "export").out == ""
    assert here.agent("memory", "search", "tea", "--at", "2026-01-31").code == 0
    wrong = here.agent("memory", "search", "tea", "--at", "then")
    assert (wrong.code, "no time" in wrong.notes) == (1, True)
