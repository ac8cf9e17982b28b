from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ComparisonsConfig(AppConfig):
    name = "comparisons"
    verbose_name = _("Comparisons")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.forgetting import follow_with, forget_with  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import SessionStatusIdle, SessionStatusTerminated  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415
        from pipelines.ending import at_end  # noqa: PLC0415

        from . import forgetting, owndata, projection  # noqa: PLC0415

        follow(
            projection.look_when_at_rest,
            SessionStatusIdle,
            SessionStatusTerminated,
            turn=Turn.AFTER,
        )
        at_end(projection.look_when_run_ended)
        forget_with("comparisons", forgetting.forget)
        follow_with("comparisons", forgetting.said_elsewhere)
        give_with("comparisons", _("Your comparisons"), owndata.files)
