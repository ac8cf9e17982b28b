from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SchedulesConfig(AppConfig):
    name = "schedules"
    verbose_name = _("Schedules")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from agents.uses import count_uses  # noqa: PLC0415
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from notices.stopping import Stop, stops  # noqa: PLC0415
        from notices.waiting import notify_of  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import kitpart, owndata, projection, results, uses  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .hooks import reseal_hooks  # noqa: PLC0415
        from .notices import waiting  # noqa: PLC0415

        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
        add_part(kitpart.part, having=kitpart.works_queue)
        count_uses(uses.is_used)
        holds_sealed(reseal_hooks)
        notify_of(waiting)
        stops(results.STOPS, Stop(_("mails with the results of this schedule"), results.stop_mails))
        forget_with("schedules", forget)
        give_with("schedules", _("Your schedules"), owndata.files)
