from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OwnDataConfig(AppConfig):
    name = "owndata"
    verbose_name = _("A person's own data")

    def ready(self) -> None:
        # Only now are there models to import.
        from . import account  # noqa: PLC0415
        from .parts import give_with  # noqa: PLC0415

        give_with("account", _("Your account, memberships, tokens and keys"), account.files)
        give_with("audit", _("What you did, as the audit log has it"), account.audited)
