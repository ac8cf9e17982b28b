"""Whatever runs over texts of strangers is linear by construction, or runs in a process with a deadline."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.expressions import Use, fault_of, fault_of_linear, uses
from tests.architecture.sources import MODULES, ROOT, parsed
from tests.hostile import EXPRESSIONS

IN_A_PROCESS_OF_ITS_OWN = ("tools_app/isolated/", "tools_app/sandbox/inside/")
"""What runs there is ended by a deadline, or is a sandbox's own."""

PUT_TOGETHER = {
    "agentsite/foreignpages.py:_DOORS": "a constant of another module, without repetition",
    "conversations/search.py:_pattern": "escaped words with `|` between them",
    "harness/providers/demo.py:_RULES": "a table of constants, in a stand-in for a model service",
    "harness/schemas.py:compiled": "RE2, and one search of each text",
}
"""Expressions that are not constants, and why no text makes them run away."""

AT_ONE_PLACE = {
    "conversations/rendering/math.py:_WORDS_AFTER_AN_AMOUNT": "in a formula of 2,000 characters",
    "harness/patterns.py:_SCHEME": "at the beginning of an address",
    "net/hostlists.py:_without_port": "on the whole of one entry of an operator's list",
    "tools_app/sandbox/egress.py:_HEADER": "on the whole of one header",
}
"""Expressions that would be quadratic if they were searched for, and where alone they are matched."""

DEAR_LIBRARIES = {
    "difflib": {
        "conversations/parameters.py": "a shortened name among a few",
        "harness/faults.py": "a name among a few",
        "tools_app/diffs.py": "past a number of lines one block is shown",
        "conversations/versiondiff.py": "past the same number all lines are shown",
    },
    "pygments": {"tools_app/textfiles.py": "asks for a lexer by a file's name and runs none"},
    "jsonschema": {"harness/schemas.py": "", "harness/schemachecks.py": "pays for every step"},
    "markdown_it": {
        "conversations/rendering/markdownpieces.py": "steps are counted; long texts in a process",
        "conversations/rendering/effort.py": "",
        "conversations/rendering/links.py": "",
        "conversations/rendering/math.py": "",
    },
    "latex2mathml": {"conversations/rendering/math.py": "formulas of bounded length and number"},
    "bs4": {"tools_app/web/pages.py": "its reading of encodings alone"},
    "re2": {"harness/linear.py": ""},
    "yaml": {"tools_app/sandbox/policy.py": "texts of bounded length, few brackets, no aliases"},
    "PIL": {},
    "markdownify": {},
    "pypdf": {},
    "lxml": {},
}
"""Libraries whose time may grow faster than the text, and the modules that use them within bounds."""


def ours() -> list[Use]:
    return [use for use in uses() if not use.place.startswith(IN_A_PROCESS_OF_ITS_OWN)]


def test_every_expression_is_a_constant_that_no_text_makes_run_away():
    constants = [use for use in ours() if use.pattern is not None and not use.linear]
    assert len(constants) > 50
    faults = {
        f"{use.place} (line {use.line})": fault
        for use in {(use.pattern, use.flags): use for use in constants}.values()
        if use.pattern is not None
        and use.place not in AT_ONE_PLACE
        and (fault := fault_of(use.pattern, use.flags))
    }
    assert faults == {}, "bound the repetition, or use harness.linear"


def test_no_text_makes_every_find_of_a_linear_expression_look_to_its_end():
    linear = {use.place: use.pattern for use in ours() if use.linear}
    assert len(linear) > 5
    faults = {
        place: fault
        for place, pattern in linear.items()
        if isinstance(pattern, str) and (fault := fault_of_linear(pattern))
    }
    assert faults == {}, "look for what may go on for ever by itself"


def test_every_expression_that_is_put_together_is_known():
    assert {use.place for use in ours() if use.pattern is None} == set(PUT_TOGETHER)


@pytest.mark.parametrize(
    "pattern",
    [
        *(expression for expression, _text in EXPRESSIONS.values()),
        r"^(\w+\s?)*$",
        r"\s+$",
        r"[a-z0-9_\-]*secret\s*[:=]",
        r"(?i)\b([a-z0-9_\-]*(?:api[_\-]?key|secret|token)[\"']?\s*[:=]\s*)([^\s]{6,})",
        "(?:.*/)?" * 3 + "x",
        r"<!--.*?-->",
        r"\[[^\]]*\]\([^)]*\)",
        rb"(a|b|ab)*c",
    ],
)
def test_the_judge_finds_what_runs_away(pattern):
    assert fault_of(pattern)


@pytest.mark.parametrize("pattern", [r"[a-z]{1,64}", r"\A(?:[a-z]+\.)*[a-z]+\Z", r"`{3,}", "a|b"])
def test_the_judge_lets_harmless_expressions_be(pattern):
    assert fault_of(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)\b(?:ags_[a-z0-9]{20,}|AKIA[0-9A-Z]{16}|eyJ[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,})",
        r"(?s)<!--.*?-->|<p>",
        r"\[[^\]]*\]\([^)]*\)|\[",
        r"(?:a*b)?",
    ],
)
def test_the_judge_finds_where_every_find_looks_to_the_end(pattern):
    assert fault_of_linear(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"<!--.*?-->", r"secret\s*[:=]|s", r"\[[^\]]*\]\([^)]*\)"]
)
def test_the_judge_lets_harmless_expressions_for_re2_be(pattern):
    assert fault_of_linear(pattern) == ""


def _imports() -> Iterator[tuple[str, str]]:
    for path in MODULES:
        name = path.as_posix()
        if name.startswith(IN_A_PROCESS_OF_ITS_OWN):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                yield from ((name, one.name.partition(".")[0]) for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield name, node.module.partition(".")[0]


def test_libraries_whose_time_may_run_away_are_used_where_it_is_bounded():
    found = {(library, name) for name, library in _imports() if library in DEAR_LIBRARIES}
    assert found == {
        (library, name) for library, places in DEAR_LIBRARIES.items() for name in places
    }
    assert (ROOT / "tools_app/isolated/webpage.py").exists()
