from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = _("People and organisations")

    def ready(self) -> None:
        # Only now are there models to import.
        from . import sign_in_happenings  # noqa: F401, PLC0415
