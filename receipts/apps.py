from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ReceiptsConfig(AppConfig):
    name = "receipts"
    verbose_name = _("Receipts")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from chat.commands import offer  # noqa: PLC0415

        from .offering import commands  # noqa: PLC0415
        from .signing import reseal_keys  # noqa: PLC0415

        offer(commands)
        holds_sealed(reseal_keys)
