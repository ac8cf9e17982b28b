"""Teams: who joins, what reaches whom exactly once, who wakes whom, what is asked by an id, and what is said
when nobody goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from conversations.actions.messages import post_message, set_feature
from conversations.log import append
from conversations.models import Conversation, Share
from conversations.wakes import wake
from harness.content import Text, text_of
from harness.errors import (
    AlreadyDecided,
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
)
from harness.events import UserMessage, dump, load
from harness.history import Entry
from harness.ids import new_id
from harness.tools import ToolContext
from providers.scripted import Hold, Scripted, call, registered, reply, say
from teams_app import attending
from teams_app.actions.mail import held_team, send_mail
from teams_app.actions.requests import answer_as_member, answer_as_person, make_request
from teams_app.actions.tasks import Changes, change_task, create_task
from teams_app.actions.teams import (
    dismiss_teammate,
    resume_teammate,
    spawn_teammate,
    stop_teammate,
)
from teams_app.boards import board_of, stored
from teams_app.events import TeammateStatus, TeamStuck
from teams_app.members import Member, Status, member_of, members_of
from teams_app.models import Mail, Task, Team, Teammate, TeamRequest
from teams_app.owners import NOBODY, Owner
from teams_app.tools.place import EXTRA
from teams_app.tools.team import check_protocol, list_teammates
from tests.approvals.asking import asks
from tests.conversations.conftest import Converse, MakeAgent, rested, still, until

pytestmark = pytest.mark.django_db(transaction=True)

Agents = Callable[..., Scripted]


@pytest.fixture
def plays(make_agent: MakeAgent) -> Iterator[Agents]:
    """An agent of a name of its own that plays a script."""
    with ExitStack() as open_scripts:

        def make(name: str, script: Any, **config: Any) -> Scripted:
            model = new_id("script")
            scripted = open_scripts.enter_context(registered(model, script))
            make_agent(name, provider="scripted", model=model, **config)
            return scripted

        yield make


@pytest.fixture
def lead(converse: Converse) -> Conversation:
    """One that says nothing of importance, however often it is asked."""
    conversation, _script = converse(lambda _request: reply("I see."), features={"teams": True})
    return conversation


def join(lead: Conversation, name: str, agent: str = "", **more: Any) -> Member:
    made = spawn_teammate(
        actor=lead.owner, lead=lead, name=name, role="writes", text="Begin.", agent=agent, **more
    )
    return Member(made.team, made.conversation, made)


def now(member: Member) -> Member:
    found = member_of(Conversation.objects.get(pk=member.conversation.pk))
    assert found is not None
    return found


def row(member: Member) -> Teammate:
    assert member.teammate is not None
    return member.teammate


def leading(lead: Conversation) -> Member:
    found = member_of(lead)
    assert found is not None
    return found


def settled(*members: Member) -> None:
    """Wait until nobody works any more and all that was begun has been looked at."""
    until(lambda: all(now(each).status is not Status.WORKING for each in members))
    still()


def heard(conversation: Conversation) -> list[str]:
    """What reached the agent of a conversation, in the order in which it was taken."""
    taken = [
        uid
        for row in conversation.events.filter(type="x.input_taken").order_by("seq")
        for uid in row.value.event_ids
    ]
    rows = {row.uid: row.value for row in conversation.events.filter(type="user.message")}
    return [text_of(rows[uid].content) for uid in taken if uid in rows]


def statuses(lead: Conversation) -> list[tuple[str, str]]:
    rows = lead.events.filter(type="x.teammate_status").order_by("seq")
    return [(row.value.name, row.value.status) for row in rows]


def test_a_lead_brings_a_teammate_in_and_hears_once_what_it_came_to(
    converse: Converse, plays: Agents
) -> None:
    plays(
        "Writer", [reply(call("write_file", path="a.txt", content="A")), reply("a.txt is written.")]
    )
    lead, script = converse(
        [
            reply(
                call("spawn_teammate", name="Anna", role="writes", prompt="Write.", agent="Writer")
            ),
            reply("Anna is at it."),
            reply("Anna is done."),
        ],
        features={"teams": True},
    )
    post_message(actor=lead.owner, conversation=lead, text="Have it written")
    rested(lead, 2)
    still()

    teammate = Teammate.objects.get()
    assert (teammate.name, teammate.conversation.parent) == ("anna", lead)
    assert heard(teammate.conversation) == ["[Team] You are anna. writes\nWrite."]
    assert heard(lead)[1:] == ["[Team] anna has come to rest and says:\na.txt is written."]
    assert "send_message" in {tool.name for tool in script.requests[0].tools}
    told = statuses(lead)
    assert told[-1] == ("anna", "idle")
    assert ("anna", "working") in told or told == [("anna", "idle")]
    for _again in range(2):
        attending.attend(teammate.team_id)
    assert len(heard(lead)) == 2
    assert statuses(lead) == told


def test_a_message_wakes_an_idle_teammate_and_the_same_one_reaches_it_once(
    lead: Conversation, plays: Agents
) -> None:
    script = plays("Writer", lambda _request: reply("Yes."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    asked = len(script.requests)
    me = leading(lead)

    for _twice in range(2):
        send_mail(actor=lead.owner, sender=me, receivers=[anna], text="Go on", key="call_1")
    settled(anna)

    assert heard(anna.conversation)[1:] == ["[Team] Message from lead:\nGo on"]
    assert len(script.requests) == asked + 1
    last = script.requests[-1].messages[-1]
    assert last.role == "user", "never an answer that is prefilled"
    assert Mail.objects.get(key="call_1").is_read


def test_what_comes_while_one_works_joins_at_the_next_step(
    lead: Conversation, plays: Agents
) -> None:
    hold = Hold()
    script = plays(
        "Writer", [reply(say("Looking. ", hold), call("think", thought="Hm.")), reply("Done.")]
    )
    anna = join(lead, "anna", "Writer")
    until(hold.reached.is_set)
    me = leading(lead)
    (mail,) = send_mail(actor=lead.owner, sender=me, receivers=[anna], text="Be brief", key="c")
    before = mail.is_read
    hold.release.set()
    settled(anna)

    assert (before, mail.is_read) == (False, True)
    assert any(
        isinstance(part, Text) and "Be brief" in part.text
        for message in script.requests[1].messages
        for part in message.parts
    )
    assert len(script.requests) == 2


def test_a_broadcast_reaches_all_others_and_teammates_write_to_each_other(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    send_mail(
        actor=lead.owner,
        sender=anna,
        receivers=members_of(anna.team),
        text="I am done",
        key="all",
        kind=Mail.Kind.BROADCAST,
    )
    settled(anna, ben)
    said = "[Team] Message from anna to all:\nI am done"
    assert said in heard(ben.conversation)
    assert said in heard(lead)
    assert said not in heard(anna.conversation)


def test_what_a_teammate_read_goes_along_with_its_words(lead: Conversation, plays: Agents) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    page = UserMessage(content=(Text(text="A page"),), by_agent=True, untrusted_by="a page")
    append(anna.conversation.pk, [Entry.of(page)])
    wake(anna.conversation.pk)
    rested(anna.conversation, 2)
    settled(anna, ben)
    send_mail(actor=lead.owner, sender=anna, receivers=[ben], text="Send it", key="k")
    settled(anna, ben)
    (row,) = [
        row
        for row in ben.conversation.events.filter(type="user.message")
        if "Send it" in text_of(row.value.content)
    ]
    assert row.value.untrusted_by == "a page, by way of anna"


def test_who_wrote_to_one_teammate_does_not_decide_for_another_that_it_writes_to(
    lead: Conversation, plays: Agents, bob: User
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = (join(lead, name, "Writer") for name in ("anna", "ben"))
    settled(anna, ben)
    row = Entry.of(UserMessage(content=(Text(text="Have it sent."),)))
    append(anna.conversation.pk, [row], actor=bob)
    # Before she rests, of which the one above is told.
    send_mail(actor=lead.owner, sender=anna, receivers=[ben], text="Send it", key="k")
    wake(anna.conversation.pk)
    settled(anna, ben)
    asked = asks(Conversation.objects.get(pk=ben.conversation.pk), requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]


def test_what_a_teammate_read_goes_along_with_its_answer_however_it_is_looked_up(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    request = asking(lead, leading(lead), anna)
    page = UserMessage(content=(Text(text="A page"),), by_agent=True, untrusted_by="a page")
    append(anna.conversation.pk, [Entry.of(page)])
    wake(anna.conversation.pk)
    rested(anna.conversation, 3)
    settled(anna)
    context = ToolContext("sevt_1", Path(), extras={EXTRA: lead.pk})
    given = {"request_id": request.uid}
    assert not check_protocol(context, given).untrusted
    answer_as_member(
        actor=lead.owner, member=anna, request_uid=request.uid, approve=True, text="Send it."
    )
    told = check_protocol(context, given)
    assert "Send it." in str(told.content)
    assert told.untrusted_by == "a page, by way of anna"


def test_whoever_holds_a_team_holds_its_board_before_the_conversation_that_leads_it(
    lead: Conversation, plays: Agents
) -> None:
    """As whoever changes a task at it: else they would wait for each other."""
    plays("Writer", lambda _request: reply("Yes."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    stored(board_of(lead))

    def held(act: Callable[[], object]) -> list[str]:
        with transaction.atomic(), CaptureQueriesContext(connection) as asked:
            act()
        begins = (each["sql"].partition("FROM")[0] for each in asked.captured_queries)
        tables = (re.match(r'SELECT "(\w+)"\."id", "\w+"\.', each) for each in begins)
        return list(dict.fromkeys(found[1] for found in tables if found))[:3]

    order = ["teams_app_team", "teams_app_board", "conversations_conversation"]
    assert held(lambda: attending.attend(anna.team.pk)) == order
    assert held(lambda: held_team(lead.owner, anna.team)) == order


def test_so_it_does_where_whoever_asked_has_left_the_team(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    request = asking(lead, anna, ben)
    page = UserMessage(content=(Text(text="A page"),), by_agent=True, untrusted_by="a page")
    append(ben.conversation.pk, [Entry.of(page)])
    wake(ben.conversation.pk)
    settled(anna, ben)
    assert anna.teammate
    dismiss_teammate(actor=lead.owner, teammate=anna.teammate)
    settled(anna, ben)
    answer_as_member(
        actor=lead.owner, member=ben, request_uid=request.uid, approve=True, text="Send it."
    )
    context = ToolContext("sevt_1", Path(), extras={EXTRA: lead.pk})
    told = check_protocol(context, {"request_id": request.uid})
    assert "Send it." in str(told.content)
    assert told.untrusted_by == "a page, by way of ben"


def test_what_strangers_had_written_into_tasks_comes_along_when_the_team_stands_still(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("I wait."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    create_task(
        actor=lead.owner,
        board=board_of(lead),
        subject="Send it",
        owner=Owner(conversation=anna.conversation),
        by=anna.conversation,
        untrusted_by="a page",
    )
    attending.attend(anna.team.pk)
    settled(anna)
    rows = [row.value for row in lead.events.filter(type="user.message")]
    (told,) = [said for said in rows if "Nobody of the team works" in text_of(said.content)]
    assert "Send it" in text_of(told.content)
    assert told.untrusted_by == "a page"


def test_a_role_that_was_given_after_a_strangers_page_brings_it_to_the_others(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    page = UserMessage(content=(Text(text="A page"),), by_agent=True, untrusted_by="a page")
    ben = join(lead, "ben", "Writer")
    settled(ben)
    append(lead.pk, [Entry.of(page)])
    wake(lead.pk)
    settled(ben)
    anna = join(lead, "anna", "Writer")
    settled(anna, ben)

    def listed(who: Conversation) -> str:
        context = ToolContext("sevt_1", Path(), extras={EXTRA: who.pk})
        return list_teammates(context, {}).untrusted_by

    assert listed(ben.conversation) == "a page, by way of the agent above"
    assert listed(lead) == ""


def test_nobody_joins_past_the_limit_twice_or_where_there_is_no_team(
    lead: Conversation, plays: Agents, alice: User, bob: User, mallory: User, settings: Any
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    settings.AGENTSITE_TEAMMATES = 1
    anna = join(lead, "anna", "Writer", key="call_1")
    again = join(lead, "anna", "Writer", key="call_1")
    assert again.teammate == anna.teammate
    with pytest.raises(LimitReached, match="1 teammates"):
        join(lead, "ben", "Writer")
    settings.AGENTSITE_TEAMMATES = 2
    with pytest.raises(Conflict, match="called “anna”"):
        join(lead, "Anna", "Writer")
    for name in ("lead", "", "an na", "x" * 41):
        with pytest.raises(Invalid):
            join(lead, name, "Writer")
    with pytest.raises(Forbidden, match="person began"):
        join(anna.conversation, "carl", "Writer")
    for stranger in (mallory, bob):
        with pytest.raises(NotFound):
            spawn_teammate(actor=stranger, lead=lead, name="x", role="", text="Go")
        with pytest.raises(NotFound):
            stop_teammate(actor=stranger, teammate=row(anna))
        with pytest.raises(NotFound):
            resume_teammate(actor=stranger, teammate=row(anna))
        with pytest.raises(NotFound):
            dismiss_teammate(actor=stranger, teammate=row(anna))
        with pytest.raises(NotFound):
            send_mail(actor=stranger, sender=anna, receivers=[anna], text="Hi", key="k")
    settled(anna)
    set_feature(actor=alice, conversation=lead, feature="teams", enabled=False)
    with pytest.raises(Forbidden, match="not to work as a team"):
        join(lead, "ben", "Writer")


def test_the_switch_is_what_offers_the_tools_of_a_team(converse: Converse) -> None:
    for on in (True, False):
        conversation, script = converse([reply("Hello.")], features={"teams": on})
        post_message(actor=conversation.owner, conversation=conversation, text="Hello")
        rested(conversation)
        names = {tool.name for tool in script.requests[0].tools}
        assert ("spawn_teammate" in names, "send_message" in names) == (on, on)
        assert "task_create" in names


def test_an_idle_teammate_takes_the_next_task_that_is_free_and_each_is_given_once(
    lead: Conversation, plays: Agents, alice: User
) -> None:
    def works(request: Any) -> Any:
        text = " ".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
        if "is yours now" in text:
            number = int(text.split("#")[1].split(" ")[0])
            return reply(call("task_update", id=number, status="completed"))
        return reply("Ready.")

    plays("Writer", works)
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    board = board_of(lead)
    first = create_task(actor=alice, board=board, subject="Chapter 1")
    create_task(actor=alice, board=board_of(lead), subject="Chapter 2", blocked_by=[first.number])
    create_task(actor=alice, board=board_of(lead), subject="Chapter 3")
    until(lambda: not Task.objects.open().exists())
    settled(anna, ben)

    assert {task.owner_name for task in Task.objects.all()} <= {"anna", "ben"}
    given = Mail.objects.filter(key__startswith="task:").values_list("text", flat=True)
    assert sorted(text.split(":")[1].split("\n")[0].strip() for text in given) == [
        "Chapter 1",
        "Chapter 2",
        "Chapter 3",
    ]


def test_one_who_was_stopped_hears_when_it_goes_on_what_was_written_meanwhile(
    lead: Conversation, plays: Agents, alice: User
) -> None:
    hold = Hold()
    script = plays("Writer", [reply(say("Working ", hold, "on.")), reply("All right.")])
    anna = join(lead, "anna", "Writer")
    until(hold.reached.is_set)

    stop_teammate(actor=alice, teammate=row(anna))
    hold.release.set()
    rested(anna.conversation)
    me = leading(lead)
    (mail,) = send_mail(actor=alice, sender=me, receivers=[now(anna)], text="Hurry", key="k")
    still()
    attending.attend(anna.team.pk)
    still()
    assert len(script.requests) == 1
    assert now(anna).status is Status.STOPPED
    assert statuses(lead)[-1] == ("anna", "stopped")
    mail.refresh_from_db()
    assert (mail.event_uid, mail.is_read) == ("", False)

    resume_teammate(actor=alice, teammate=row(anna))
    settled(anna)
    assert heard(anna.conversation)[1:] == ["[Team] Message from lead:\nHurry"]


def test_a_teammate_agrees_to_end_its_work_and_leaves_its_tasks_to_others(
    converse: Converse, plays: Agents, alice: User
) -> None:
    def answers(request: Any) -> Any:
        text = " ".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
        if "asks you to end your work" in text:
            uid = text.split("Request ")[1].split(":")[0]
            return reply(call("answer_request", request_id=uid, approve=True, text="Gladly."))
        return reply("Ready.")

    plays("Writer", answers)
    lead, _script = converse(
        [
            reply(call("spawn_teammate", name="anna", prompt="Wait.", agent="Writer")),
            reply(call("task_create", subject="Chapter", owner="anna")),
            reply(call("shutdown_request", teammate="anna", reason="Enough.")),
            *[reply("I see.") for _time in range(6)],
        ],
        features={"teams": True},
    )
    post_message(actor=alice, conversation=lead, text="Go")
    until(lambda: Teammate.objects.filter(dismissed_at__isnull=False).exists())
    rested(Teammate.objects.get().conversation)
    still()

    request = TeamRequest.objects.get()
    assert (request.state, request.answer) == ("approved", "Gladly.")
    assert any("anna agreed:\nGladly." in text for text in heard(lead))
    assert (Task.objects.get().owner_name, Task.objects.get().status) == ("", "pending")
    assert statuses(lead)[-1] == ("anna", "dismissed")
    anna = member_of(Teammate.objects.get().conversation)
    me = member_of(lead)
    assert anna is not None
    assert me is not None
    with pytest.raises(AlreadyDecided):
        answer_as_member(actor=alice, member=anna, request_uid=request.uid, approve=False)


def asking(lead: Conversation, asker: Member, to: Member | User, **more: Any) -> TeamRequest:
    whom = {"person": to} if isinstance(to, User) else {"addressee": to}
    given = {"kind": "question", "text": "Which one?", "key": new_id("call"), **more}
    return make_request(actor=lead.owner, asker=asker, **whom, **given)


def test_a_request_is_answered_once_by_whom_it_names(
    lead: Conversation, plays: Agents, alice: User, bob: User, mallory: User
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    request = asking(lead, anna, ben, key="call_1")
    assert asking(lead, anna, ben, key="call_1") == request
    me = leading(lead)
    for other in (anna, me):
        with pytest.raises(NotFound):
            answer_as_member(actor=alice, member=other, request_uid=request.uid, approve=True)
    with pytest.raises(NotFound):
        answer_as_person(actor=alice, request=request, approve=True)
    with pytest.raises(NotFound):
        answer_as_member(actor=mallory, member=ben, request_uid=request.uid, approve=True)

    answer_as_member(actor=alice, member=ben, request_uid=request.uid, approve=True, text="A")
    with pytest.raises(AlreadyDecided):
        answer_as_member(actor=alice, member=ben, request_uid=request.uid, approve=False)
    settled(anna, ben)
    told = [text for text in heard(anna.conversation) if request.uid in text]
    assert told == [f"[Team] Request {request.uid} (question): ben answered:\nA"]

    with pytest.raises(NotFound):
        asking(lead, anna, bob)
    with pytest.raises(Forbidden):
        asking(lead, anna, ben, kind="shutdown")
    with pytest.raises(Invalid):
        asking(lead, anna, anna)
    with pytest.raises(Invalid):
        asking(lead, anna, alice, kind="plan")


def test_a_question_to_a_person_waits_for_her_and_her_answer_reaches_who_asked(
    lead: Conversation, plays: Agents, alice: User, bob: User
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    Share.objects.create(conversation=lead, user=bob, role="viewer")
    request = asking(lead, anna, bob)
    assert list(TeamRequest.objects.waiting_for(bob)) == [request]
    answer_as_person(actor=bob, request=request, approve=True, text="The blue one")
    settled(anna)
    (told,) = [text for text in heard(anna.conversation) if request.uid in text]
    assert told.endswith("bob answered:\nThe blue one")
    asked = asks(Conversation.objects.get(pk=anna.conversation.pk), requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob], "she said what it is to do"
    assert not TeamRequest.objects.waiting_for(bob).exists()


def test_a_request_that_nobody_answers_expires_and_who_asked_hears_of_it_once(
    lead: Conversation, plays: Agents, alice: User
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    request = asking(lead, anna, alice)
    TeamRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    for _twice in range(2):
        attending.sweep()
    settled(anna)
    request.refresh_from_db()
    assert request.state == "expired"
    told = [text for text in heard(anna.conversation) if request.uid in text]
    assert told == [f"[Team] Request {request.uid} (question): Nobody answered in time."]
    with pytest.raises(AlreadyDecided):
        answer_as_person(actor=alice, request=request, approve=True)


def test_a_task_is_handed_over_when_the_other_agrees(
    lead: Conversation, plays: Agents, alice: User
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    task = create_task(
        actor=alice,
        board=board_of(lead),
        subject="Chapter",
        owner=Owner(conversation=anna.conversation),
    )
    with pytest.raises(Conflict):
        asking(lead, ben, anna, kind="handover", task=task)
    request = asking(lead, anna, ben, kind="handover", task=task)
    answer_as_member(actor=alice, member=ben, request_uid=request.uid, approve=True)
    task.refresh_from_db()
    assert task.owner_name == "ben"


@pytest.mark.parametrize("whose", ["the person", "nobody"])
def test_a_task_that_is_the_askers_no_more_is_not_handed_over_by_a_late_yes(
    lead: Conversation, plays: Agents, alice: User, whose: str
) -> None:
    plays("Writer", lambda _request: reply("Yes."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    hers = Owner(conversation=anna.conversation)
    task = create_task(actor=alice, board=board_of(lead), subject="Chapter", owner=hers)
    request = asking(lead, anna, ben, kind="handover", task=task)
    taken = Owner(user=alice) if whose == "the person" else NOBODY
    change_task(actor=alice, task=task, changes=Changes(owner=taken))
    with pytest.raises(Conflict):
        answer_as_member(actor=alice, member=ben, request_uid=request.uid, approve=True)
    task.refresh_from_db()
    assert taken.has(task)
    answer_as_member(actor=alice, member=ben, request_uid=request.uid, approve=False)


def test_those_who_wait_for_each_other_are_noticed_and_told_once(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("I wait."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    me = leading(lead)
    asking(lead, me, anna)
    asking(lead, anna, me)
    settled(anna, me)
    until(lambda: lead.events.filter(type="x.team_stuck").exists())
    settled(anna, me)
    stuck = [row.value for row in lead.events.filter(type="x.team_stuck")]
    assert "wait for each other" in stuck[-1].reasons[0]
    assert stuck[-1].remark().startswith("The team stands still: ")
    told = [text for text in heard(lead) if "Nobody of the team works" in text]
    before = len(told)
    for _again in range(2):
        attending.attend(anna.team.pk)
    settled(anna, me)
    assert len([text for text in heard(lead) if "Nobody of the team works" in text]) == before


def test_a_task_that_nobody_can_take_is_noticed(
    lead: Conversation, plays: Agents, alice: User
) -> None:
    plays("Writer", lambda _request: reply("Well."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    stop_teammate(actor=alice, teammate=row(anna))
    task = create_task(
        actor=alice,
        board=board_of(lead),
        subject="Chapter",
        owner=Owner(conversation=anna.conversation),
    )
    create_task(actor=alice, board=board_of(lead), subject="Print", blocked_by=[task.number])
    until(lambda: lead.events.filter(type="x.team_stuck").count() >= 1)
    still()
    last = lead.events.filter(type="x.team_stuck").order_by("seq").last()
    reasons = " ".join(last.value.reasons)
    assert "is to be begun by anna, who was stopped" in reasons
    assert "waits for #1, which nobody does" in reasons
    # A person who is to do something may still act.
    change_task(actor=alice, task=task, changes=Changes(owner=Owner(user=alice)))
    still()
    rows = lead.events.filter(type="x.team_stuck").count()
    attending.attend(anna.team.pk)
    assert lead.events.filter(type="x.team_stuck").count() == rows


def test_a_rest_that_nobody_looked_at_before_the_server_died_is_told_once_by_the_sweep(
    lead: Conversation, plays: Agents
) -> None:
    plays("Writer", lambda _request: reply("Ready."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    rests = Mail.objects.filter(receiver=lead, key__startswith="rest:")
    first = rests.get()
    before = Teammate.objects.values("told", "idle_since", "rest_seq").get()
    send_mail(actor=lead.owner, sender=leading(lead), receivers=[anna], text="More.", key="1")
    settled(anna)
    # As the tables would stand: it worked and rested while its team was held, and the server died.
    rests.exclude(pk=first.pk).delete()
    Teammate.objects.update(**before)
    for _twice in range(2):
        attending.sweep()
        still()
        assert rests.count() == 2
    assert row(now(anna)).rest_seq > before["rest_seq"]


def test_who_is_idle_for_too_long_is_dismissed(lead: Conversation, plays: Agents) -> None:
    plays("Writer", lambda _request: reply("Ready."))
    anna, ben = join(lead, "anna", "Writer"), join(lead, "ben", "Writer")
    settled(anna, ben)
    attending.sweep()
    assert Teammate.objects.active().count() == 2
    long_ago = timezone.now() - timedelta(days=2)
    Teammate.objects.filter(name="anna").update(idle_since=long_ago)
    attending.sweep()
    still()
    assert [each.name for each in Teammate.objects.active()] == ["ben"]
    assert ("anna", "dismissed") in statuses(lead)
    assert Team.objects.live().count() == 1


def test_agents_that_only_write_to_each_other_come_to_an_end(
    lead: Conversation, plays: Agents, settings: Any
) -> None:
    plays("Writer", lambda _request: reply("Ready."))
    anna = join(lead, "anna", "Writer")
    settled(anna)
    settings.AGENTSITE_TEAM_MESSAGES = 1
    send_mail(actor=lead.owner, sender=anna, receivers=[leading(lead)], text="1", key="1")
    with pytest.raises(LimitReached, match="since a person last spoke"):
        send_mail(actor=lead.owner, sender=anna, receivers=[leading(lead)], text="2", key="2")
    post_message(actor=lead.owner, conversation=lead, text="Go on")
    assert send_mail(actor=lead.owner, sender=anna, receivers=[leading(lead)], text="2", key="2")
    settled(anna)
    rested(lead)


def test_old_payloads_load_as_they_were_stored() -> None:
    for event in (TeammateStatus(name="anna", status="idle"), TeamStuck(reasons=("A.",))):
        assert load(dump(event)) == event
