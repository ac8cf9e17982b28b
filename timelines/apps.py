from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TimelinesConfig(AppConfig):
    name = "timelines"
    verbose_name = _("Timelines of turns")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.commands import offer  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import SessionStatusIdle  # noqa: PLC0415

        from . import exporting, passing, reading  # noqa: PLC0415

        offer(reading.commands)
        add_part(passing.part)
        follow(exporting.send_what_ended, SessionStatusIdle, turn=Turn.AFTER)
