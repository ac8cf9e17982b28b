"""Numbers that others write are read in one place, where what `int` makes of odd ones is none."""

from __future__ import annotations

import ast

from .sources import PRODUCT, nodes_of

ASKING = frozenset({"isdigit", "isdecimal", "isnumeric"})
PLACE = "reading/digits.py"
ALONE = ("sandbox/inside/", "skills_app/shipped/")
"""Scripts that have nothing of ours beside them where they run."""


def test_whether_a_text_is_a_number_is_asked_in_one_place():
    asking = {
        path.as_posix()
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in ASKING
        if not path.as_posix().startswith(ALONE)
    }
    assert asking == {PLACE}, "use reading.digits"


def test_numbers_to_another_base_are_read_in_one_place():
    reading = {
        path.as_posix()
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "int" and len(node.args) == 2
        if not path.as_posix().startswith(ALONE)
    }
    assert reading == {PLACE}, "use reading.digits.digits_of"


def test_no_option_of_a_command_is_read_as_any_number():
    """`int` takes “1_0”, and `float` “nan”, which passes every check of a range."""
    anything = {
        path.as_posix()
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_argument")
        for given in node.keywords
        if given.arg == "type" and ast.unparse(given.value) in {"int", "float"}
        if not path.as_posix().startswith(ALONE)
    }
    assert anything == set(), "use reading.arguments"


def test_no_number_that_is_none_comes_in_a_body():
    """A field of the framework that takes “nan” stands only in what is answered."""
    given = {
        f"{path.as_posix()}:{node.lineno}"
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "serializers.FloatField"
        if {"required", "min_value", "max_value"} & {one.arg for one in node.keywords}
    }
    assert given == set(), "use api.serializers.StrictNumber"
