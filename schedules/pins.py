"""What a standing order stays with beside its agent's version and model: skills, prompts and standing
instructions as they were when it was saved; and whether a run has these.

Channels, labels and people change them; a run that was given anything else does not begin. What differs
without being pinned is told by `fingerprints`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.errors import NotFound
from jobs.prepared import Prepared
from prompts.choosing import version_for
from prompts.models import UsedPrompt
from skills_app.models import SkillVersion
from skillsets.fixing import chosen_for
from skillsets.models import UsedSkill
from steering.models import SteeringFile

Pins = Mapping[str, Mapping[str, list[str]]]
"""By `skills`, `own` (the owner's own skills), `prompts` and `steering`, of each name the version as people
call it and a digest of what it is."""

_SKILLS = Prepared(
    lambda given: UsedSkill.objects.filter(conversation=given.conversation).select_related(
        "version__skill"
    )
)
_STEERING = Prepared(lambda given: SteeringFile.objects.for_work(given.organisation, given.agent))
"""Asked for each run that begins, of which there may be a thousand in a minute."""


def pins_of(version: AgentVersion, organisation: Organisation, owner: User) -> dict[str, Any]:
    """What a run of the owner's would be given now: its agent's skills and her own that come along, each with
    what they require, prompts, and the organisation's standing instructions. What cannot be had is left out;
    no run begins without a prompt."""
    prompts = {}
    for use in version.config.prompts:
        try:
            found = version_for(organisation, use)
        except NotFound:
            continue
        prompts[use.name] = [str(found.number), found.digest]
    return {
        **_skills(chosen_for(version, organisation, owner).versions),
        "prompts": prompts,
        "steering": _steering(organisation.pk, version.agent_id),
    }


def pins_in(conversation: Conversation) -> dict[str, Any]:
    """What a conversation that begins was given."""
    used = _SKILLS.all(conversation=conversation.pk)
    told = UsedPrompt.objects.filter(set__conversation=conversation).select_related(
        "version__prompt"
    )
    has_prompts = bool(conversation.config.prompts)
    return {
        **_skills(one.version for one in used),
        "prompts": {
            one.version.prompt.name: [str(one.version.number), one.version.digest]
            for one in (told if has_prompts else ())
        },
        "steering": _steering(conversation.organisation_id, conversation.agent_version.agent_id),
    }


def _skills(versions: Iterable[SkillVersion]) -> dict[str, dict[str, list[str]]]:
    """A person's own skill may be called like another one."""
    found: dict[str, dict[str, list[str]]] = {"skills": {}, "own": {}}
    for one in versions:
        kind = "skills" if one.skill.owner_id is None else "own"
        found[kind][one.skill.name] = [one.label, one.digest]
    return found


def _steering(organisation_id: int, agent_id: int) -> dict[str, list[str]]:
    """Files of a workspace are none of these: each run has a workspace of its own, in which nobody has
    trusted one yet."""
    rows = _STEERING.all(organisation=organisation_id, agent=agent_id)
    return {
        "organisation" if row.agent_id is None else "agent": [
            "",
            hashlib.sha256(row.text.encode()).hexdigest(),
        ]
        for row in rows
    }


def departure(pinned: Pins, now: Pins) -> str:
    """In words, what is not as it was pinned; empty: all is."""
    found = list(_departures(pinned, now))
    if not found:
        return ""
    again = _("Save the schedule again to go on with what is there now.")
    return " ".join([*found[:5], again])


def _departures(pinned: Pins, now: Pins) -> Iterator[str]:
    words = {
        "skills": _("The skill “%(name)s”"),
        "own": _("The owner’s own skill “%(name)s”"),
        "prompts": _("The prompt “%(name)s”"),
    }
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
    was, is_ = pinned.get("steering", {}), now.get("steering", {})
    if was.get("organisation") != is_.get("organisation"):
        yield _("The organisation’s standing instructions are not those that it was saved with.")
    if was.get("agent") != is_.get("agent"):
        yield _("The standing instructions for its agent are not those that it was saved with.")
