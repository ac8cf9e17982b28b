"""Requirements between skills: what goes together is found, what does not is explained."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from harness.errors import Conflict
from skills_app.resolving import Candidate, Effort, resolve, wanted_of

NAMES = "abcd"


def one(name: str, version: str, *requires: str) -> Candidate:
    return Candidate(name, Version(version), requires)


def among(*candidates: Candidate):
    return lambda name: [each for each in candidates if each.name == name]


def test_the_newest_versions_that_go_together_are_taken_and_what_is_required_comes_first():
    found = resolve(
        [wanted_of("briefing")],
        among(
            one("briefing", "2", "check>=2,<3"),
            one("check", "1"),
            one("check", "2.5", "tables"),
            one("check", "3"),
            one("tables", "1"),
        ),
    )
    assert [f"{each.name} {each.version}" for each in found] == [
        "tables 1",
        "check 2.5",
        "briefing 2",
    ]


def test_a_conflict_names_who_requires_what():
    with pytest.raises(Conflict) as refusal:
        resolve(
            [wanted_of("a"), wanted_of("b")],
            among(one("a", "1", "c<2"), one("b", "1", "c>=2"), one("c", "1"), one("c", "2")),
        )
    assert "a 1 requires c<2" in refusal.value.message
    assert "b 1 requires c>=2" in refusal.value.message


def test_what_is_missing_is_named():
    with pytest.raises(Conflict, match="a 1 requires gone"):
        resolve([wanted_of("a")], among(one("a", "1", "gone")))


def test_a_circle_is_told_with_its_way():
    with pytest.raises(Conflict, match="a → b → c → a"):
        resolve([wanted_of("a")], among(one("a", "1", "b"), one("b", "1", "c"), one("c", "1", "a")))


def test_a_long_chain_is_no_recursion():
    links = [one(f"s{number}", "1", f"s{number + 1}") for number in range(1_500)]
    assert len(resolve([wanted_of("s0")], among(*links, one("s1500", "1")))) == 1_501


graphs = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 3)),
    st.dictionaries(
        st.sampled_from(NAMES), st.sampled_from([">=1", ">=2", "<2", "==3", "!=2"]), max_size=2
    ),
    max_size=9,
)


def fits(chosen: dict[str, int], graph, wanted: set[str]) -> bool:
    return wanted <= chosen.keys() and all(
        name in chosen and wanted_of(f"{name}{condition}").takes(one(name, str(chosen[name])))
        for each in chosen.items()
        for name, condition in graph[each].items()
    )


@given(graphs, st.sets(st.sampled_from(NAMES), min_size=1, max_size=2))
def test_it_finds_an_answer_just_where_trying_everything_does(graph, wanted):
    candidates = [
        one(
            name,
            str(version),
            *(f"{other}{condition}" for other, condition in requires.items() if other != name),
        )
        for (name, version), requires in graph.items()
    ]
    graph = {
        (each.name, int(str(each.version))): {
            wanted_of(requirement).name: str(wanted_of(requirement).allowed)
            for requirement in each.requires
        }
        for each in candidates
    }
    choices = [[None, *(version for name, version in graph if name == each)] for each in NAMES]
    possible = any(
        fits(
            {name: version for name, version in zip(NAMES, picked, strict=True) if version},
            graph,
            wanted,
        )
        for picked in product(*choices)
    )
    found, refused = tried(wanted, candidates)
    if refused:
        assert not possible or "each other" in refused
    else:
        assert fits(found, graph, wanted)


def tried(wanted: set[str], candidates: list[Candidate]) -> tuple[dict[str, int], str]:
    try:
        found = resolve([wanted_of(name) for name in sorted(wanted)], among(*candidates))
    except Conflict as refusal:
        return {}, refusal.message
    return {each.name: int(str(each.version)) for each in found}, ""


def test_versions_that_depend_on_each_other_in_too_many_ways_are_refused_after_bounded_work():
    middles = [
        Candidate(f"s{number}", Version(str(version)), (f"t=={version + number * 100}",))
        for number in range(20)
        for version in range(1, 101)
    ]
    last = [Candidate("t", Version(str(version)), ()) for version in range(1, 101)]
    top = Candidate("top", Version("1"), tuple(f"s{number}" for number in range(20)))
    held: dict[str, list[Candidate]] = {}
    effort = Effort(50_000)
    for each in (top, *middles, *last):
        held.setdefault(each.name, []).append(each)
    asked: list[str] = []

    def versions_of(name: str) -> list[Candidate]:
        asked.append(name)
        return held[name]

    with pytest.raises(Conflict, match="too many ways"):
        resolve([wanted_of("top")], versions_of, effort)
    assert effort.left < 0
    assert len(asked) == len(set(asked)), "each is looked up once"
    with pytest.raises(Conflict, match="too many ways"):
        resolve([wanted_of("top")], versions_of, effort)
