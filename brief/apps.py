from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BriefConfig(AppConfig):
    name = "brief"
    verbose_name = _("Briefs")

    def ready(self) -> None:
        # Only now are there models to import.
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from notices.models import Kind  # noqa: PLC0415
        from notices.stopping import Stop, stops  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata  # noqa: PLC0415
        from .actions.wishes import stop_brief_mails  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415

        forget_with("brief", forget)
        give_with("brief", _("Your briefs"), owndata.files)
        stops(
            Kind.BRIEF,
            Stop(
                _("mails with your daily brief"),
                lambda user, uid: stop_brief_mails(actor=user, organisation_uid=uid),
            ),
        )
