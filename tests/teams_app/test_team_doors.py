"""Teams at their doors: the page, the strip, questions to people, what operators and programs are shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from api.facts import TableFacts
from api.projection import LoggedEvent, frames_of
from chat.presentation.frames import page as page_of
from conversations.models import Conversation, Share
from harness.errors import NotFound
from notices.waiting import due
from teams_app.actions.requests import make_request
from teams_app.actions.tasks import Changes, change_task, create_task
from teams_app.actions.teams import spawn_teammate, stop_team
from teams_app.boards import board_of
from teams_app.members import Member, Status
from teams_app.models import Task, Teammate, TeamRequest
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
    lead: Conversation, anna: Teammate, alice: User
) -> None:
    create_task(actor=alice, board=board_of(lead), subject="Chapter")
    quiet(anna)
    lead.refresh_from_db()
    strip = str(page_of(lead).panels["team"])
    assert "0 of 1 done" in strip
    assert "anna" in strip
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
