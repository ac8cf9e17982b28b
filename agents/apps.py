from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents and environments")

    def ready(self) -> None:
        # Only now are there models to import.
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415

        give_with("agents", _("Your own agents, with every version"), owndata.files)
