from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DocumentsConfig(AppConfig):
    name = "documents"
    verbose_name = _("Documents")

    def ready(self) -> None:
        # Only now are there models to import.
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415

        give_with("documents", _("The text of your own documents"), owndata.files)
