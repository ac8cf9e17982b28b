from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class TeamsAppConfig(AppConfig):
    name = "teams_app"
    verbose_name = _("Tasks and teams")

    def ready(self) -> None:
        # Only now are there models to import.
        from agents.switches import stand_behind  # noqa: PLC0415
        from approvals.beside import Beside, wait_beside  # noqa: PLC0415
        from chat.presentation.panels import make_with  # noqa: PLC0415
        from conversations.forgetting import follow_with, forget_with  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import (  # noqa: PLC0415
            SessionStatusIdle,
            SessionStatusRunning,
            SessionStatusTerminated,
            know,
        )
        from notices.waiting import notify_of  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import kitpart, owndata, waking  # noqa: PLC0415
        from .events import EVENTS  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .listing import number_waiting  # noqa: PLC0415
        from .notices import waiting  # noqa: PLC0415
        from .repeated import said_elsewhere  # noqa: PLC0415
        from .strip import draw  # noqa: PLC0415

        for kind in EVENTS:
            know(kind)
        add_part(kitpart.part)
        follow(
            waking.project,
            SessionStatusRunning,
            SessionStatusIdle,
            SessionStatusTerminated,
            turn=Turn.AFTER,
        )
        notify_of(waiting)
        forget_with("teams_app", forget)
        follow_with("teams_app", said_elsewhere)
        give_with("teams_app", _("Tasks that are yours, or that you made"), owndata.files)
        stand_behind("teams", lambda: settings.AGENTSITE_TEAMMATES)
        make_with("team", draw, on=[kind.model_fields["type"].default for kind in EVENTS])
        wait_beside(Beside("tasks", _("Tasks for me"), "tasks:mine", number_waiting))
