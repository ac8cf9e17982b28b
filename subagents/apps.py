from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class SubagentsConfig(AppConfig):
    name = "subagents"
    verbose_name = _("Subagents")

    def ready(self) -> None:
        # Only now are there models to import.
        from agents.switches import stand_behind  # noqa: PLC0415
        from chat.presentation.panels import make_with  # noqa: PLC0415
        from conversations.forgetting import follow_with, forget_with  # noqa: PLC0415
        from conversations.kitparts import add_part, add_rules  # noqa: PLC0415
        from conversations.projections import Turn, carries_out, follow  # noqa: PLC0415
        from harness.events import SessionUpdated, know  # noqa: PLC0415

        from . import heldback, kitpart, projection  # noqa: PLC0415
        from .events import SubagentsAsk  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .repeated import said_elsewhere  # noqa: PLC0415
        from .strip import draw_strip  # noqa: PLC0415

        know(SubagentsAsk)
        forget_with("subagents", forget)
        follow_with("subagents", said_elsewhere)
        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
        follow(heldback.project, SessionUpdated, turn=Turn.AFTER)
        carries_out(projection.calls_in_hand)
        add_part(kitpart.part)
        add_rules(kitpart.rules)
        add_rules(heldback.rules)
        make_with("subagents", draw_strip)
        stand_behind("teams", lambda: settings.AGENTSITE_SUBAGENT_DEPTH)
