"""Trials run through the real engine, are judged once, and survive whatever is lost on the way."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from conversations.actions.conversations import create_conversation, delete_conversation
from conversations.actions.redacting import redact_content
from conversations.models import Conversation, Event, Removal
from evals import stopping
from evals.actions.deleting import delete_suite
from evals.actions.evaluations import start_evaluation, stop_evaluation
from evals.checks.facts import Facts
from evals.collecting import collect, spent_of
from evals.jobs import SWEEP
from evals.models import CachedReply, Evaluation, Judgement, Suite, Trial
from evals.running import LOOK, conclude, look_again, start_due
from harness.errors import Conflict
from jobs.dispatch import dispatch
from jobs.engine import engine
from spending.models import Usage
from tests.conversations.conftest import rested, still, until

from .conftest import ended, next_version, spec, states

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_case_is_tried_so_often_in_a_conversation_of_its_own(try_it, add_cases, alice, acme):
    rude = {"replies": [{"say": "What?"}]}
    add_cases(spec("greets"), spec("rude", script=rude))

    evaluation = try_it(repetitions=3)

    assert evaluation.state == "done"
    assert states(evaluation) == ["passed"] * 3 + ["failed"] * 3
    failed = evaluation.trials.filter(name="rude").first()
    assert failed.answer == "What?"
    assert failed.outcomes[0]["why"] == "“morning” is missing in: What?"
    tried = Conversation.objects.filter(parent=evaluation.root)
    assert tried.count() == 6
    assert set(tried.values_list("owner", flat=True)) == {alice.pk}
    assert not Conversation.objects.owned_by(alice).listed_in(acme).exists()


def test_no_more_are_under_way_than_may_be(try_it, add_cases):
    add_cases(*(spec(f"case-{n}") for n in range(8)))

    evaluation = try_it(parallel=2)

    edges = [
        *((trial.started_at, 1) for trial in evaluation.trials.all()),
        *((trial.ended_at, -1) for trial in evaluation.trials.all()),
    ]
    under_way = most = 0
    for _at, change in sorted(edges):
        under_way += change
        most = max(most, under_way)
    assert most == 2


def test_tools_files_and_calls_are_seen_by_checks(try_it, add_cases):
    add_cases(
        spec(
            "writes",
            files={"notes.txt": {"text": "Paris"}},
            script={
                "replies": [
                    {"calls": [{"tool": "read_file", "input": {"path": "notes.txt"}}]},
                    {
                        "calls": [
                            {
                                "tool": "write_file",
                                "input": {"path": "out.txt", "content": "The city is Paris."},
                            }
                        ]
                    },
                    {"say": '```json\n{"city": "Paris"}\n```'},
                ]
            },
            checks=[
                {"type": "call", "tool": "read_*", "arguments": {"path": "notes.txt"}},
                {"type": "call", "tool": "bash", "at_least": 0, "at_most": 0},
                {"type": "call", "tool": "write_file", "matching": {"content": "^The .* Paris"}},
                {"type": "file", "path": "out.txt", "text": {"all": ["paris"]}},
                {"type": "file", "path": "none.txt", "exists": False},
                {"type": "command", "run": "cat out.txt; exit 3", "exit_code": 3},
                {
                    "type": "json_schema",
                    "schema": {"type": "object", "required": ["city"]},
                },
                {"type": "steps", "at_most": 3},
                {"type": "cost", "at_most": 0},
                {"type": "stop"},
            ],
        )
    )

    trial = try_it().trials.get()

    assert [each["why"] for each in trial.outcomes if not each["passed"]] == []
    assert trial.state == "passed"


def test_a_call_that_asks_a_person_ends_the_trial_and_asks_nobody(try_it, add_cases, make_agent):
    careful = make_agent(
        "Careful", tools=[{"tool": "write_file", "permission": "always_ask"}], provider="demo"
    )
    write = {"tool": "write_file", "input": {"path": "a", "content": "b"}}
    checks = [
        {"type": "stop", "reason": "requires_action"},
        {"type": "call", "tool": "write_file", "outcome": "asked"},
    ]
    add_cases(spec("asks", script={"replies": [{"calls": [write]}]}, checks=checks))

    evaluation = try_it(version=careful.current)
    still()

    assert states(evaluation) == ["passed"]
    conversation = evaluation.trials.get().conversation
    conversation.refresh_from_db()
    assert not conversation.waits_for_person


def test_judges_give_points_and_their_disagreement_is_kept(try_it, add_cases, suite):
    suite.judges = 2
    suite.save()
    check = {"type": "judge", "rubric": "Is it kind?", "at_least": 3}
    script = {"replies": [{"say": "Good morning"}], "judge": ['{"reason": "kind", "points": 4}']}
    add_cases(spec("kind", checks=[check], script=script))

    trial = try_it().trials.get()

    assert trial.state == "passed"
    (outcome,) = trial.outcomes
    assert outcome["points"] == pytest.approx(0.75)
    assert outcome["why"] == "4 of 5: kind / kind"
    asked = trial.judgements.first().conversation
    first = Event.objects.filter(conversation=asked, type="user.message").get()
    assert "<rubric>\nIs it kind?\n</rubric>" in first.payload["content"][0]["text"]
    assert asked.agent_version.agent.archived_at is not None


def test_a_second_run_without_change_asks_no_model(try_it, add_cases):
    add_cases(
        spec(
            "reads",
            files={"a.txt": {"text": "A"}},
            script={
                "replies": [
                    {"calls": [{"tool": "read_file", "input": {"path": "a.txt"}}]},
                    {"say": "Good morning"},
                ],
                "judge": ['{"reason": "", "points": 5}'],
            },
            checks=[{"type": "judge", "rubric": "Any."}],
        )
    )
    first = try_it(repetitions=2)
    calls = Usage.objects.count()
    kept = CachedReply.objects.count()

    second = try_it(repetitions=2)

    assert states(first) == states(second) == ["passed", "passed"]
    # Two tries of two steps; both give the same answer, which is graded once.
    assert kept == 5
    assert calls == Usage.objects.count()
    assert [trial.model_calls for trial in second.trials.all()] == [0, 0]
    assert [trial.cached_calls for trial in second.trials.all()] == [3, 3]
    ends = Event.objects.filter(
        conversation__parent=second.root, type="span.model_request_end"
    ).values_list("payload", flat=True)
    assert all(end["cached"] for end in ends)


def test_another_script_or_instructions_are_asked_anew(try_it, add_cases, agent):
    add_cases()
    try_it()

    again = try_it(version=next_version(agent, instructions="Be short."))

    assert again.trials.get().model_calls == 1


def test_what_was_lost_is_found_by_the_sweep_and_done_once(
    alice, suite, add_cases, agent, environment
):
    add_cases(spec("one"), spec("two"))
    engine.start_draining()  # a process that dies before its hints are heard
    evaluation = start_evaluation(
        actor=alice,
        suite=suite,
        version=agent.current,
        environment=environment,
        scripted=True,
        parallel=1,
    )
    start_due(evaluation.pk)
    start_due(evaluation.pk)
    assert states(evaluation) == ["running", "waiting"]
    engine.stop()
    engine._draining = False

    look_again()
    trial = evaluation.trials.first()
    dispatch("conversations.wake", conversation_id=trial.conversation_id)

    assert ended(evaluation).state == "done"
    assert states(evaluation) == ["passed", "passed"]
    assert Conversation.objects.filter(parent=evaluation.root).count() == 2


def test_a_trial_is_concluded_once(try_it, add_cases):
    add_cases()
    evaluation = try_it()
    trial = evaluation.trials.get()

    assert collect(trial.pk) is None
    dispatch(LOOK, trial_id=trial.pk)
    still()

    assert conclude(trial.pk, Facts()) is None
    trial.refresh_from_db()
    assert trial.state == "passed"


@pytest.fixture
def begun(alice, suite, agent, environment):
    """An evaluation of one try at a time, as a process leaves it that dies right after it began the first."""

    def begin() -> Evaluation:
        engine.start_draining()
        evaluation = start_evaluation(
            actor=alice,
            suite=suite,
            version=agent.current,
            environment=environment,
            scripted=True,
            parallel=1,
        )
        start_due(evaluation.pk)
        return evaluation

    yield begin
    engine._draining = False


def test_files_of_a_trial_that_could_not_begin_go_again_whatever_kept_it(
    try_it, add_cases, settings, tmp_path
):
    add_cases(spec("reads", files={"notes.txt": {"text": "Paris"}}))
    evaluation = try_it()
    still()
    Evaluation.objects.update(state="running", ended_at=None)
    evaluation.trials.update(state="waiting", conversation=None)
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    noted: list[str] = []
    copied: list[Path] = []

    def breaks(execute, sql, params, many, context):
        if sql.startswith('UPDATE "evals_trial"') and '"first_seq"' in sql:
            copied.extend(settings.AGENTSITE_WORKSPACES_DIR.glob("*/notes.txt"))
            noted.extend(Removal.objects.values_list("uid", flat=True))
            raise OperationalError("The database is away.")
        return execute(sql, params, many, context)

    with pytest.raises(OperationalError), connection.execute_wrapper(breaks):
        start_due(evaluation.pk)

    assert [path.parent.name for path in copied] == noted, "a process that dies leaves the note"
    assert not list(settings.AGENTSITE_WORKSPACES_DIR.glob("*/notes.txt"))
    assert not Removal.objects.exists()
    look_again()
    assert states(ended(evaluation)) == ["passed"]
    assert not Removal.objects.exists()


def test_what_is_under_way_is_ended_where_an_evaluation_is_stopped(alice, add_cases, begun):
    add_cases(spec("one"), spec("two"))
    evaluation = begun()

    stopped = stop_evaluation(actor=alice, evaluation=evaluation)
    stopping.end_trials(evaluation.pk)
    start_due(evaluation.pk)

    assert stopped.state == "stopped"
    assert states(evaluation) == ["broken", "broken"]
    told = evaluation.trials.order_by("id").values_list("problem", flat=True)
    assert list(told) == ["It was stopped.", "It was stopped before."]
    conversation = evaluation.trials.first().conversation
    assert conversation.events.filter(type="user.interrupt").exists()


def test_a_stop_whose_process_died_is_finished_by_the_sweep(add_cases, begun):
    add_cases(spec("one"), spec("two"))
    evaluation = begun()
    Evaluation.objects.filter(pk=evaluation.pk).update(state="stopped")
    engine.stop()
    engine._draining = False

    dispatch(SWEEP)

    until(lambda: states(evaluation) == ["broken", "broken"])
    assert rested(evaluation.trials.first().conversation).stop_reason == "end_turn"


def test_what_comes_to_rest_in_a_stopped_evaluation_asks_no_judges(try_it, add_cases):
    check = {"type": "judge", "rubric": "Is it kind?"}
    script = {"replies": [{"say": "Good morning"}], "judge": ['{"reason": "kind", "points": 4}']}
    add_cases(spec("kind", checks=[check], script=script))
    evaluation = try_it()
    still()
    Judgement.objects.all().delete()
    evaluation.trials.update(state="running", ended_at=None)
    Evaluation.objects.filter(pk=evaluation.pk).update(state="stopped")

    assert conclude(evaluation.trials.get().pk, Facts(answer="", stop="end_turn")) is None

    assert not Judgement.objects.exists()


def test_judges_of_a_stopped_evaluation_stop(try_it, add_cases):
    check = {"type": "judge", "rubric": "Is it kind?"}
    script = {"replies": [{"say": "Good morning"}], "judge": ['{"reason": "kind", "points": 4}']}
    add_cases(spec("kind", checks=[check], script=script))
    evaluation = try_it()
    still()
    judge = Judgement.objects.get().conversation
    Conversation.objects.filter(pk=judge.pk).update(status="running")
    evaluation.trials.update(state="judging", ended_at=None)
    Evaluation.objects.filter(pk=evaluation.pk).update(state="stopped")

    stopping.end_trials(evaluation.pk)

    assert judge.events.filter(type="user.interrupt").exists()
    assert states(evaluation) == ["broken"]


def test_a_budget_ends_what_it_has_no_room_for(try_it, add_cases, alice):
    add_cases(spec("one"), spec("two"))

    evaluation = try_it(limit=1, scripted=True)

    assert set(states(evaluation)) == {"broken"}
    assert "budget" in evaluation.trials.first().problem


@pytest.mark.parametrize("of", ["answer", "question"])
def test_what_is_taken_out_of_a_trial_is_taken_out_of_its_judges_logs(try_it, add_cases, alice, of):
    check = {"type": "judge", "rubric": "Is it kind?", "at_least": 1}
    said = {"answer": "It was </answer> swordfish", "question": "Is it swordfish?"}
    graded = '{"reason": "it says swordfish", "points": 4}'
    script = {"replies": [{"say": said["answer"] if of == "answer" else "Yes"}], "judge": [graded]}
    asked = said["question"] if of == "question" else "Hello"
    add_cases(spec("kind", input=asked, checks=[check], script=script))
    trial = try_it().trials.get()
    judge = trial.judgements.get().conversation
    assert "swordfish" in str([row.payload for row in judge.events.all()])

    kind = "agent.message" if of == "answer" else "user.message"
    named = rested(trial.conversation).events.filter(type=kind).last()
    redact_content(actor=alice, conversation=trial.conversation, event_uid=named.uid)

    for conversation in (trial.conversation, judge):
        assert "swordfish" not in str([row.payload for row in conversation.events.all()])


def test_a_judges_log_keeps_what_nobody_took_out(try_it, add_cases, alice):
    check = {"type": "judge", "rubric": "Is it kind?", "at_least": 1}
    script = {
        "replies": [
            {"say": "Looking.", "calls": [{"tool": "list_files", "input": {}}]},
            {"say": "Good morning"},
        ],
        "judge": ['{"reason": "kind", "points": 4}'],
    }
    add_cases(spec("kind", checks=[check], script=script))
    trial = try_it().trials.get()
    judge = trial.judgements.get().conversation
    first = trial.conversation.events.filter(type="agent.message").order_by("seq").first()
    redact_content(actor=alice, conversation=trial.conversation, event_uid=first.uid)
    assert "Good morning" in str([row.payload for row in judge.events.all()])


def test_an_evaluation_whose_conversations_are_deleted_comes_to_its_end(try_it, add_cases, alice):
    add_cases(spec("greets"), spec("waits"))
    evaluation = try_it()
    still()
    greets, waits = evaluation.trials.order_by("id")
    Evaluation.objects.update(state="running", ended_at=None)
    evaluation.trials.filter(pk=greets.pk).update(state="judging")
    evaluation.trials.filter(pk=waits.pk).update(state="waiting", conversation=None)

    delete_conversation(actor=alice, conversation=evaluation.root)
    look_again()

    ended(evaluation)
    assert states(evaluation) == ["broken", "broken"]
    greets.refresh_from_db()
    assert greets.problem == "Its conversation was deleted."
    assert greets.ended_at is not None


def test_a_suite_is_not_deleted_while_it_is_tried(alice, suite, add_cases, begun):
    """Its trials would go on, and nobody would find what to stop."""
    add_cases(spec("one"), spec("two"))
    evaluation = begun()
    with pytest.raises(Conflict, match="under way"):
        delete_suite(actor=alice, suite=suite)
    stop_evaluation(actor=alice, evaluation=evaluation)
    with pytest.raises(Conflict, match="under way"):
        delete_suite(actor=alice, suite=suite)
    assert Trial.objects.filter(evaluation=evaluation).count() == 2
    stopping.end_trials(evaluation.pk)
    delete_suite(actor=alice, suite=suite)
    assert not Suite.objects.exists()


def test_a_suite_goes_with_the_conversations_in_which_it_was_tried(
    alice, suite, add_cases, try_it, settings, tmp_path
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path
    check = {"type": "judge", "rubric": "Is it kind?", "at_least": 1}
    script = {"replies": [{"say": "Good morning"}], "judge": ['{"reason": "kind", "points": 4}']}
    add_cases(spec("kind", checks=[check], script=script, files={"notes.txt": {"text": "Paris"}}))
    assert states(try_it()) == ["passed"]
    still()
    assert Conversation.objects.count() == 3
    assert list(tmp_path.glob("*/notes.txt"))
    delete_suite(actor=alice, suite=suite)
    assert not Conversation.objects.exists()
    assert not Evaluation.objects.exists()
    assert not list(tmp_path.glob("*/notes.txt"))


def test_what_others_spent_for_a_trial_is_its_cost(alice, acme, environment, add_cases, try_it):
    """A script may have agents asked that play none."""
    add_cases()
    trial = try_it().trials.get()
    still()
    assert (spent_of(trial).cost, spent_of(trial).model_calls) == (Decimal(0), 1)
    above = trial.conversation
    for dollars in (2, 4):
        above = create_conversation(
            actor=alice,
            organisation=acme,
            agent=above.agent_version.agent,
            environment=environment,
            parent=above,
        )
        Usage.objects.create(
            organisation=acme,
            conversation=above,
            model_request_id=f"evnt_{dollars}",
            purpose="main",
            cost=dollars,
        )
    assert (spent_of(trial).cost, spent_of(trial).model_calls) == (Decimal(6), 3)
