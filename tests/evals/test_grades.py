"""Points that people give to tries, beside what was judged."""

from __future__ import annotations

import pytest

from evals.actions.grades import grade_trial
from evals.exporting import as_json
from evals.models import Evaluation, Grade, Trial
from evals.reports import case_lines, summary
from harness.errors import Forbidden, Invalid, NotFound

from .test_api import program

__all__ = ["program"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def evaluation(add_cases, try_it) -> Evaluation:
    add_cases()
    made: Evaluation = try_it()
    return made


def graded(alice, evaluation, points, note="") -> tuple[int, int, bool]:
    """How many tries have points, how many of these agree, and whether the case is judged differently."""
    grade_trial(
        actor=alice, evaluation=evaluation, case="greets", repetition=1, points=points, note=note
    )
    told = summary(evaluation)
    return told.graded, told.agreed, case_lines(evaluation)[0].disagreed


def test_an_owner_gives_points_on_the_page_changes_them_and_takes_them_back(
    alice, evaluation, client_of
):
    client, page = client_of(alice), f"/evals/runs/{evaluation.uid}/"
    given = {"case": "greets", "repetition": "1", "points": "2", "note": "It is curt."}
    assert client.post(f"{page}grade/", given).headers["Location"] == page
    told = client.get(page).content.decode()
    assert "alice: 2 of 5 – It is curt." in told
    assert "judged differently" in told
    assert "1 try, 0 as it was judged" in told

    client.post(f"{page}grade/", {**given, "points": "4", "note": ""})
    told = client.get(page).content.decode()
    assert "alice: 4 of 5" in told
    assert "It is curt." not in told
    assert "judged differently" not in told

    client.post(f"{page}grade/", {**given, "points": ""})
    assert not Grade.objects.exists()


def test_without_judges_a_person_agrees_with_whether_it_passed(alice, evaluation):
    assert graded(alice, evaluation, 3) == (1, 1, False)
    assert graded(alice, evaluation, 2) == (1, 0, True)
    evaluation.trials.update(state=Trial.State.FAILED)
    assert graded(alice, evaluation, 2) == (1, 1, False)
    assert graded(alice, evaluation, None) == (0, 0, False)


def test_where_judges_gave_points_a_person_is_compared_with_them(alice, evaluation):
    trial = evaluation.trials.get()
    trial.outcomes = [{**trial.outcomes[0], "points": 1.0}]
    trial.save()
    assert graded(alice, evaluation, 4) == (1, 1, False)
    assert graded(alice, evaluation, 3) == (1, 0, True)
    assert as_json(evaluation)["trials"][0]["grades"] == [
        {"by": "alice", "points": 3, "of": 5, "note": ""}
    ]


def test_whoever_does_not_manage_the_suite_gives_none(bob, mallory, evaluation, client_of):
    for person in (bob, mallory):
        with pytest.raises((NotFound, Forbidden)):
            graded(person, evaluation, 1)
        answer = client_of(person).post(
            f"/evals/runs/{evaluation.uid}/grade/",
            {"case": "greets", "repetition": "1", "points": "1"},
        )
        assert answer.status_code in {403, 404}
    assert not Grade.objects.exists()


def test_what_is_no_number_of_points_or_no_try_is_refused(alice, evaluation):
    for points in (0, 6):
        with pytest.raises(Invalid) as refused:
            graded(alice, evaluation, points)
        assert refused.value.field == "points"
    with pytest.raises(Invalid) as refused:
        graded(alice, evaluation, 3, "x" * 501)
    assert refused.value.field == "note"
    for case, repetition in (("greets", 2), ("gone", 1), ("greets\0", 10**12)):
        with pytest.raises(NotFound):
            grade_trial(
                actor=alice, evaluation=evaluation, case=case, repetition=repetition, points=3
            )
    evaluation.trials.update(state=Trial.State.BROKEN)
    with pytest.raises(NotFound):
        graded(alice, evaluation, 3)


def test_programs_give_points_too(alice, mallory, elsewhere, evaluation, program):
    path = f"runs/{evaluation.uid}/grades"
    given = {"case": "greets", "points": 5, "note": "Warm."}
    assert program(mallory, "POST", path, given).status_code == 404
    answer = program(alice, "POST", path, given).json()
    assert answer["grades"] == [{"by": "alice", "points": 5, "of": 5, "note": "Warm."}]
    assert program(alice, "POST", path, {**given, "points": 6}).status_code == 422
    assert program(alice, "POST", path, {**given, "points": None}).json()["grades"] == []
