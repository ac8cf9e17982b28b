"""What a Django permission gives staff in organisations that they do not manage is written down."""

from __future__ import annotations

import ast
import re

from django.apps import apps

from .sources import PRODUCT, ROOT, mentions, nodes_of

PERMISSION = re.compile(r"([a-z_]+)\.(?:view|add|change|delete)_([a-z]+)")


def permissions() -> set[str]:
    """Those that the product's code asks for by their names."""
    return {
        node.value
        for path in PRODUCT
        if mentions(path, [".view_", ".add_", ".change_", ".delete_"])
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (found := PERMISSION.fullmatch(node.value)) and is_model(*found.groups())
    }


def is_model(app: str, model: str) -> bool:
    return model in apps.all_models.get(app, {})


def test_the_page_about_the_admin_says_of_each_permission_what_it_amounts_to() -> None:
    text = (ROOT / "docs/admin.md").read_text(encoding="utf-8")
    asked = permissions()

    assert "agents.change_agent" in asked
    assert sorted(name for name in asked if f"`{name}`" not in text) == []


def test_no_permission_is_told_of_that_nothing_asks_for() -> None:
    text = (ROOT / "docs/admin.md").read_text(encoding="utf-8")
    told = {match[0] for match in re.finditer(rf"(?<=`){PERMISSION.pattern}(?=`)", text)}

    assert sorted(told - permissions()) == []
