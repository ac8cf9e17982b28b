"""An app as anybody might write one, to hold the seams by which an app joins. `check.py` tests it."""

from __future__ import annotations

from django.apps import AppConfig


class NoteboardConfig(AppConfig):
    name = "tests.noteboard"
    label = "noteboard"

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.kitparts import add_part  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415

        from . import kitpart, projection  # noqa: PLC0415
        from .events import NotePinned  # noqa: PLC0415

        know(NotePinned)
        follow(projection.project, NotePinned, turn=Turn.AFTER)
        add_part(kitpart.part)
