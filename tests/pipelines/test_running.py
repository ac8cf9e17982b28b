"""Runs go through the real engine step by step, wait where they must, and do nothing twice."""

from __future__ import annotations

import pytest

from accounts.actions.service_accounts import create_service_account
from agents.models import AgentVersion
from approvals.models import Approval
from audit.models import AuditEntry
from conversations.actions.deciding import decide_call
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.errors import Conflict, Forbidden, Invalid, NotFound, ProviderError
from harness.events import AgentMessage, AgentToolResult, AgentToolUse, UserMessage
from harness.history import Entry
from harness.redacted import REMOVED
from jobs.dispatch import dispatch
from pipelines import running
from pipelines.actions.definitions import archive_pipeline, save_pipeline
from pipelines.actions.runs import continue_run, decide_step, delete_run, start_run, stop_run
from pipelines.models import Pipeline, PipelineRun, StepRun
from pipelines.showing import show
from pipelines.standing import rest_of
from pipelines.waiting import asking, number_asking
from programs.actions.sessions import cap_session
from providers.scripted import call, registered
from tests.approvals.asking import asks
from tests.conversations.conftest import still, until

from .conftest import QUESTION, asked, ended, names, spec_of, step

pytestmark = pytest.mark.django_db(transaction=True)

GATE = [
    {"when": {"field": "score", "at_least": 0.7}, "to": "end"},
    {"to": "write", "at_most": 1},
    {"to": "fail"},
]
ASKS = {"name": "release", "approval": "May this go out? {{a}}"}


def model_calls(run: PipelineRun) -> int:
    rows = Event.objects.filter(conversation__parent=run.root, type="span.model_request_start")
    return rows.count()


# --- definitions ----------------------------------------------------------------------------------


def test_a_version_never_changes_and_the_same_one_is_none(alice, acme, worker):
    first = save_pipeline(actor=alice, organisation=acme, spec=spec_of(step("a")))
    again = save_pipeline(actor=alice, organisation=acme, spec=spec_of(step("a")))
    other = save_pipeline(actor=alice, organisation=acme, spec=spec_of(step("b")), note="Better")

    assert again == first
    assert (other.number, other.pipeline) == (2, first.pipeline)
    first.refresh_from_db()
    assert [each.name for each in first.spec.steps] == ["a"]
    assert AuditEntry.objects.filter(action="pipeline_saved").count() == 2


def test_a_step_stays_with_the_version_of_its_agent_that_was_in_use(start, worker, alice):
    run = ended(start(step("a")))
    newer = AgentVersion.objects.create(
        agent=worker, number=2, stored_config=worker.current.stored_config
    )
    worker.current = newer
    worker.save()

    later = ended(
        start_run(actor=alice, pipeline=run.version.pipeline, question="x", scripted=True)
    )

    assert later.steps.get().conversation.agent_version.number == 1
    # What is saved from now on has the one of now, though it says the same.
    spec = run.version.spec
    assert save_pipeline(actor=alice, organisation=run.root.organisation, spec=spec).number == 2


def test_all_that_is_wrong_is_said_at_once(alice, acme, worker):
    spec = spec_of(step("a", agent="Nobody"), step("b", version=9), step("a2", prompt="{{later}}"))

    with pytest.raises(Invalid) as refused:
        save_pipeline(actor=alice, organisation=acme, spec=spec)

    for words in ("“a”: The agent “Nobody” is not on offer.", "no version 9", "{{later}}"):
        assert words in refused.value.message


def test_members_run_pipelines_and_do_not_define_them(alice, acme, bob, mallory, worker):
    with pytest.raises(Forbidden):
        save_pipeline(actor=bob, organisation=acme, spec=spec_of(step("a")))
    with pytest.raises(NotFound):
        save_pipeline(actor=mallory, organisation=acme, spec=spec_of(step("a")))
    made = save_pipeline(actor=alice, organisation=acme, spec=spec_of(step("a"))).pipeline
    with pytest.raises(Forbidden):
        archive_pipeline(actor=bob, pipeline=made, archived=True)
    with pytest.raises(NotFound):
        archive_pipeline(actor=mallory, pipeline=made, archived=True)
    with pytest.raises(NotFound):
        start_run(actor=mallory, pipeline=made, question="x")
    assert not Pipeline.objects.visible_to(mallory).exists()

    run = ended(start_run(actor=bob, pipeline=made, question="x", scripted=True))

    assert run.state == "done"
    assert run.root.owner == bob


def test_what_was_put_away_is_started_no_more(start, alice):
    run = ended(start(step("a")))
    pipeline = run.version.pipeline
    archive_pipeline(actor=alice, pipeline=pipeline, archived=True)

    with pytest.raises(Conflict):
        start_run(actor=alice, pipeline=pipeline, question="x")

    archive_pipeline(actor=alice, pipeline=pipeline, archived=False)
    assert start_run(actor=alice, pipeline=pipeline, question="x", scripted=True)


@pytest.mark.parametrize("question", ["", " \n", "x" * 20_001])
def test_a_question_that_is_none_starts_nothing(start, alice, question):
    pipeline = ended(start(step("a"))).version.pipeline

    with pytest.raises(Invalid):
        start_run(actor=alice, pipeline=pipeline, question=question)

    assert PipelineRun.objects.count() == 1


# --- the way through ------------------------------------------------------------------------------


def test_the_shipped_pipeline_routes_retries_with_another_question_and_replaces_the_draft(
    example, alice, environment
):
    run = start_run(
        actor=alice,
        pipeline=example.pipeline,
        question=QUESTION,
        environment=environment,
        scripted=True,
    )
    ended(run)

    once = ["research", "calculate", "write", "review"]
    assert names(run) == ["route", *once, *once]
    assert run.state == "done"
    shown = show(run, alice)
    assert shown.answer.startswith("Two of them are 660 m high")
    assert asked(run, 2) != asked(run, 6)
    assert "the height of today" in asked(run, 6)
    # The second draft is written without the first.
    assert "600 m" not in asked(run, 8)
    assert shown.figures.model_calls == 0 or shown.figures.cost == 0
    assert model_calls(run) == 9


def test_a_word_chooses_the_step_and_what_it_skips_is_empty(start):
    run = ended(
        start(
            step(
                "route",
                "calculate",
                words=["research", "calculate"],
                next=[{"when": {"word": ["calculate"]}, "to": "calculate"}, {"to": "research"}],
            ),
            step("research"),
            step("calculate", prompt="Facts: <{{research}}>, {{route}}, {{try}}"),
        )
    )

    assert names(run) == ["route", "calculate"]
    assert asked(run, 2) == "Facts: <>, calculate, 1"


def test_an_answer_that_cannot_be_read_is_asked_for_anew_so_often_as_it_may(start):
    route = step(
        "route",
        "Hm.",
        "Well.",
        words=["yes", "no"],
        tries=2,
        again="{{problem}} You said {{route}}",
    )

    run = ended(start(route, step("a")))

    assert names(run) == ["route", "route"]
    assert run.state == "failed"
    assert run.problem == "“route” came to no answer that can be used."
    assert asked(run, 2).startswith("Its answer does not say one of these words")
    assert asked(run, 2).endswith("You said Hm.")


def test_a_gate_that_is_not_passed_fails_the_run_and_keeps_the_draft(start, alice):
    run = ended(
        start(
            step("write", "Draft 1", "Draft 2", again="Anew: {{review}}"),
            step("review", '{"score": 0.1}', next=GATE),
            answer="write",
        )
    )

    assert names(run) == ["write", "review", "write", "review"]
    assert (run.state, run.problem) == (
        "failed",
        "What “review” answered ends it: it did not pass.",
    )
    assert show(run, alice).answer == "Draft 2"


def test_an_agent_that_is_archived_meanwhile_ends_the_run_with_words(start, alice, make_agent):
    other = make_agent("Other", provider="demo")
    run = start(step("a"), ASKS, step("b", agent="Other"))
    until(lambda: run.steps.filter(state="asking").exists())
    other.archived_at = run.started_at
    other.save()

    decide_step(actor=alice, run=run, place=2, approved=True)

    ended(run)
    assert run.state == "failed"
    assert run.problem == "“b” could not begin: The agent “Other” is not on offer."
    assert names(run) == ["a", "release", "b"]


# --- nothing twice --------------------------------------------------------------------------------


def test_hints_that_come_often_or_late_change_nothing(start):
    run = ended(start(step("a"), step("b")))
    for _each in range(3):
        running.go_on(run.pk)
        running.look_again()
        dispatch(running.LOOK, run_id=run.pk)
    still()

    assert names(run) == ["a", "b"]
    assert model_calls(run) == 2


def test_a_run_whose_hints_were_all_lost_is_found_by_the_sweep(start, monkeypatch, alice):
    with monkeypatch.context() as lost:
        lost.setattr("pipelines.actions.runs.dispatch", lambda *_a, **_k: None)
        lost.setattr("pipelines.projection.dispatch", lambda *_a, **_k: None)
        run = start(step("a"), step("b"))
        running.look_again()
        until(lambda: run.steps.filter(conversation__stop_reason="end_turn").exists())
        still()
        assert names(run) == ["a"]

    running.look_again()

    assert ended(run).state == "done"
    assert names(run) == ["a", "b"]
    assert model_calls(run) == 2


def test_runs_that_wait_for_somebody_do_not_keep_the_sweep_from_others(start, monkeypatch):
    asking = start(step("a"), ASKS, step("b"))
    until(lambda: asking.steps.filter(state="asking").exists())
    with monkeypatch.context() as lost:
        lost.setattr("pipelines.projection.dispatch", lambda *_a, **_k: None)
        run = start(step("a"), name="Other")
        until(lambda: run.steps.filter(conversation__stop_reason="end_turn").exists())
        still()
    monkeypatch.setattr(running, "AT_A_TIME", 1)

    running.look_again()
    still()

    run.refresh_from_db()
    assert run.state == "done"


def test_what_is_due_is_what_going_on_changes(start):
    run = start(step("a"), ASKS)
    until(lambda: run.steps.filter(state="asking").exists())
    still()
    assert not PipelineRun.objects.due().exists()
    last = run.steps.filter(place=2)
    child = run.steps.get(place=1).conversation
    run.steps.filter(place=1).update(conversation=None)
    last.update(state="running", conversation=child)
    rows = Conversation.objects.filter(pk=child.pk)
    kept = {"status": "idle", "stop_reason": "end_turn", "owes_run": False}
    for changes, is_due in (
        ({}, True),
        ({"status": "terminated", "stop_reason": ""}, True),
        ({"status": "running"}, False),
        ({"status": "rescheduling"}, False),
        ({"owes_run": True}, False),
        ({"stop_reason": ""}, False),
        ({"stop_reason": "waits_for_worker"}, False),
        ({"stop_reason": "requires_action"}, False),
        ({"stop_reason": "budget_reached"}, False),
        ({"stop_reason": "refusal"}, False),
        ({"stop_reason": "retries_exhausted"}, False),
    ):
        rows.update(**{**kept, **changes})
        child.refresh_from_db()
        rest = rest_of(child)
        assert (rest is not None and rest.ended) is is_due, changes
        assert PipelineRun.objects.due().exists() is is_due, changes
    last.update(conversation=None)
    assert PipelineRun.objects.due().exists()
    last.update(state="done")
    assert PipelineRun.objects.due().exists()


def test_what_the_database_refuses_ends_the_run_and_its_step_instead_of_being_tried_for_ever(
    start, monkeypatch
):
    with monkeypatch.context() as lost:
        lost.setattr("pipelines.projection.dispatch", lambda *_a, **_k: None)
        run = start(step("a"), step("b"))
        until(lambda: run.steps.filter(conversation__stop_reason="end_turn").exists())
        still()
    run.steps.update(place=2)  # where the next step would go

    running.look_again()

    assert (ended(run).state, run.problem) == ("failed", running.FAULT)
    only = run.steps.get()
    assert (only.state, only.problem) == ("failed", running.FAULT)
    assert only.ended_at is not None


def test_what_is_said_later_in_a_step_s_conversation_changes_nothing(start, alice):
    run = start(step("a", "First"), ASKS, step("b", prompt="{{a}}"))
    until(lambda: run.steps.filter(state="asking").exists())
    first = run.steps.get(place=1).conversation
    append(first.pk, [Entry.of(AgentMessage(content=(Text(text="Later"),), model_request_id="r"))])

    decide_step(actor=alice, run=run, place=2, approved=True)
    ended(run)

    assert asked(run, 3) == "First"
    assert not run.steps.get(place=3).conversation.others_wrote


# --- people ---------------------------------------------------------------------------------------


def test_a_person_decides_whether_it_goes_on_and_later_steps_hear_why(start, alice, bob, mallory):
    run = start(step("a", "Draft"), ASKS, step("b", prompt="{{release}}"))
    until(lambda: run.steps.filter(state="asking").exists())
    shown = show(run, alice)
    assert (shown.state, shown.asks) == ("waits", 2)
    assert shown.question_to_person == "May this go out? Draft"
    assert number_asking(alice) == "1"
    assert number_asking(bob) == ""

    with pytest.raises(NotFound):
        decide_step(actor=mallory, run=run, place=2, approved=True)
    share_conversation(actor=alice, conversation=run.root, user_uid=bob.uid, role="writer")
    with pytest.raises(Forbidden):
        decide_step(actor=bob, run=run, place=2, approved=True)
    share_conversation(actor=alice, conversation=run.root, user_uid=bob.uid, role="decider")
    assert list(asking(bob)) == [run]
    decide_step(actor=bob, run=run, place=2, approved=True, comment="Fine by me")
    with pytest.raises(Conflict):
        decide_step(actor=alice, run=run, place=2, approved=False)

    ended(run)
    assert run.state == "done"
    assert asked(run, 3) == "Fine by me"
    assert number_asking(alice) == ""
    third = run.steps.get(place=3).conversation
    approval = asks(third, requester_may_not_decide=True)
    assert list(approval.also_requested_by.all()) == [bob], "she said what it is to do"
    entry = AuditEntry.objects.get(action="pipeline_decided")
    assert (entry.actor, entry.details["decision"]) == (bob, "approved")


def test_a_service_account_is_not_the_person_who_is_asked_not_even_in_its_own_run(
    alice, acme, environment, start
):
    version = start(step("a"), ASKS).version
    robot = create_service_account(actor=alice, organisation=acme, name="Robot")
    run = start_run(
        actor=robot,
        pipeline=version.pipeline,
        question=QUESTION,
        environment=environment,
        scripted=True,
    )
    until(lambda: run.steps.filter(state="asking").exists())
    assert not asking(robot).exists()
    with pytest.raises(Forbidden):
        decide_step(actor=robot, run=run, place=2, approved=True)
    share_conversation(actor=robot, conversation=run.root, user_uid=alice.uid, role="decider")
    decide_step(actor=alice, run=run, place=2, approved=True)
    assert ended(run).state == "done"


def test_a_refusal_ends_the_run_unless_a_rule_says_where_to(start, alice):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    decide_step(actor=alice, run=run, place=2, approved=False)
    assert ended(run).state == "failed"

    back = [
        {"when": {"word": ["approved"]}, "to": "end"},
        {"to": "a", "at_most": 1},
        {"to": "fail"},
    ]
    run = start(step("a", again="Anew, because: {{release}}"), {**ASKS, "next": back}, name="Other")
    until(lambda: run.steps.filter(state="asking").exists())
    decide_step(actor=alice, run=run, place=2, approved=False, comment="Too long")
    until(lambda: run.steps.filter(state="asking", place=4).exists())
    assert asked(run, 3) == "Anew, because: Too long"
    decide_step(actor=alice, run=run, place=4, approved=True)
    assert ended(run).state == "done"


def test_a_call_that_asks_holds_its_step_until_it_is_answered(start, alice, make_agent):
    with registered("asks", [call("write_file", path="a", content="b"), "Written."]):
        make_agent(
            "Careful",
            provider="scripted",
            model="asks",
            tools=[{"tool": "write_file", "permission": "always_ask"}],
        )
        run = start(step("a", agent="Careful"), scripted=False)
        until(lambda: Approval.objects.filter(state="pending").exists())
        still()
        assert show(run, alice).state == "waits"
        approval = Approval.objects.get()
        decide_call(
            actor=alice,
            conversation=approval.conversation,
            call_uid=approval.call_uid,
            allow=True,
        )

        assert ended(run).state == "done"
    assert show(run, alice).answer == "Written."


def test_stopping_ends_the_step_at_work_and_begins_none(start, alice, bob, mallory):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    with pytest.raises(NotFound):
        stop_run(actor=mallory, run=run)
    share_conversation(actor=alice, conversation=run.root, user_uid=bob.uid, role="viewer")
    with pytest.raises(Forbidden):
        stop_run(actor=bob, run=run)

    stop_run(actor=alice, run=run)
    still()

    run.refresh_from_db()
    assert run.state == "stopped"
    assert [each.state for each in run.steps.all()] == ["done", "stopped"]
    with pytest.raises(Conflict):
        decide_step(actor=alice, run=run, place=2, approved=True)


def test_stopping_reaches_a_step_whose_call_waits(start, alice, make_agent):
    with registered("waits", [call("write_file", path="a", content="b"), "Written."]):
        make_agent(
            "Careful",
            provider="scripted",
            model="waits",
            tools=[{"tool": "write_file", "permission": "always_ask"}],
        )
        run = start(step("a", agent="Careful"), step("b"), scripted=False)
        until(lambda: Approval.objects.filter(state="pending").exists())
        still()
        stop_run(actor=alice, run=run)
        still()

    only = run.steps.get()
    assert only.state == "stopped"
    assert not only.conversation.waits_for_person
    assert not Approval.objects.filter(state="pending").exists()


def test_who_sees_the_conversation_sees_the_run_and_nobody_else(start, alice, bob, mallory):
    run = ended(start(step("a")))
    for person in (bob, mallory):
        assert not PipelineRun.objects.visible_to(person).exists()
    share_conversation(actor=alice, conversation=run.root, user_uid=bob.uid, role="viewer")

    assert PipelineRun.objects.visible_to(bob).get() == run
    assert show(run, bob).steps[0].conversation == ""
    assert show(run, alice).steps[0].conversation != ""
    with pytest.raises(Forbidden):
        delete_run(actor=bob, run=run)
    with pytest.raises(NotFound):
        delete_run(actor=mallory, run=run)
    delete_run(actor=alice, run=run)
    assert not Conversation.objects.exists()
    assert not PipelineRun.objects.exists()


# --- money and failures ---------------------------------------------------------------------------


def test_money_that_runs_out_in_the_middle_holds_the_step_and_more_of_it_goes_on_there(
    start, alice, mallory, make_agent, prices
):
    with registered("spends", lambda _request: "Done."):
        make_agent("Spender", provider="scripted", model="spends")
        run = start(step("a", agent="Spender"), ASKS, step("b", agent="Spender"), scripted=False)
        until(lambda: run.steps.filter(state="asking").exists())
        # What was spent by now is all there may be.
        cap_session(actor=alice, conversation=run.root, limit=1)
        decide_step(actor=alice, run=run, place=2, approved=True)
        until(lambda: Conversation.objects.filter(stop_reason="budget_reached").exists())
        still()
        shown = show(run, alice)
        assert (shown.state, shown.may_go_on) == ("waits", True)
        assert names(run) == ["a", "release", "b"]
        with pytest.raises(NotFound):
            continue_run(actor=mallory, run=run)

        continue_run(actor=alice, run=run, limit=10**12)

        assert ended(run).state == "done"
    assert names(run) == ["a", "release", "b"]
    with pytest.raises(Conflict):
        continue_run(actor=alice, run=run)


def test_a_service_that_was_away_holds_the_step_and_it_goes_on_there(start, alice, make_agent):
    down = [True]

    def answer(_request):
        if down:
            return ProviderError("It is away.")
        return "Done."

    with registered("away", answer):
        make_agent("Away", provider="scripted", model="away")
        run = start(step("a"), step("b", agent="Away"), scripted=False)
        until(lambda: Conversation.objects.filter(stop_reason="retries_exhausted").exists())
        still()
        assert show(run, alice).state == "waits"
        down.clear()
        continue_run(actor=alice, run=run)
        assert ended(run).state == "done"
    assert names(run) == ["a", "b"]


# --- what strangers wrote, what is taken out ------------------------------------------------------


def test_what_strangers_wrote_marks_the_steps_that_repeat_it_and_no_others(start, alice):
    run = start(step("a"), ASKS, step("b", prompt="{{a}}"), step("c", prompt="{{b}}"), step("d"))
    until(lambda: run.steps.filter(state="asking").exists())
    first = run.steps.get(place=1)
    use = Entry.of(AgentToolUse(name="fetch", input={}, model_request_id="r"))
    brought = AgentToolResult(tool_use_id=use.uid, content=(Text(text="Hi"),), untrusted=True)
    append(first.conversation_id, [use, Entry.of(brought)])

    decide_step(actor=alice, run=run, place=2, approved=True)
    ended(run)

    marks = [
        row.payload.get("untrusted_by", "")
        for row in Event.objects.filter(
            conversation__parent=run.root, type="user.message"
        ).order_by("conversation__pipeline_step__place")
    ]
    assert marks[0] == ""
    assert marks[1] == "fetch, by way of the step a"
    assert marks[2].endswith("by way of the step b")
    assert marks[3] == ""


def test_what_is_taken_out_of_one_step_goes_from_all_that_repeat_it(start, alice):
    run = start(
        step("a", "The word is swordfish."),
        ASKS,
        step(
            "b",
            '{"score": 1, "said": "swordfish"}',
            prompt="{{question}}: {{a}} ({{release}})",
            next=[
                {"when": {"field": "said", "equals": "x"}, "to": "fail"},
                {"to": "c"},
            ],
        ),
        step("c", prompt="{{release}}"),
    )
    until(lambda: run.steps.filter(state="asking").exists())
    decide_step(actor=alice, run=run, place=2, approved=True, comment="Zoe is fine with it")
    ended(run)
    first = run.steps.get(place=1).conversation
    assert (QUESTION in asked(run, 1), "Zoe" in asked(run, 4)) == (True, True)
    said = Event.objects.get(conversation=first, type="agent.message")

    redact_content(actor=alice, conversation=first, event_uid=said.uid)

    run.refresh_from_db()
    assert "swordfish" not in asked(run, 3)
    assert run.question == REMOVED, "the prompt that was taken out had it too"
    assert asked(run, 1) == REMOVED, "so has the first one"
    assert asked(run, 4) == REMOVED, "and what a person said there"
    assert run.steps.get(place=1).outcome.get("fields") == {}
    answer = Event.objects.get(
        conversation=run.steps.get(place=3).conversation, type="agent.message"
    )
    redact_content(actor=alice, conversation=answer.conversation, event_uid=answer.uid)
    assert run.steps.get(place=3).outcome["fields"] == {"said": REMOVED}


@pytest.mark.parametrize("wrote", [True, False])
def test_who_wrote_in_a_step_does_not_decide_for_those_that_repeat_it(start, bob, alice, wrote):
    run = start(step("a", "First"), ASKS, step("b", prompt="{{a}}"), step("c", prompt="{{b}}"))
    until(lambda: run.steps.filter(state="asking").exists())
    first = run.steps.get(place=1).conversation
    if wrote:
        message = Entry.of(UserMessage(content=(Text(text="Have it sent."),)))
        append(first.pk, [message], actor=bob)

    decide_step(actor=alice, run=run, place=2, approved=True)
    ended(run)

    for place in (3, 4):
        conversation = run.steps.get(place=place).conversation
        approval = asks(conversation, requester_may_not_decide=True)
        assert list(approval.also_requested_by.all()) == ([bob] if wrote else [])


def test_what_is_repeated_of_a_step_that_was_deleted_may_be_anybodys(start, alice):
    run = start(step("a", "First"), ASKS, step("b", prompt="So: {{a}}"))
    until(lambda: run.steps.filter(state="asking").exists())
    run.steps.get(place=1).conversation.delete()

    decide_step(actor=alice, run=run, place=2, approved=True)
    ended(run)

    said = run.steps.get(place=3).conversation.events.get(type="user.message").value
    assert "by way of the step a" in said.untrusted_by


def test_a_step_whose_conversation_is_deleted_ends_the_run(start, alice):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    StepRun.objects.filter(run=run, place=2).update(state="running")

    running.go_on(run.pk)

    run.refresh_from_db()
    assert run.state == "failed"
    assert run.steps.get(place=2).problem == "Its conversation was deleted."
