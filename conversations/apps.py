from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415
        from accounts.leaving import clear_with  # noqa: PLC0415
        from agents.uses import count_uses  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415

        from . import fileevents, webhookevents  # noqa: PLC0415
        from .broughtwords import WordsBrought  # noqa: PLC0415
        from .forgetting import forget_with  # noqa: PLC0415
        from .leavers import PART  # noqa: PLC0415
        from .leftbehind import end_with_its_account  # noqa: PLC0415
        from .occupation import works_with  # noqa: PLC0415
        from .owncopies import forget_own  # noqa: PLC0415
        from .projections import Turn, follow  # noqa: PLC0415
        from .readers import ReadersJoined  # noqa: PLC0415
        from .shareends import end_with_membership  # noqa: PLC0415

        for kind in fileevents.KINDS:
            know(kind)
        know(WordsBrought)
        know(ReadersJoined)
        clear_with("conversations", PART)
        count_uses(works_with)
        listen(end_with_its_account)
        listen(end_with_membership)
        follow(webhookevents.project, *webhookevents.FOLLOWED, turn=Turn.BEFORE)
        forget_with("conversations", forget_own)
