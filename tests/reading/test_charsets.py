"""Foreign bytes are decoded by the character sets that take linear time, and by no other."""

from __future__ import annotations

import codecs
from email.message import Message

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reading.charsets import as_text, codec_of, plain_type, strictly

ODD = (
    *(
        "punycode",
        "PunyCode",
        "puny-code",
        "idna",
        "unicode_escape",
        "raw-unicode-escape",
        "utf-7",
        "U7",
    ),
    *(
        "bz2",
        "zlib",
        "hex",
        "base64",
        "uu",
        "quopri",
        "rot13",
        "undefined",
        "charmap",
        "mbcs",
        "oem",
    ),
    *(
        "",
        " ",
        ".",
        "..aliases",
        "aliases",
        "nonsense",
        "x" * 10_000,
        "ütf-8",
        "__init__",
    ),
)


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_character_set_of_texts_is_read_as_utf_8(name):
    assert codec_of(name) == ""
    assert strictly(b"a", name) is None
    assert as_text(b"M\xc3\xbcnchen-3ya\xff", name) == "München-3ya\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *[
            ("utf-8", b"\xc3\xb6"),
            ("UTF8", b"\xc3\xb6"),
            ("utf_8", b"\xc3\xb6"),
            (" utf-8 ", b"\xc3\xb6"),
        ],
        *[("ISO-8859-1", b"\xf6"), ("latin1", b"\xf6"), ("iso8859-15", b"\xf6"), ("l1", b"\xf6")],
        *[("windows-1252", b"\xf6"), ("cp437", b"\x94"), ("macintosh", b"\x9a")],
        *[("utf-16", b"\xf6\0"), ("UTF-16BE", b"\0\xf6"), ("utf-32-le", b"\xf6\0\0\0")],
    ],
)
def test_a_character_set_has_all_of_its_names(name, data):
    assert strictly(data, name) == as_text(data, name) == "ö"


@pytest.mark.parametrize(
    "name",
    ["Shift_JIS", "EUC-JP", "iso-2022-jp", "gb2312", "GB18030", "Big5", "euc-kr"],
)
def test_characters_of_the_east_are_read(name):
    text = "中文"
    assert strictly(text.encode(name), name) == text


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_what_has_no_mark_is_read_as_such_texts_mostly_are(name):
    assert strictly("ö".encode(f"{name}-le"), name) == "ö"
    assert strictly("ö".encode(name), name) == "ö"
    assert as_text(b"\0", name) == "\N{REPLACEMENT CHARACTER}"


def test_what_is_not_written_in_it_is_none_or_replaced():
    assert strictly(b"a\xff", "utf-8") is None
    assert as_text(b"a\xff", "ascii") == "a\N{REPLACEMENT CHARACTER}"


@given(
    st.binary(max_size=200),
    st.sampled_from(["utf-8", "utf-16-le", "shift_jis", "iso-2022-jp", "cp1252"]),
)
def test_pieces_make_no_difference(data, name):
    data *= 400
    assert as_text(data, name) == codecs.getincrementaldecoder(name)("replace").decode(
        data, final=True
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("text/plain", "text/plain"),
        ("text/event-stream; x=y", "text/event-stream; x=y"),
        ("text/plain; charset=UTF-8", "text/plain; charset=utf-8"),
        ('text/plain;charset="Latin1"', "text/plain; charset=latin-1"),
        ("text/plain; a=b; CharSet = cp1252 ; c=d", "text/plain; a=b; c=d; charset=cp1252"),
        ("text/plain; charset=utf-16", "text/plain; charset=utf-16-le"),
        ("text/plain; charset=punycode", "text/plain"),
        ("text/plain; charset*=utf-8''punycode", "text/plain"),
        ("text/plain; charset*0=puny; charset*1=code", "text/plain"),
        ("text/plain; charset=utf-8; charset=punycode", "text/plain"),
        ('text/plain; charset="utf\\-7"', "text/plain"),
        ("text/plain; charset", "text/plain"),
        ("text/plain; " + "a=b;" * 20_000, "text/plain"),
        ("x" * 20_000, "x" * 1_000),
    ],
)
def test_a_content_type_names_a_character_set_that_anybody_may_look_up(given, told):
    assert plain_type(given) == told


@example("charset=punycode")
@given(
    st.lists(
        st.sampled_from(
            [
                *["text/plain", ";", "=", '"', " ", "charset", "*", "0", "'", "\\", "(", ")", "a"],
                *[
                    "punycode",
                    "utf-8",
                    "%70",
                    "utf-8''punycode",
                    "charset=punycode",
                    "Charset*=''idna",
                ],
            ]
        ),
        max_size=14,
    ).map("".join)
)
def test_however_it_is_written_python_reads_no_odd_one_out_of_it(content_type):
    message = Message()
    message["content-type"] = plain_type(content_type)
    found = message.get_content_charset()
    assert found is None or found == "" or codec_of(found)
