"""The task board at its doors: pages, the queue beside approvals, `/api` and the frames of its socket."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from api.facts import TableFacts
from api.projection import LoggedEvent, frames_of
from conversations.models import Conversation, Share
from teams_app.actions.tasks import Changes, change_task, create_task
from teams_app.boards import board_of
from teams_app.models import Board, Task
from teams_app.owners import Owner
from tests.cast import ClientOf, shown

from .conftest import home

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


def make(board: Board, subject: str = "Pack", **more: Any) -> Task:
    return create_task(actor=home(board).owner, board=board, subject=subject, **more)


def text_of(response: Any) -> str:
    return str(response.content.decode())


def test_the_board_of_a_conversation_is_made_on_its_page(
    client_of: ClientOf, alice: User, conversation: Conversation
) -> None:
    client, address = client_of(alice), f"/c/{conversation.uid}/tasks/"
    assert client.get(address).status_code == 200
    assert not Board.objects.exists(), "nobody who looks makes one"

    made = client.post(address, {"subject": "Pack", "owner": alice.uid, "blocked_by": ""})
    assert made.status_code == 302
    client.post(address, {"subject": "Drive", "owner": "agent", "blocked_by": "#1"})

    page = text_of(client.get(address))
    assert "Pack" in page
    assert "waits for #1" in page.replace("</span>", "").replace("  ", " ")
    tasks = {task.number: task for task in Task.objects.all()}
    assert tasks[1].owner_user == alice
    assert tasks[2].owner_conversation == conversation


def test_what_is_refused_stays_in_the_form(
    client_of: ClientOf, alice: User, conversation: Conversation
) -> None:
    client, address = client_of(alice), f"/c/{conversation.uid}/tasks/"
    for given, words in (
        ({"subject": "", "description": "Kept as it was"}, "needs a subject"),
        ({"subject": "A", "blocked_by": "soon", "description": "Kept as it was"}, "is no number"),
    ):
        answer = client.post(address, given)
        assert answer.status_code == 422
        assert words in text_of(answer)
        assert "Kept as it was" in text_of(answer)
    missing = client.post(address, {"subject": "A", "blocked_by": "7"})
    assert missing.status_code == 404
    assert not Task.objects.exists()


def test_a_card_is_moved_with_and_without_a_script_and_a_blocked_one_is_not(
    client_of: ClientOf, alice: User, board: Board
) -> None:
    client = client_of(alice)
    first, second = make(board), make(board, "Drive", blocked_by=[1])

    refused = client.post(f"/tasks/{second.uid}/move/", {"status": "completed"}, headers=HTMX)
    assert refused.status_code == 409
    assert "waits for #1" in text_of(refused)

    columns = client.post(f"/tasks/{first.uid}/move/", {"status": "completed"}, headers=HTMX)
    assert columns.status_code == 200
    assert 'id="board"' in text_of(columns)
    plain = client.post(f"/tasks/{second.uid}/move/", {"status": "in_progress"})
    assert plain["Location"] == f"/c/{home(board).uid}/tasks/"
    assert [task.status for task in board.tasks.all()] == ["completed", "in_progress"]
    nonsense = client.post(f"/tasks/{second.uid}/move/", {"status": "gone"}, headers=HTMX)
    assert nonsense.status_code == 400


def test_a_page_that_is_up_to_date_is_sent_nothing(
    client_of: ClientOf, alice: User, board: Board
) -> None:
    client, address = client_of(alice), f"/c/{home(board).uid}/tasks/live/"
    make(board)
    board.refresh_from_db()
    assert client.get(address, {"known": board.version}).status_code == 204
    make(board, "Drive")
    news = client.get(address, {"known": board.version})
    assert "Drive" in text_of(news)


def test_a_board_is_filtered_by_words_number_and_owner(
    client_of: ClientOf, alice: User, board: Board
) -> None:
    client, address = client_of(alice), f"/c/{home(board).uid}/tasks/"
    make(board, "Pack the boxes", owner=Owner(user=alice))
    make(board, "Drive", owner=Owner(conversation=home(board)))
    make(board, "Unpack the boxes")

    def found(**given: str) -> list[str]:
        page = text_of(client.get(address, given))
        return [task.subject for task in board.tasks.all() if f">{task.subject}</a>" in page]

    assert found(q="boxes") == ["Pack the boxes", "Unpack the boxes"]
    assert found(q="#2") == ["Drive"]
    assert found(whose="me") == ["Pack the boxes"]
    assert found(whose="agents") == ["Drive"]
    assert found(whose="nobody", q="unpack") == ["Unpack the boxes"]
    assert client.get(address, {"whose": "x"}).status_code == 400


def test_a_task_is_changed_on_its_page(client_of: ClientOf, alice: User, board: Board) -> None:
    client = client_of(alice)
    make(board)
    task = make(board, "Drive", blocked_by=[1])
    make(board, "Rent a van")
    given = {
        "subject": "Drive there",
        "active_form": "Driving",
        "description": "By night.",
        "status": "pending",
        "owner": alice.uid,
        "blocked_by": "#3",
    }
    assert client.post(f"/tasks/{task.uid}/", given).status_code == 302
    page = text_of(client.get(f"/tasks/{task.uid}/"))
    task.refresh_from_db()
    assert (task.subject, task.owner_user) == ("Drive there", alice)
    assert 'value="#3"' in page
    circle = client.post(
        f"/tasks/{board.tasks.get(number=3).uid}/",
        {**given, "subject": "Rent a van", "owner": "", "blocked_by": "2"},
    )
    assert circle.status_code == 409
    assert "wait for each other" in text_of(circle)
    assert client.get(f"/tasks/{task.uid}/delete/").status_code == 200
    assert client.post(f"/tasks/{task.uid}/delete/").status_code == 302
    assert not Task.objects.filter(pk=task.pk).exists()


def test_the_organisations_board_is_its_members_and_takes_no_form_shown_for_another(
    client_of: ClientOf, alice: User, bob: User, mallory: User, acme: Organisation
) -> None:
    client = client_of(bob)
    assert client.post("/tasks/", {"subject": "Clean up"}).status_code == 400
    assert client.post("/tasks/", shown(acme, subject="Clean up")).status_code == 302
    assert "Clean up" in text_of(client_of(alice).get("/tasks/"))
    assert "Clean up" not in text_of(client_of(mallory).get("/tasks/"))
    task = Task.objects.get()
    assert (
        client_of(alice).post(f"/tasks/{task.uid}/move/", {"status": "completed"}).status_code
        == 302
    )
    for address in (f"/tasks/{task.uid}/", f"/tasks/{task.uid}/delete/"):
        assert client_of(mallory).get(address).status_code == 404


def test_what_was_handed_to_a_person_waits_beside_her_approvals(
    client_of: ClientOf, alice: User, bob: User, board: Board
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    task = make(board, "Choose a logo", owner=Owner(user=bob))
    client = client_of(bob)
    queue = text_of(client.get("/approvals/"))
    assert "Tasks for me <span>1</span>" in queue
    assert "Choose a logo" in text_of(client.get("/tasks/mine/"))
    assert "Choose a logo" not in text_of(client_of(alice).get("/tasks/mine/"))

    done = client.post(f"/tasks/{task.uid}/move/", {"status": "completed", "next": "/tasks/mine/"})
    assert done["Location"] == "/tasks/mine/"
    assert "Tasks for me <span></span>" in text_of(client.get("/approvals/"))


def test_the_page_of_a_task_asks_who_may_only_look_how_far_it_is(
    client_of: ClientOf, bob: User, board: Board
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    task = make(board, "Choose a logo", owner=Owner(user=bob))
    client, address = client_of(bob), f"/tasks/{task.uid}/"
    page = client.get(address).content.decode()
    assert f'action="{address}move/"' in page
    assert 'name="status"' in page
    assert 'name="subject"' not in page
    assert f"{address}delete/" not in page

    words = {"subject": "Send me the files", "status": "pending", "owner": "agent"}
    assert client.post(address, words).status_code in {403, 422}
    task.refresh_from_db()
    assert (task.subject, task.owner_user) == ("Choose a logo", bob)


# --- /api ---------------------------------------------------------------------------------------


@pytest.fixture
def program(alice: User, acme: Organisation) -> Client:
    return bearer(alice, acme)


def bearer(user: User, organisation: Organisation) -> Client:
    scopes = [TokenScope.CONVERSATIONS_READ.value, TokenScope.CONVERSATIONS_WRITE.value]
    made = create_token(actor=user, organisation=organisation, name="Laptop", scopes=scopes)
    return Client(headers={"Authorization": f"Bearer {made.secret}"})


def send(client: Client, method: str, address: str, **body: Any) -> Any:
    return getattr(client, method)(address, data=body, content_type="application/json")


def test_a_program_makes_takes_changes_links_and_deletes_tasks(
    program: Client, alice: User, conversation: Conversation
) -> None:
    first = send(
        program, "post", "/api/tasks", conversation_id=conversation.uid, subject="Pack", owner="me"
    )
    assert first.status_code == 201
    assert first.json()["owner"] == {"kind": "person", "id": alice.uid, "name": "alice"}
    second = send(
        program,
        "post",
        "/api/tasks",
        conversation_id=conversation.uid,
        subject="Drive",
        blocked_by=[1],
    ).json()
    assert (second["number"], second["blocked_by"], second["claimable"]) == (2, [1], False)
    one, two = f"/api/tasks/{first.json()['id']}", f"/api/tasks/{second['id']}"

    assert send(program, "post", f"{two}/claim").status_code == 409
    done = send(program, "patch", one, status="completed", metadata={"boxes": 3}).json()
    assert (done["status"], done["metadata"]) == ("completed", {"boxes": 3})
    assert send(program, "post", f"{two}/claim").json()["status"] == "in_progress"
    given = send(program, "patch", two, owner=f"agent:{conversation.uid}").json()
    assert given["owner"]["kind"] == "agent"

    linked = send(
        program, "post", f"{two}/links", kind="file", conversation_id=conversation.uid, target="a"
    ).json()
    (link,) = linked["links"]
    assert send(program, "delete", f"{two}/links/{link['id']}").json()["links"] == []

    listed = program.get("/api/tasks", {"conversation_id": conversation.uid}).json()
    assert [task["number"] for task in listed] == [1, 2]
    assert [t["number"] for t in program.get("/api/tasks", {"assigned": "me"}).json()] == [1]
    assert program.get("/api/tasks", {"status": "pending"}).json()[0]["number"] == 2
    assert send(program, "delete", two).json() == {"status": "deleted"}
    assert program.get(two).status_code == 404


def test_a_program_is_told_what_is_wrong(program: Client, conversation: Conversation) -> None:
    def refused(**body: Any) -> tuple[int, str]:
        answer = send(program, "post", "/api/tasks", **body)
        return answer.status_code, answer.json()["error"]["field"]

    assert refused() == (422, "subject")
    assert refused(subject="A", owner="everybody") == (422, "owner")
    assert refused(subject="A", owner="person:mallory") == (422, "owner")
    assert refused(subject="A", blocked_by=["1"])[0] == 422
    assert refused(subject="A", conversation_id="sesn_nothing")[0] == 404
    assert program.get("/api/tasks", {"status": "gone"}).status_code == 422
    assert program.get("/api/tasks", {"assigned": "bob"}).status_code == 422


def test_mallorys_program_finds_nothing(
    board: Board, mallory: User, elsewhere: Organisation
) -> None:
    task, client = make(board), bearer(mallory, elsewhere)
    assert client.get("/api/tasks").json() == []
    for method, address in (
        ("get", f"/api/tasks/{task.uid}"),
        ("delete", f"/api/tasks/{task.uid}"),
        ("post", f"/api/tasks/{task.uid}/claim"),
    ):
        assert send(client, method, address).status_code == 404
    made = send(client, "post", "/api/tasks", conversation_id=home(board).uid, subject="A")
    assert made.status_code == 404
    assert client.get("/api/tasks", {"conversation_id": home(board).uid}).status_code == 404


def test_a_socket_is_told_of_the_board_once_however_much_changed(board: Board, alice: User) -> None:
    make(board, "Pack", active_form="Packing")
    task = make(board, "Drive", blocked_by=[1])
    change_task(actor=alice, task=task, changes=Changes(owner=Owner(user=alice)))
    rows = home(board).events.filter(type__startswith="x.task_").order_by("seq")
    facts = TableFacts(home(board))

    frames = [
        frame
        for row in rows
        for frame in frames_of(LoggedEvent(row.seq, row.uid, row.created_at, row.value), facts)
    ]

    (update,) = frames
    assert isinstance(update, dict)
    assert (update["type"], update["seq"]) == ("task_update", rows.last().seq)
    assert update["tasks"][0] == {
        "id": 1,
        "task_id": board.tasks.get(number=1).uid,
        "subject": "Pack",
        "description": "",
        "status": "pending",
        "activeForm": "Packing",
        "owner": None,
        "blockedBy": [],
        "blocks": [2],
        "metadata": {},
    }
    assert (update["tasks"][1]["owner"], update["tasks"][1]["blockedBy"]) == ("alice", [1])


def test_staff_sees_who_has_what_and_not_what_was_written(
    client_of: ClientOf, staff: User, board: Board
) -> None:
    task = make(board, "Nobody's business")
    client = client_of(staff)
    for address in ("board/", "task/", f"task/{task.pk}/change/"):
        page = client.get(f"/admin/teams_app/{address}")
        assert page.status_code == 200
        assert "Nobody" not in text_of(page)


def test_a_conversation_without_a_board_has_none_made_by_asking(conversation: Conversation) -> None:
    assert board_of(conversation).pk is None
