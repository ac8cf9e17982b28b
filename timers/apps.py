from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TimersConfig(AppConfig):
    name = "timers"
    verbose_name = _("Timers")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.presentation.panels import make_with  # noqa: PLC0415

        from .strip import draw_strip  # noqa: PLC0415

        make_with(
            "timers",
            draw_strip,
            on=["x.wake_requested", "x.wake_due", "user.interrupt", "x.rewound"],
        )
