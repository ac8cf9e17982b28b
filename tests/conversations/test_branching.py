"""Going back: a message said anew, an answer done anew, a rewind, a sibling chosen. The log keeps all."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from api.transcript import messages_after
from conversations.actions import branching
from conversations.actions.branching import edit_and_resend, regenerate, rewind, switch_branch
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message, request_retry
from conversations.branches import counting
from conversations.log import append, entries_after
from conversations.models import Conversation, Event
from harness.agentconfig import CustomTool
from harness.content import Base64Source, Image, Text
from harness.errors import BadRequest, Conflict, Invalid, LimitReached, NotFound
from harness.events import (
    AgentToolResult,
    AgentToolUse,
    EndTurn,
    InputTaken,
    MessageEdited,
    ModelUsage,
    RequiresAction,
    RetriesExhausted,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    UserMessage,
)
from harness.history import Entry, History
from harness.texts import Texts
from harness.transcript import build_messages
from providers.scripted import call, registered, reply
from spending.models import Usage
from tests.conversations.conftest import rested, still, types, until
from tests.pictures import GOOD

pytestmark = pytest.mark.django_db(transaction=True)

ACTIONS = (edit_and_resend, regenerate, rewind, switch_branch)


def settled(conversation: Conversation, times: int) -> Conversation:
    rested(conversation, times)
    still()
    conversation.refresh_from_db()
    return conversation


def say(alice, conversation, text: str, times: int) -> Event:
    row = post_message(actor=alice, conversation=conversation, text=text)
    settled(conversation, times)
    return row


def texts(messages) -> list[str]:
    return [
        part.text
        for message in messages
        for part in message.parts
        if isinstance(part, Text) and part.text != Texts().continue_reply
    ]


def prompt(conversation: Conversation) -> list[str]:
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    return texts(build_messages([row.entry() for row in rows], texts=Texts()))


def stored(conversation: Conversation) -> list[tuple[object, ...]]:
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    return list(rows.values_list("seq", "uid", "type", "payload"))


def answer_in(conversation: Conversation, number: int = -1) -> Event:
    return list(
        Event.objects.filter(conversation=conversation, type="agent.message").order_by("seq")
    )[number]


@pytest.fixture
def talk(alice, converse):
    """Two turns: one, first; two, second."""
    script = [reply(each) for each in ("first", "second", "third", "fourth", "fifth")]
    conversation, scripted = converse(script)
    rows = [say(alice, conversation, "one", 1), say(alice, conversation, "two", 2)]
    return conversation, rows, scripted


def test_a_message_is_said_anew_and_everything_before_it_counts(alice, talk):
    conversation, (_, two), scripted = talk
    before = stored(conversation)
    row = edit_and_resend(actor=alice, conversation=conversation, message_uid=two.uid, text="2")
    settled(conversation, 3)
    assert texts(scripted.requests[-1].messages) == ["one", "first", "2"]
    assert prompt(conversation) == ["one", "first", "2", "third"]
    assert stored(conversation)[: len(before)] == before
    assert Event.objects.get(pk=row.pk).processed_at is not None
    assert (conversation.queued_count, conversation.owes_run) == (0, False)


def test_the_first_message_is_said_anew(alice, talk):
    conversation, (one, _), scripted = talk
    edit_and_resend(actor=alice, conversation=conversation, message_uid=one.uid, text="1")
    settled(conversation, 3)
    assert texts(scripted.requests[-1].messages) == ["1"]


def test_a_message_said_anew_under_one_key_is_one_message(alice, talk):
    conversation, (_, two), _ = talk
    given = {"conversation": conversation, "message_uid": two.uid, "text": "2", "key": "k"}
    first = edit_and_resend(actor=alice, **given)
    assert edit_and_resend(actor=alice, **given).pk == first.pk
    settled(conversation, 3)
    assert types(conversation).count("x.rewound") == 1


def test_pictures_stay_with_a_message_said_anew(alice, converse):
    conversation, scripted = converse([reply("A cat."), reply("A dog.")])
    picture = Image(source=Base64Source(media_type="image/png", data=GOOD))
    row = post_message(
        actor=alice, conversation=conversation, text="What is it?", attachments=[picture]
    )
    settled(conversation, 1)
    edit_and_resend(actor=alice, conversation=conversation, message_uid=row.uid, text="Really?")
    settled(conversation, 2)
    assert scripted.requests[-1].messages[-1].parts == (Text(text="Really?"), picture)


def test_an_answer_is_done_anew_with_another_model_and_both_are_paid_for(alice, talk):
    conversation, _, scripted = talk
    uid = answer_in(conversation).uid
    calls = Usage.objects.filter(conversation=conversation).count()
    with registered("other", [reply("other")]) as other:
        regenerate(actor=alice, conversation=conversation, event_uid=uid, model=" other ")
        settled(conversation, 3)
    assert texts(other.requests[-1].messages) == ["one", "first", "two"]
    assert prompt(conversation) == ["one", "first", "two", "other"]
    assert Usage.objects.filter(conversation=conversation).count() == calls + 1
    say(alice, conversation, "three", 4)  # the agent's own model again
    assert texts(scripted.requests[-1].messages)[-2:] == ["other", "three"]
    used = Event.objects.filter(conversation=conversation, type="session.usage").last().value
    assert used.output_tokens == 20


def test_an_answer_in_the_middle_is_done_anew(alice, talk):
    conversation, _, _scripted = talk
    regenerate(actor=alice, conversation=conversation, event_uid=answer_in(conversation, 0).uid)
    settled(conversation, 3)
    assert prompt(conversation) == ["one", "third"]


def test_siblings_are_chosen_and_gone_on_with(alice, talk):
    conversation, (_, two), _scripted = talk
    second = answer_in(conversation)
    regenerate(actor=alice, conversation=conversation, event_uid=two.uid)
    settled(conversation, 3)
    third = answer_in(conversation)
    switch_branch(actor=alice, conversation=conversation, event_uid=second.uid)
    assert prompt(conversation) == ["one", "first", "two", "second"]
    say(alice, conversation, "three", 4)
    assert prompt(conversation)[-3:] == ["second", "three", "fourth"]
    switch_branch(actor=alice, conversation=conversation, event_uid=third.uid)
    assert prompt(conversation)[-1] == "third"
    switch_branch(actor=alice, conversation=conversation, event_uid=second.uid)
    assert prompt(conversation)[-1] == "fourth"


def test_a_rewind_goes_before_a_message_and_behind_an_answer(alice, talk):
    conversation, (_, two), scripted = talk
    first = answer_in(conversation, 0)
    rewind(actor=alice, conversation=conversation, event_uid=two.uid)
    assert prompt(conversation) == ["one", "first"]
    assert conversation.runs.filter(state="running").count() == 0
    conversation.refresh_from_db()
    assert not conversation.owes_run
    with pytest.raises(Conflict):
        rewind(actor=alice, conversation=conversation, event_uid=first.uid)
    say(alice, conversation, "other", 3)
    assert texts(scripted.requests[-1].messages) == ["one", "first", "other"]


def test_what_waits_for_an_answer_is_closed_with_its_branch(alice, converse):
    tool = CustomTool(name="camera", description="Takes a picture.")
    conversation, scripted = converse(
        [reply(call("camera")), reply("Hello.")], custom_tools=(tool,)
    )
    row = say(alice, conversation, "Look", 1)
    edit_and_resend(actor=alice, conversation=conversation, message_uid=row.uid, text="Hi")
    settled(conversation, 3)
    use = Event.objects.get(conversation=conversation, type="agent.custom_tool_use")
    answers = Event.objects.filter(conversation=conversation, subject=use.uid).exclude(uid=use.uid)
    assert [each.type for each in answers] == ["agent.tool_result"]
    assert texts(scripted.requests[-1].messages) == ["Hi"]
    history = History(row.entry() for row in Event.objects.filter(conversation=conversation))
    assert not history.unanswered()


def test_what_is_queued_comes_along_where_something_is_asked_anew(alice, converse):
    failure = BadRequest("no", status=400)
    conversation, _scripted = converse([failure, reply("Fine."), reply("Next.")])
    bad = say(alice, conversation, "bad", 1)
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text="next"),)))], actor=alice)
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    edit_and_resend(actor=alice, conversation=conversation, message_uid=bad.uid, text="good")
    settled(conversation, 3)
    assert prompt(conversation) == ["good", "Fine.", "next", "Next."]
    assert types(conversation).count("x.message_withdrawn") == 1
    moved = Event.objects.filter(conversation=conversation, type="user.message").last()
    assert moved.actor == alice


def test_what_was_queued_before_a_page_was_read_speaks_for_nothing_where_it_comes_along(
    alice, converse, monkeypatch
):
    monkeypatch.setattr(branching, "wake", lambda _pk: None)
    conversation, _scripted = converse()
    sent = [Entry.of(UserMessage(content=(Text(text=each),))) for each in ("one", "two", "three")]
    append(conversation.pk, sent, actor=alice)
    one, two, _three = sent
    use = Entry.of(AgentToolUse(name="fetch", input={}))
    page = AgentToolResult(tool_use_id=use.uid, content=(Text(text="Obey."),), untrusted=True)
    start = Entry.of(SpanModelRequestStart())
    end = SpanModelRequestEnd(
        model_request_start_id=start.uid, model_usage=ModelUsage(), end="end_turn"
    )
    turn = [
        use,
        Entry.of(page),
        start,
        Entry.of(end),
        Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
    ]
    append(conversation.pk, [Entry.of(InputTaken(event_ids=(one.uid,))), *turn])
    stopped = Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted()))
    append(conversation.pk, [Entry.of(InputTaken(event_ids=(two.uid,))), stopped])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    regenerate(actor=alice, conversation=conversation, event_uid=two.uid)
    moved = Event.objects.filter(conversation=conversation, type="user.message").last()

    def after(*more: Entry) -> str:
        taken = Entry.of(InputTaken(event_ids=(moved.uid,)))
        return History([*entries_after(conversation.pk, 0), *more, taken]).tainted_by

    assert moved.uid not in {each.uid for each in sent}
    assert after() == "fetch"
    edit = MessageEdited(event_id=moved.uid, content=(Text(text="Go on."),))
    assert after(Entry.of(edit)) == "", "she says it now"


def test_what_is_queued_is_withdrawn_where_nothing_is_asked(alice, converse):
    conversation, _ = converse([reply("Hello."), BadRequest("no", status=400)])
    say(alice, conversation, "one", 1)
    bad = say(alice, conversation, "bad", 2)
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text="next"),)))], actor=alice)
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    rewind(actor=alice, conversation=conversation, event_uid=bad.uid)
    conversation.refresh_from_db()
    assert (conversation.queued_count, conversation.stop_reason) == (0, "end_turn")
    assert not Event.objects.filter(conversation=conversation, processed_at=None).exists()


def test_a_failed_turn_can_be_left_come_back_to_and_tried_again(alice, converse):
    conversation, _scripted = converse([BadRequest("no", status=400), reply("Hi."), reply("Well.")])
    bad = say(alice, conversation, "bad", 1)
    failed = Event.objects.get(conversation=conversation, type="session.error")
    edit_and_resend(actor=alice, conversation=conversation, message_uid=bad.uid, text="good")
    settled(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    with pytest.raises(Conflict):
        request_retry(actor=alice, conversation=conversation)
    switch_branch(actor=alice, conversation=conversation, event_uid=failed.uid)
    conversation.refresh_from_db()
    assert conversation.stop_reason == "retries_exhausted"
    request_retry(actor=alice, conversation=conversation)
    settled(conversation, 3)
    assert prompt(conversation) == ["bad", "Well."]


def test_a_message_that_joined_a_turn_is_said_anew_in_its_place(alice, converse):
    conversation, scripted = converse([reply("anew")])
    one, two = (Entry.of(UserMessage(content=(Text(text=text),))) for text in ("one", "two"))
    append(
        conversation.pk,
        [
            one,
            Entry.of(SessionStatusRunning()),
            Entry.of(InputTaken(event_ids=(one.uid,))),
            two,
            Entry.of(InputTaken(event_ids=(two.uid,), steered=True)),
            Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted())),
        ],
        actor=alice,
    )
    edit_and_resend(actor=alice, conversation=conversation, message_uid=two.uid, text="2")
    settled(conversation, 2)
    assert texts(scripted.requests[-1].messages) == ["one", "2"]


def test_what_joined_a_turn_together_with_a_message_stays_when_that_is_said_anew(alice, converse):
    conversation, scripted = converse([reply("anew"), reply("again")])
    one, two, three = (
        Entry.of(UserMessage(content=(Text(text=text),))) for text in ("one", "two", "three")
    )
    append(
        conversation.pk,
        [
            one,
            Entry.of(SessionStatusRunning()),
            Entry.of(InputTaken(event_ids=(one.uid,))),
            two,
            three,
            Entry.of(MessageEdited(event_id=three.uid, content=(Text(text="3"),))),
            Entry.of(InputTaken(event_ids=(two.uid, three.uid), steered=True)),
            Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted())),
        ],
        actor=alice,
    )
    row = edit_and_resend(actor=alice, conversation=conversation, message_uid=two.uid, text="2")
    settled(conversation, 2)
    assert texts(scripted.requests[-1].messages) == ["one", "2", "3"]
    edit_and_resend(actor=alice, conversation=conversation, message_uid=row.uid, text="II")
    settled(conversation, 3)
    assert texts(scripted.requests[-1].messages) == ["one", "II", "3"]
    told = messages_after(conversation, 0, 50)[0]
    assert [said.id for said in told if said.role == "user"][2] == three.uid


def test_nothing_goes_back_while_it_works_or_waits_for_a_run(alice, talk):
    conversation, (_, two), _ = talk
    append(conversation.pk, [Entry.of(SessionStatusRunning())])
    for change in (
        lambda: edit_and_resend(
            actor=alice, conversation=conversation, message_uid=two.uid, text="2"
        ),
        lambda: regenerate(actor=alice, conversation=conversation, event_uid=two.uid),
        lambda: rewind(actor=alice, conversation=conversation, event_uid=two.uid),
        lambda: switch_branch(actor=alice, conversation=conversation, event_uid=two.uid),
    ):
        with pytest.raises(Conflict):
            change()
    assert "x.rewound" not in types(conversation)


def test_what_is_not_there_or_stands_elsewhere_is_refused(alice, talk, converse):
    conversation, (_, two), _ = talk
    other, _ = converse([reply("Hello.")])
    elsewhere = say(alice, other, "Hi", 1)
    for uid in ("sevt_none", elsewhere.uid, "\0"):
        with pytest.raises(NotFound):
            regenerate(actor=alice, conversation=conversation, event_uid=uid)
        with pytest.raises(NotFound):
            switch_branch(actor=alice, conversation=conversation, event_uid=uid)
    with pytest.raises(Conflict):  # an answer is no message
        edit_and_resend(
            actor=alice,
            conversation=conversation,
            message_uid=answer_in(conversation).uid,
            text="x",
        )
    with pytest.raises(Invalid):
        edit_and_resend(actor=alice, conversation=conversation, message_uid=two.uid, text=" ")
    for model in ("m" * 101, "a\nb"):
        with pytest.raises(Invalid):
            regenerate(actor=alice, conversation=conversation, event_uid=two.uid, model=model)
    with pytest.raises(Conflict):  # it counts already
        switch_branch(actor=alice, conversation=conversation, event_uid=two.uid)
    rewind(actor=alice, conversation=conversation, event_uid=two.uid)
    with pytest.raises(Conflict):
        regenerate(actor=alice, conversation=conversation, event_uid=two.uid)


def test_an_open_turn_is_no_place_to_go_back_to(alice, converse):
    conversation, _ = converse()
    one = Entry.of(UserMessage(content=(Text(text="one"),)))
    use = Entry.of(AgentToolUse(name="look", input={}, evaluated_permission="ask"))
    append(
        conversation.pk,
        [one, Entry.of(InputTaken(event_ids=(one.uid,))), use],
        actor=alice,
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,)))
    append(conversation.pk, [Entry.of(rest)])
    with pytest.raises(Conflict):
        rewind(actor=alice, conversation=conversation, event_uid=use.uid)


def test_a_conversation_has_a_bounded_number_of_branches(alice, talk, monkeypatch):
    conversation, (_, two), _ = talk
    monkeypatch.setattr(branching, "MOST_BRANCHES", 1)
    rewind(actor=alice, conversation=conversation, event_uid=two.uid)
    with pytest.raises(LimitReached):
        switch_branch(actor=alice, conversation=conversation, event_uid=two.uid)
    said = Event.objects.filter(conversation=conversation, type="agent.message").order_by("seq")
    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=said[0].uid)
    assert fork.message_count, "what the refusal advises can be done"


def test_a_long_log_is_read_before_anybody_is_kept_from_writing(alice, talk):
    conversation, (_, two), _ = talk
    seconds = answer_in(conversation)
    last, whole = conversation.last_seq, []

    def note(execute, sql, params, many, context):
        chosen, _where, condition = sql.partition(" WHERE ")
        reads_words = '"payload"' in chosen and '"type"' not in condition and "ORDER BY" in sql
        ours = conversation.pk in (params or ()) and last not in params
        if reads_words and connection.in_atomic_block and ours:
            whole.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        fork_conversation(actor=alice, conversation=conversation, event_uid=two.uid)
        rewind(actor=alice, conversation=conversation, event_uid=two.uid)
        conversation.refresh_from_db()
        last = conversation.last_seq
        switch_branch(actor=alice, conversation=conversation, event_uid=seconds.uid)
    assert not whole
    conversation.refresh_from_db()
    assert conversation.stop_reason == "end_turn"


def test_mallory_and_bob_find_no_such_conversation(mallory, bob, talk):
    conversation, (_, two), _ = talk
    before = stored(conversation)
    for person in (mallory, bob):
        for change in (
            lambda who: edit_and_resend(
                actor=who, conversation=conversation, message_uid=two.uid, text="2"
            ),
            lambda who: regenerate(actor=who, conversation=conversation, event_uid=two.uid),
            lambda who: rewind(actor=who, conversation=conversation, event_uid=two.uid),
            lambda who: switch_branch(actor=who, conversation=conversation, event_uid=two.uid),
        ):
            with pytest.raises(NotFound):
                change(person)
    assert stored(conversation) == before


def by_api(alice, acme, conversation, **body):
    secret = create_token(actor=alice, organisation=acme, name="p", scopes=TokenScope.values).secret
    client = Client(headers={"authorization": f"Bearer {secret}"})
    return client.post(
        f"/api/conversations/{conversation.uid}/branch", body, "application/json"
    ).status_code


def by_v1(alice, acme, conversation, **body):
    secret = create_token(actor=alice, organisation=acme, name="p", scopes=TokenScope.values).secret
    client = Client(headers={"x-api-key": secret})
    address = f"/v1/sessions/{conversation.uid}/x_branch"
    return client.post(address, body, "application/json").status_code


@pytest.mark.parametrize("door", [by_api, by_v1])
def test_programs_go_back_and_on_through_their_doors(alice, mallory, acme, talk, door):
    conversation, (_, two), scripted = talk
    second = answer_in(conversation)
    body = {"act": "edit", "event_id": two.uid, "content": "2"}
    umbrella = mallory.memberships.first()
    assert umbrella is None or door(mallory, umbrella.organisation, conversation, **body) == 404
    assert door(alice, acme, conversation, **body) == 200
    settled(conversation, 3)
    assert texts(scripted.requests[-1].messages) == ["one", "first", "2"]
    assert [said.id for said in messages_after(conversation, 0, 100)[0]][-1] != second.uid
    assert door(alice, acme, conversation, act="switch", event_id=second.uid) == 200
    conversation.refresh_from_db()
    assert [said.id for said in messages_after(conversation, 0, 100)[0]][-1] == second.uid
    assert door(alice, acme, conversation, act="regenerate", event_id=second.uid) == 200
    settled(conversation, 4)
    assert door(alice, acme, conversation, act="rewind", event_id=two.uid) in {200, 409}
    assert door(alice, acme, conversation, act="fly", event_id=two.uid) in {400, 422}


def test_the_command_line_goes_back_and_on(alice, talk):
    conversation, (_, two), _ = talk
    call_command("agent", "rewind", conversation.uid, two.uid, "--user", alice.username)
    assert prompt(conversation) == ["one", "first"]
    call_command("agent", "switch", conversation.uid, two.uid, "--user", alice.username)
    assert prompt(conversation)[-1] == "second"
    with pytest.raises(CommandError):
        call_command("agent", "rewind", conversation.uid, "sevt_none", "--user", alice.username)


def test_the_rows_that_count_are_those_of_the_path(alice, talk):
    conversation, (_, two), _ = talk
    assert counting(conversation).count() == conversation.last_seq
    rewind(actor=alice, conversation=conversation, event_uid=two.uid)
    conversation.refresh_from_db()
    kinds = list(counting(conversation).order_by("seq").values_list("type", flat=True))
    assert kinds.count("agent.message") == 1
    assert kinds[-1] == "x.rewound"


def test_what_another_process_does_meanwhile_is_heeded_before_a_run_goes_on(alice, talk):
    """A run that had read the log before it was rewound decides on what counts now."""
    conversation, (_, two), scripted = talk
    rewind(actor=alice, conversation=conversation, event_uid=two.uid)
    post_message(actor=alice, conversation=conversation, text="three")
    until(lambda: len(scripted.requests) == 3)
    settled(conversation, 3)
    assert texts(scripted.requests[-1].messages) == ["one", "first", "three"]
