"""What translations say fits where the English stood: the same places to fill, and no markup of their own.

That every text has one is part of `make check` (`tests/catalogues.py`), which needs gettext.
"""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.catalogues import LANGUAGES, NO_WORDS_OF_OURS, ROOT

PLACES = re.compile(r"%\([^)]*\)[sdrfi]|%%|%[sdrf]|\{\w+\}|</?[a-z][^<>]*>|&[a-z#0-9]+;|[<>\"]")
"""What is filled in or read as markup. A template puts a translation into an attribute as it stands."""


def translations(language: str) -> list[tuple[list[str], list[str]]]:
    """What the compiled catalogue holds: the English, with its plural, and the forms in the language.

    The format is gettext's, https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html.
    """
    raw = (ROOT / "locale" / language / "LC_MESSAGES" / "django.mo").read_bytes()
    magic, _version, count, english, said = struct.unpack_from("<5I", raw)
    assert magic == 0x950412DE

    def text(table: int, place: int) -> list[str]:
        length, start = struct.unpack_from("<2I", raw, table + 8 * place)
        return raw[start : start + length].decode().rpartition("\x04")[2].split("\0")

    pairs = [(text(english, place), text(said, place)) for place in range(count)]
    return [(told, forms) for told, forms in pairs if told != [""]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_the_places_of_its_english(language):
    wrong = []
    for english, forms in translations(language):
        known = sorted(PLACES.findall(english[-1]))
        # The form for many fills in all; the form for one may say "one" instead.
        if sorted(PLACES.findall(forms[-1])) != known:
            wrong.append(f"{english[-1]!r} became {forms[-1]!r}")
        wrong += [
            f"{english!r} became {form!r}"
            for form in forms
            if not {*PLACES.findall(form)} <= {*PLACES.findall(" ".join(english))}
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_is_said_in_the_language_itself(language):
    every = list(translations(language))
    same = [english for english, forms in every if english[0] == forms[0]]
    assert len(every) > 5_000
    assert len(same) < len(every) / 20


def test_each_language_that_is_offered_has_its_catalogue():
    assert {code for code, _name in settings.LANGUAGES} == {"en", *LANGUAGES}


SAYING = ("_", "gettext", "ngettext", "pgettext")
IN_AN_F_STRING = re.compile(rf"\{{[^{{}}\n]*\b(?:{'|'.join(SAYING)})\(")


def said_in_f_strings() -> Iterator[tuple[str, str]]:
    """Each text that code has translated within an f-string, and where: xgettext looks into none."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] in NO_WORDS_OF_OURS or place.parts[0].startswith("."):
            continue
        text = path.read_text(encoding="utf-8")
        if not IN_AN_F_STRING.search(text):
            continue
        strings = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)]
        for node in (inner for string in strings for inner in ast.walk(string)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                words = node.args[1 if node.func.id == "pgettext" else 0 :]
                if node.func.id in SAYING and isinstance(words[0], ast.Constant):
                    yield str(words[0].value), f"{place}:{node.lineno}"


def test_what_an_f_string_has_translated_is_known_from_elsewhere():
    for language in LANGUAGES:
        known = {english[0] for english, _forms in translations(language)}
        missing = [
            f"{place}: {words}" for words, place in said_in_f_strings() if words not in known
        ]
        assert not missing, "\n".join(missing)
