from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents and environments")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.leaving import goes_with  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import leavers, owndata  # noqa: PLC0415

        give_with("agents", _("Your own agents, with every version"), owndata.files)
        goes_with("agents", leavers.take)
