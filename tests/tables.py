"""Names that Django makes of a model's app and name, for tests that walk many of them."""

from __future__ import annotations

from django.apps import apps


def table(name: str) -> str:
    """`agents_agent` for `agent`: the table, and the middle of the names of its pages in the admin."""
    found = [model for model in apps.get_models() if model._meta.model_name == name]
    assert len(found) == 1, f"{len(found)} models are called {name}"
    return found[0]._meta.label_lower.replace(".", "_")
