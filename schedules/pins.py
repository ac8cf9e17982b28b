"""Which versions of skills and prompts a standing order is pinned to, and whether a run has these.

Channels and labels of an agent's version move; what they meant is kept when the order is saved, and a run
that was given anything else does not begin. What differs without being pinned is told by `fingerprints`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.errors import NotFound
from prompts.choosing import version_for
from prompts.models import UsedPrompt
from skills_app.choosing import choose
from skillsets.models import UsedSkill

Pins = Mapping[str, Mapping[str, list[str]]]
"""By `skills` and `prompts`, of each name the version as people call it and a digest of what it is."""


def pins_of(version: AgentVersion, organisation: Organisation, owner: User) -> dict[str, Any]:
    """What the agent's skills, with what they require, and its prompts come to now. What cannot be had is
    left out; no run begins without a prompt."""
    whose = owner if version.agent.owner_id == owner.pk else None
    config = version.config
    chosen = choose(config.skills, organisation, whose).versions
    prompts = {}
    for use in config.prompts:
        try:
            found = version_for(organisation, use)
        except NotFound:
            continue
        prompts[use.name] = [str(found.number), found.digest]
    skills = {one.skill.name: [one.label, one.digest] for one in chosen}
    return {"skills": skills, "prompts": prompts}


def pins_in(conversation: Conversation, pinned: Pins) -> dict[str, Any]:
    """What a conversation was given by its agent. A person's own skills, which come along with whatever she
    does, are hers to change, and so is what these require."""
    by_agent = Q(by=UsedSkill.By.AGENT) | Q(skill__name__in=list(pinned.get("skills", {})))
    used = UsedSkill.objects.filter(by_agent, conversation=conversation)
    told = UsedPrompt.objects.filter(set__conversation=conversation).select_related(
        "version__prompt"
    )
    return {
        "skills": {
            one.skill.name: [one.version.label, one.version.digest]
            for one in used.select_related("skill", "version")
        },
        "prompts": {
            one.version.prompt.name: [str(one.version.number), one.version.digest] for one in told
        },
    }


def departure(pinned: Pins, now: Pins) -> str:
    """In words, what is not as it was pinned; empty: all is."""
    found = list(_departures(pinned, now))
    if not found:
        return ""
    again = _("Save the schedule again to go on with what is there now.")
    return " ".join([*found[:5], again])


def _departures(pinned: Pins, now: Pins) -> Iterator[str]:
    words = {"skills": _("The skill “%(name)s”"), "prompts": _("The prompt “%(name)s”")}
    for kind, what in words.items():
        was, is_ = pinned.get(kind, {}), now.get(kind, {})
        for name in sorted({*was, *is_}):
            if was.get(name) == is_.get(name):
                continue
            yield _("%(what)s was saved at version %(was)s and would be at %(now)s.") % {
                "what": what % {"name": name},
                "was": was.get(name, [_("none")])[0],
                "now": is_.get(name, [_("none")])[0],
            }
