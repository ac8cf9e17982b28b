"""Why a turn ended is told in the reader's language, whatever language the log keeps it in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation

from chat.presentation.failures import in_words
from harness import errors
from providers import failures

ROOT = Path(__file__).parent.parent.parent
SAID_IN = (
    *(path for path in (ROOT / "providers").glob("*.py") if path.name != "scripted.py"),
    *(ROOT / "harness" / f"{name}.py" for name in ("held", "loop", "reply")),
    *(ROOT / "conversations" / f"{name}.py" for name in ("runner", "lostruns", "kits")),
)
SAYING = {"StopDetails"} | {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.ProviderError)
}


def sentences() -> Iterator[str]:
    """All that these modules say of a failure in words of ours, a 3 for every value."""
    for path in SAID_IN:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in SAYING:
                    told = [each.value for each in node.keywords if each.arg in {"message", "hint"}]
                    yield from _texts(node.args + told)
                case ast.Tuple(elts=[ast.Name(id=name), hint]) if name in SAYING:
                    yield from _texts([hint])


def _texts(expressions: list[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        match expression:
            case ast.Constant(value=str(text)) if text:
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(
                    str(each.value) if isinstance(each, ast.Constant) else "3" for each in parts
                )
            case ast.BoolOp(values=values):
                yield from _texts(values)


@pytest.mark.parametrize("language", ["de", "ar"])
def test_no_failure_in_words_of_ours_is_left_in_english(language: str):
    said = sorted(set(sentences()))
    assert len(said) > 40
    with translation.override(language):
        assert [each for each in said if in_words(each) == each] == []


@pytest.mark.parametrize("language", ["de", "ar"])
def test_what_a_service_answers_is_told_without_its_words_in_the_readers_language(language: str):
    for status in (400, 401, 402, 404, 413, 429, 500, 504):
        report = failures.Report("credit balance" if status == 402 else "no model", status=status)
        ours = failures.without_words(failures.failure_of(report, model="m"))
        with translation.override(language):
            told = in_words(ours.message)
        assert told != ours.message
        assert f"HTTP {status}" in told


def test_a_failure_is_said_in_english_as_it_is_kept():
    for each in sentences():
        assert in_words(each) == each


def test_what_a_service_says_of_itself_stays_as_it_said_it():
    with translation.override("de"):
        assert (
            in_words("Number of requests exceeded. Slow down")
            == "Number of requests exceeded. Slow down"
        )
