"""Which versions of skills go together: requirements between them decided by `resolvelib`, conflicts and
circles explained with the way that led there.

Plain data: which skills and versions there are is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import resolvelib
from django.utils.translation import gettext as _
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.errors import Conflict

from .manifest import requirement_of

ROUNDS = 2_000
"""Steps of the search; a graph that needs more is refused."""
LOOKS = 50_000
"""Versions that are held against conditions in one search, and names that are asked for, each twenty:
a fraction of a second, for which nobody else can write."""
NAME_LOOKS = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """One version of a skill."""

    name: str
    version: Version
    requires: tuple[str, ...]
    key: Any = None
    """By which whoever asks knows it again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition on a skill's version; `exactly`: that one and no other."""

    name: str
    allowed: SpecifierSet
    exactly: Any = None

    def takes(self, candidate: Candidate) -> bool:
        if self.exactly is not None:
            return bool(candidate.key == self.exactly)
        return self.allowed.contains(candidate.version, prereleases=True)


@lru_cache(4_096)
def wanted_of(requirement: str) -> Wanted:
    found = requirement_of(requirement)
    return Wanted(found.name, found.specifier)


def resolve(
    wanted: Sequence[Wanted],
    versions_of: Callable[[str], Sequence[Candidate]],
    effort: Effort | None = None,
) -> list[Candidate]:
    """One version of each skill that is needed, those first that others require. `effort` bounds several
    searches together.

    Raises Conflict, with the way, where no versions go together, one is missing, skills require each
    other in a circle, or it would take too long to find out.
    """
    resolver: resolvelib.Resolver[Wanted, Candidate, str] = resolvelib.Resolver(
        _Provider(versions_of, effort or Effort()), resolvelib.BaseReporter()
    )
    try:
        found = resolver.resolve(wanted, max_rounds=ROUNDS).mapping
    except resolvelib.ResolutionImpossible as problem:
        raise _conflict(_words(problem.causes)) from None
    except RecursionError:  # on the way back to where it began
        raise _conflict(_("Some of them require each other in a circle.")) from None
    except resolvelib.ResolutionTooDeep:
        raise _too_many_ways() from None
    return _ordered(found)


class Effort:
    """What searches may cost together."""

    def __init__(self, looks: int = LOOKS) -> None:
        self.left = looks

    def spend(self, looks: int) -> None:
        """Raises Conflict where all of it was spent."""
        self.left -= looks
        if self.left < 0:
            raise _too_many_ways()


class _Provider(resolvelib.AbstractProvider[Wanted, Candidate, str]):
    def __init__(self, versions_of: Callable[[str], Sequence[Candidate]], effort: Effort) -> None:
        self._versions_of = versions_of
        self._effort = effort
        self._newest_first: dict[str, list[Candidate]] = {}

    def identify(self, requirement_or_candidate: Wanted | Candidate) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> Any:
        return (identifier not in {each.requirement.name for each in backtrack_causes}, identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Wanted]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Iterable[Candidate]:
        conditions = list(requirements[identifier])
        excluded = {each.version for each in incompatibilities[identifier]}
        known = self._known(identifier)
        self._effort.spend(len(known) * len(conditions))
        return [
            each
            for each in known
            if each.version not in excluded and all(one.takes(each) for one in conditions)
        ]

    def _known(self, name: str) -> list[Candidate]:
        if name not in self._newest_first:
            self._effort.spend(NAME_LOOKS)
            found = sorted(self._versions_of(name), key=lambda each: each.version, reverse=True)
            self._newest_first[name] = found
        return self._newest_first[name]

    def is_satisfied_by(self, requirement: Wanted, candidate: Candidate) -> bool:
        return requirement.takes(candidate)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Wanted]:
        self._effort.spend(len(candidate.requires))
        return [wanted_of(each) for each in candidate.requires]


def _words(causes: Iterable[Any]) -> str:
    told = []
    for cause in islice(causes, 10):
        condition = f"{cause.requirement.name}{cause.requirement.allowed}"
        by = f"{cause.parent.name} {cause.parent.version}" if cause.parent is not None else ""
        told.append(
            _("%(skill)s requires %(condition)s") % {"skill": by, "condition": condition}
            if by
            else _("%(condition)s is asked for") % {"condition": condition}
        )
    return _("No versions go together: %(why)s.") % {"why": "; ".join(told)}


def _ordered(found: Mapping[str, Candidate]) -> list[Candidate]:
    """What is required first. Without recursion: a chain may be long."""
    done: dict[str, Candidate] = {}
    for first in sorted(found):
        way: list[tuple[str, Iterator[str]]] = [(first, _required(found[first]))]
        while way:
            name, rest = way[-1]
            following = next((each for each in rest if each not in done), None)
            if following is None:
                done[name] = found[name]
                way.pop()
                continue
            passed = [each for each, _rest in way]
            if following in passed:
                circle = [*passed[passed.index(following) :], following]
                raise _conflict(
                    _("They require each other: %(way)s.") % {"way": " → ".join(circle)}
                )
            way.append((following, _required(found[following])))
    return list(done.values())


def _required(candidate: Candidate) -> Iterator[str]:
    return iter(sorted(requirement_of(each).name for each in candidate.requires))


def _too_many_ways() -> Conflict:
    return _conflict(_("They depend on each other in too many ways."))


def _conflict(why: str) -> Conflict:
    return Conflict(why, hint=_("Change what one of them requires, or name another version."))
