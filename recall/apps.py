from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RecallConfig(AppConfig):
    name = "recall"
    verbose_name = _("Memory in conversations")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.commands import offer  # noqa: PLC0415
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.kitparts import add_mounts, add_part, add_rules  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from decay.joining import count_use, remove_with  # noqa: PLC0415
        from harness.events import (  # noqa: PLC0415
            MessageEdited,
            SessionStatusIdle,
            UserMessage,
            know,
        )
        from owndata.parts import give_with  # noqa: PLC0415
        from tools_app.touches import tell_with  # noqa: PLC0415

        from . import (  # noqa: PLC0415
            documenttools,
            kitpart,
            mounted,
            owndata,
            reach,
            reminding,
            shown,
            telling,
        )
        from .events import MemoryRecalled  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415

        know(MemoryRecalled)
        follow(reminding.remind, UserMessage, MessageEdited, turn=Turn.AFTER)
        follow(mounted.follow_rest, SessionStatusIdle, turn=Turn.AFTER)
        add_part(kitpart.stores_part, having=mounted.has_stores)
        add_part(kitpart.part)
        add_part(documenttools.part, having=reach.may_have_collections)
        add_mounts(mounted.mounts, having=mounted.has_stores)
        add_rules(mounted.follow_calls, having=mounted.has_stores)
        count_use(mounted.last_use)
        remove_with(mounted.remove_files)
        offer(shown.commands)
        tell_with(telling.tell, *telling.TOOLS, hold=telling.hold)
        forget_with("recall", forget)
        give_with("recall", _("What agents remember about you"), owndata.files)
