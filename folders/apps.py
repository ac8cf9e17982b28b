from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FoldersConfig(AppConfig):
    name = "folders"
    verbose_name = _("Folders")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415
        from harness.events import know  # noqa: PLC0415
        from keeping.actions.many import offer  # noqa: PLC0415
        from keeping.words import know as know_filter  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import finding, kitpart, owndata  # noqa: PLC0415
        from .actions.places import move_by_uid  # noqa: PLC0415
        from .events import FolderEntered  # noqa: PLC0415
        from .membershipends import end_with_membership  # noqa: PLC0415

        know(FolderEntered)
        add_part(kitpart.part, having=kitpart.entered)
        know_filter("in", finding.narrow)
        offer("move", move_by_uid)
        give_with(
            "folders",
            _("Your folders: their instructions, and with whom you share them"),
            owndata.files,
        )
        listen(end_with_membership)
