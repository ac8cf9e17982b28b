from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DecayConfig(AppConfig):
    name = "decay"
    verbose_name = _("Decay of memories")

    def ready(self) -> None:
        # Only now are there models to import.
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415

        give_with("decay", _("How your memories fade"), owndata.files)
