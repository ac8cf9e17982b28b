from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class VaultsConfig(AppConfig):
    name = "vaults"
    verbose_name = _("Vaults")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415
        from .auth import reseal_credentials  # noqa: PLC0415

        holds_sealed(reseal_credentials)
        give_with(
            "vaults", _("Your vaults and their addresses, without what is in them"), owndata.files
        )
