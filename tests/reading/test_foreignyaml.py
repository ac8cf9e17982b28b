"""YAML of others: whatever it is, it is read or refused, and what is read can be stored."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.foreignyaml import read_yaml
from tests.heartbeat import seconds_of_work
from tests.properties import examples

ODD = (
    'a: !!int ""',
    'a: !!float ""',
    "a: !!bool neither",
    "a: !!timestamp yesterday",
    f"a: !!float {'1:' * 5000}1.5",
    "a: !!int 1:30",
    "a: .nan",
    "a: -.inf",
    "a: 1.0e+999",
    "? .nan\n: 1",
    "a: 2001-99-99",
    "a: 2001-01-01T00:00:00+99:99",
)


@pytest.mark.parametrize("text", ODD)
def test_a_value_that_is_none_of_its_kind_is_refused_with_its_line(text):
    with pytest.raises(yaml.MarkedYAMLError) as refusal:
        read_yaml(f"b: 1\n{text}")
    assert refusal.value.problem_mark is None or refusal.value.problem_mark.line == 1


@pytest.mark.parametrize("number", [f"0x{'f' * 15_000}", f"0b{'1' * 9_000}"])
def test_a_number_that_nobody_could_write_out_again_is_refused(number):
    with pytest.raises(yaml.YAMLError, match="too large"):
        read_yaml(f"a: {number}")


@pytest.mark.parametrize("text", ["12:30", "1:59:59", "190:20:30.15", "-1:30"])
def test_a_time_of_day_is_a_text(text):
    assert read_yaml(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("kind", ["", "!!int ", "!!float "])
@pytest.mark.parametrize("end", ["1", "1.5"])
def test_the_longest_number_to_the_base_of_60_is_read_as_quickly_as_any_text(kind, end):
    def read(text: str) -> float:
        def look() -> None:
            with suppress(yaml.YAMLError):
                read_yaml(text)

        return seconds_of_work(look)

    assert read(f"a: {kind}{'1:' * 90_000}{end}") < 3 * read(f"a: {'x' * 180_000}") + 0.1


def test_what_is_nested_too_deep_is_refused():
    with pytest.raises(yaml.YAMLError, match="too deep"):
        read_yaml("- " * 9_000)


def test_a_sign_that_is_escaped_in_two_halves_is_one_and_a_half_alone_is_none():
    assert read_yaml(r'"\ud83d\ude00"') == "\N{GRINNING FACE}"
    assert read_yaml(r'"a\ud800b\0"') == "a\ufffdb\ufffd"


PIECES = [*"ab01:.-+!{}[]?,'\"\\ \n~#|>%", "!!int ", "!!set ", "\\ud8", "!!float ", "!!omap "]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        found = read_yaml(text)
    except yaml.YAMLError:
        return
    json.dumps(found, default=str, skipkeys=True).encode()
