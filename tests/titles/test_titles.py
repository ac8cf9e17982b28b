"""Conversations are named by a model: once, within a budget, and never over a title that a person gave."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from accounts.actions.service_accounts import create_service_account
from accounts.models import Organisation, User
from chat.presentation.panels import affected_panels
from conversations.actions.conversations import (
    create_conversation,
    delete_conversation,
    rename_conversation,
)
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message, title_from
from conversations.actions.redacting import redact_content
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.errors import Overloaded
from harness.events import (
    InputTaken,
    SessionStatusRunning,
    SessionUpdated,
    SpanModelRequestEnd,
    UserMessage,
)
from harness.history import Entry
from jobs.engine import engine
from providers.scripted import Fail, Hold, reply, say
from spending.actions.budgets import set_budget
from spending.beside import LOST_AFTER, REST, record_end
from spending.models import Budget, BudgetPeriod, BudgetStop, Reservation, Usage
from tests.conversations.conftest import Converse, rested, still, until
from tests.patience import PATIENCE
from titles.actions import naming as titles
from titles.asking import write_title
from titles.models import TitleRequest
from titles.wording import LONGEST, title_in

from .conftest import Naming

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("one_day")]

WORDS = (
    "Please look through the harbour's papers and say which quay is to be mended first, and why."
)
Outcome = TitleRequest.Outcome


def asked(alice: User, conversation: Conversation, text: str = WORDS) -> Conversation:
    """After the first answer, and whatever comes of a title."""
    post_message(actor=alice, conversation=conversation, text=text)
    rested(conversation)
    still()
    conversation.refresh_from_db()
    return conversation


def outcome_of(conversation: Conversation) -> str | None:
    return (
        TitleRequest.objects.filter(conversation=conversation)
        .values_list("outcome", flat=True)
        .first()
    )


def test_a_conversation_is_named_by_the_model_once_it_rests(
    alice: User, converse: Converse, naming: Naming
):
    model = naming(reply(say("**Quays to mend first**\n\nAnything else?")))
    conversation, _script = converse([reply(say("The north quay.")), reply(say("Yes."))])
    asked(alice, conversation)
    assert conversation.title == "Quays to mend first"
    newest = Event.objects.filter(conversation=conversation).order_by("-seq")[:1]
    assert affected_panels(newest) == {"title", "meter"}
    (request,) = model.requests
    assert request.purpose == "title"
    assert WORDS in str(request.messages)
    assert "north quay" not in str(request)
    assert request.tools == ()
    assert request.max_output_tokens <= 100

    post_message(actor=alice, conversation=conversation, text="And then?")
    rested(conversation, times=2)
    still()
    assert len(model.requests) == 1
    conversation.refresh_from_db()
    assert conversation.title == "Quays to mend first"


def test_what_a_title_used_is_a_model_call_like_any_other(
    alice: User, acme: Organisation, staff: User, converse: Converse, naming: Naming
):
    budget = set_budget(
        actor=staff,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        period="total",
        unit="tokens",
        limit=1_000_000,
    )
    naming(reply(say("Quays")))
    conversation = asked(alice, converse([reply(say("The north quay."))])[0])
    usage = Usage.objects.get(purpose="title")
    assert (usage.conversation, usage.user, usage.total_tokens) == (conversation, alice, 15)
    assert usage.model_request_id == conversation.title_request.model_request_id
    assert not Reservation.objects.exists()
    assert BudgetPeriod.objects.get(budget=budget).spent == 30


def test_a_title_for_which_no_budget_has_room_is_not_asked_for_and_stops_nobody(
    alice: User, staff: User, acme: Organisation, converse: Converse, naming: Naming
):
    model = naming(reply(say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    set_budget(
        actor=staff,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        period="total",
        unit="tokens",
        limit=1_000_000,
    )
    post = partial(post_message, actor=alice, conversation=conversation)
    hold = BudgetPeriod.objects
    post(text=WORDS)
    rested(conversation)
    still()
    TitleRequest.objects.all().delete()
    hold.update(spent=999_999)
    engine.submit(partial(write_title, conversation.pk)).result()
    conversation.refresh_from_db()
    assert (len(model.requests), outcome_of(conversation)) == (1, Outcome.NO_ROOM)
    assert not BudgetStop.objects.exists()
    assert not Reservation.objects.exists()
    assert conversation.status == "idle"


def test_a_title_that_a_person_gives_meanwhile_stays(
    alice: User, converse: Converse, naming: Naming
):
    hold = Hold()
    naming(reply(hold, say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    post_message(actor=alice, conversation=conversation, text=WORDS)
    until(hold.reached.is_set)
    rename_conversation(actor=alice, conversation=conversation, title="Mine")
    hold.release.set()
    still()
    conversation.refresh_from_db()
    assert (conversation.title, outcome_of(conversation)) == ("Mine", Outcome.KEPT)
    assert Usage.objects.filter(purpose="title").count() == 1


def test_a_conversation_that_has_a_title_is_not_named(
    alice: User, converse: Converse, naming: Naming
):
    model = naming(reply(say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    rename_conversation(actor=alice, conversation=conversation, title="Mine")
    asked(alice, conversation)
    assert (conversation.title, outcome_of(conversation)) == ("Mine", Outcome.KEPT)
    assert not model.requests


def test_a_title_that_a_person_gives_in_the_same_words_is_hers(
    alice: User, converse: Converse, naming: Naming
):
    hold = Hold()
    naming(reply(hold, say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    post_message(actor=alice, conversation=conversation, text=WORDS)
    until(hold.reached.is_set)
    conversation.refresh_from_db()
    for _ in range(2):
        rename_conversation(actor=alice, conversation=conversation, title=conversation.title)
    hold.release.set()
    still()
    conversation.refresh_from_db()
    assert (conversation.title, outcome_of(conversation)) == (title_from(WORDS), Outcome.KEPT)
    assert Event.objects.filter(conversation=conversation, type="session.updated").count() == 2


def test_a_short_message_is_its_own_title(alice: User, converse: Converse, naming: Naming):
    model = naming(reply(say("A greeting")))
    conversation = asked(alice, converse([reply(say("Hello."))])[0], "Good morning!")
    assert (conversation.title, outcome_of(conversation)) == ("Good morning!", Outcome.KEPT)
    assert not model.requests


def test_without_a_model_for_titles_nobody_is_asked_and_a_later_one_may_be(
    alice: User, converse: Converse, naming: Naming, settings: LazySettings
):
    settings.AGENTSITE_TITLE_MODELS = {"anthropic": "some-model"}
    conversation, _script = converse([reply(say("The north quay.")), reply(say("Yes."))])
    asked(alice, conversation)
    assert (conversation.title, outcome_of(conversation)) == (title_from(WORDS), None)
    naming(reply(say("Quays")))
    post_message(actor=alice, conversation=conversation, text="And then?")
    rested(conversation, times=2)
    still()
    conversation.refresh_from_db()
    assert conversation.title == "Quays"


def test_a_person_has_so_many_tokens_for_titles_a_day(
    alice: User, converse: Converse, naming: Naming, settings: LazySettings
):
    model = naming(reply(say("Quays")), reply(say("Piers")))
    settings.AGENTSITE_TITLE_TOKENS_PER_DAY = 1_000
    first = asked(alice, converse([reply(say("The north quay."))])[0])
    Usage.objects.filter(purpose="title").update(input_tokens=990)
    second, _script = converse([reply(say("The south quay.")), reply(say("Yes."))])
    asked(alice, second)
    assert (first.title, second.title) == ("Quays", title_from(WORDS))
    assert len(model.requests) == 1
    Usage.objects.filter(purpose="title").update(created_at=timezone.now() - timedelta(days=1))
    post_message(actor=alice, conversation=second, text="And then?")
    rested(second, times=2)
    still()
    second.refresh_from_db()
    assert second.title == "Piers"


def spoken_in(conversation: Conversation, who: User) -> int:
    """What may be named from now on, and the present turn of which is for `who`."""
    message = Entry.of(UserMessage(content=(Text(text=WORDS),)))
    title = Entry.of(SessionUpdated(title=title_from(WORDS), made_of=message.uid))
    append(conversation.pk, [message, title], actor=who)
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), taken])
    return conversation.pk


def room_for(settings: LazySettings, requests: int) -> None:
    """From now on of a day, where each takes what the one did that was asked for."""
    one = TitleRequest.objects.get(outcome=Outcome.ASKED)
    tokens = one.prompt_tokens_at_most + one.output_tokens_at_most
    settings.AGENTSITE_TITLE_TOKENS_PER_DAY = requests * tokens


def test_what_is_asked_for_counts_as_that_of_whoever_spoke_and_not_of_the_owner(
    alice: User, bob: User, converse: Converse, naming: Naming, settings: LazySettings
):
    naming()
    shared, his, hers = (converse()[0] for _ in range(3))
    Conversation.objects.filter(pk=his.pk).update(owner=bob)
    assert titles.begin(spoken_in(shared, bob)) is not None
    room_for(settings, requests=1)
    assert titles.begin(spoken_in(his, bob)) is None
    assert titles.begin(spoken_in(hers, alice)) is not None


@pytest.mark.parametrize("ends", ["answered", "lost"])
def test_a_title_is_counted_for_whom_it_was_asked_whoever_speaks_before_it_comes(
    alice: User,
    bob: User,
    acme: Organisation,
    staff: User,
    converse: Converse,
    naming: Naming,
    ends: str,
):
    naming()
    hers, his = (
        set_budget(
            actor=staff,
            scope=Budget.Scope.USER,
            organisation=acme,
            user=each,
            period="total",
            unit="tokens",
            limit=1_000_000,
        )
        for each in (alice, bob)
    )
    shared = converse()[0]
    named = titles.begin(spoken_in(shared, alice))
    assert named is not None
    spoken_in(shared, bob)
    row = TitleRequest.objects.get()
    if ends == "lost":
        titles.lose(row)
    else:
        titles.end(named.row, row.lost_end.model_copy(update={"end": "end_turn"}), "Quays")

    used = Usage.objects.get()
    assert (used.user, used.charged_to) == (alice, alice)
    assert BudgetPeriod.objects.get(budget=hers).spent == used.total_tokens > 0
    assert not BudgetPeriod.objects.filter(budget=his).exclude(spent=0).exists()
    assert not Reservation.objects.exists()


@pytest.mark.parametrize("used", [False, True], ids=["asked for", "used"])
def test_what_speaks_for_a_person_shares_her_tokens(
    alice: User,
    acme: Organisation,
    converse: Converse,
    naming: Naming,
    settings: LazySettings,
    used: bool,
):
    naming()
    robot = create_service_account(actor=alice, organisation=acme, name="robot")
    first, second = converse()[0], converse()[0]
    assert titles.begin(spoken_in(first, robot)) is not None
    room_for(settings, requests=1)
    if used:
        titles.lose(TitleRequest.objects.get())
        Usage.objects.update(input_tokens=settings.AGENTSITE_TITLE_TOKENS_PER_DAY)
        assert Usage.objects.get().user == robot
    assert titles.begin(spoken_in(second, alice)) is None


def test_of_many_that_rest_at_once_no_more_are_named_than_there_is_room_for(
    alice: User, converse: Converse, naming: Naming, settings: LazySettings
):
    naming()
    assert titles.begin(spoken_in(converse()[0], alice)) is not None
    room_for(settings, requests=3)
    resting = [spoken_in(converse()[0], alice) for _ in range(8)]
    begin = threading.Barrier(len(resting))
    named: list[bool] = []

    def go(conversation: int) -> None:
        begin.wait(PATIENCE)
        try:
            named.append(titles.begin(conversation) is not None)
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(each,)) for each in resting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(named), sum(named)) == (8, 2)


def test_a_model_that_fails_is_left_alone_for_an_hour(
    alice: User, converse: Converse, naming: Naming
):
    model = naming(reply(Fail(Overloaded("Too much to do."))), reply(say("Piers")))
    first = asked(alice, converse([reply(say("The north quay."))])[0])
    assert (first.title, outcome_of(first)) == (title_from(WORDS), Outcome.FAILED)
    second, _script = converse([reply(say("The south quay.")), reply(say("Yes."))])
    asked(alice, second)
    assert (len(model.requests), outcome_of(second)) == (1, None)
    TitleRequest.objects.update(at=timezone.now() - REST)
    post_message(actor=alice, conversation=second, text="And then?")
    rested(second, times=2)
    still()
    second.refresh_from_db()
    assert second.title == "Piers"


def test_what_subjects_show_themselves_and_subagents_and_services_do_is_not_named(
    alice: User, acme: Organisation, converse: Converse, naming: Naming
):
    model = naming()
    parent, _script = converse([reply(say("The north quay."))] * 3)
    agent, environment = parent.agent_version.agent, parent.environment
    service = create_service_account(actor=alice, organisation=acme, name="robot")
    begin = partial(create_conversation, organisation=acme, agent=agent, environment=environment)
    for conversation in (
        begin(actor=alice, unlisted=True),
        begin(actor=alice, parent=parent),
        begin(actor=service),
    ):
        asked(conversation.owner, conversation)
        assert outcome_of(conversation) is None
    assert not model.requests


def test_a_call_of_a_process_that_died_is_counted_once_and_not_made_again(
    alice: User, converse: Converse, naming: Naming
):
    model = naming(reply(say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    post_message(actor=alice, conversation=conversation, text=WORDS)
    rested(conversation)
    still()
    # As if nothing had been heard of it.
    Usage.objects.filter(purpose="title").delete()
    row = conversation.title_request
    TitleRequest.objects.filter(pk=row.pk).update(outcome=Outcome.ASKED)
    titles.settle_lost()
    assert not Usage.objects.filter(purpose="title").exists()  # it may still be answered
    TitleRequest.objects.update(at=timezone.now() - LOST_AFTER)
    titles.settle_lost()
    titles.settle_lost()
    engine.submit(partial(write_title, conversation.pk)).result()
    usage = Usage.objects.get(purpose="title")
    assert usage.total_tokens > 0
    assert (outcome_of(conversation), len(model.requests)) == (Outcome.LOST, 1)


def test_a_call_that_cannot_be_counted_keeps_no_other_from_it(
    alice: User, converse: Converse, naming: Naming, monkeypatch: pytest.MonkeyPatch
):
    naming()
    stuck, other = converse()[0], converse()[0]
    for conversation in (stuck, other):
        assert titles.begin(spoken_in(conversation, alice)) is not None
    TitleRequest.objects.update(at=timezone.now() - LOST_AFTER)

    def fails_for_one(held: Conversation, row: TitleRequest, ended: SpanModelRequestEnd) -> None:
        if held.pk == stuck.pk:
            raise OverflowError("it cannot be counted")
        record_end(held, row, ended)

    monkeypatch.setattr(titles, "record_end", fails_for_one)
    titles.settle_lost()
    assert (outcome_of(stuck), outcome_of(other)) == (Outcome.ASKED, Outcome.LOST)
    assert Usage.objects.get(purpose="title").conversation == other


def test_deleting_a_conversation_whose_title_is_asked_for_hides_no_spending(
    alice: User, converse: Converse, naming: Naming
):
    hold = Hold()
    naming(reply(hold, say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    post_message(actor=alice, conversation=conversation, text=WORDS)
    until(hold.reached.is_set)
    rested(conversation)
    delete_conversation(actor=alice, conversation=conversation)
    hold.release.set()
    still()
    usage = Usage.objects.get(purpose="title")
    assert (usage.conversation, usage.user) == (None, alice)
    assert usage.total_tokens > 0


@pytest.mark.parametrize("whose", ["organisation", "owner"])
def test_organisations_and_people_can_go_while_a_title_is_asked_for(
    alice: User, converse: Converse, naming: Naming, whose: str
):
    hold = Hold()
    naming(reply(hold, say("Quays")))
    conversation, _script = converse([reply(say("The north quay."))])
    post_message(actor=alice, conversation=conversation, text=WORDS)
    until(hold.reached.is_set)
    rested(conversation)
    getattr(conversation, whose).delete()
    hold.release.set()
    still()
    assert not TitleRequest.objects.exists()
    spent = Usage.objects.filter(purpose="title")
    assert [(row.user, row.conversation) for row in spent] == [(None, None)] * (whose == "owner")


def test_a_title_goes_with_the_message_that_it_was_made_of(
    alice: User, converse: Converse, naming: Naming
):
    naming(reply(say("Secret quays of Emden")))
    conversation = asked(alice, converse([reply(say("The north quay."))])[0])
    message = Event.objects.get(conversation=conversation, type="user.message")
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    conversation.refresh_from_db()
    assert conversation.title == ""
    payloads = Event.objects.filter(conversation=conversation).values_list("payload", flat=True)
    assert "Emden" not in str(list(payloads))
    row = TitleRequest.objects.values().get()
    assert "Emden" not in str(row)
    assert "harbour" not in str(row)


def test_in_a_fork_as_well(alice: User, converse: Converse, naming: Naming):
    naming(reply(say("Secret quays of Emden")))
    conversation = asked(alice, converse([reply(say("The north quay."))])[0])
    last = Event.objects.filter(conversation=conversation, type="agent.message").get()
    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=last.uid)
    assert fork.title == "Secret quays of Emden"
    message = Event.objects.get(conversation=fork, type="user.message")
    redact_content(actor=alice, conversation=fork, event_uid=message.uid)
    fork.refresh_from_db()
    assert fork.title == ""
    assert "Emden" not in str(list(Event.objects.filter(conversation=fork).values()))
    conversation.refresh_from_db()
    assert conversation.title == "Secret quays of Emden"


def test_two_processes_that_hear_of_the_same_rest_ask_once(
    alice: User, converse: Converse, naming: Naming
):
    model = naming(reply(say("Quays")), reply(say("Piers")))
    conversation = asked(alice, converse([reply(say("The north quay."))])[0])
    both = [engine.submit(partial(write_title, conversation.pk)) for _ in range(2)]
    for each in both:
        each.result()
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Quays to mend", "Quays to mend"),
        ('\n\n# "Quays to mend."\nand more', "Quays to mend"),
        ("„Kaimauern in Emden“", "Kaimauern in Emden"),
        ("q" * (LONGEST + 1), ""),
        ("  \n***\n", ""),
        ("", ""),
        ("a\0b", "ab"),
    ],
)
def test_only_a_line_that_can_be_a_title_becomes_one(answer: str, title: str):
    assert title_in(answer) == title
