from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from accounts.sealed import holds_sealed


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415

        from .audit import about_account  # noqa: PLC0415
        from .vaults.auth import reseal_credentials  # noqa: PLC0415
        from .webhooks.signing import reseal_all  # noqa: PLC0415

        listen(about_account)
        holds_sealed(reseal_all)
        holds_sealed(reseal_credentials)
