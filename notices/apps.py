from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class NoticesConfig(AppConfig):
    name = "notices"
    verbose_name = _("Notifications")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import owndata, signing_out  # noqa: F401, PLC0415 - the second listens
        from .actions.wishes import stop_mails  # noqa: PLC0415
        from .models import Kind  # noqa: PLC0415
        from .pushkeys import reseal_keys  # noqa: PLC0415
        from .questions import questions  # noqa: PLC0415
        from .stopping import Stop, stops  # noqa: PLC0415
        from .waiting import notify_of  # noqa: PLC0415

        notify_of(questions)
        holds_sealed(reseal_keys)
        give_with("notices", _("What you are told of, and in which browsers"), owndata.files)
        stops(
            Kind.WAITS,
            Stop(
                _("mails about what waits for you"),
                lambda user, _subject: stop_mails(actor=user, kind=Kind.WAITS),
            ),
        )
        stops(
            Kind.DONE,
            Stop(
                _("mails about conversations that have ended"),
                lambda user, _subject: stop_mails(actor=user, kind=Kind.DONE),
            ),
        )
