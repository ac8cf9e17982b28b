from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PipelinesConfig(AppConfig):
    name = "pipelines"
    verbose_name = _("Pipelines")

    def ready(self) -> None:
        # Only now are there models to import.
        from agents.uses import count_uses  # noqa: PLC0415
        from approvals.beside import Beside, wait_beside  # noqa: PLC0415
        from conversations.forgetting import follow_with, forget_with  # noqa: PLC0415
        from conversations.kitparts import add_layer  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import SessionStatusIdle, SessionStatusTerminated, know  # noqa: PLC0415
        from notices.waiting import notify_of  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import forgetting, owndata, projection, scripting, uses, waiting  # noqa: PLC0415
        from .events import CommentTold  # noqa: PLC0415

        know(CommentTold)

        add_layer(scripting.layer)
        follow(
            projection.look_when_at_rest,
            SessionStatusIdle,
            SessionStatusTerminated,
            turn=Turn.AFTER,
        )
        count_uses(uses.is_used)
        forget_with("pipelines", forgetting.forget)
        follow_with("pipelines", forgetting.said_elsewhere)
        give_with("pipelines", _("Your runs of pipelines"), owndata.files)
        notify_of(waiting.waiting)
        wait_beside(Beside("pipelines", _("Pipelines"), "pipelines:waiting", waiting.number_asking))
