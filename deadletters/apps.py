from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DeadlettersConfig(AppConfig):
    name = "deadletters"
    verbose_name = _("Dead letters")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415

        from . import projection  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415

        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
        forget_with("deadletters", forget)
