from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class NoticesConfig(AppConfig):
    name = "notices"
    verbose_name = _("Mails about what waits")

    def ready(self) -> None:
        # Only now are there models to import.
        from .questions import questions  # noqa: PLC0415
        from .waiting import notify_of  # noqa: PLC0415

        notify_of(questions)
