"""Teams at their doors: the page, the strip, questions to people, what operators and programs are shown."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from api.facts import TableFacts
from api.projection import LoggedEvent, frames_of
from chat.presentation.frames import page as page_of
from conversations.models import Conversation, Share
from harness.content import text_of as words_of
from harness.errors import LimitReached, NotFound
from notices.waiting import due
from providers.scripted import Hold, call, reply, say
from teams_app.actions.mail import send_mail, write_as_person
from teams_app.actions.requests import make_request
from teams_app.actions.tasks import Changes, change_task, create_task
from teams_app.actions.teams import spawn_teammate, stop_team
from teams_app.boards import board_of
from teams_app.members import Member, Status, members_of
from teams_app.models import Mail, Task, Teammate, TeamRequest
from teams_app.notices import waiting
from teams_app.owners import Owner
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, still, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lead(converse: Converse) -> Conversation:
    conversation, _script = converse(lambda _request: "I see.", features={"teams": True})
    return conversation


@pytest.fixture
def anna(lead: Conversation) -> Teammate:
    made = spawn_teammate(actor=lead.owner, lead=lead, name="anna", role="writes", text="Begin.")
    quiet(made)
    return made


def quiet(teammate: Teammate) -> None:
    until(lambda: status(teammate) is not Status.WORKING)
    still()


def status(teammate: Teammate) -> Status:
    row = Teammate.objects.select_related("team", "conversation").get(pk=teammate.pk)
    return Member(row.team, row.conversation, row).status


def text_of(response: Any) -> str:
    return str(response.content.decode())


def test_the_page_of_a_team_stops_resumes_and_dismisses(
    client_of: ClientOf, alice: User, bob: User, mallory: User, lead: Conversation, anna: Teammate
) -> None:
    client, address = client_of(alice), f"/c/{lead.uid}/team/"
    assert "anna" in text_of(client.get(address))
    for act, then in (
        ("stop", Status.STOPPED),
        ("resume", Status.IDLE),
        ("dismiss", Status.DISMISSED),
    ):
        assert client.post(f"{address}anna/", {"act": act}).status_code == 302
        quiet(anna)
        assert status(anna) is then
    assert client.post(f"{address}anna/", {"act": "stop"}).status_code == 409
    assert client.post(f"{address}anna/", {"act": "shout"}).status_code == 400
    assert client.post(f"{address}ben/", {"act": "stop"}).status_code == 404
    for stranger in (mallory, bob):
        assert client_of(stranger).get(address).status_code == 404
        assert client_of(stranger).post(f"{address}anna/", {"act": "stop"}).status_code == 404
    Share.objects.create(conversation=lead, user=bob, role="decider")
    page = client_of(bob).get(address)
    assert "anna" in text_of(page)
    assert 'value="stop"' not in text_of(page)
    assert client_of(bob).post(f"{address}anna/", {"act": "stop"}).status_code == 404


def test_the_page_of_a_team_leads_to_the_question_of_one_that_waits_for_a_person(
    client_of: ClientOf, alice: User, converse: Converse
) -> None:
    options = [{"label": "The fern"}, {"label": "The cactus"}]
    question = call("ask_user", questions=[{"question": "Which first?", "options": options}])
    lead, _script = converse(lambda _request: reply(question), features={"teams": True})
    anna = spawn_teammate(actor=alice, lead=lead, name="anna", role="", text="Begin.")
    until(lambda: status(anna) is Status.WAITING)

    page = text_of(client_of(alice).get(f"/c/{lead.uid}/team/"))

    told = page.partition("</h2>")[2].partition("</p>")[0]
    assert f'href="{anna.conversation.get_absolute_url()}"' in told
    assert "waits for you" in told


def test_the_page_of_a_team_and_the_strip_say_since_when_one_works_and_follow_what_changes(
    client_of: ClientOf, alice: User, mallory: User, converse: Converse
) -> None:
    hold = Hold()
    script = [reply(say("I think ", hold, "so."))]
    lead, _script = converse(lambda _request: script.pop(0), features={"teams": True})
    anna = spawn_teammate(actor=alice, lead=lead, name="anna", role="", text="Begin.")
    until(hold.reached.is_set)
    client, address = client_of(alice), f"/c/{lead.uid}/team/"
    begun = anna.conversation.runs.get().started_at
    shown = text_of(client.get(address))
    lead.refresh_from_db()
    for words in (shown, str(page_of(lead).panels["team"])):
        assert f'<time datetime="{date_format(begun, "c")}"' in words
    now = text_of(client.get(reverse("subagents:now", args=[anna.conversation.uid])))
    assert re.search(r"\d (ms|s)\b", now)
    found = re.search(r'hx-get="([^"]+team-now[^"]+)"', shown)
    assert found is not None
    assert client.get(found[1]).status_code == 204
    assert client_of(mallory).get(found[1]).status_code == 404
    hold.release.set()
    quiet(anna)
    changed = client.get(found[1])
    assert changed.status_code == 200
    assert "idle" in text_of(changed)
    assert "<time" not in text_of(changed)
    assert "<h1" not in text_of(changed)


def test_all_are_stopped_at_once_where_the_page_says_that_they_go_on_without_their_lead(
    client_of: ClientOf, alice: User, mallory: User, lead: Conversation, anna: Teammate
) -> None:
    ben = spawn_teammate(actor=alice, lead=lead, name="ben", role="", text="Begin.")
    quiet(ben)
    address = f"/c/{lead.uid}/team/"
    page = text_of(client_of(alice).get(address))
    assert "Its teammates go on until they are stopped here." in page
    with pytest.raises(NotFound):
        stop_team(actor=mallory, team=anna.team)
    assert client_of(mallory).post(f"{address}all/", {"act": "stop"}).status_code == 404
    said = client_of(alice).post(f"{address}all/", {"act": "stop"}, follow=True)
    assert "2 teammates are stopped." in text_of(said)
    assert {status(anna), status(ben)} == {Status.STOPPED}
    assert stop_team(actor=alice, team=anna.team) == 0


def test_what_waits_for_a_person_is_told_by_mail_until_she_begins_it(
    alice: User, bob: User, mallory: User, lead: Conversation, anna: Teammate, settings: Any
) -> None:
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"
    Share.objects.create(conversation=lead, user=bob, role="writer")
    board = board_of(lead)
    for user in (alice, bob):
        create_task(actor=alice, board=board, subject="Chapter", owner=Owner(user=user))
    Task.objects.filter(number=2).update(owner_user=mallory)
    handed = create_task(actor=alice, board=board, subject="Print", owner=Owner(user=bob))
    asker = Member(anna.team, anna.conversation, anna)
    asked = make_request(
        actor=alice, asker=asker, kind="question", text="Which colour?", key="k", person=alice
    )
    later = timezone.now() + timedelta(minutes=10)

    told = [(item.subject, user) for item, user in waiting(later)]
    assert told == [(handed.uid, bob), (asked.uid, alice)]
    (item,) = due(later)[bob]
    assert (item.tool, item.link) == ("a task, #3", "https://agents.example.org/tasks/mine/")

    change_task(actor=bob, task=handed, changes=Changes(status="in_progress"))
    assert bob not in due(timezone.now() + timedelta(minutes=10))


def test_the_strip_shows_tasks_and_teammates_and_leads_a_teammate_back(
    lead: Conversation, anna: Teammate, alice: User, client_of: ClientOf
) -> None:
    create_task(actor=alice, board=board_of(lead), subject="Chapter")
    quiet(anna)
    lead.refresh_from_db()
    strip = str(page_of(lead).panels["team"])
    assert "0 of 1 done" in strip
    assert "anna" in strip
    # What it does now and used is loaded when somebody looks; it can be stopped right there.
    assert reverse("subagents:now", args=[anna.conversation.uid]) in strip
    client, door = client_of(alice), reverse("tasks:member", args=[lead.uid, "anna"])
    assert door in strip
    now = client.get(reverse("subagents:now", args=[anna.conversation.uid]))
    assert "tokens" in text_of(now)
    assert client.post(door, {"act": "stop"}, headers={"hx-request": "true"}).status_code == 204
    assert status(anna) is Status.STOPPED
    lead.refresh_from_db()
    assert "resume" in str(page_of(lead).panels["team"])
    anna.conversation.refresh_from_db()
    assert "is a teammate in" in str(page_of(anna.conversation).panels["team"])


def test_a_conversation_without_tasks_or_team_has_no_strip(lead: Conversation) -> None:
    assert page_of(lead).panels["team"] == ""


def test_a_question_to_a_person_is_answered_where_her_tasks_are(
    client_of: ClientOf, alice: User, bob: User, mallory: User, lead: Conversation, anna: Teammate
) -> None:
    asker = Member(anna.team, anna.conversation, anna)
    asked = make_request(
        actor=alice, asker=asker, kind="question", text="Which colour?", key="k", person=alice
    )
    client, address = client_of(alice), f"/tasks/questions/{asked.uid}/"
    assert "Tasks for me <span>1</span>" in text_of(client.get("/approvals/"))
    assert "Which colour?" in text_of(client.get("/tasks/mine/"))
    for stranger in (bob, mallory):
        assert client_of(stranger).post(address, {"text": "Red"}).status_code == 404
    assert client.post(address, {"text": " "}).status_code == 400
    assert client.post(address, {"text": "Blue"}).status_code == 302
    assert client.post(address, {"text": "Red"}).status_code == 409
    assert TeamRequest.objects.get().answer == "Blue"
    quiet(anna)


def test_operators_see_live_teams(
    client_of: ClientOf, staff: User, alice: User, lead: Conversation, anna: Teammate
) -> None:
    page = text_of(client_of(staff).get("/operations/teams/"))
    assert lead.uid in page
    assert "anna: idle" in page
    assert client_of(alice).get("/operations/teams/").status_code == 404


def test_a_socket_is_told_how_teammates_stand(lead: Conversation, anna: Teammate) -> None:
    rows = lead.events.filter(type="x.teammate_status").order_by("seq")
    facts = TableFacts(lead)
    frames = [
        frame
        for row in rows
        for frame in frames_of(LoggedEvent(row.seq, row.uid, row.created_at, row.value), facts)
    ]
    assert isinstance(frames[0], dict)
    assert isinstance(frames[-1], dict)
    assert (frames[0]["type"], frames[0]["name"]) == ("teammate_status", "anna")
    assert frames[0]["role"] == "writes"
    assert frames[-1]["status"] == "idle"


def bearer(user: User, organisation: Organisation, *scopes: TokenScope) -> Client:
    given = scopes or (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
    made = create_token(actor=user, organisation=organisation, name="Laptop", scopes=given)
    return Client(headers={"Authorization": f"Bearer {made.secret}"})


def send(client: Client, method: str, address: str, **body: Any) -> Any:
    return getattr(client, method)(address, data=body, content_type="application/json")


def test_a_program_brings_a_teammate_in_writes_to_it_and_dismisses_it(
    alice: User, acme: Organisation, lead: Conversation
) -> None:
    program, team = bearer(alice, acme), f"/api/conversations/{lead.uid}/team"
    assert program.get(team).json() == []
    assert send(program, "post", f"{team}/all/messages", content="Hello").status_code == 404
    made = send(program, "post", team, name="Anna", role="writes", prompt="Begin.")
    assert (made.status_code, made.json()["name"], made.json()["role"]) == (201, "anna", "writes")
    anna = Teammate.objects.get()
    quiet(anna)

    one, box = f"{team}/anna", f"{team}/anna/messages"
    assert send(program, "patch", one, stopped=True).json()["status"] == "stopped"
    (sent,) = send(program, "post", box, content="Be brief", key="k").json()
    told = (sent["sender"], sent["receiver"], sent["kind"], sent["delivered"], sent["read"])
    assert told == ("alice", "anna", "person", False, False)
    assert send(program, "post", box, content="Be brief", key="k").json() == [sent]
    assert program.get(one).json()["unread"] == 1
    assert [row["id"] for row in program.get(box, {"read": "false"}).json()] == [sent["id"]]

    assert send(program, "patch", one, stopped=False).status_code == 200
    quiet(anna)
    (read,) = program.get(box, {"read": "true"}).json()
    assert (read["id"], read["delivered"], read["read"]) == (sent["id"], True, True)
    said = anna.conversation.events.filter(type="user.message").order_by("seq").last()
    assert (words_of(said.value.content), said.value.by_agent, said.actor) == (
        "Be brief",
        False,
        alice,
    )
    quiet(anna)
    at_lead = program.get(f"{team}/lead/messages").json()
    assert {row["kind"] for row in at_lead} == {"notice"}
    assert {row["sender"] for row in at_lead} == {None}
    (listed,) = program.get(team, {"status": "idle"}).json()
    assert (listed["unread"], listed["conversation_id"]) == (0, anna.conversation.uid)
    assert program.get(team, {"status": "working"}).json() == []

    assert send(program, "delete", one).json()["status"] == "dismissed"
    assert send(program, "delete", one).json()["status"] == "dismissed"
    assert send(program, "post", box, content="Hello?").status_code == 404
    assert send(program, "patch", one, stopped=True).status_code == 409
    assert [row["status"] for row in program.get(team).json()] == ["dismissed"]


def test_another_message_to_a_teammate_under_a_used_key_is_refused_and_not_lost_unseen(
    alice: User, acme: Organisation, lead: Conversation, anna: Teammate
) -> None:
    program, team = bearer(alice, acme), f"/api/conversations/{lead.uid}/team"
    sent = send(program, "post", f"{team}/anna/messages", content="Be brief", key="1")
    assert sent.status_code == 201
    for receiver in ("anna", "all"):
        other = send(program, "post", f"{team}/{receiver}/messages", content="Stop it", key="1")
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    same = send(program, "post", f"{team}/anna/messages", content="Be brief", key="1")
    assert [row["id"] for row in same.json()] == [row["id"] for row in sent.json()]


def test_a_program_is_told_what_is_wrong_with_a_teammate_or_a_message(
    alice: User, acme: Organisation, lead: Conversation, anna: Teammate, settings: Any
) -> None:
    program, team = bearer(alice, acme), f"/api/conversations/{lead.uid}/team"

    def refused(address: str = team, **body: Any) -> tuple[int, str]:
        answer = send(program, "post", address, **body)
        return answer.status_code, answer.json()["error"]["field"]

    assert refused(prompt="Go") == (422, "name")
    assert refused(name="ben") == (422, "prompt")
    assert refused(name="lead", prompt="Go") == (422, "name")
    assert refused(name="ben", prompt="Go", agent="Nobody")[0] in {404, 422}
    assert refused(name="anna", prompt="Go")[0] == 409
    settings.AGENTSITE_TEAMMATES = 1
    assert refused(name="ben", prompt="Go")[0] == 409
    assert refused(f"{team}/anna/messages", content=" ") == (422, "content")
    assert refused(f"{team}/anna/messages", content="x" * 20_001) == (413, "content")
    assert refused(f"{team}/ben/messages", content="Hello")[0] == 404
    assert send(program, "patch", f"{team}/anna", stopped="yes").status_code == 422
    assert program.get(team, {"status": "asleep"}).status_code == 422
    assert program.get(f"{team}/anna/messages", {"read": "maybe"}).status_code == 422


def test_a_program_reads_what_a_team_asks_and_answers_only_for_its_own_person(
    alice: User,
    acme: Organisation,
    bob: User,
    mallory: User,
    elsewhere: Organisation,
    lead: Conversation,
    anna: Teammate,
) -> None:
    asked = f"/api/conversations/{lead.uid}/team-requests"
    first, mine = members_of(anna.team)
    plan = make_request(
        actor=alice, asker=mine, kind="plan", text="A, then B", key="p", addressee=first
    )
    question = make_request(
        actor=alice, asker=mine, kind="question", text="Which?", key="q", person=alice
    )
    Share.objects.create(conversation=lead, user=bob, role="writer")
    hers, his = bearer(alice, acme), bearer(bob, acme)
    newest, oldest = hers.get(asked).json()
    shown = ("id", "kind", "asker", "addressee", "person", "text", "state", "answer")
    assert [newest[name] for name in shown] == [
        *(question.uid, "question", "anna", None, "alice", "Which?", "pending", ""),
    ]
    assert [oldest[name] for name in shown] == [
        *(plan.uid, "plan", "anna", "lead", None, "A, then B", "pending", ""),
    ]

    answer = f"{asked}/{question.uid}/answer"
    for other, door in (
        (his, answer),
        (bearer(mallory, elsewhere), answer),
        (hers, f"{asked}/{plan.uid}/answer"),
    ):
        assert send(other, "post", door, text="Blue").status_code == 404
    reads = bearer(alice, acme, TokenScope.CONVERSATIONS_READ)
    assert send(reads, "post", answer, text="Blue").status_code == 403
    assert send(hers, "post", answer, text=" ").json()["error"]["field"] == "text"
    told = send(hers, "post", answer, text="Blue").json()
    assert (told["state"], told["answer"]) == ("approved", "Blue")
    assert send(hers, "post", answer, text="Red").status_code == 409
    (left,) = his.get(asked, {"state": "pending"}).json()
    assert left["id"] == plan.uid
    assert his.get(asked, {"state": "open"}).status_code == 422
    assert bearer(mallory, elsewhere).get(asked).status_code == 404
    quiet(anna)


def test_mallorys_program_finds_no_team_and_who_may_only_read_changes_none(
    alice: User,
    acme: Organisation,
    bob: User,
    mallory: User,
    elsewhere: Organisation,
    lead: Conversation,
    anna: Teammate,
) -> None:
    team = f"/api/conversations/{lead.uid}/team"
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("post", team, {"name": "eve", "prompt": "Go"}),
        ("patch", f"{team}/anna", {"stopped": True}),
        ("delete", f"{team}/anna", {}),
        ("post", f"{team}/anna/messages", {"content": "Hello"}),
        ("post", f"{team}/all/messages", {"content": "Hello"}),
    ]
    addresses = (team, f"{team}/anna", f"{team}/anna/messages", f"{team}/all/messages")
    for stranger in (bearer(mallory, elsewhere), bearer(bob, acme)):
        assert {stranger.get(address).status_code for address in addresses} == {404}
        for method, address, body in changes:
            assert send(stranger, method, address, **body).status_code == 404, address
    Share.objects.create(conversation=lead, user=bob, role="writer")
    reads = bearer(alice, acme, TokenScope.CONVERSATIONS_READ)
    for reader, status_code in ((bearer(bob, acme), 404), (reads, 403)):
        assert {reader.get(address).status_code for address in addresses} == {200}
        for method, address, body in changes:
            assert send(reader, method, address, **body).status_code == status_code, address
    assert Teammate.objects.active().count() == 1
    assert not Mail.objects.filter(kind=Mail.Kind.PERSON).exists()


def test_a_persons_word_to_a_teammate_counts_as_hers_for_what_agents_may_write(
    alice: User, lead: Conversation, anna: Teammate, settings: Any
) -> None:
    settings.AGENTSITE_TEAM_MESSAGES = 1
    first, mine = members_of(anna.team)
    send_mail(actor=alice, sender=mine, receivers=[first], text="1", key="1")
    with pytest.raises(LimitReached):
        send_mail(actor=alice, sender=mine, receivers=[first], text="2", key="2")
    write_as_person(actor=alice, team=anna.team, receivers=[mine], text="Go on")
    assert send_mail(actor=alice, sender=mine, receivers=[first], text="2", key="2")
    quiet(anna)


def test_the_same_key_of_a_person_writes_once_to_each_mailbox(
    alice: User, lead: Conversation, anna: Teammate
) -> None:
    first, mine = members_of(anna.team)

    def written(*receivers: Member) -> list[int]:
        sent = write_as_person(
            actor=alice, team=anna.team, receivers=receivers, text="Go on", key="k"
        )
        return [mail.receiver_id for mail in sent]

    for _again in range(2):
        assert written(mine) == [mine.conversation.pk]
    assert written(first) == [first.conversation.pk]
    assert written(first, mine) == [first.conversation.pk, mine.conversation.pk]
    assert Mail.objects.filter(kind=Mail.Kind.PERSON).count() == 2
    quiet(anna)


def test_the_same_key_of_an_agent_writes_once_to_each_mailbox(
    alice: User, lead: Conversation, anna: Teammate
) -> None:
    first, mine = members_of(anna.team)

    def written(sender: Member, *receivers: Member) -> list[int]:
        sent = send_mail(actor=alice, sender=sender, receivers=receivers, text="Go on", key="k")
        return [mail.receiver_id for mail in sent]

    for _again in range(2):
        assert written(first, mine) == [mine.conversation.pk]
    assert written(mine, first, mine) == [first.conversation.pk]
    assert Mail.objects.filter(key="k").count() == 2
    quiet(anna)
