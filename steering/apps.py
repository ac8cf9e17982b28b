from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SteeringConfig(AppConfig):
    name = "steering"
    verbose_name = _("Steering files")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.kitparts import add_part  # noqa: PLC0415

        from . import kitpart  # noqa: PLC0415

        add_part(kitpart.stored, having=kitpart.has_stored)
        add_part(kitpart.of_workspace)
