from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PromptsConfig(AppConfig):
    name = "prompts"
    verbose_name = _("Library of prompts")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from chat.commands import offer  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import (  # noqa: PLC0415
            SessionUpdated,
            UserDefineOutcome,
            UserMessage,
        )

        from . import fixing, kitpart, using  # noqa: PLC0415
        from .actions.sources import reseal_secrets  # noqa: PLC0415

        follow(fixing.fix, UserMessage, UserDefineOutcome, SessionUpdated, turn=Turn.AFTER)
        add_part(kitpart.part)
        offer(using.commands)
        holds_sealed(reseal_secrets)
