"""Globs of path rules mean what they did as expressions, and take no longer for being tangled."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.patterns import When
from reading.commandmatching import Match
from reading.pathglobs import LONGEST_PATH, fits
from tests.hostile import PATHS


def as_expression(glob: str, *, loose: bool) -> re.Pattern[str]:
    found = ""
    for part in re.findall(r"\*\*/|/\*\*\Z|\*\*|\*|\?|[\s\S]", glob):
        if part == "/**" and not loose:
            found += "/.*"
        else:
            ours = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
            found += ours.get(part, re.escape(part))
    return re.compile(found, re.DOTALL)


@given(
    st.lists(st.sampled_from(["**/", "**", "*", "?", "/", "a", "b", "/**"]), max_size=7),
    st.text("ab/", max_size=12),
    st.booleans(),
)
def test_a_glob_means_what_the_same_expression_means(parts, path, loose):
    glob = "".join(parts)
    wanted = as_expression(glob, loose=loose).fullmatch(path) is not None
    assert fits(path, glob, loose=loose) is wanted


@pytest.mark.parametrize("name", PATHS)
def test_no_path_and_rule_take_long_together(name):
    """Unbounded, the first takes half a minute."""
    glob, path = PATHS[name]
    rule = When(argument="path", path=glob)
    began = time.thread_time()
    rule.surely({"path": path})
    rule.at_all({"path": path})
    assert time.thread_time() - began < 1


def test_a_path_that_no_file_system_has_is_never_allowed_and_always_asked_about():
    rule = When(argument="path", path="src/**")
    for path in ("src/" + "a" * LONGEST_PATH, "src/" + "\ufdfa" * (LONGEST_PATH // 4)):
        assert not rule.surely({"path": path})
        assert rule.at_all({"path": path}) is not Match.NO
