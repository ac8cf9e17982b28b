from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AuditConfig(AppConfig):
    name = "audit"
    verbose_name = _("Audit log")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415

        from .record import about_account  # noqa: PLC0415

        listen(about_account)
