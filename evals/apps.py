from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvalsConfig(AppConfig):
    name = "evals"
    verbose_name = _("Evals")

    def ready(self) -> None:
        # Only now are there models to import.
        from agents.holding import hold_with  # noqa: PLC0415
        from agents.uses import count_uses  # noqa: PLC0415
        from chat.commands import offer  # noqa: PLC0415
        from conversations.forgetting import follow_with, forget_with  # noqa: PLC0415
        from conversations.kitparts import add_layer  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import SessionStatusIdle, SessionStatusTerminated  # noqa: PLC0415
        from prompts.choosing import try_with  # noqa: PLC0415
        from prompts.holding import judge_with as judge_texts_with  # noqa: PLC0415
        from skills_app.contracts import judge_with  # noqa: PLC0415

        from . import contracts, gate, layering, making, projection, running  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .repeated import said_elsewhere  # noqa: PLC0415
        from .reports import is_used  # noqa: PLC0415

        add_layer(layering.layer)
        follow(
            projection.look_when_at_rest,
            SessionStatusIdle,
            SessionStatusTerminated,
            turn=Turn.AFTER,
        )
        count_uses(is_used)
        offer(making.commands)
        hold_with(gate.holds, gate.objection)
        try_with(running.texts_tried)
        judge_texts_with(gate.objection_to_text)
        judge_with(contracts.contract, contracts.faults, contracts.courses)
        forget_with("evals", forget)
        follow_with("evals", said_elsewhere)
