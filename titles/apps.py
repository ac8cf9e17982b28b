from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TitlesConfig(AppConfig):
    name = "titles"
    verbose_name = _("Titles")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.projections import Turn, follow  # noqa: PLC0415

        from . import deletions, projection  # noqa: F401, PLC0415

        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
