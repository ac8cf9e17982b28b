"""Names that Django makes of a model's app and name, for tests that walk many of them."""

from __future__ import annotations

from django.apps import apps


def table(name: str) -> str:
    """`agents_agent` for `agent`: the table, and the middle of the names of its pages in the admin. Where two
    apps have a model of that name, `agents.agent`."""
    found = [
        model
        for model in apps.get_models()
        if name in {model._meta.model_name, model._meta.label_lower}
    ]
    assert len(found) == 1, f"{len(found)} models are called {name}"
    return found[0]._meta.label_lower.replace(".", "_")
