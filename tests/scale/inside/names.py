"""Run by `test_on_postgresql`: of two who make a thing of one name at once, the second hears that it is taken
or changes what is there. Neither meets a fault of the database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction

from accounts.models import Organisation, User
from evals.actions.suites import change_suite, create_suite, import_suite
from evals.checks.spec import SuiteSpec
from evals.models import Suite
from harness.errors import Conflict
from pipelines.actions.definitions import save_pipeline
from pipelines.models import Pipeline
from prompts.actions.prompts import create_prompt
from prompts.models import Prompt
from skills_app.actions.skills import create_skill
from skills_app.actions.sources import add_source
from skills_app.models import Skill, SkillSource
from tests.conversations.conftest import (  # noqa: F401 - fixtures
    environment,
    make_agent,
    until,
)
from tests.patience import PATIENCE
from tests.pipelines.conftest import spec_of, step, worker  # noqa: F401 - fixtures
from tests.scale.inside.locks import in_a_thread, somebody_waits_for_a_lock
from tests.skills_app.conftest import files_of

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[[], object]


def both(make: Make) -> list[object]:
    """What comes of two: the second begins when the first has made it and is not yet done."""
    made = threading.Event()

    def first() -> object:
        with transaction.atomic():
            done = make()
            made.set()
            until(somebody_waits_for_a_lock)
        return done

    def second() -> object:
        assert made.wait(PATIENCE)
        try:
            return make()
        except Conflict as problem:
            return problem

    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(in_a_thread(work)) for work in (first, second)]
        return [each.result(PATIENCE) for each in found]


def test_a_suite_a_prompt_or_a_skill_is_made_once(alice: User, staff: User, acme: Organisation):
    makes: dict[str, Make] = {
        "suite": lambda: create_suite(actor=alice, organisation=acme, name="Manners"),
        "prompt": lambda: create_prompt(actor=alice, organisation=acme, name="tone", text="Kind."),
        "prompt of the server": lambda: create_prompt(
            actor=staff, organisation=None, name="tone", text="Kind."
        ),
        "skill": lambda: create_skill(actor=alice, organisation=acme, files=files_of()),
        "skill of the server": lambda: create_skill(
            actor=staff, organisation=None, files=files_of()
        ),
        "source of skills": lambda: add_source(
            actor=alice,
            organisation=acme,
            kind="git",
            address="https://git.example.org/skills",
            commit="0" * 40,
        ),
    }
    came = {name: isinstance(both(make)[1], Conflict) for name, make in makes.items()}
    assert came == dict.fromkeys(makes, True)
    assert [rows.objects.count() for rows in (Suite, Prompt, Skill, SkillSource)] == [1, 2, 2, 1]


def test_a_suite_that_is_imported_twice_and_a_pipeline_that_is_saved_twice_are_one(
    alice: User,
    acme: Organisation,
    worker: object,  # noqa: F811
):
    first, second = both(
        lambda: import_suite(actor=alice, organisation=acme, spec=SuiteSpec(name="Manners"))
    )
    assert first == second == Suite.objects.get()
    drawn = spec_of(step("one"))
    first, second = both(lambda: save_pipeline(actor=alice, organisation=acme, spec=drawn))
    assert first == second
    assert Pipeline.objects.count() == 1


def test_a_suite_is_renamed_into_a_name_that_somebody_takes_meanwhile(
    alice: User, acme: Organisation
):
    suites = [create_suite(actor=alice, organisation=acme, name=name) for name in ("One", "Two")]
    waiting = iter(suites)
    _renamed, refused = both(lambda: change_suite(actor=alice, suite=next(waiting), name="Three"))
    assert isinstance(refused, Conflict)
