from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TeamsAppConfig(AppConfig):
    name = "teams_app"
    verbose_name = _("Tasks and teams")

    def ready(self) -> None:
        # Only now are there models to import.
        from approvals.beside import Beside, wait_beside  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415

        from . import kitpart  # noqa: PLC0415
        from .events import TaskCreated, TaskDeleted, TaskUpdated  # noqa: PLC0415
        from .listing import number_waiting  # noqa: PLC0415

        for kind in (TaskCreated, TaskUpdated, TaskDeleted):
            know(kind)
        add_part(kitpart.part)
        wait_beside(Beside("tasks", _("Tasks for me"), "tasks:mine", number_waiting))
