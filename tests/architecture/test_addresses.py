"""Addresses that others write are no fault of the server, wherever they turn out to be none."""

from __future__ import annotations

import ast

from .sources import PRODUCT, nodes_of


def test_who_hears_that_a_request_failed_hears_that_its_address_is_none():
    """The library makes two errors of them, one of which is no kind of the other."""
    handlers = {
        f"{path.as_posix()}:{node.lineno}": ast.unparse(node.type)
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        if "HTTPError" in ast.unparse(node.type)
    }
    assert handlers
    assert {place for place, kinds in handlers.items() if "InvalidURL" not in kinds} == set()
