"""A skill's version carries cases; they decide whether it becomes stable."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evals.actions.evaluations import start_evaluation
from evals.contracts import contract, suite_for
from evals.models import Evaluation
from harness.errors import Conflict, Forbidden, NotFound
from skills_app.actions.releases import (
    ask_for_release,
    decide_release,
    move_channel,
    set_promotion,
)
from skills_app.actions.skills import add_version, create_skill
from skills_app.contracts import CASES, contract_of
from skills_app.models import Skill, SkillVersion
from skills_app.seeding import SHIPPED, seed_skills

from .conftest import ended

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = b"---\nname: greeting\ndescription: How we greet.\n---\n\nSay good morning.\n"


FETCHES = """---
name: greeting
description: How we greet, by https://HOST/words.
---

Fetch https://HOST/words, and greet so.
"""
ONE_HOST = """
version: 1
name: Greeting
cases:
- name: asks-our-docs
  input: Hello
  script:
    replies:
    - calls: [{tool: web_fetch, input: {url: 'https://docs.example/words'}}]
      if_told: https://docs.example/words
    - calls: [{tool: web_fetch, input: {url: 'https://other.example/words'}}]
      if_told: https://other.example/words
    - say: Good morning
  checks:
  - {name: greets, type: text, all: [morning]}
  - {name: fetches once, type: call, tool: web_fetch, at_most: 1}
  - name: fetches docs.example alone
    type: call
    tool: web_fetch
    matching: {url: '^https://docs\\.example/'}
"""


def cases(answer: str = "Good morning") -> bytes:
    return f"""
version: 1
name: Greeting
cases:
- name: greets
  input: Hello
  script:
    replies:
    - calls: [{{tool: read_skill, input: {{name: greeting}}}}]
    - say: {answer}
  checks:
  - {{type: text, all: [morning]}}
  - {{type: call, tool: read_skill, outcome: ok}}
""".encode()


@pytest.fixture
def carry(alice, acme):
    """A version with these cases that waits for a review."""

    def made(text: bytes | None, before: SkillVersion | None = None) -> SkillVersion:
        files = {"SKILL.md": HEAD + (b"\nAgain." if before else b"")}
        if text is not None:
            files[CASES] = text
        if before is None:
            version = create_skill(actor=alice, organisation=acme, files=files)
        else:
            version = add_version(actor=alice, skill=before.skill, files=files)
        return ask_for_release(actor=alice, version=version)

    return made


@pytest.fixture
def begin(alice, acme, agent, environment):
    """Begin trying the cases of a version by their scripts."""

    def tried(version: SkillVersion) -> Evaluation:
        suite = suite_for(actor=alice, organisation=acme, version=version)
        return start_evaluation(
            actor=alice,
            suite=suite,
            version=agent.current,
            environment=environment,
            scripted=True,
            skill_version=version,
        )

    return tried


@pytest.fixture
def keep(begin):
    """The same, to the end."""
    return lambda version: ended(begin(version))


def stable(version: SkillVersion) -> str | None:
    version.skill.refresh_from_db()
    now = version.skill.stable
    return None if now is None else now.label


def test_a_version_becomes_stable_only_when_its_cases_are_green(alice, carry, keep):
    version = carry(cases())
    with pytest.raises(Conflict, match="not tried yet"):
        decide_release(actor=alice, version=version, approve=True)
    evaluation = keep(version)
    (trial,) = evaluation.trials.all()
    assert trial.state == "passed", (trial.problem, trial.outcomes)
    decide_release(actor=alice, version=version, approve=True)
    assert stable(version) == "1"

    worse = carry(cases("Go away"), before=version)
    keep(worse)
    with pytest.raises(Conflict, match="Not passed: greets"):
        decide_release(actor=alice, version=worse, approve=True)
    decide_release(actor=alice, version=worse, approve=True, channel="canary")
    with pytest.raises(Conflict, match="Not passed"):
        move_channel(actor=alice, skill=worse.skill, channel="stable", version=worse)
    move_channel(actor=alice, skill=worse.skill, channel="stable", version=version)
    assert stable(version) == "1"


def test_a_version_that_has_another_host_fetched_is_named_by_the_case_that_sees_it(
    alice, acme, keep
):
    def files(host: str) -> dict[str, bytes]:
        text = FETCHES.replace("HOST", host)
        return {"SKILL.md": text.encode(), CASES: ONE_HOST.encode()}

    version = create_skill(actor=alice, organisation=acme, files=files("docs.example"))
    ask_for_release(actor=alice, version=version)
    keep(version)
    decide_release(actor=alice, version=version, approve=True)

    worse = add_version(actor=alice, skill=version.skill, files=files("other.example"))
    ask_for_release(actor=alice, version=worse)
    (trial,) = keep(worse).trials.all()
    with pytest.raises(Conflict, match="Not passed: asks-our-docs"):
        decide_release(actor=alice, version=worse, approve=True)
    failed = [each for each in trial.outcomes if not each["passed"]]
    assert [each["name"] for each in failed] == ["fetches docs.example alone"]
    assert stable(version) == "1"


def test_a_canary_becomes_stable_by_itself_only_when_its_cases_are_green(alice, carry, keep):
    first = carry(None)
    decide_release(actor=alice, version=first, approve=True)
    second = carry(cases(), before=first)
    decide_release(actor=alice, version=second, approve=True, channel="canary")
    keep(second)
    assert stable(first) == "1", "nobody said that it may"
    set_promotion(actor=alice, skill=first.skill, promotes=True)
    keep(second)
    assert stable(first) == "2"
    assert first.skill.canary is None
    bad = add_version(
        actor=alice, skill=first.skill, files={"SKILL.md": HEAD, CASES: cases("Go away")}
    )
    ask_for_release(actor=alice, version=bad)
    decide_release(actor=alice, version=bad, approve=True, channel="canary")
    keep(bad)
    assert stable(first) == "2"


def test_cases_that_cannot_be_read_keep_a_version_from_a_review(alice, acme):
    files = {"SKILL.md": HEAD, CASES: b"version: 1\nname: x\ncases:\n- {name: a}\n"}
    version = create_skill(actor=alice, organisation=acme, files=files)
    with pytest.raises(Conflict, match="cases"):
        ask_for_release(actor=alice, version=version)
    assert contract(version).green is False


def test_trials_of_another_versions_cases_say_nothing_of_this_one(alice, acme, carry, keep, agent):
    version = carry(cases())
    keep(version)
    other = carry(cases() + b"- {name: b, input: a, checks: [{type: text, all: [a]}]}\n", version)
    assert contract(version).green
    assert not contract(other).green


def test_who_does_not_manage_neither_tries_nor_promotes(alice, bob, mallory, acme, carry, client):
    version = carry(cases())
    with pytest.raises(NotFound):
        suite_for(actor=mallory, organisation=acme, version=version)
    with pytest.raises(NotFound):
        set_promotion(actor=mallory, skill=version.skill, promotes=True)
    decide_release(actor=alice, version=version, approve=True, channel="canary")
    with pytest.raises(Forbidden):
        set_promotion(actor=bob, skill=version.skill, promotes=True)
    client.force_login(bob)
    assert client.get(f"/evals/skills/{version.uid}/").status_code == 403


def test_a_manager_tries_them_from_the_page_of_the_version(
    alice, acme, carry, agent, environment, client
):
    version = carry(cases())
    client.force_login(alice)
    page = client.get(f"/skills/{version.skill.uid}/versions/{version.label}/").content.decode()
    place = f"/evals/skills/{version.uid}/"
    assert place in page
    given = {
        "agent": agent.uid,
        "environment": environment.uid,
        "scripted": "on",
        "repetitions": "1",
        "parallel": "1",
        "shown_organisation": acme.uid,
    }
    answer = client.post(place, given)
    evaluation = ended(Evaluation.objects.get(skill_version=version))
    assert answer["Location"] == f"/evals/runs/{evaluation.uid}/"
    assert "green" in client.get(place).content.decode()


@pytest.mark.usefixtures("needs_bubblewrap")
def test_every_skill_that_we_ship_keeps_its_cases_in_a_sandbox_without_network(begin):
    seed_skills()
    SkillVersion.objects.exclude(removal_on=None).update(
        removal_on=timezone.now().date() + timedelta(days=1)
    )
    versions = [skill.stable for skill in Skill.objects.filter(shipped=True) if skill.stable]
    assert len(versions) == len([place for place in SHIPPED.iterdir() if place.is_dir()])
    under_way = [begin(version) for version in versions]
    failed = [
        (version.skill.name, trial.name, trial.problem, trial.outcomes)
        for version, evaluation in zip(versions, under_way, strict=True)
        for trial in ended(evaluation).trials.all()
        if trial.state != "passed"
    ]
    assert failed == []
    for version in versions:
        found = contract_of(version)
        assert found is not None, f"{version} carries cases"
        assert found.green, found.why
