"""Code keeps every character, is coloured by classes only, and never costs the text."""

from __future__ import annotations

import re
from html import escape, unescape

import pytest
from django.core.cache import cache
from pygments.lexers import get_lexer_by_name

from rendering import code
from rendering.code import (
    COLOURED_CHARACTERS,
    LANGUAGES,
    Blocks,
    highlighted,
    language_named,
    language_of,
)
from rendering.markdown import to_html
from tests.hostile import CODE, SLOW_TO_COLOUR
from tests.rendering.test_rendering_markdown import faults_of


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


SAMPLE = '\n\n  def f(x):\r\n\treturn "<b>&amp;" # é\n\n'


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_colouring_keeps_the_text_and_needs_no_inline_style(language: str) -> None:
    html = highlighted(SAMPLE, language)

    assert text_of(html).replace("\r\n", "\n") == SAMPLE.replace("\r\n", "\n")
    assert "style=" not in html


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_on_the_list_is_really_coloured(language: str) -> None:
    assert get_lexer_by_name(language)


@pytest.mark.parametrize(
    ("name", "language"),
    [("py", "python"), ("C++", "cpp"), (" TS ", "typescript"), ("klingon", ""), ("", "")],
)
def test_people_s_names_of_languages_are_understood(name: str, language: str) -> None:
    assert language_named(name) == language


@pytest.mark.parametrize(
    ("path", "language"),
    [("src/a.py", "python"), ("Makefile", "make"), ("x/Dockerfile", "docker"), ("a.H", "c"),
     ("notes", ""), (".env", ""), ("a.unknown", "")],
)  # fmt: skip
def test_a_file_s_language_is_known_by_its_name(path: str, language: str) -> None:
    assert language_of(path) == language


def test_a_long_text_is_shown_uncoloured_and_whole() -> None:
    at_limit = "x = 1\n" * (COLOURED_CHARACTERS // 6)

    assert "<span" in highlighted(at_limit, "python")
    assert highlighted(at_limit + "x", "python") == at_limit + "x"


def test_a_block_names_its_language_and_can_be_copied() -> None:
    html = Blocks().block("x = 1\n", "py")

    assert '<span class="language">py</span>' in html
    assert '<button type="button" class="copy" data-action="copy-code"' in html


def test_a_block_survives_cleaning_unchanged() -> None:
    html = to_html("```py\nx = '<b>'\n```")

    assert 'data-action="copy-code"' in html
    assert '<pre tabindex="0">' in html
    assert text_of(html.split("<code", 1)[1].split(">", 1)[1].split("</code>")[0]) == "x = '<b>'\n"


def test_a_language_s_name_is_only_text() -> None:
    assert faults_of(Blocks().block("x", '"><script>alert(1)</script>')) == []


def test_what_was_too_slow_once_is_not_tried_again_so_that_a_reload_shows_the_same(monkeypatch):
    language, text = CODE[SLOW_TO_COLOUR[0]]
    live = highlighted(text, language)

    asked: list[str] = []
    monkeypatch.setattr(code._colouring, "processes", asked)
    assert highlighted(text, language) == live == escape(text)
    assert asked == []


def test_a_process_that_cannot_be_had_costs_the_colours_of_one_moment_only(monkeypatch):
    cache.clear()
    text = "x = 1\n" * 300
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("tools_app.isolation.sys.executable", "/nowhere/python")
        code._colouring.processes.close()
        assert highlighted(text, "python") == escape(text)
    assert "<span" in highlighted(text, "python")


def test_a_text_whose_code_was_turned_away_is_coloured_the_next_time(monkeypatch):
    cache.clear()
    text = "One:\n```python\nx = 'turned away'\n```\nTwo:\n```python\ny = 2\n```\n"
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("tools_app.isolation.sys.executable", "/nowhere/python")
        code._colouring.processes.close()
        assert "<span" not in text_between_code(to_html(text))
    assert text_between_code(to_html(text)).count("<span") >= 2


def text_between_code(html: str) -> str:
    return "".join(re.findall(r'<code class="highlight">(.*?)</code>', html, re.DOTALL))
