"""What nobody sees is found and shown; what scripts and pictures need is let be."""

from __future__ import annotations

import pytest

from reading.unseen import first_hidden, first_unseen, visible

TAGGED = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
SELECTED = "".join(chr(0xE0100 + ord(sign)) for sign in "obey")
BITS = "\ufe0e\ufe0f\ufe0f\ufe0e"


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u202e",
        "\u2066",
        TAGGED,
        SELECTED,
        BITS,
        "\u3164",
        "\u2800",
        "\ue000",
        "\r",
        "\x1b",
    ],
)
def test_a_sign_that_carries_a_text_nobody_sees_is_written_as_an_escape(hidden):
    text = f"Be kind.{hidden} Thanks."
    assert first_hidden(text)
    assert first_unseen(text) in visible(text)
    assert set(visible(text)) - {"\ufe0e"} <= {chr(point) for point in range(0x20, 0x7F)}


@pytest.mark.parametrize(
    "text",
    [
        "\N{HEAVY BLACK HEART}\ufe0f\u200d\N{FIRE}",
        "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u05e9\u05dc\u05d5\u05dd\u200f!",
        "one\n\ttwo",
    ],
)
def test_what_scripts_and_pictures_need_is_no_hidden_text(text):
    assert first_hidden(text) == ""


def test_a_long_text_takes_the_time_of_its_length():
    text = "\u00e9\ufe0f\u200d" * 300_000
    assert first_hidden(text) == ""
    assert len(visible(text)) > len(text)
