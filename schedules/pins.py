"""What a standing order stays with beside its agent's version and model: skills, prompts and standing
instructions as they were when it was saved; and whether a run has these.

Channels, labels and people change them; a run that was given anything else does not begin. What differs
without being pinned is told by `fingerprints`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import AgentVersion
from agents.rosters import versions_of
from conversations.models import Conversation
from harness.errors import NotFound
from jobs.prepared import Prepared
from prompts.choosing import version_for
from prompts.models import UsedPrompt
from skills_app.models import SkillVersion
from skillsets.fixing import chosen_for, chosen_of_agent
from skillsets.models import UsedSkill
from steering.models import SteeringFile

Pins = Mapping[str, Mapping[str, list[str]]]
"""By `skills`, `own` (the owner's own skills), `prompts` and `steering`, of each name the version as people
call it and a digest of what it is; by `called`, of the id of each agent that it may call on, its name and a
digest of all these."""

MOST_WORDS = 500
"""Characters of why a run did not begin that are kept."""
MOST_CALLED = 100
"""Agents of rosters, and of their rosters, that are looked at."""

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
    return {
        **_skills(chosen_for(version, organisation, owner).versions),
        "prompts": _prompts(version, organisation),
        "steering": _steering(organisation.pk, version.agent_id),
        "called": _called(version, organisation, owner),
    }


def _prompts(version: AgentVersion, organisation: Organisation) -> dict[str, list[str]]:
    prompts = {}
    for use in version.config.prompts:
        try:
            found = version_for(organisation, use)
        except NotFound:
            continue
        prompts[use.name] = [str(found.number), found.digest]
    return prompts


def _called(version: AgentVersion, organisation: Organisation, owner: User) -> dict[str, list[str]]:
    """Whom it may call on, and whom these may: their versions stay, what these name does not. They begin when
    they are called, so this is what they would be given."""
    found: dict[int, AgentVersion] = {}
    level = [version]
    while level and len(found) < MOST_CALLED:
        met = {
            each.pk: each
            for one in level
            for each in versions_of(one.config.roster.agents).values()
        }
        level = [each for each in met.values() if each.pk not in {*found, version.pk}]
        found |= {each.pk: each for each in level}
    if not found:
        return {}
    theirs = SteeringFile.objects.filter(
        organisation=organisation, agent__in={one.agent_id for one in found.values()}
    )
    texts = dict(theirs.values_list("agent", "text"))
    return {
        f"{one.agent.uid} {one.number}": [
            one.agent.name,
            _digest(
                [
                    _skills(chosen_of_agent(one, organisation, owner).versions),
                    _prompts(one, organisation),
                    texts.get(one.agent_id, ""),
                ]
            ),
        ]
        for one in found.values()
    }


@dataclass(frozen=True, slots=True)
class Given:
    """What a conversation that begins was given of all that is pinned, but for whom it may call on."""

    skills: tuple[SkillVersion, ...]
    prompts: tuple[UsedPrompt, ...]
    """In the order of its agent."""
    steering: tuple[SteeringFile, ...]


def given_in(conversation: Conversation) -> Given:
    told: Iterable[UsedPrompt] = ()
    if conversation.config.prompts:
        sets = UsedPrompt.objects.filter(set__conversation=conversation)
        told = sets.select_related("version__prompt")
    agent = conversation.agent_version.agent_id
    return Given(
        skills=tuple(one.version for one in _SKILLS.all(conversation=conversation.pk)),
        prompts=tuple(told),
        steering=tuple(_STEERING.all(organisation=conversation.organisation_id, agent=agent)),
    )


def pins_in(conversation: Conversation, given: Given) -> dict[str, Any]:
    """What a conversation that begins was given."""
    return {
        **_skills(given.skills),
        "prompts": {
            one.version.prompt.name: [str(one.version.number), one.version.digest]
            for one in given.prompts
        },
        "steering": _texts(given.steering),
        "called": _called(
            conversation.agent_version, conversation.organisation, conversation.owner
        ),
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
    return _texts(_STEERING.all(organisation=organisation_id, agent=agent_id))


def _texts(rows: Iterable[SteeringFile]) -> dict[str, list[str]]:
    return {
        "organisation" if row.agent_id is None else "agent": [
            "",
            _digest(row.text),
        ]
        for row in rows
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def departure(pinned: Pins, now: Pins) -> str:
    """In words, what is not as it was pinned; empty: all is."""
    found = list(_departures(pinned, now))
    if not found:
        return ""
    more = _("There is more that differs.")
    again = _("Save the schedule again to go on with what is there now.")
    room = MOST_WORDS - len(more) - len(again) - 2
    told: list[str] = []
    for words in found:
        room -= len(words) + 1
        if told and room < 0:
            told.append(more)
            break
        told.append(words)
    return " ".join([*told, again])


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
    was, is_ = pinned.get("called", {}), now.get("called", {})
    changed = [key for key in {*was, *is_} if was.get(key) != is_.get(key)]
    for name in sorted({(was.get(key) or is_[key])[0] for key in changed}):
        yield _(
            "The skills, prompts or standing instructions of “%(name)s”, which its agent may call on, are"
            " not those that it was saved with."
        ) % {"name": name}
