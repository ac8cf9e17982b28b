from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BriefConfig(AppConfig):
    name = "brief"
    verbose_name = _("Briefs")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415

        forget_with("brief", forget)
        give_with("brief", _("Your briefs"), owndata.files)
