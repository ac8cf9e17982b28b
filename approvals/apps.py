from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = _("Approvals and rules")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.presentation.panels import make_with  # noqa: PLC0415
        from conversations.actions.deciding import decide_with  # noqa: PLC0415
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.goingalong import go_along_with  # noqa: PLC0415
        from conversations.kitparts import add_rules  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from notices.waiting import notify_of  # noqa: PLC0415
        from tools_app.touches import keep_with  # noqa: PLC0415

        from . import projection  # noqa: PLC0415
        from .actions.calls import decide_call  # noqa: PLC0415
        from .actions.rules import take_rules_along  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .notices import waiting  # noqa: PLC0415
        from .policyrules import configured_for, held_for, may_be_held  # noqa: PLC0415
        from .waiting import draw_waiting  # noqa: PLC0415

        add_rules(configured_for)
        add_rules(held_for, having=may_be_held)
        follow(projection.project, *projection.FOLLOWED, turn=Turn.BEFORE)
        decide_with(decide_call)
        notify_of(waiting)
        keep_with(projection.told_of, projection.told_to, projection.forget_told)
        forget_with("approvals", forget)
        go_along_with("approvals", take_rules_along)
        make_with("waiting", draw_waiting)
