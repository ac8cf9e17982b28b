"""Numbers that others write are read in one place, where what `int` makes of odd ones is none."""

from __future__ import annotations

import ast

from .sources import PRODUCT, parsed

ASKING = frozenset({"isdigit", "isdecimal", "isnumeric"})
PLACE = "reading/digits.py"
ALONE = ("sandbox/inside/", "skills_app/shipped/")
"""Scripts that have nothing of ours beside them where they run."""


def test_whether_a_text_is_a_number_is_asked_in_one_place():
    asking = {
        path.as_posix()
        for path in PRODUCT
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr in ASKING
        if not path.as_posix().startswith(ALONE)
    }
    assert asking == {PLACE}, "use reading.digits"
