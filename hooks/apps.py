from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HooksConfig(AppConfig):
    name = "hooks"
    verbose_name = _("Hooks")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from conversations.kitparts import add_guard  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415

        from . import guarding  # noqa: PLC0415
        from .actions.hooks import reseal_secrets  # noqa: PLC0415
        from .events import HooksAnswered  # noqa: PLC0415

        know(HooksAnswered)
        add_guard(guarding.guard, having=guarding.has_hooks)
        holds_sealed(reseal_secrets)
