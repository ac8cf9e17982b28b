"""File name patterns mean what people and models expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Invalid
from tools_app.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/in/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("**/test_*.py", "tests/test_a.py", True),
        ("src/**", "src/a/b.txt", True),
        ("src/", "src/a/b.txt", True),
        ("src/**", "src", False),
        ("**", "a/b", True),
        ("**/**/a", "a", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("{src,lib}/**/*.{c,h}", "lib/x/y.h", True),
        ("a?.txt", "ab.txt", True),
        ("a?.txt", "a/.txt", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("a.txt", "A.txt", False),
        ("a+(b)|c.txt", "a+(b)|c.txt", True),
        ("./a.txt", "a.txt", True),
        ("a{b.txt", "a{b.txt", True),
    ],
)
def test_a_pattern_fits_what_it_says(pattern, path, fits):
    assert Glob(pattern).matches(path) is fits


@pytest.mark.parametrize("pattern", ["../*.py", "/etc/*", "a/../../b", "{a,..}/b"])
def test_a_pattern_that_leads_outside_is_refused(pattern):
    with pytest.raises(Invalid):
        Glob(pattern)


def test_braces_that_multiply_without_end_are_refused():
    assert Glob("{a,b}" * 6).matches("ababab")
    with pytest.raises(Invalid):
        Glob("{a,b}" * 7)


def test_a_pattern_of_many_stars_is_matched_in_bounded_time():
    """With backtracking this would not end in the lifetime of the test."""
    assert not Glob("*a" * 60 + "b").matches("a" * 250)
    assert not Glob("/".join(["**", "a"] * 16 + ["b"])).matches("/".join(["a"] * 32))


@given(st.text(alphabet="ab*?[]{},!/.", max_size=20), st.text(alphabet="ab/.", max_size=12))
def test_no_pattern_breaks_the_matcher(pattern, path):
    try:
        glob = Glob(pattern)
    except Invalid:
        return
    assert glob.matches(path) in {True, False}
