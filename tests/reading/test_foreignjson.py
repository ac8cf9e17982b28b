"""What strangers send as JSON is read whole or refused with a reason; nothing in between is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.wiretext import parsed_arguments, parsed_event, whole_arguments
from reading.foreignjson import (
    NESTING,
    GivenTwice,
    TooDeep,
    TooLong,
    Unreadable,
    kept_json,
    read_json,
    read_mended_json,
    read_raw_json,
    require_shallow,
)

TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.sampled_from(
            ["\0", "\\", "\\u0000", "u0000", '"', "\\\\u0000", "\N{REPLACEMENT CHARACTER}"]
        ),
    ),
    max_size=8,
).map("".join)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)


def expected(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\N{REPLACEMENT CHARACTER}" if char == "\0" else char for char in value)
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, dict):
        return {expected(key): expected(item) for key, item in value.items()}
    return value


@given(VALUES)
def test_only_a_real_nul_is_replaced_and_every_other_text_stays(value):
    assert kept_json(value) == expected(value)


@given(VALUES)
def test_what_json_writes_is_read_back(value):
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_six_characters_that_look_like_a_nul_are_text():
    assert kept_json({"command": r"printf '\u0000'"}) == {"command": r"printf '\u0000'"}


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_nesting_is_taken_up_to_the_limit_and_no_further():
    assert read_json(nested(NESTING))
    for levels in (NESTING + 1, 500, 2_000, 100_000):
        with pytest.raises(TooDeep):
            read_json(nested(levels))
    with pytest.raises(TooDeep):
        read_json('{"a":' * 100_000 + "1" + "}" * 100_000)


def test_brackets_side_by_side_or_in_texts_are_no_nesting():
    assert len(read_json(f"[{','.join(['[]'] * 500)}]")) == 500
    assert read_json(json.dumps("[" * 500)) == "[" * 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "{",
        "NaN",
        "[Infinity]",
        "1e999",
        "9" * 5_000,
        '"\\ud800"',
        b"\xff",
        "\ud800",
    ],
)
def test_what_is_no_json_that_can_be_kept_is_refused(text):
    with pytest.raises(Unreadable):
        read_json(text)


@pytest.mark.parametrize("read", [read_json, read_mended_json, read_raw_json])
@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, nested(NESTING + 1), '"a', "[1]" + " " * 1_000_000],
)
def test_what_is_no_json_is_refused_however_it_is_read(read, text):
    with pytest.raises(Unreadable):
        read(text)


@pytest.mark.parametrize("read", [read_json, read_raw_json])
@pytest.mark.parametrize("text", ["9" * 5_000, '"\n"', '"\0"', "\ufeff1"])
def test_a_sign_at_the_wrong_place_is_refused_where_nothing_is_mended(read, text):
    with pytest.raises(Unreadable):
        read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"a\ud800b\u0000"', "a\ufffdb\ufffd"),
        (r'{"\udfff": ["\ud83d\ude00"]}', {"\ufffd": ["\N{GRINNING FACE}"]}),
        ('"a\ud800"', "a\ufffd"),
        (b'"\xff"', "\ufffd"),
        ("[NaN, -Infinity, 1e999, 1e5]", [None, None, None, 1e5]),
        (r'"\\ud800"', r"\ud800"),
        ('{"a": "one\ntwo\tthree\x1b"}', {"a": "one\ntwo\tthree\x1b"}),
        ('"a\0b"', "a\ufffdb"),
        ("\ufeff[1]", [1]),
        (b"\xef\xbb\xbf[1]", [1]),
        (f"[{'9' * 5_000}, 1]", [None, 1]),
    ],
)
def test_what_is_not_to_be_lost_over_a_sign_is_mended(text, value):
    assert read_mended_json(text) == value


def test_a_text_of_several_lines_hides_no_values_from_who_counts_them():
    text = '["a\nb", [' + "1," * 300_000 + "1]]"
    with pytest.raises(Unreadable):
        read_mended_json(text)


@pytest.mark.parametrize("read", [read_json, read_raw_json])
def test_a_number_of_thousands_of_digits_is_refused_in_words_of_ours(read):
    with pytest.raises(Unreadable) as refused:
        read(f"[{'1' * 5_000}]")
    assert str(refused.value) == "a number has more digits than anybody reads"


def test_pieces_that_are_put_together_later_keep_their_halves():
    assert read_raw_json(r'["\ud83d", "\ude00"]') == ["\ud83d", "\ude00"]


def test_a_key_that_is_given_twice_is_found_where_it_matters():
    assert read_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(GivenTwice) as refused:
        read_json('[{"b": {"a": 1, "a": 2}}]', once=True)
    assert refused.value.key == "a"
    with pytest.raises(Unreadable):
        read_json(r'{"a": "\ud800"}', once=True)


def test_the_length_is_taken_up_to_the_limit_and_no_further():
    assert read_json("[1]", limit=3) == [1]
    with pytest.raises(TooLong):
        read_json("[12]", limit=3)


def test_a_value_that_holds_itself_is_too_deep():
    value: list[Any] = []
    value.append(value)
    for look in (require_shallow, kept_json):
        with pytest.raises(TooDeep):
            look(value)


@pytest.mark.parametrize(
    "value", [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}, {"a": b"x"}]
)
def test_a_value_that_is_no_json_is_refused(value):
    with pytest.raises(Unreadable):
        kept_json(value)


# --- a model's arguments --------------------------------------------------------------------------


def test_deep_arguments_of_a_model_are_told_to_it_and_break_nothing():
    raw = '{"a":' + nested(100_000) + "}"
    assert parsed_arguments(raw) == ({}, raw)
    deep = json.loads('{"a":' + nested(500) + "}")
    arguments, invalid = whole_arguments(deep)
    assert arguments == {}
    assert "nested" in invalid


def test_a_models_nul_is_replaced_before_anything_runs_and_its_spelling_is_not():
    assert parsed_arguments('{"a": "x\\u0000y"}') == ({"a": "x\N{REPLACEMENT CHARACTER}y"}, "")
    assert parsed_arguments('{"a": "x\\\\u0000y"}') == ({"a": "x\\u0000y"}, "")


def test_a_deep_event_of_a_stream_is_no_json():
    with pytest.raises(json.JSONDecodeError):
        parsed_event("[" * 100_000)
