"""Numbers of strangers: digits and nothing else, up to what the reader can use."""

from __future__ import annotations

import pytest

from reading.digits import LARGEST, amount_of, digits_of, is_digits, number_of


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), ("007", 7), (str(LARGEST), LARGEST)]
)
def test_digits_are_a_number(text, number):
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1\n",
        "-1",
        "+1",
        "1.0",
        "1_0",
        "0x1",
        "²",
        "٢",
        "۷",
        "１",
        None,
        7,
        b"7",
        str(LARGEST + 1),
    ],
)
def test_nothing_else_is_one(text):
    assert number_of(text) is None


@pytest.mark.parametrize("text", ["9" * 5_000, "0" * 5_000])
def test_more_digits_than_a_number_has_are_none_and_no_error(text):
    assert number_of(text) is None
    assert is_digits(text)


def test_the_largest_that_may_be_is_and_the_next_is_not():
    assert (number_of("12", most=12), number_of("13", most=12)) == (12, None)
    assert number_of("0012", most=99) is None


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        ("2.", 2.0),
        ("-3e2", -300.0),
        (7, 7.0),
        (0.5, 0.5),
        (10**300, 1e300),
    ],
)
def test_an_amount_is_read_as_programs_write_it(given, amount):
    assert amount_of(given) == amount


@pytest.mark.parametrize(
    "given",
    [
        "",
        " 1",
        "1_0",
        "٣",
        ".5",
        "nan",
        "inf",
        "-Infinity",
        "1e999",
        "9" * 5_000,
        10**400,
        float("nan"),
        float("-inf"),
        True,
        None,
        b"1",
        [],
    ],
)
def test_what_is_no_finite_amount_is_none_and_no_error(given):
    assert amount_of(given) is None


@pytest.mark.parametrize(
    ("text", "base", "number"),
    [
        (b"001f", 16, 31),
        (b"FF", 16, 255),
        (b"755", 8, 493),
        (b"", 16, None),
        (b"+01f", 16, None),
        (b"0x1f", 16, None),
        (b"1_0f", 16, None),
        (b" 01f", 16, None),
        (b"0001f", 16, None),
        (b"8", 8, None),
    ],
)
def test_digits_of_another_base_are_these_and_nothing_else(text, base, number):
    assert digits_of(text, base, longest=4) == number
