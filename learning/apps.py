from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class LearningConfig(AppConfig):
    name = "learning"
    verbose_name = _("Learning")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415
        from recall.beside import show_beside  # noqa: PLC0415

        from . import deletions, projection, shown  # noqa: F401, PLC0415
        from .events import MemoryLearned  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415

        know(MemoryLearned)
        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
        # The copies that are made here stand in the tables of `memory`.
        forget_with("memory", forget)
        show_beside("learning", shown.BESIDE)
