from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SkillsAppConfig(AppConfig):
    name = "skills_app"
    verbose_name = _("Skills")

    def ready(self) -> None:
        # Only now are there models to import.
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415

        give_with(
            "skills_app", _("Your own skills, with the files of every version"), owndata.files
        )
