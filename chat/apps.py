from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    """Pages and socket of a conversation. Holds no model: what stands is `conversations`'."""

    name = "chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        # Only now are there models to import.
        from notices.waiting import notify_of  # noqa: PLC0415

        from .commands import offer, own_commands  # noqa: PLC0415
        from .ended import ended  # noqa: PLC0415

        offer(own_commands)
        notify_of(ended)
