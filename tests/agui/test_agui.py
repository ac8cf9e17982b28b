"""The AG-UI projection and reconciliation in parts; `tests/contract/test_agui.py` has the whole."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from ag_ui.core import BaseEvent, Interrupt
from ag_ui.core import Event as Told
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import TypeAdapter

from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import TokenScope
from agui.below import SECONDS, Below
from agui.door import Frames
from agui.following import Run, find_or_begin
from agui.incoming import RunInput, servers_of
from agui.interrupts import inputs_of, open_interrupts, subagents_of
from agui.projection import Projection
from conversations import removals
from conversations.actions.conversations import create_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text, text_of
from harness.errors import Conflict, Invalid, NotFound
from harness.events import (
    AgentCustomToolUse,
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    BudgetReached,
    EndTurn,
    McpElsewhere,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    StopDetails,
    SubagentEnded,
    SubagentStarted,
    Todo,
    TodosUpdated,
    UserCustomToolResult,
)
from harness.history import Entry
from mcpservers.actions.handing import Handed
from spending.models import Usage
from subagents.models import Subagent
from teams_app.events import TaskDeleted, TaskFacts, TaskUpdated, TeammateStatus
from tests.chat.drawing import before_query
from tests.conversations.scenes import fill
from tools_app.questions import TOOL
from tools_app.workspace import workspace_for
from v1.door import parse
from wire.ids import OTHER, SESSION

EVENTS: TypeAdapter[Any] = TypeAdapter(Told)


def kinds(events):
    return [event.type.value for event in events]


def wire(event: BaseEvent) -> dict[str, Any]:
    told: dict[str, Any] = EVENTS.validate_json(event.model_dump_json(by_alias=True)).model_dump()
    return told


# --- the projection -------------------------------------------------------------------------------


def entered() -> Projection:
    run = Projection("t", "r")
    run.enter()
    return run


def test_text_that_was_told_as_it_arrived_is_told_once():
    run = entered()
    told = run.arriving("m", "Hel") + run.arriving("m", "lo")
    told += run.happened("m", AgentMessage(content=(Text(text="Hello there"),)))
    assert kinds(told) == ["TEXT_MESSAGE_START", *["TEXT_MESSAGE_CONTENT"] * 3, "TEXT_MESSAGE_END"]
    assert "".join(getattr(event, "delta", "") for event in told) == "Hello there"


def test_what_arrives_before_the_run_began_is_held_back():
    run = Projection("t", "r")
    assert run.arriving("m", "Hel") == []
    run.enter()
    told = run.arriving("m", "lo")
    assert wire(told[-1])["delta"] == "Hello"


def test_a_reply_that_broke_off_is_closed_before_the_run_ends():
    run = entered()
    run.arriving("m", "Hel")
    rest = SessionStatusIdle(
        stop_reason=BudgetReached(),
        stop_details=StopDetails(code="limit_reached", message="Spent.", hint="Ask."),
    )
    told = run.rested(rest, [])
    assert kinds(told) == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    failure = wire(told[-1])
    assert (failure["code"], failure["message"]) == ("limit_reached", "Spent. Ask.")


@pytest.mark.parametrize(
    ("interrupted", "interrupts", "outcome"),
    [
        (False, [], "success"),
        (True, [], "cancelled"),
        (False, [Interrupt(id="i", reason="tool_call")], "interrupt"),
    ],
)
def test_a_run_ends_with_the_outcome_of_its_rest(interrupted, interrupts, outcome):
    rest = SessionStatusIdle(stop_reason=EndTurn(), interrupted=interrupted)
    (finished,) = entered().rested(rest, interrupts)
    assert wire(finished)["outcome"]["type"] == outcome


def test_the_plan_is_state():
    todo = Todo(content="Test", active_form="Testing", status="in_progress")
    (told,) = entered().happened("x", TodosUpdated(todos=(todo,)))
    assert wire(told)["snapshot"] == {"todos": [todo.model_dump()]}


def test_what_the_models_service_called_is_an_event_of_our_own():
    block = {"type": "mcp_tool_use", "id": "m", "name": "look", "input": {}}
    (told,) = entered().happened("x", McpElsewhere(kind="use", server="mail", block=block))
    assert wire(told)["name"] == "agentsite.mcp_elsewhere"
    assert wire(told)["value"]["block"] == block


def test_subagents_teammates_and_tasks_are_activities_and_each_keeps_one_message():
    began = SubagentStarted(
        tool_use_id="c", subagent="sesn_1", name="explore", description="Look", background=True
    )
    ended = SubagentEnded(
        tool_use_id="c", subagent="sesn_1", state="completed", tokens=7, seconds=1.5
    )
    task = TaskFacts(id="task_1", number=1, subject="Write", status="in_progress", owner="anna")
    anna = {"name": "anna", "conversation_id": "sesn_2"}
    run = entered()
    told = [
        wire(event)
        for value in (
            began,
            ended,
            TeammateStatus(**anna, status="working", role="writes"),
            TeammateStatus(**anna, status="idle"),
            TaskUpdated(board_id="board_1", task=task),
            TaskDeleted(board_id="board_1", task=task),
        )
        for event in run.happened("e", value, began)
    ]
    assert {event["type"].value for event in told} == {"ACTIVITY_SNAPSHOT"}
    assert all(event["replace"] for event in told)
    messages = [event["message_id"] for event in told]
    assert messages[::2] == messages[1::2]
    assert len(set(messages)) == 3
    first, last, works, idle, taken, gone = (event["content"] for event in told)
    about = {
        "conversation_id": "sesn_1",
        "tool_use_id": "c",
        "name": "explore",
        "description": "Look",
        "background": True,
    }
    assert first == {**about, "state": "running"}
    assert last == {**about, "state": "completed", "tokens": 7, "seconds": 1.5}
    assert (works, idle) == ({**anna, "status": "working"}, {**anna, "status": "idle"})
    assert (taken["subject"], taken["owner"], taken["status"]) == ("Write", "anna", "in_progress")
    assert gone["status"] == "deleted"


def test_fields_that_nobody_knows_are_named_and_no_answer_is_half_heard():
    run = {"threadId": "plans", "runId": "r", "messages": [], "colour": "red", "forwardedProps": 3}
    assert RunInput.model_validate(run).ignored() == ["forwardedProps", "colour"]

    answer = {"interruptId": "i", "status": "resolved", "paylaod": {"approved": False}}
    with pytest.raises(Invalid) as refused:
        parse({**run, "resume": [answer]}, RunInput)
    assert refused.value.field == "resume[0].paylaod"
    assert "payload" in refused.value.hint


def test_servers_are_read_of_what_is_forwarded_and_the_rest_is_named():
    run = {"threadId": "plans", "runId": "r", "messages": []}
    mine = {"name": "mine", "url": "https://mcp.example.org/"}
    body = RunInput.model_validate(run | {"forwardedProps": {"mcpServers": [mine]}})
    assert servers_of(body) == [Handed(mine["name"], mine["url"])]
    assert body.ignored() == []
    more = run | {"forwardedProps": {"mcpServers": [], "theme": "dark"}}
    assert RunInput.model_validate(more).ignored() == ["forwardedProps"]
    assert servers_of(RunInput.model_validate(run | {"forwardedProps": {"theme": "dark"}})) is None
    wrongs: list[Any] = [{}, [mine | {"command": "npx"}], [mine, mine], [mine | {"name": "No"}]]
    for wrong in wrongs:
        with pytest.raises(Invalid) as refused:
            servers_of(RunInput.model_validate(run | {"forwardedProps": {"mcpServers": wrong}}))
        assert refused.value.field.startswith("forwardedProps.mcpServers")


# --- threads and interrupts -----------------------------------------------------------------------


@pytest.fixture
def caller_of(db):
    def make(user, organisation):
        issued = create_token(
            actor=user, organisation=organisation, name="program", scopes=TokenScope.values
        )
        found = caller_with(issued.secret)
        assert found is not None
        return found

    return make


@pytest.fixture
def hers(caller_of, alice, acme, make_agent, environment):
    make_agent(provider="scripted", model="none")
    return caller_of(alice, acme)


def test_a_name_is_one_conversation_of_each_person(hers, caller_of, mallory, elsewhere):
    first = find_or_begin(hers, "plans", "", "")
    assert find_or_begin(hers, "plans", "", "") == first
    assert find_or_begin(hers, "other plans", "", "") != first
    mallorys = find_or_begin(caller_of(mallory, elsewhere), "plans", "", "")
    assert (first.owner, mallorys.owner) == (hers.user, mallory)
    assert first.uid != mallorys.uid
    assert len(first.uid) == len(Conversation.objects.model().uid)


def test_what_begins_anew_under_a_name_has_its_own_files_and_none_of_what_was_deleted(hers):
    """Whoever deleted the first died before its files were gone."""
    first = find_or_begin(hers, "plans", "", "")
    (workspace_for(first.uid) / "old.txt").write_text("old")
    first.delete()
    second = find_or_begin(hers, "plans", "", "")
    assert second.uid == first.uid
    folder = workspace_for(second.uid)
    (folder / "new.txt").write_text("new")
    removals.clear_left()
    removals.clear([second.uid])  # as who deleted it would, were it late
    assert [each.name for each in folder.iterdir()] == ["new.txt"]


@pytest.mark.parametrize("begins", [SESSION, OTHER])
def test_anothers_id_is_not_found_and_begins_nothing(hers, caller_of, mallory, elsewhere, begins):
    alices = find_or_begin(hers, "plans", "", "")
    with pytest.raises(NotFound):
        uid = begins + alices.uid.removeprefix(SESSION)
        find_or_begin(caller_of(mallory, elsewhere), uid, "", "")
    assert not Conversation.objects.filter(owner=mallory).exists()


@pytest.fixture
def asking(hers):
    """A conversation that waits for the answers to a question."""
    conversation = find_or_begin(hers, "plans", "", "")
    question = {"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    use = Entry.of(AgentCustomToolUse(name=TOOL, input={"questions": [question]}))
    idle = Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,))))
    append(conversation.pk, [use, idle])
    conversation.refresh_from_db()
    return conversation


def resume(interrupt_id: str, payload=None, status: str = "resolved", run: str = "r") -> RunInput:
    answer = {"interruptId": interrupt_id, "status": status, "payload": payload}
    return RunInput.model_validate(
        {"threadId": "plans", "runId": run, "messages": [], "resume": [answer]}
    )


def test_questions_are_answered_by_resume_and_once(hers, asking):
    (interrupt,) = open_interrupts(asking)
    assert (interrupt.reason, interrupt.message) == ("input_required", "Which?")
    chosen = resume(interrupt.id, {"answers": [{"chosen": ["Blue"]}]})
    first = Run(hers, asking, chosen)
    given = Event.objects.get(conversation=asking, type="user.custom_tool_result")
    assert isinstance(given.value, UserCustomToolResult)
    assert "Blue" in text_of(given.value.content)
    assert Run(hers, asking, chosen).after == first.after
    assert Event.objects.filter(type="user.custom_tool_result").count() == 1
    with pytest.raises(Conflict):
        Run(hers, asking, resume(interrupt.id, {"answers": [{"chosen": ["Red"]}]}, run="s"))


def test_an_answer_that_is_no_option_is_refused_and_the_question_waits(hers, asking):
    (interrupt,) = open_interrupts(asking)
    with pytest.raises(Invalid):
        Run(hers, asking, resume(interrupt.id, {"answers": [{"chosen": ["Green"]}]}))
    assert [each.id for each in open_interrupts(asking)] == [interrupt.id]


def test_cancelling_questions_lets_the_agent_go_on(hers, asking):
    (interrupt,) = open_interrupts(asking)
    Run(hers, asking, resume(interrupt.id, status="cancelled"))
    assert open_interrupts(asking) == []


def test_a_message_is_refused_while_a_question_is_open(hers, asking):
    body = RunInput.model_validate(
        {
            "threadId": "plans",
            "runId": "r",
            "messages": [{"id": "1", "role": "user", "content": "Hello"}],
        }
    )
    with pytest.raises(Conflict):
        Run(hers, asking, body)
    assert not Event.objects.filter(conversation=asking, type="user.message").exists()


def test_an_answer_to_an_earlier_round_is_none_to_a_new_one(asking):
    answers = resume("sevt_1", {"approved": True}).resume
    assert answers is not None
    again = Interrupt(id="sevt_1.2", reason="tool_call", tool_call_id="sevt_1")
    with pytest.raises(Conflict):
        inputs_of(asking, answers, [again])


def test_an_unknown_interrupt_is_not_found(asking):
    answers = resume("sevt_1", {"approved": True}).resume
    assert answers is not None
    with pytest.raises(NotFound):
        inputs_of(asking, answers, [])


def test_what_is_open_costs_as_much_to_know_in_a_long_log(hers, asking):
    counts = []
    for events in (4, 2_000):
        fill(asking, events, first_seq=asking.last_seq + 1)
        asking.last_seq += events
        asking.save(update_fields=["last_seq"])
        with CaptureQueriesContext(connection) as queries:
            open_interrupts(asking)
        counts.append(len(queries))
        read = [query["sql"] for query in queries if '"payload"' in query["sql"]]
        assert all("LIMIT 1" in sql or '"subject" IN' in sql or '"uid" IN' in sql for sql in read)
    assert counts[0] == counts[1] < 10


# --- what was started below -----------------------------------------------------------------------


@pytest.fixture
def below(hers):
    """A conversation at rest, and one it started that waits with a question and a call."""
    parent = find_or_begin(hers, "plans", "", "")
    append(parent.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    child = create_conversation(
        actor=hers.user,
        organisation=hers.organisation,
        agent=parent.agent_version.agent,
        environment=parent.environment,
        parent=parent,
    )
    question = {"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    asks = Entry.of(AgentCustomToolUse(name=TOOL, input={"questions": [question]}))
    writes = Entry.of(
        AgentToolUse(name="write_file", input={"path": "a"}, evaluated_permission="ask")
    )
    waits = RequiresAction(event_ids=(asks.uid, writes.uid))
    append(child.pk, [asks, writes, Entry.of(SessionStatusIdle(stop_reason=waits))])
    for each in (parent, child):
        each.refresh_from_db()
    return parent, child


def both_answered(interrupts, run: str = "r") -> RunInput:
    first, second = interrupts
    chosen = {"answers": [{"chosen": ["Blue"]}]}
    return RunInput.model_validate(
        {
            "threadId": "plans",
            "runId": run,
            "messages": [],
            "resume": [
                {"interruptId": first.id, "status": "resolved", "payload": chosen},
                {"interruptId": second.id, "status": "cancelled"},
            ],
        }
    )


def test_what_waits_below_is_asked_here_under_its_own_name(below):
    parent, child = below
    interrupts = open_interrupts(parent)
    assert [each.reason for each in interrupts] == ["input_required", "tool_call"]
    assert {each.subagent_run_id for each in interrupts} == {child.uid}
    (subagent,) = subagents_of(parent, interrupts, known=())
    told = entered().waiting(interrupts, [subagent])
    assert kinds(told) == [
        "SUBAGENT_STARTED",
        *["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"] * 2,
        "SUBAGENT_FINISHED",
        "RUN_FINISHED",
    ]
    assert all(wire(each)["subagent_run_id"] == child.uid for each in told[:-1])
    assert '"subagentRunId":null' not in told[-1].model_dump_json(by_alias=True)
    assert subagents_of(parent, interrupts, known={each.id for each in interrupts}) == []


def test_answers_to_what_waits_below_reach_it_and_the_run_ends_once_all_is_quiet(hers, below):
    parent, child = below
    run = Run(hers, parent, both_answered(open_interrupts(parent)))
    answered = Event.objects.filter(conversation=child, actor=hers.user).values_list("type")
    assert {kind for (kind,) in answered} == {"user.custom_tool_result", "user.tool_confirmation"}
    assert open_interrupts(parent) == []
    assert run.read(run.after).over is None
    append(child.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    over = run.read(run.after).over
    assert over is not None
    assert kinds(entered().waiting(over["interrupts"], over["below"])) == ["RUN_FINISHED"]


@pytest.mark.parametrize("query", range(12))
def test_a_run_that_ends_while_the_log_is_read_tells_its_last_words_first(hers, below, query):
    parent, child = below
    run = Run(hers, parent, both_answered(open_interrupts(parent)))
    append(parent.pk, [Entry.of(SessionStatusRunning())])
    append(child.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    after = run.read(run.after).seq
    last = Entry.of(AgentMessage(content=(Text(text="All done."),)))

    with before_query(
        query,
        lambda: append(parent.pk, [last, Entry.of(SessionStatusIdle(stop_reason=EndTurn()))]),
    ):
        first = run.read(after)
    news = [first] if first.over else [first, run.read(first.seq)]

    assert news[-1].over is not None
    assert last.uid in [each["id"] for one in news for each in one.events]


def test_one_that_began_before_the_run_and_ends_in_it_is_told_whole(hers, below):
    parent, child = below
    about = {"tool_use_id": "sevt_call", "subagent": child.uid}
    append(parent.pk, [Entry.of(SubagentStarted(**about, name="plan", description="Think"))])
    run = Run(hers, parent, both_answered(open_interrupts(parent)))
    append(parent.pk, [Entry.of(SubagentEnded(**about, state="stopped"))])
    (event,) = run.read(run.after).events[1:]
    (told,) = entered().happened(event["id"], event["value"], event["began"])
    content = wire(told)["content"]
    assert (content["name"], content["state"]) == ("plan", "stopped")


@pytest.fixture
def at_work(below):
    """The conversation below, at work as a subagent of the first."""
    parent, child = below
    calls = AgentToolUse(name="grep", input={"pattern": "def  main"})
    append(child.pk, [Entry.of(calls)])
    return Subagent.objects.create(
        parent=parent,
        root=parent,
        child=child,
        call_uid="sevt_call",
        kind="explore",
        description="Look",
        state=Subagent.State.RUNNING,
    )


def test_what_a_subagent_does_is_told_whenever_its_log_has_grown(at_work):
    now = [0.0]
    watched = Below(at_work.parent, clock=lambda: now[0])
    (first,) = watched.news()
    (told,) = [wire(each) for each in told_by_door(first)]
    assert told["type"].value == "ACTIVITY_SNAPSHOT"
    assert (told["replace"], told["message_id"]) == (True, "agentsite.subagent:sevt_call")
    content = told["content"]
    assert (content["state"], content["name"], content["doing"]) == (
        "running",
        "explore",
        "grep def main",
    )
    assert (content["tokens"], content["cost_usd"]) == (0, "0")
    assert content["conversation_id"] == at_work.child.uid

    now[0] += SECONDS
    assert watched.news() == []
    append(at_work.child.pk, [Entry.of(AgentMessage(content=(Text(text="Found it."),)))])
    assert watched.news() == []  # too soon after the last look
    now[0] += SECONDS
    (second,) = watched.news()
    assert second["facts"]["doing"] == "Found it."

    Subagent.objects.update(state=Subagent.State.COMPLETED)
    now[0] += SECONDS
    assert watched.news() == []
    assert not watched.any


def test_one_that_begins_right_after_a_look_is_looked_at_soon(hers, at_work):
    """Its own log tells nobody who follows the run."""
    parent, child = at_work.parent, at_work.child
    Subagent.objects.update(state=Subagent.State.WAITING)
    run = Run(hers, parent, both_answered(open_interrupts(parent)))
    news = run.read(run.after)
    append(parent.pk, [Entry.of(AgentMessage(content=(Text(text="Go."),)))])
    news = run.read(news.seq)
    assert news.again is None
    Subagent.objects.update(state=Subagent.State.RUNNING)
    about = {"tool_use_id": "sevt_call", "subagent": child.uid}
    append(parent.pk, [Entry.of(SubagentStarted(**about, name="plan", description="Think"))])
    assert run.read(news.seq).again == SECONDS


def test_what_subagents_cost_is_read_at_once_and_written_as_numbers_are(
    at_work, django_assert_num_queries
):
    child = at_work.child
    spent = {"organisation": child.organisation, "input_tokens": 3, "output_tokens": 2}
    grandchild = Conversation.objects.create(
        **{name: getattr(child, name) for name in ("organisation", "owner", "agent_version")},
        environment=child.environment,
        parent=child,
    )
    for number, each in enumerate((child, grandchild)):
        Usage.objects.create(
            conversation=each, cost=Decimal("0.00000005"), model_request_id=f"r{number}", **spent
        )
    watched = Below(at_work.parent, clock=lambda: 0.0)
    watched.news()  # what is built once
    with django_assert_num_queries(3):
        (told,) = Below(at_work.parent, clock=lambda: 0.0).news()
    assert (told["facts"]["tokens"], told["facts"]["cost_usd"]) == (10, "0.0000001")
    Usage.objects.filter(conversation=grandchild).update(cost=None)
    (told,) = Below(at_work.parent, clock=lambda: 0.0).news()
    assert told["facts"]["cost_usd"] is None


def told_by_door(news):
    body = RunInput.model_validate({"threadId": "t", "runId": "r", "messages": []})
    frames = Frames(body, "sesn_1")("message", news, None).split(b"\n\n")
    events = [EVENTS.validate_json(frame.removeprefix(b"data: ")) for frame in frames if frame]
    return [event for event in events if event.type.value.startswith("ACTIVITY")]


def test_the_end_of_a_subagent_says_the_first_words_of_its_result_and_what_it_cost(hers, at_work):
    parent, child = at_work.parent, at_work.child
    about = {"tool_use_id": "sevt_call", "subagent": child.uid}
    append(parent.pk, [Entry.of(SubagentStarted(**about, name="plan", description="Think"))])
    run = Run(hers, parent, both_answered(open_interrupts(parent)))
    answer = AgentToolResult(tool_use_id="sevt_call", content=(Text(text="A" * 1000),))
    ended = SubagentEnded(**about, state="completed", tokens=7)
    append(parent.pk, [Entry.of(ended), Entry.of(answer)])
    event = next(each for each in run.read(run.after).events if each["type"] == ended.type)
    (told,) = entered().happened(event["id"], event["value"], event["began"], event["came"])
    content = wire(told)["content"]
    assert content["result"] == "A" * 300 + "…"
    assert (content["tokens"], content["cost_usd"]) == (7, "0")


def test_a_message_is_refused_while_something_below_is_open(hers, below):
    parent, _child = below
    said = {"id": "1", "role": "user", "content": "Hello"}
    body = {"threadId": "plans", "runId": "r", "messages": [said]}
    with pytest.raises(Conflict):
        Run(hers, parent, RunInput.model_validate(body))


def test_what_waits_below_anothers_conversation_is_not_found(hers, below, caller_of, alice, acme):
    parent, _child = below
    interrupts = open_interrupts(parent)
    other = find_or_begin(hers, "other plans", "", "")
    with pytest.raises(NotFound):
        Run(hers, other, both_answered(interrupts))
    assert len(open_interrupts(parent)) == 2


def test_what_the_conversation_refuses_is_named_as_it_was_sent(hers, below):
    parent, _child = below
    question, call = open_interrupts(parent)
    answered: list[Any] = [
        {"interruptId": question.id, "status": "cancelled"},
        {
            "interruptId": call.id,
            "status": "resolved",
            "payload": {"approved": True, "editedArgs": {}},
        },
    ]
    body = {"threadId": "plans", "runId": "r", "messages": [], "resume": answered}
    with pytest.raises(Invalid) as refused:
        Run(hers, parent, RunInput.model_validate(body))
    assert refused.value.field == "resume"
    quiet = find_or_begin(hers, "other plans", "", "")
    said = [{"id": str(number), "role": "user", "content": " "} for number in range(2)]
    body = {"threadId": "other plans", "runId": "r", "messages": said}
    with pytest.raises(Invalid) as refused:
        Run(hers, quiet, RunInput.model_validate(body))
    assert refused.value.field == "messages[1].content"


def test_a_denial_has_no_arguments(hers, below):
    parent, _child = below
    _question, call = open_interrupts(parent)
    answers = resume(call.id, {"approved": False, "editedArgs": {}}).resume
    assert answers is not None
    with pytest.raises(Invalid) as caught:
        inputs_of(parent, answers, [call])
    assert caught.value.field == "resume[0].payload.editedArgs"
