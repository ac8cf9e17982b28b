from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SkillsetsConfig(AppConfig):
    name = "skillsets"
    verbose_name = _("Skills of conversations")

    def ready(self) -> None:
        # Only now are there models to import.
        from chat.commands import offer  # noqa: PLC0415
        from conversations.kitparts import add_mounts, add_part, add_rules  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from harness.events import SessionUpdated, UserDefineOutcome, UserMessage, know  # noqa: PLC0415
        from skills_app.uses import count_uses  # noqa: PLC0415

        from . import fixing, kitpart, using  # noqa: PLC0415
        from .events import SkillAdded  # noqa: PLC0415

        know(SkillAdded)
        follow(fixing.fix, UserMessage, UserDefineOutcome, SessionUpdated, turn=Turn.AFTER)
        add_part(kitpart.part, having=kitpart.has_skills)
        add_mounts(kitpart.mounts, having=kitpart.uses_some)
        add_rules(kitpart.stop_what_was_stopped, having=kitpart.uses_some)
        offer(using.commands)
        count_uses(using.is_used, using.uses_of)
