"""Fixes what an agent's skills are for one conversation: with its first message, and again when it goes on
with another version of its agent. Its owner's own skills come along. Channels that move later change nothing.
"""

from __future__ import annotations

from pydantic import ValidationError

from accounts.models import Organisation, User
from agents.models import AgentVersion
from conversations.models import Conversation, Event
from harness.agentconfig import SkillUse
from harness.events import Event as EventValue
from harness.events import SessionUpdated
from jobs.prepared import Prepared
from skills_app.choosing import Chosen, choose
from skills_app.models import Skill, SkillVersion

from .models import SkillSet, UsedSkill

MOST_OWN = 50
"""A person's own skills that come along by themselves."""

_OWN = Prepared(
    lambda given: (
        Skill.objects.on_offer()
        .filter(owner=given.owner, organisation=given.organisation)
        .order_by("name")
        .values_list("name")[:MOST_OWN]
    )
)


def fix(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the message; without skills it costs one query."""
    if isinstance(event, SessionUpdated) and not event.overrides:
        return
    try:
        uses = conversation.config.skills
    except ValidationError:  # its run says so
        return
    own = _own_names(conversation.owner_id, conversation.organisation_id)
    known = None
    if uses or own or isinstance(event, SessionUpdated):
        known = SkillSet.objects.filter(pk=conversation.pk).first()
    if known is None and not uses and not own:
        return
    if known is not None and known.agent_version_id == conversation.agent_version_id:
        return
    chosen = choose(uses, conversation.organisation, owner_whose_skills(conversation))
    kept = UsedSkill.objects.filter(conversation=conversation)
    kept.exclude(by=UsedSkill.By.PERSON).delete()
    add(conversation, chosen.versions, {use.name for use in uses})
    if own and known is None:
        hers = tuple(SkillUse(name=name) for name in own)
        theirs = choose(hers, conversation.organisation, conversation.owner)
        add(conversation, theirs.versions, set(own), by=UsedSkill.By.PERSON)
    SkillSet.objects.update_or_create(
        conversation=conversation,
        defaults={
            "agent_version_id": conversation.agent_version_id,
            "problems": list(chosen.problems),
        },
    )


def owner_whose_skills(conversation: Conversation) -> User | None:
    """Whose own skills its agent's names may mean: those of the person whose own agent it is, for herself."""
    return _whose(conversation.agent_version, conversation.owner)


def _whose(version: AgentVersion, owner: User) -> User | None:
    return owner if version.agent.owner_id == owner.pk else None


def chosen_of_agent(version: AgentVersion, organisation: Organisation, owner: User) -> Chosen:
    """Its own alone, as it works for her."""
    return choose(version.config.skills, organisation, _whose(version, owner))


def chosen_for(version: AgentVersion, organisation: Organisation, owner: User) -> Chosen:
    """All that `fix` would give a conversation of hers with this version now: its agent's, then her own; of
    hers that cannot be had nothing is said."""
    found = chosen_of_agent(version, organisation, owner)
    hers = tuple(SkillUse(name=name) for name in _own_names(owner.pk, organisation.pk))
    known = {each.skill_id for each in found.versions}
    own = choose(hers, organisation, owner).versions if hers else ()
    along = tuple(each for each in own if each.skill_id not in known)
    return Chosen((*found.versions, *along), found.problems)


def _own_names(owner_id: int, organisation_id: int) -> list[str]:
    return [name for (name,) in _OWN.all(owner=owner_id, organisation=organisation_id)]


def add(
    conversation: Conversation,
    versions: tuple[SkillVersion, ...],
    named: set[str],
    by: str = UsedSkill.By.AGENT,
) -> None:
    """Those that are not there yet; who is not `named` is there because another requires it."""
    UsedSkill.objects.bulk_create(
        [
            UsedSkill(
                conversation=conversation,
                skill_id=each.skill_id,
                version=each,
                by=by if each.skill.name in named else UsedSkill.By.REQUIRED,
            )
            for each in versions
        ],
        ignore_conflicts=True,
    )
