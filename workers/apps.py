from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkersConfig(AppConfig):
    name = "workers"
    verbose_name = _("Workers")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415
        from conversations.projections import Turn, carries_out, follow  # noqa: PLC0415

        from . import handouts  # noqa: PLC0415
        from .formerstaff import end_keys_of_former_staff  # noqa: PLC0415

        listen(end_keys_of_former_staff)
        follow(handouts.project, *handouts.FOLLOWED, turn=Turn.BEFORE)
        carries_out(handouts.handed_calls)
