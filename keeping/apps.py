from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class KeepingConfig(AppConfig):
    name = "keeping"
    verbose_name = _("Pins and tags")

    def ready(self) -> None:
        # Only now are there models to import.
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415

        give_with("keeping", _("Your conversations, with every event and call"), owndata.files)
