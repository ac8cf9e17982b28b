"""Hosts and texts of strangers are normalized in time that grows with their length alone."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from reading.hostnames import ascii_name, is_web_address, joined_address, split_address
from reading.normalizing import BEGIN_WITH_A_MARK, MARKS_IN_A_ROW, normalized
from tests.heartbeat import seconds_of_work
from tests.hostile import marks

HOSTS = {
    "marks": marks(30_000),
    "letters": "".join(chr(0x4E00 + (place * 7919) % 20_000) for place in range(30_000)),
    "half-width sounds": ("\uff9e" + "\u0315" * 20) * 1_500,
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize(
    "written",
    [
        "http://{}/",
        "//{}",
        "http://a@{}",
        "http://{}:80",
        " http://{}",
        "http:/\t/{}",
        "http://[{}",
    ],
)
def test_an_address_with_an_endless_host_is_refused_at_once(written, host):
    address = written.format(host)

    def split() -> None:
        with pytest.raises(ValueError, match="too long"):
            split_address(address)
        with pytest.raises(ValueError, match="too long"):
            joined_address("http://a.example/", address)

    assert seconds_of_work(split) < 0.05


@pytest.mark.parametrize(
    "address",
    ["http://[", "http://a]", "//[::1", "http://\u2100.example/", "http://a:99999", "http://a:x/"],
)
def test_what_is_no_address_is_refused_when_it_is_split(address):
    with pytest.raises(ValueError):
        split_address(address)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize(
    "written", ["http://a.example/{}", "a/{}", "/{}//{}", "http://a?//{}", "{}"]
)
def test_only_hosts_are_judged_by_their_length(written, host):
    address = written.replace("{}", host)

    assert seconds_of_work(lambda: split_address(address)) < 0.05
    assert split_address(address).geturl() == address


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_an_endless_name_is_refused_at_once(host):
    def name() -> None:
        with pytest.raises(ValueError, match="too long"):
            ascii_name(host)

    assert seconds_of_work(name) < 0.05


def test_names_are_written_in_ascii():
    assert ascii_name("bücher.example.") == "xn--bcher-kva.example."
    assert ascii_name("a." * 126 + "a.") == "a." * 126 + "a."


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", HOSTS.values(), ids=HOSTS)
def test_a_text_is_normalized_at_once_or_refused(form, text):
    def normalize() -> None:
        try:
            assert normalized(form, text) == text
        except ValueError:
            assert text is not HOSTS["letters"]

    assert seconds_of_work(normalize) < 0.05


def test_as_many_marks_as_a_language_has_are_put_in_order():
    text = marks(MARKS_IN_A_ROW + 1)

    assert normalized("NFC", text) == unicodedata.normalize("NFC", text) != text
    with pytest.raises(ValueError, match="in a row"):
        normalized("NFC", marks(MARKS_IN_A_ROW + 2))


def test_every_character_that_becomes_a_mark_is_known():
    letters = (chr(code) for code in range(sys.maxunicode + 1))
    assert {
        sign
        for sign in letters
        if not unicodedata.combining(sign)
        and unicodedata.combining(unicodedata.normalize("NFKD", sign)[0])
    } == BEGIN_WITH_A_MARK


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("https://example.org", True),
        ("http://example.org:80/a@b?c=d@e", True),
        ("https://alice@example.org", False),
        ("https://alice:secret@example.org", False),
        ("https://:secret@example.org", False),
        ("https://@example.org", False),
        ("ftp://example.org", False),
        ("https://", False),
        ("https://[", False),
        ("https://example.org:x", False),
    ],
)
def test_an_address_of_the_web_names_nobody_who_signs_in_there(text, is_one):
    assert is_web_address(text) is is_one
