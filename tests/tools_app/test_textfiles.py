"""Text of any encoding is read, changed in one place and written back as it was."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools_app.textfiles import decode, find_first, language_of, lines_of, replace_at


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("naïve “text”".encode(), "utf-8"),
        (codecs.BOM_UTF8 + "naïve “text”".encode(), "utf-8"),
        (codecs.BOM_UTF16_LE + "naïve “text”".encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + "naïve “text”".encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + "naïve “text”".encode("utf-32-le"), "utf-32-le"),
        ("naïve “text”".encode("cp1252"), "cp1252"),
    ],
)
def test_an_encoding_is_recognised_and_kept(data, encoding):
    found = decode(data)
    assert found is not None
    assert found.text == "naïve “text”"
    assert found.encoding == encoding
    assert found.encode(found.text) == data


@pytest.mark.parametrize(
    "data", [b"a\0b", b"\xff\xd8\xff\xe0\0\x10JFIF", b"\x1f\x8b\x08\xff\xfe", b"\x81\x8d\x8f"]
)
def test_what_is_no_text_is_binary(data):
    assert decode(data) is None


def test_an_empty_file_is_text():
    found = decode(b"")
    assert found is not None
    assert found.text == ""


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_every_utf8_text_without_nul_comes_back_byte_for_byte(text):
    data = text.encode()
    found = decode(data)
    assert found is not None
    assert found.encode(found.text) == data


@given(st.binary(max_size=200))
def test_whatever_is_taken_for_text_comes_back_byte_for_byte(data):
    found = decode(data)
    assert found is None or found.encode(found.text) == data


def test_lines_are_counted_as_an_editor_does():
    assert lines_of("") == []
    assert lines_of("a\nb") == lines_of("a\nb\n") == lines_of("a\r\nb\r\n") == ["a", "b"]
    assert lines_of("a\n\n") == ["a", ""]
    assert lines_of("a\u2028b\x0bc\n") == ["a\u2028b\x0bc"]


def test_overlapping_places_are_found():
    assert find_first("aaa", "aa") == [0, 1]


def test_no_more_places_are_looked_for_than_tell_whether_it_is_one():
    assert find_first("a" * 10_000, "a" * 5_000) == [0, 1]
    assert find_first("ab" * 50, "ab", most=3) == [0, 2, 4]


def test_line_ends_of_a_file_are_kept_where_it_is_edited():
    text = "one\r\ntwo\r\nthree\r\n"
    (at,) = find_first(text, "two\nthree")
    assert replace_at(text, at, "two\nthree", "2\n2½\n3") == "one\r\n2\r\n2½\r\n3\r\n"
    mixed = "a\r\nb\nc\n"
    (at,) = find_first(mixed, "b\nc")
    assert replace_at(mixed, at, "b\nc", "x\ny") == "a\r\nx\ny\n"


PARTS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "$", "\\1", "&"]), max_size=10).map(
    "".join
)


@given(before=PARTS, old=PARTS.filter(bool), after=PARTS, new=PARTS)
def test_a_replacement_changes_nothing_but_its_place(before, old, after, new):
    text = before + old + after
    places = find_first(text, old)
    assert places
    if len(places) == 1 and "\r" not in text + new:
        assert replace_at(text, places[0], old, new) == before + new + after
    if len(places) == 1:
        changed = replace_at(text, places[0], old, new).replace("\r\n", "\n")
        plain = text.replace("\r\n", "\n")
        end = places[0] + len(old.replace("\r\n", "\n"))
        expected = plain[: places[0]] + new.replace("\r\n", "\n") + plain[end:]
        assert changed == expected.replace("\r\n", "\n")


def test_a_language_is_known_by_the_name_of_its_file():
    assert language_of("src/deep/app.py") == "python"
    assert language_of("strange.zzz") == "text"
