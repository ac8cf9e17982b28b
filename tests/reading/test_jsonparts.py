"""What reading a JSON text costs is known before it is read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from harness.modelfaults import MOST_TOLD, faults_of
from reading.foreignjson import PARTS, TooManyParts, read_json
from reading.jsonparts import Parts, has_more_than


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ([b'{"a": [1, 2]}'], 4),
        ([b'{"a,[{:": "b,\\",:"}'], 2),
        ([b'{"a":"', b",,,", b'\\"', b",,", b'","b":1}'], 4),
        ([b'{"a":"\\', b'",,,","b":1}'], 4),
        ([b'{"a":"\\\\', b'","b":[]}'], 5),
        ([b': "\n', b"data: [1,1]\n\n"], 7),
        ([b': "\\', b"\ndata: [1,1]\n\n"], 7),
        ([b': "\r', b"data: [1,1]\r\r"], 7),
        ([b'"' * 999 + b"\n[[["], 4),
    ],
)
def test_parts_are_counted_outside_of_texts_wherever_the_pieces_end(pieces, seen):
    parts = Parts()
    for piece in pieces:
        parts.take(piece)
    assert parts.seen == seen
    whole = Parts()
    whole.take(b"".join(pieces))
    assert whole.seen == seen


@given(
    st.recursive(
        st.one_of(st.text(), st.integers(), st.booleans()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=30,
    ),
    st.integers(1, 7),
)
def test_no_text_hides_what_stands_outside_of_it(value, length):
    def parts_of(value: object) -> int:
        if isinstance(value, list):
            return 1 + max(0, len(value) - 1) + sum(map(parts_of, value))
        if isinstance(value, dict):
            return 1 + max(0, 2 * len(value) - 1) + sum(map(parts_of, value.values()))
        return 0

    text = json.dumps(value, separators=(",", ":")).encode()
    parts = Parts()
    for start in range(0, len(text), length):
        parts.take(text[start : start + length])
    assert parts.seen == parts_of(value)


def test_counting_takes_the_time_of_the_length():
    piece = b'"\\' * 500_000 + b"\n" * 100_000
    began = time.process_time()
    has_more_than(len(piece) - 1, piece)
    Parts().take(piece)
    assert time.process_time() - began < 10


def test_a_json_of_too_many_values_is_not_read_and_a_long_text_is():
    text = json.dumps(["x,[{:" * 400_000])
    assert read_json(text, limit=len(text)) == ["x,[{:" * 400_000]
    many = f"[{'0,' * PARTS}0]"
    with pytest.raises(TooManyParts):
        read_json(many, limit=len(many))
    with pytest.raises(TooManyParts):
        read_json(many.encode(), limit=len(many))
    fewer = f"[{'0,' * 1_000}0]"
    assert len(read_json(fewer)) == 1_001


class Small(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int = 0


def test_past_so_many_faults_nobody_writes_them_all_out():
    def told(names: int) -> str:
        data = {f"k{number}": 1 for number in range(names)}
        with pytest.raises(ValidationError) as problem:
            Small.model_validate(data)
        return faults_of(problem.value, Small, data)[0].rule

    assert told(MOST_TOLD) == "There is no such field here."
    assert "2,001 places" in told(MOST_TOLD + 1)
