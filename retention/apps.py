from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetentionConfig(AppConfig):
    name = "retention"
    verbose_name = _("Retention")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.presentation.panels import make_with  # noqa: PLC0415

        from .notice import draw_notice  # noqa: PLC0415

        make_with("retention", draw_notice, on=["user.message"])
