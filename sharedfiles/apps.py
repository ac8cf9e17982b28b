from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SharedfilesConfig(AppConfig):
    name = "sharedfiles"
    verbose_name = _("Shared files")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.kitparts import add_mounts, add_part  # noqa: PLC0415
        from tools_app.touches import tell_with  # noqa: PLC0415

        from . import kitpart, telling  # noqa: PLC0415

        add_part(kitpart.part)
        add_mounts(kitpart.mounts, having=kitpart.shares_some)
        tell_with(telling.tell, *telling.TOOLS)
