"""What the log tells of a conversation's skills."""

from __future__ import annotations

from django.utils.translation import gettext as _

from harness.events import AppEvent

TYPE = "x.skill_added"


class SkillAdded(AppEvent):
    """A person gave the conversation a skill that its agent does not name."""

    type: str = TYPE
    skill_id: str
    name: str
    version: str
    digest: str

    def remark(self) -> str:
        return _("The agent may use the skill “%(name)s” %(version)s from its next turn on.") % {
            "name": self.name,
            "version": self.version,
        }
