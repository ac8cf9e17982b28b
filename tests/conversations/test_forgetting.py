"""What is taken out of a conversation is gone from every table and page that had copied it, and each app
sees to its own copies."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import vault
from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from approvals.models import Approval, ApprovalDecision
from audit.models import AuditEntry
from brief.compiling import compile_brief
from brief.models import Brief, BriefWish
from brief.sending import make_due
from chat.presentation.frames import changes, page
from comparisons.models import Comparison
from comparisons.models import Entry as Compared
from conversations import forgetting
from conversations.actions.children import begin_child
from conversations.actions.conversations import create_conversation
from conversations.actions.links import make_link
from conversations.actions.messages import post_message
from conversations.actions.redacting import is_redacted, redact_content
from conversations.log import append
from conversations.models import (
    BackgroundCommand,
    Conversation,
    Event,
    ModelTrace,
    PartialBlock,
    RequestKey,
    Run,
)
from deadletters.models import DeadLetter
from evals.actions.cases import case_of
from evals.actions.suites import create_suite, save_case
from evals.checks.judging import Outcome
from evals.models import CachedReply, Evaluation, Grade, Suite, Trial
from harness.content import Text
from harness.errors import BadReply, Conflict, Forbidden, NotFound
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    BackgroundFinished,
    CompactionRequested,
    CompactionSkipped,
    ContentSetAside,
    CriterionJudged,
    EndTurn,
    FeedbackGiven,
    InputTaken,
    Refusal,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionMemoryWritten,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionUpdated,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    StopDetails,
    UserDefineOutcome,
    UserMessage,
    UserToolConfirmation,
)
from harness.history import Entry
from harness.messages import ModelRequest
from harness.redacted import REMOVED, SUMMARY_REMOVED
from hooks.events import HookAnswer, HooksAnswered
from learning.models import Learned
from mcpservers.models import McpQuestion, McpServer
from memory.actions.remembering import Source, own_store, remember
from pipelines.models import Pipeline, PipelineRun, PipelineVersion, StepRun
from providers.scripted import Hold, call, reply, say
from recall.models import Recall
from schedules.ending import settle
from schedules.models import OrderRun, QueueItem, StandingOrder
from schedules.queueing import item_text
from schedules.templates import UNTRUSTED
from subagents.models import Subagent
from teams_app.attending import attend
from teams_app.models import Mail, Team, Teammate, TeamRequest
from tests import patience
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, still, until
from tests.conversations.scenes import begin
from tests.subagents.conftest import ask, child_of, done, named_in, scenes, told
from v1.outgoing import echo

SECRET = "swordfish"
TITLE = f"The word is {SECRET}."
ANSWER = f"It was {SECRET}.\n\nAnd more."
REFUSED = f"We do not take “{SECRET}”."

pytestmark = pytest.mark.django_db


def an_order(alice: User, acme: Organisation, conversation: Conversation) -> StandingOrder:
    return StandingOrder.objects.create(
        organisation=acme,
        owner=alice,
        name="Morning look",
        handled_at=timezone.now(),
        agent_version=conversation.agent_version,
        environment=conversation.environment,
    )


def an_approval(alice: User, acme: Organisation, conversation: Conversation, call: str) -> Approval:
    return Approval(
        organisation=acme,
        conversation=conversation,
        root=conversation,
        call_uid=call,
        tool="run",
        input={},
        input_sha256="0" * 64,
        requested_by=alice,
        state=Approval.State.DENIED,
        asked_at=timezone.now(),
    )


@dataclass
class World:
    conversation: Conversation
    named: dict[str, str]
    """Ids of what can be taken out, by what it is."""
    pages: list[str]
    answers: list[str]
    """Addresses of programs."""


def said(text: str) -> tuple[Text]:
    return (Text(text=text),)


@pytest.fixture
def world(alice: User, acme: Organisation, converse: Converse) -> World:
    """A conversation that says the secret in every way, and everything that copies of it."""
    conversation, _script = converse()
    order = an_order(alice, acme, conversation)
    run = OrderRun.objects.create(
        order=order,
        agent_version=order.agent_version,
        trigger="webhook",
        state=OrderRun.State.STARTED,
        conversation=conversation,
        session_uid=conversation.uid,
        payload={"word": SECRET},
        attachments=[["file_of_mail", f"mail/{SECRET}.pdf"]],
        started_at=timezone.now(),
    )
    item = QueueItem.objects.create(
        order=order,
        run=run,
        text=f"Look for {SECRET}",
        source=QueueItem.Source.values[0],
        state=QueueItem.State.TAKEN,
        not_before=timezone.now(),
    )
    asked = Entry.of(
        UserMessage(content=(*said(TITLE), Text(text=item_text(item))), untrusted_by=UNTRUSTED)
    )
    outcome = Entry.of(
        UserDefineOutcome(outcome_id="outc_1", description=f"Find {SECRET}", rubric=f"- {SECRET}")
    )
    call = Entry.of(AgentToolUse(name="run", input={}, model_request_id="r1"))
    within = Entry.of(AgentToolUse(name="read", input={}, within=call.uid, within_tool="run"))
    answer = Entry.of(AgentMessage(content=said(ANSWER), model_request_id="r1"))
    judged = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    ended = Entry.of(
        BackgroundFinished(
            background_id="bg", command="make", state="completed", tail=f"made {SECRET}"
        )
    )
    noted = Entry.of(SessionMemoryWritten(part="state", version=1, text=f"Word: {SECRET}"))
    append(conversation.pk, [asked, outcome, ended], actor=alice)
    append(conversation.pk, [Entry.of(SessionUpdated(title=TITLE))])
    error = SessionErrorBody(
        type="unknown_error", code="refused", message=REFUSED, event_ids=(asked.uid,)
    )
    append(
        conversation.pk,
        [
            Entry.of(SessionStatusRunning()),
            Entry.of(InputTaken(event_ids=(asked.uid, outcome.uid, ended.uid))),
            Entry.of(AgentThinking(thinking=f"Aha, {SECRET}", model_request_id="r1")),
            call,
            within,
            Entry.of(AgentToolResult(tool_use_id=within.uid, content=said(SECRET))),
            Entry.of(
                UserToolConfirmation(
                    tool_use_id=call.uid, result="deny", deny_message=f"Not {SECRET}!"
                )
            ),
            Entry.of(AgentToolResult(tool_use_id=call.uid, content=said(SECRET))),
            answer,
            noted,
            judged,
            Entry.of(
                SpanOutcomeEvaluationEnd(
                    outcome_evaluation_start_id=judged.uid,
                    outcome_id="outc_1",
                    result="satisfied",
                    explanation=f"{SECRET} was found",
                    criteria=(CriterionJudged(criterion=SECRET, met=True, reason=SECRET),),
                )
            ),
            Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
            Entry.of(FeedbackGiven(event_id=answer.uid, rating="up", comment=f"{SECRET}, yes")),
        ],
    )
    settle(run.pk)
    append(
        conversation.pk,
        [
            Entry.of(SessionError(error=error)),
            Entry.of(
                SessionStatusIdle(
                    stop_reason=RetriesExhausted(),
                    stop_details=StopDetails(code="refused", message=REFUSED),
                )
            ),
            Entry.of(ContentSetAside(event_id=asked.uid, reason=REFUSED)),
        ],
    )
    conversation.refresh_from_db()
    make_link(actor=alice, conversation=conversation, days=7, details=True, members_only=True)
    ModelTrace.objects.create(
        conversation=conversation, model_request_id="r1", request={"said": SECRET}
    )
    PartialBlock.objects.create(
        conversation=conversation,
        uid=answer.uid,
        kind="text",
        model_request_id="r1",
        text=f"It was {SECRET}",
    )
    _keep_answer(alice, acme, conversation, asked)
    Recall.objects.create(
        conversation=conversation,
        message_uid=asked.uid,
        hits=[{"memory": "mem_1", "score": 1.0, "words": [SECRET]}],
        passages=[{"passage": "psg_1", "score": 1.0, "words": [SECRET]}],
        confidence=1.0,
    )
    learned = remember(
        actor=alice,
        store=own_store(actor=alice, organisation=acme),
        text=f"The word is {SECRET}.",
        source=Source(conversation.uid, asked.uid),
    )
    Learned.objects.create(
        conversation=conversation, message_uid=asked.uid, memory_uid=learned.memory.uid
    )
    _ask_beside(alice, acme, conversation, call.uid)
    _write_to(alice, acme, conversation, asked.uid)
    _try_out(alice, acme, conversation, answer.uid)
    piped = _pipe(alice, acme, conversation, asked.uid)
    _compare(alice, acme, conversation, asked.uid)
    BriefWish.objects.create(
        user=alice, organisation=acme, is_on=True, next_at=timezone.now() - timedelta(minutes=1)
    )
    assert make_due(timezone.now() + timedelta(seconds=1)) == 1
    named = {
        "message": asked.uid,
        "answer": answer.uid,
        "call": call.uid,
        "outcome": outcome.uid,
        "background": ended.uid,
        "memory": noted.uid,
    }
    suite = Suite.objects.get()
    pages = [
        conversation.get_absolute_url(),
        order.get_absolute_url(),
        Brief.objects.get().get_absolute_url(),
        reverse("brief:brief"),
        reverse("approvals:approvals-decided"),
        reverse("evals:suite-export", args=[suite.uid]),
        reverse("evals:case", args=[suite.uid, suite.cases.get().uid]),
        reverse("evals:evaluation", args=[Evaluation.objects.get().uid]),
        reverse("pipelines:run", args=[piped.uid]),
    ]
    ours, public = reverse("v1:sessions"), f"{reverse('v1:sessions')}/{conversation.uid}"
    answers = [
        reverse("api:conversations"),
        reverse("api:approvals"),
        reverse("api:briefs"),
        reverse("api:brief", args=[Brief.objects.get().uid]),
        reverse("api:brief-now"),
        reverse("api:schedule-runs", args=[order.uid]),
        reverse("api:schedule-items", args=[order.uid]),
        reverse("api:suite", args=[suite.uid]),
        reverse("api:evaluation", args=[Evaluation.objects.get().uid]),
        reverse("api:pipeline-run", args=[piped.uid]),
        reverse("v1:deployment-runs"),
        ours,
        f"{public}/events?x_events=true&limit=1000",
        f"{public}/export",
    ]
    return World(conversation, named, pages, answers)


def _pipe(alice: User, acme: Organisation, conversation: Conversation, asked: str) -> PipelineRun:
    """The conversation was a step of a pipeline, behind one at which a person was asked."""
    spec = {"name": "Line", "steps": [{"name": "ask", "prompt": "{{question}}"}]}
    version = PipelineVersion.objects.create(
        pipeline=Pipeline.objects.create(organisation=acme, name="Line"),
        number=1,
        stored_spec=spec,
        digest="0" * 64,
    )
    root = create_conversation(
        actor=alice,
        organisation=acme,
        agent=conversation.agent_version.agent,
        environment=conversation.environment,
        unlisted=True,
    )
    run = PipelineRun.objects.create(version=version, root=root, question=TITLE, state="done")
    StepRun.objects.create(
        run=run, place=1, name="release", came_by="start", times=1, state="done", comment=SECRET
    )
    StepRun.objects.create(
        run=run,
        place=2,
        name="ask",
        came_by="release.0",
        times=1,
        state="done",
        conversation=conversation,
        asked_event=asked,
        outcome={"word": "", "fields": {"said": SECRET, "score": 1}},
    )
    return run


def _compare(alice: User, acme: Organisation, conversation: Conversation, asked: str) -> None:
    """The conversation was one of those whose answers were compared."""
    root = create_conversation(
        actor=alice,
        organisation=acme,
        agent=conversation.agent_version.agent,
        environment=conversation.environment,
        unlisted=True,
    )
    comparison = Comparison.objects.create(root=root, question=TITLE, judged=False)
    Compared.objects.create(
        comparison=comparison, place=1, name="it", conversation=conversation, asked_event=asked
    )


def _keep_answer(alice: User, acme: Organisation, conversation: Conversation, asked: Entry) -> None:
    """As a request with an Idempotency-Key leaves it."""
    sent = echo(asked.uid, asked.event, None, asked.seq)
    told = {"data": [sent, {"id": conversation.uid, "type": "session", "title": TITLE}]}
    RequestKey.objects.create(
        organisation=acme, user=alice, key="k", digest="d", status=200, answer=told
    )


def _ask_beside(alice: User, acme: Organisation, conversation: Conversation, call: str) -> None:
    """People are asked about the call: by a rule, and by the server that it went to."""
    approval = an_approval(alice, acme, conversation, call)
    approval.save()
    ApprovalDecision.objects.create(
        approval=approval, by=alice, verdict="deny", reason=f"Not {SECRET}!"
    )
    server = McpServer.objects.create(name="far", url="https://far.example", organisation=acme)
    McpQuestion.objects.create(
        conversation=conversation,
        server=server,
        call_uid=call,
        round=0,
        kind="input",
        asked={"word": {"message": f"Is it {SECRET}?"}},
        sealed=vault.seal(SECRET),
    )


def _write_to(alice: User, acme: Organisation, conversation: Conversation, said_uid: str) -> None:
    """The message came from a team's mailbox, and the conversation worked for another one's agent."""
    lead = begin(
        alice, acme, conversation.agent_version.agent, conversation.environment, title="Lead"
    )
    team = Team.objects.create(lead=lead)
    request = TeamRequest.objects.create(
        team=team,
        kind="question",
        asker=lead,
        addressee=conversation,
        text=f"Is it {SECRET}?",
        key="call_1",
        expires_at=timezone.now(),
    )
    Mail.objects.create(
        team=team,
        kind="request",
        sender=lead,
        receiver=conversation,
        text=f"Is it {SECRET}?",
        key=f"request:{request.uid}",
        event_uid=said_uid,
    )
    Subagent.objects.create(
        parent=lead,
        root=lead,
        child=conversation,
        call_uid="call_2",
        kind="helper",
        description="Looks",
        state=Subagent.State.FAILED,
        detail=REFUSED,
    )


def _try_out(alice: User, acme: Organisation, conversation: Conversation, answer: str) -> None:
    """It was made a case of, and is a trial itself."""
    suite = create_suite(actor=alice, organisation=acme, name="Manners")
    spec = case_of(actor=alice, conversation=conversation, event_uid=answer)
    case = save_case(actor=alice, suite=suite, spec=spec, source=conversation.uid)
    evaluation = Evaluation.objects.create(
        suite=suite,
        agent_version=conversation.agent_version,
        environment=conversation.environment,
        digest=case.digest,
        started_by=alice,
        state=Evaluation.State.DONE,
    )
    Trial.objects.create(
        evaluation=evaluation,
        case=None,  # deleted since
        source_uid=conversation.uid,
        name=case.name,
        stored_spec=case.stored_spec,
        digest=case.digest,
        repetition=1,
        state=Trial.State.BROKEN,
    )
    other = Trial.objects.create(
        evaluation=evaluation,
        case=None,
        name="other",
        stored_spec={"name": "other", "input": ["Hello"], "checks": [{"type": "stop"}]},
        digest=case.digest,
        repetition=1,
        state=Trial.State.FAILED,
        conversation=conversation,
        answer=ANSWER,
        problem=REFUSED,
        outcomes=[Outcome("word", False, f"it says: {ANSWER}").stored()],
    )
    Grade.objects.create(trial=other, by=alice, points=1, note=f"It says: {ANSWER}")
    CachedReply.objects.create(
        key="c" * 64,
        organisation=acme,
        provider="scripted",
        model="m",
        pieces=[["TextDone", {"index": 0, "text": ANSWER}]],
        expires_at=timezone.now() + timedelta(days=1),
    )


# --- where words stand ----------------------------------------------------------------------------


@cache
def columns() -> dict[str, list[str]]:
    """Of each table of the database."""
    with connection.cursor() as cursor:
        return {
            table: [
                column.name
                for column in connection.introspection.get_table_description(cursor, table)
            ]
            for table in connection.introspection.table_names(cursor)
        }


def places(word: str) -> dict[str, set[str]]:
    """Columns of all tables that have it, by the app; tables that Django does not know by their names."""
    owners = {model._meta.db_table: model._meta.app_label for model in apps.get_models()}
    found: dict[str, set[str]] = {}
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        for table, names in columns().items():
            counted = ", ".join(
                f"SUM(CASE WHEN CAST({quote(name)} AS TEXT) LIKE %s THEN 1 ELSE 0 END)"
                for name in names
            )
            cursor.execute(f"SELECT {counted} FROM {quote(table)}", [f"%{word}%"] * len(names))
            for name, number in zip(names, cursor.fetchone(), strict=True):
                if number:
                    found.setdefault(owners.get(table, table), set()).add(f"{table}.{name}")
    return found


def remove_all(world: World, alice: User) -> None:
    for uid in world.named.values():
        redact_content(actor=alice, conversation=world.conversation, event_uid=uid)


class Back(Exception):
    """Nothing of it was meant."""


def left_without(app: str, world: World, alice: User, monkeypatch: Any) -> dict[str, set[str]]:
    """Where the word stands after the removal, if this app did not see to its copies."""
    left: dict[str, set[str]] = {}
    with monkeypatch.context() as patched:
        patched.delitem(forgetting._parts, app)
        try:
            with transaction.atomic():
                remove_all(world, alice)
                left = places(SECRET)
                raise Back
        except Back:
            return left


COPIES = {
    "approvals": {"approvals_approvaldecision.reason"},
    "brief": {"brief_brief.contents"},
    "conversations": {
        "conversations_link.title",
        "conversations_modeltrace.request",
        "conversations_partialblock.text",
        "conversations_requestkey.answer",
    },
    "comparisons": {"comparisons_comparison.question"},
    "deadletters": {"deadletters_deadletter.message"},
    "evals": {
        "evals_cachedreply.pieces",
        "evals_case.spec",
        "evals_grade.note",
        "evals_trial.answer",
        "evals_trial.outcomes",
        "evals_trial.problem",
        "evals_trial.spec",
    },
    "mcpservers": {"mcpservers_mcpquestion.asked"},
    "memory": {
        "memory_memory.content",
        "memory_memory.path",
        "memory_memory.terms",
        "memory_memoryversion.content",
        "memory_memoryversion.path",
    },
    "pipelines": {
        "pipelines_pipelinerun.question",
        "pipelines_steprun.comment",
        "pipelines_steprun.outcome",
    },
    "recall": {"recall_recall.hits", "recall_recall.passages"},
    "schedules": {
        "schedules_orderrun.attachments",
        "schedules_orderrun.payload",
        "schedules_orderrun.words",
        "schedules_queueitem.text",
        "schedules_queueitem.words",
    },
    "subagents": {"subagents_subagent.detail"},
    "teams_app": {"teams_app_mail.text", "teams_app_teamrequest.text"},
}


def test_what_was_taken_out_stands_in_no_table_and_on_no_page(
    alice: User, acme: Organisation, world: World, client_of: ClientOf
) -> None:
    browser = client_of(alice)
    before = places(SECRET)
    for app, columns in COPIES.items():
        assert columns <= before[app], app
    issued = create_token(
        actor=alice, organisation=acme, name="all", scopes=[scope.value for scope in TokenScope]
    )
    program = Client(headers={"Authorization": f"Bearer {issued.secret}"})

    def shown() -> list[str]:
        return [each for each in world.pages if SECRET in text_at(browser, each)] + [
            each for each in world.answers if SECRET in text_at(program, each)
        ]

    told = shown()
    assert len(told) > 14, told
    remove_all(world, alice)
    assert places(SECRET) == {}
    assert shown() == []
    assert McpQuestion.objects.get().sealed == ""


def text_at(browser: Any, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, address
    content = answer.getvalue() if answer.streaming else answer.content
    return str(content.decode())


def test_each_app_sees_to_its_own_copies_and_nobody_else_does(
    alice: User, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(forgetting._parts) == set(COPIES)
    for app, columns in COPIES.items():
        left = left_without(app, world, alice, monkeypatch)
        assert left.pop(app) >= columns, app
        assert {table.split("_")[0] for table in left} <= {app.split("_")[0]}, left


def test_an_open_page_draws_thoughts_and_judgements_anew_as_a_reload_does(
    alice: User, world: World
) -> None:
    before = page(world.conversation)
    remove_all(world, alice)
    drawn = {unit["html"] for unit in changes(world.conversation, before.seq).units}
    after = page(world.conversation).units
    assert drawn <= set(after)
    assert {html for html in after if html not in before.units} <= drawn
    assert SECRET not in "".join(after)


def test_words_of_others_that_are_the_same_stay(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    """A short answer is a part of much else, and the same as other short answers."""
    conversation, _script = converse()
    other, _script = converse()
    uids = []
    for each in (conversation, other):
        message = Entry.of(UserMessage(content=said("user")))
        answer = Entry.of(AgentMessage(content=said("ok")))
        append(each.pk, [message, Entry.of(InputTaken(event_ids=(message.uid,))), answer])
        uids += [message, answer]
    asked, answered, others, _answer = uids
    order = an_order(alice, acme, conversation)
    for each in (conversation, other):
        OrderRun.objects.create(
            order=order,
            agent_version=order.agent_version,
            trigger="manual",
            state=OrderRun.State.STARTED,
            conversation=each,
        )
        append(each.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    sent = [echo(entry.uid, entry.event, None, 1) for entry in (asked, others)]
    told = {"data": sent, "status": "ok", "x_note": "user"}
    key = RequestKey.objects.create(
        organisation=acme, user=alice, key="k", digest="d", status=200, answer=told
    )
    for entry in (asked, answered):
        redact_content(actor=alice, conversation=conversation, event_uid=entry.uid)
    mine, theirs = (OrderRun.objects.get(conversation=each).words for each in (conversation, other))
    assert (mine, theirs) == (REMOVED, "ok")
    key.refresh_from_db()
    assert key.answer["data"][1] == sent[1]
    assert key.answer["data"][0] == {**sent[0], "content": [{"type": "text", "text": REMOVED}]}
    assert (key.answer["status"], key.answer["x_note"]) == ("ok", "user")


def test_a_thought_goes_with_its_answer_and_by_itself_and_another_stays(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    thoughts = [
        Entry.of(AgentThinking(thinking=f"Hm {n}", signature="s", model_request_id=f"r{n}"))
        for n in range(3)
    ]
    answer = Entry.of(AgentMessage(content=said("Yes."), model_request_id="r0"))
    append(conversation.pk, [*thoughts, answer])
    redact_content(actor=alice, conversation=conversation, event_uid=answer.uid)
    redact_content(actor=alice, conversation=conversation, event_uid=thoughts[1].uid)
    rows = Event.objects.filter(conversation=conversation, type="agent.thinking").order_by("seq")
    held = [(row.payload["thinking"], row.payload["signature"]) for row in rows]
    assert held == [(REMOVED, ""), (REMOVED, ""), ("Hm 2", "s")]
    told = Event.objects.filter(conversation=conversation, type="x.content_redacted")
    assert [row.subject for row in told.order_by("seq")] == [
        answer.uid,
        thoughts[0].uid,
        thoughts[1].uid,
    ]


def test_what_a_thousand_calls_within_one_call_brought_goes_with_it(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    conversation, _script = converse()
    call = Entry.of(AgentToolUse(name="run", input={}))
    calls = [
        Entry.of(AgentToolUse(name="read", input={}, within=call.uid, within_tool="run"))
        for _ in range(1_100)
    ]
    results = [
        Entry.of(AgentToolResult(tool_use_id=each.uid, content=said(SECRET)))
        for each in (*calls, call)
    ]
    append(conversation.pk, [call, *calls, *results])
    Approval.objects.bulk_create(an_approval(alice, acme, conversation, each.uid) for each in calls)
    redact_content(actor=alice, conversation=conversation, event_uid=call.uid)
    assert places(SECRET) == {}


def test_what_still_waits_is_not_taken_out_and_who_only_shares_it_takes_out_nothing(
    alice: User, bob: User, mallory: User, world: World
) -> None:
    waiting = Entry.of(UserDefineOutcome(outcome_id="o", description=SECRET, rubric="- a"))
    append(world.conversation.pk, [waiting], actor=alice)
    with pytest.raises(Conflict, match="waits"):
        redact_content(actor=alice, conversation=world.conversation, event_uid=waiting.uid)
    for person in (bob, mallory):
        for uid in world.named.values():
            with pytest.raises((NotFound, Forbidden)):
                redact_content(actor=person, conversation=world.conversation, event_uid=uid)


@pytest.mark.django_db(transaction=True)
def test_a_brief_that_read_the_words_right_before_they_were_taken_out_keeps_nothing(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    """It is being stored while the removal begins; the removal waits for it."""
    conversation, _script = converse()
    order = an_order(alice, acme, conversation)
    OrderRun.objects.create(
        order=order,
        agent_version=order.agent_version,
        trigger="manual",
        state=OrderRun.State.STARTED,
        conversation=conversation,
    )
    answer = Entry.of(AgentMessage(content=said(ANSWER)))
    append(conversation.pk, [answer, Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    BriefWish.objects.create(user=alice, organisation=acme, is_on=True)

    def remove() -> None:
        try:
            redact_content(actor=alice, conversation=conversation, event_uid=answer.uid)
        finally:
            connection.close()

    def stands() -> bool:
        if connection.vendor == "sqlite" or not removing.is_alive():
            return True  # one writes at a time there, and what waits is not told
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return bool(cursor.fetchone()[0])

    removing = threading.Thread(target=remove)
    with transaction.atomic():
        wish = BriefWish.objects.select_for_update(no_key=True).get()
        until = timezone.now()
        since = until - timedelta(days=1)
        told = compile_brief(alice, acme, since=since, until=until)
        Brief.objects.create(
            user=wish.user,
            organisation=acme,
            due_at=until,
            since=since,
            until=until,
            stored_contents=told.model_dump(mode="json"),
        )
        removing.start()
        patience.until(stands)
        assert removing.is_alive()
    removing.join()
    assert Brief.objects.get().contents.ran[0].words == REMOVED


# --- what services and processes said of words ------------------------------------------------------


def begun(alice: User, converse: Converse) -> tuple[Conversation, Entry]:
    """A conversation whose agent has taken a message with the secret."""
    conversation, _script = converse()
    message = Entry.of(UserMessage(content=said(f"It is {SECRET}.")))
    append(conversation.pk, [message], actor=alice)
    append(
        conversation.pk,
        [Entry.of(SessionStatusRunning()), Entry.of(InputTaken(event_ids=(message.uid,)))],
    )
    return conversation, message


def failed(code: str, message: str, hint: str = "") -> list[Entry]:
    """A turn that ends in an error of a service."""
    body = SessionErrorBody(type="unknown_error", code=code, message=message, hint=hint)
    details = StopDetails(code=code, message=message, hint=hint)
    idle = SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=details)
    return [Entry.of(SessionError(error=body)), Entry.of(idle)]


QUOTED = f"Failed on input: It is {SECRET}."


@pytest.mark.parametrize(
    "events",
    [
        [
            Entry.of(
                SessionError(
                    error=SessionErrorBody(
                        type="unknown_error",
                        code="overloaded",
                        message=QUOTED,
                        retry_status="retrying",
                    )
                )
            ),
            Entry.of(SessionStatusRescheduled(delay_seconds=1)),
        ],
        failed("bad_reply", QUOTED, hint=QUOTED),
        [
            Entry.of(
                SessionStatusIdle(
                    stop_reason=Refusal(), stop_details=StopDetails(code="refusal", message=QUOTED)
                )
            )
        ],
        [Entry.of(CompactionSkipped(reason="failed", detail=QUOTED))],
        [Entry.of(ContentSetAside(event_id="sevt_another", reason=QUOTED))],
        [
            Entry.of(
                SpanOutcomeEvaluationEnd(
                    outcome_evaluation_start_id="sevt_start",
                    outcome_id="outc_1",
                    result="failed",
                    explanation=QUOTED,
                )
            )
        ],
    ],
    ids=["tried_again", "given_up", "refusal", "summary", "set_aside", "judge"],
)
def test_what_a_service_said_about_a_message_goes_with_it(
    alice: User, converse: Converse, events: list[Entry]
) -> None:
    conversation, message = begun(alice, converse)
    append(conversation.pk, events)
    assert places(QUOTED)
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    assert places(SECRET) == {}


def test_errors_of_later_turns_go_and_those_of_earlier_ones_and_of_this_server_stay(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    append(conversation.pk, failed("overloaded", "Too much before."))
    message = Entry.of(UserMessage(content=said(f"It is {SECRET}.")))
    append(conversation.pk, [message], actor=alice)
    append(conversation.pk, [Entry.of(InputTaken(event_ids=(message.uid,)))])
    append(conversation.pk, failed("bad_reply", "Of this turn."))
    later = Entry.of(UserMessage(content=said("And?")))
    append(conversation.pk, [later], actor=alice)
    append(conversation.pk, [Entry.of(InputTaken(event_ids=(later.uid,)))])
    append(conversation.pk, failed("bad_request", "Of a later one."))
    append(conversation.pk, failed("internal", "A fault in this server.", hint="Try again."))
    limit = StopDetails(code="step_limit", message="No more steps.", hint="Go on.")
    append(
        conversation.pk,
        [Entry.of(SessionStatusIdle(stop_reason=EndTurn(), stop_details=limit))],
    )
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    log = Event.objects.filter(conversation=conversation).order_by("seq")
    errors = [row.payload["error"]["message"] for row in log.filter(type="session.error")]
    assert errors == ["Too much before.", REMOVED, REMOVED, "A fault in this server."]
    rests = [row.payload["stop_details"] for row in log.filter(type="session.status_idle")]
    assert [(each["message"], each["hint"]) for each in rests] == [
        ("Too much before.", ""),
        (REMOVED, ""),
        (REMOVED, ""),
        ("A fault in this server.", "Try again."),
        ("No more steps.", "Go on."),
    ]


def test_another_message_that_was_set_aside_meanwhile_can_still_be_taken_out(
    alice: User, converse: Converse
) -> None:
    conversation, message = begun(alice, converse)
    other = Entry.of(UserMessage(content=said("The other word is halibut.")))
    append(conversation.pk, [other], actor=alice)
    append(
        conversation.pk,
        [
            Entry.of(InputTaken(event_ids=(other.uid,))),
            *failed("bad_request", QUOTED),
            Entry.of(ContentSetAside(event_id=other.uid, reason=QUOTED)),
        ],
    )
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    assert places(SECRET) == {}
    assert places("halibut")
    redact_content(actor=alice, conversation=conversation, event_uid=other.uid)
    assert places("halibut") == {}


def test_a_dead_letter_keeps_nothing_of_what_a_service_said_in_words_or_hint(
    alice: User, converse: Converse
) -> None:
    conversation, message = begun(alice, converse)
    append(conversation.pk, failed("overloaded", QUOTED, hint=QUOTED))
    letter = DeadLetter.objects.get()
    assert (letter.message, letter.hint) == (QUOTED, QUOTED)
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    assert places(SECRET) == {}
    letter.refresh_from_db()
    assert (letter.message, letter.code) == (REMOVED, "overloaded")


def test_a_run_that_broke_keeps_the_kind_of_its_error_alone(
    alice: User, converse: Converse
) -> None:
    conversation, message = begun(alice, converse)
    other, _script = converse()
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    for each in (conversation, other):
        Run.objects.create(
            conversation=each,
            state=Run.State.FAILED,
            worker="w",
            lease_until=timezone.now(),
            error=f"ValueError: It is {SECRET if each == conversation else 'something'}: no",
        )
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    assert places(SECRET) == {}
    assert [run.error for run in Run.objects.order_by("pk")] == [
        "ValueError",
        "ValueError: It is something: no",
    ]


def test_how_a_background_command_ended_goes_with_what_it_printed(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    command = BackgroundCommand.objects.create(
        conversation=conversation,
        call_uid="call_1",
        command="make",
        state=BackgroundCommand.State.FAILED,
        detail=QUOTED,
        output_path="out",
        timeout_seconds=1,
        host="h",
        boot="b",
        pid=1,
        seen_at=timezone.now(),
        started_at=timezone.now(),
    )
    ended = Entry.of(
        BackgroundFinished(
            background_id=command.uid, command="make", state="failed", detail=QUOTED, tail=SECRET
        )
    )
    append(conversation.pk, [ended, Entry.of(InputTaken(event_ids=(ended.uid,)))])
    redact_content(actor=alice, conversation=conversation, event_uid=ended.uid)
    assert places(SECRET) == {}


# --- what a summary was asked to dwell on -----------------------------------------------------------


def test_what_a_summary_was_to_dwell_on_goes_with_the_summaries_made_by_it(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    hello = Entry.of(UserMessage(content=said("Hello.")))
    append(conversation.pk, [hello], actor=alice)
    append(conversation.pk, [Entry.of(InputTaken(event_ids=(hello.uid,)))])
    before = AgentThreadContextCompacted(summary="Of before.", through=hello.uid)
    append(conversation.pk, [Entry.of(before)])
    asked = Entry.of(CompactionRequested(focus=f"the word {SECRET}"))
    append(conversation.pk, [asked], actor=alice)
    with pytest.raises(Conflict, match="waits"):
        redact_content(actor=alice, conversation=conversation, event_uid=asked.uid)
    made = AgentThreadContextCompacted(
        summary=f"It was {SECRET}.", through=hello.uid, focus=f"the word {SECRET}"
    )
    later = AgentThreadContextCompacted(summary=f"Once more: {SECRET}.", through=hello.uid)
    append(conversation.pk, [Entry.of(made)])
    append(conversation.pk, [Entry.of(later)])
    redact_content(actor=alice, conversation=conversation, event_uid=asked.uid)
    assert places(SECRET) == {}
    summaries = Event.objects.filter(
        conversation=conversation, type="agent.thread_context_compacted"
    )
    kept = [row.payload["summary"] for row in summaries.order_by("seq")]
    assert kept == ["Of before.", SUMMARY_REMOVED, SUMMARY_REMOVED]
    assert SECRET not in "".join(page(conversation).units)


def test_what_a_summary_that_failed_was_to_dwell_on_goes_and_later_summaries_stay(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    hello = Entry.of(UserMessage(content=said("Hello.")))
    asked = Entry.of(CompactionRequested(focus=f"the word {SECRET}"))
    append(conversation.pk, [hello, asked], actor=alice)
    append(conversation.pk, [Entry.of(CompactionSkipped(reason="failed", detail=QUOTED))])
    later = AgentThreadContextCompacted(summary="Of the greeting.", through=hello.uid)
    append(conversation.pk, [Entry.of(later)])
    redact_content(actor=alice, conversation=conversation, event_uid=asked.uid)
    assert places(SECRET) == {}
    assert places("Of the greeting.")


# --- what apps told of calls ------------------------------------------------------------------------


def test_what_a_hook_said_of_a_call_goes_with_what_the_call_brought(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    call, other = (Entry.of(AgentToolUse(name="run", input={})) for _ in range(2))
    within = Entry.of(AgentToolUse(name="read", input={}, within=call.uid, within_tool="run"))
    append(conversation.pk, [call, within, other])
    for each, reason in ((call, SECRET), (within, SECRET), (other, "Too late.")):
        told = HookAnswer(hook="guard", verdict="refuse", milliseconds=1, reason=reason)
        append(
            conversation.pk,
            [
                Entry.of(HooksAnswered(tool_use_id=each.uid, told=(told,))),
                Entry.of(AgentToolResult(tool_use_id=each.uid, content=said(reason))),
            ],
        )
    redact_content(actor=alice, conversation=conversation, event_uid=call.uid)
    assert places(SECRET) == {}
    rows = Event.objects.filter(conversation=conversation, type="x.hooks_answered")
    kept = [row.payload["told"][0] for row in rows.order_by("seq")]
    assert [(each["verdict"], each["reason"]) for each in kept] == [
        ("refuse", ""),
        ("refuse", ""),
        ("refuse", "Too late."),
    ]


# --- what stands in logs of others ------------------------------------------------------------------


def leads(alice: User, converse: Converse, script: Any, **config: Any) -> Conversation:
    """A conversation whose agent has subagents, at its rest, with all of them told of."""
    conversation, _script = converse(script, features={"teams": True}, **config)
    post_message(actor=alice, conversation=conversation, text="Begin.")
    told(done(conversation))
    still()
    return conversation


def event_of(conversation: Conversation, kind: str) -> Event:
    return Event.objects.filter(conversation=conversation, type=kind).order_by("seq")[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("begins_with", ["child", "parent"])
def test_what_a_subagent_answered_goes_from_its_log_and_from_the_one_above(
    alice: User, converse: Converse, begins_with: str
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("All done.")],
        alpha=[reply(call("list_files"), "Looking."), reply(f"It is {SECRET}.")],
    )
    parent = leads(alice, converse, script)
    (row,) = told(parent)
    child = child_of(row)
    answer = Event.objects.filter(conversation=child, type="agent.message").order_by("-seq")[0]
    named = {"child": (child, answer.uid), "parent": (parent, row.call_uid)}
    conversation, uid = named.pop(begins_with)
    redact_content(actor=alice, conversation=conversation, event_uid=uid)
    assert places(SECRET) == {}
    assert places("Looking.")
    ((other, uid),) = named.values()
    assert is_redacted(other, Event.objects.get(conversation=other, uid=uid))
    done_in = {
        entry.conversation_uid for entry in AuditEntry.objects.filter(action="content_redacted")
    }
    assert done_in == {parent.uid, child.uid}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("begins_with", ["child", "told", "looked"])
def test_a_subagent_in_the_background_that_was_told_of_and_looked_at_is_forgotten_everywhere(
    alice: User, converse: Converse, begins_with: str
) -> None:
    def look(request: ModelRequest) -> Any:
        return reply(call("subagents", id=named_in(request)))

    hold = (
        Hold()
    )  # it ends only when the agent above rests, which is then told in a turn of its own
    script = scenes(
        [
            reply(ask("alpha", background=True)),
            *(reply("Waiting."), look, reply("Seen.")),
        ],
        alpha=[reply(say(hold, f"It is {SECRET}."))],
    )
    parent, _script = converse(script, features={"teams": True})
    post_message(actor=alice, conversation=parent, text="Begin.")
    until(hold.reached.is_set)
    done(parent)
    hold.release.set()
    until(lambda: Event.objects.filter(conversation=parent, type="agent.tool_result").count() == 2)
    done(parent)
    still()
    (row,) = told(parent)
    child = child_of(row)
    looked = Event.objects.filter(conversation=parent, type="agent.tool_use").order_by("-seq")[0]
    named = {
        "child": (child, event_of(child, "agent.message").uid),
        "told": (parent, event_of(parent, "x.background_finished").uid),
        "looked": (parent, looked.uid),
    }
    conversation, uid = named[begins_with]
    redact_content(actor=alice, conversation=conversation, event_uid=uid)
    assert places(SECRET) == {}


@pytest.mark.django_db(transaction=True)
def test_what_a_subagent_had_said_when_it_was_looked_at_goes_though_it_said_more_since(
    alice: User, converse: Converse
) -> None:
    parent = leads(
        alice,
        converse,
        scenes([reply(ask("alpha")), reply("All done.")], alpha=[reply("First.")]),
    )
    (row,) = told(parent)
    child = child_of(row)

    def says(conversation: Conversation, *events: Any) -> list[str]:
        stored = append(conversation.pk, [Entry.of(event) for event in events])
        return [each.uid for each in stored]

    said = AgentMessage(content=(Text(text=f"It is {SECRET}."),))
    # A person asks it something herself, and the agent above looks at it; then it says more.
    (answer,) = says(child, said)
    (look,) = says(parent, AgentToolUse(name="subagents", input={"id": row.uid}))
    says(
        parent,
        AgentToolResult(tool_use_id=look, content=(Text(text=f"[done]\n\nIt is {SECRET}."),)),
    )
    says(child, AgentMessage(content=(Text(text="Something else."),)))
    redact_content(actor=alice, conversation=parent, event_uid=look)
    assert is_redacted(child, Event.objects.get(conversation=child, uid=answer))
    assert places(SECRET) == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("begins_with", ["child", "parent"])
def test_the_error_that_a_subagent_failed_with_is_forgotten_in_both_logs(
    alice: User, converse: Converse, begins_with: str
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("All done.")],
        alpha=[BadReply(QUOTED)],
    )
    parent = leads(alice, converse, script)
    (row,) = told(parent)
    child = child_of(row)
    assert {"conversations", "subagents", "deadletters"} == set(places(SECRET))
    named = {"child": (child, row.asked_event), "parent": (parent, row.call_uid)}
    conversation, uid = named[begins_with]
    redact_content(actor=alice, conversation=conversation, event_uid=uid)
    assert places(SECRET) == {}


@pytest.mark.django_db(transaction=True)
def test_what_an_advisor_was_shown_goes_with_what_was_said_above(
    alice: User, converse: Converse
) -> None:
    advised, _script = converse(["Measure first."])
    model = advised.config.model
    script = [
        reply(call("list_files"), f"I look for {SECRET}."),
        reply(ask("Which way?", agent="advisor")),
        reply("Done."),
    ]
    parent = leads(alice, converse, script, roster={"advisor": f"scripted/{model}"})
    (row,) = told(parent)
    child = child_of(row)
    assert SECRET in str(Event.objects.get(conversation=child, uid=row.asked_event).payload)
    said_above = event_of(parent, "agent.message")
    redact_content(actor=alice, conversation=parent, event_uid=said_above.uid)
    assert places(SECRET) == {}
    assert places("Measure first.")


@pytest.mark.django_db(transaction=True)
def test_nothing_is_taken_out_anywhere_while_the_agent_above_is_at_work(
    alice: User, converse: Converse
) -> None:
    hold = Hold()
    script = scenes(
        [reply(ask("alpha")), reply(say("All", hold, "done."))], alpha=[reply(f"It is {SECRET}.")]
    )
    parent, _script = converse(script, features={"teams": True})
    post_message(actor=alice, conversation=parent, text="Begin.")
    until(hold.reached.is_set)
    (row,) = told(parent)
    child = child_of(row)
    before = places(SECRET)
    answer = event_of(child, "agent.message")
    with pytest.raises(Conflict, match="at work"):
        redact_content(actor=alice, conversation=child, event_uid=answer.uid)
    assert places(SECRET) == before
    hold.release.set()
    done(parent)
    still()
    redact_content(actor=alice, conversation=child, event_uid=answer.uid)
    assert places(SECRET) == {}


@pytest.mark.django_db(transaction=True)
def test_another_word_of_a_subagent_leaves_its_answer_alone(
    alice: User, converse: Converse
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("All done.")],
        alpha=[reply(call("list_files"), f"Looking for {SECRET}."), reply("Seven callers.")],
    )
    parent = leads(alice, converse, script)
    (row,) = told(parent)
    child = child_of(row)
    redact_content(actor=alice, conversation=child, event_uid=event_of(child, "agent.message").uid)
    assert places(SECRET) == {}
    assert "Seven callers." in str(event_of(parent, "agent.tool_result").payload)


@pytest.mark.parametrize("begins_with", ["teammate", "lead", "held_back"])
def test_a_teammates_last_words_go_from_its_log_the_leads_and_the_mailbox(
    alice: User, converse: Converse, begins_with: str
) -> None:
    lead, _script = converse()
    agent = lead.agent_version.agent
    child = begin_child(
        actor=alice, parent=lead, agent=agent, environment=lead.environment, text="Work."
    )
    team = Team.objects.create(lead=lead)
    Teammate.objects.create(team=team, name="anna", conversation=child)
    answer = Entry.of(AgentMessage(content=said(f"It is {SECRET}.")))
    append(
        child.pk,
        [
            Entry.of(SessionStatusRunning()),
            Entry.of(InputTaken(event_ids=(event_of(child, "user.message").uid,))),
            answer,
            Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
        ],
    )
    if begins_with == "held_back":
        Conversation.objects.filter(pk=lead.pk).update(queued_count=10_000)
    attend(team.pk)
    mail = Mail.objects.get(receiver=lead)
    assert SECRET in mail.text
    assert bool(mail.event_uid) == (begins_with != "held_back")
    if begins_with == "lead":
        append(lead.pk, [Entry.of(InputTaken(event_ids=(mail.event_uid,)))])
        redact_content(actor=alice, conversation=lead, event_uid=mail.event_uid)
    else:
        redact_content(actor=alice, conversation=child, event_uid=answer.uid)
    assert places(SECRET) == {}
