"""What an agent's skills come to now, one by one with the digest of each: the lock that a version of the
agent can carry, and why each of them is there.

Which versions go together is `choosing`'s and `resolving`'s word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from harness.agentconfig import SkillUse
from harness.errors import Conflict, NotFound

from .choosing import choose
from .manifest import requirement_of
from .models import SkillVersion


@dataclass(frozen=True, slots=True)
class Locked:
    version: SkillVersion
    way: tuple[str, ...]
    """How one comes to it: the skill that the agent names, then what each requires of the next, as it is
    written there. One entry: the agent names it."""

    @property
    def use(self) -> SkillUse:
        """How an agent names exactly this."""
        version = self.version
        return SkillUse(name=version.skill.name, version=version.label, digest=version.digest)


def lock(
    uses: Sequence[SkillUse], organisation: Organisation, owner: User | None
) -> tuple[Locked, ...]:
    """What is required stands before what requires it. Raises Conflict, with every problem, where
    something cannot be had: a lock is whole or there is none."""
    chosen = choose(uses, organisation, owner)
    if chosen.problems:
        raise Conflict(" ".join(chosen.problems), hint=_("Change what the agent names."))
    ways = _ways({each.skill.name: each for each in chosen.versions}, uses)
    return tuple(Locked(each, ways[each.skill.name]) for each in chosen.versions)


def way_to(name: str, locked: Sequence[Locked]) -> tuple[str, ...]:
    """Why this skill is among them. Raises NotFound where it is not."""
    for each in locked:
        if each.version.skill.name == name:
            return each.way
    raise NotFound(
        _("The agent does not come to the skill “%(name)s”.") % {"name": name},
        hint=_("Its skills are: %(names)s.")
        % {"names": ", ".join(each.version.skill.name for each in locked) or _("none")},
    )


def _ways(
    versions: Mapping[str, SkillVersion], uses: Sequence[SkillUse]
) -> dict[str, tuple[str, ...]]:
    """The shortest way to each."""
    found: dict[str, tuple[str, ...]] = {use.name: (use.name,) for use in uses}
    waiting = [use.name for use in uses]
    for name in waiting:
        for each in versions[name].requires:
            wanted = requirement_of(each)
            if wanted.name not in found:
                found[wanted.name] = (*found[name], str(wanted))
                waiting.append(wanted.name)
    return found
