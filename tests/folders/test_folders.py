"""Folders: shared, while the conversations in them are not; what begins there keeps what it was told."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.actions.members import remove_member
from accounts.models import Membership, Organisation, User
from agents.models import Agent, Environment
from audit.models import AuditEntry
from conversations.actions.files import Upload
from conversations.kits import plan_kit
from conversations.models import Conversation, Event, StoredFile
from folders.actions import files as filing
from folders.actions import folders as making
from folders.actions.files import add_folder_file
from folders.actions.folders import (
    change_folder,
    create_folder,
    delete_folder,
    share_folder,
    unshare_folder,
)
from folders.actions.places import begin_in_folder, move_conversation
from folders.events import FolderEntered
from folders.finding import folder_of
from folders.models import INSTRUCTIONS_LIMIT, Folder, FolderFile, FolderMember
from harness.errors import Forbidden, Invalid, LimitReached, NotFound
from keeping.actions.many import change_many
from keeping.finding import understand
from tests.cast import ClientOf, join, shown
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin
from tools_app.workspace import workspace_for

HTMX = {"HX-Request": "true"}


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Coding", provider="demo", instructions="You are careful.")


@pytest.fixture
def folder(alice: User, acme: Organisation) -> Folder:
    made = create_folder(
        actor=alice, organisation=acme, name="Tax 2026", instructions="Round to whole euros."
    )
    add_folder_file(actor=alice, folder=made, upload=Upload("rates.txt", 3, [b"19%"]))
    return made


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> Conversation:
    return begin(alice, acme, agent, environment, title="Berths")


def started(actor: User, folder: Folder, agent: Agent, environment: Environment) -> Conversation:
    return begin_in_folder(
        actor=actor, folder=folder, agent=agent, environment=environment, features={}
    )


def found(user: User, folder: Folder, text: str) -> set[int]:
    search = understand(user, folder.organisation, text)
    rows = search.among(Conversation.objects.visible_to(user), folder.organisation)
    return {row.pk for row in rows}


def told(response: Any) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def test_a_conversation_that_begins_in_a_folder_is_told_and_given_what_it_has_then(
    alice: User, folder: Folder, agent: Agent, environment: Environment
):
    first = started(alice, folder, agent, environment)
    change_folder(actor=alice, folder=folder, name="Tax", instructions="Round to cents.")
    second = started(alice, folder, agent, environment)
    prompts = [plan_kit(each).system for each in (first, second)]
    assert "You are careful.\n\nThis conversation belongs to the folder “Tax 2026”" in prompts[0]
    assert "whole euros" in prompts[0]
    assert "cents" not in prompts[0]
    assert "Round to cents." in prompts[1]
    event = Event.objects.get(conversation=first, type="x.folder_entered")
    assert event.seq == 1
    assert isinstance(event.value, FolderEntered)
    assert event.value.remark().startswith("Begun in the folder “Tax 2026”.")
    assert event.value.files == ("uploads/rates.txt",)
    assert (workspace_for(first.uid) / "uploads" / "rates.txt").read_bytes() == b"19%"
    assert found(alice, folder, "in:tax") == {first.pk, second.pk}
    # History explains itself, whatever becomes of the folder.
    delete_folder(actor=alice, folder=folder)
    assert "whole euros" in plan_kit(first).system
    assert Conversation.objects.count() == 2
    assert not StoredFile.objects.exists()


def test_moving_changes_a_persons_order_and_nothing_that_its_agent_is_told(
    alice: User, folder: Folder, conversation: Conversation, elsewhere: Organisation, mallory: User
):
    before = plan_kit(conversation).system
    move_conversation(actor=alice, conversation=conversation, folder=folder)
    assert folder_of(alice, conversation) == folder
    assert found(alice, folder, "in:tax") == {conversation.pk}
    assert plan_kit(conversation).system == before
    other = create_folder(actor=alice, organisation=folder.organisation, name="Harbour")
    outcome = change_many(actor=alice, uids=[conversation.uid], act="move", value=other.uid)
    assert outcome.done == 1
    assert found(alice, folder, f"in:{other.uid}") == {conversation.pk}
    assert found(alice, folder, 'in:"tax 2026"') == set()
    change_many(actor=alice, uids=[conversation.uid], act="move")
    assert folder_of(alice, conversation) is None
    with pytest.raises(Invalid, match="no folder"):
        understand(alice, folder.organisation, "in:nowhere")
    Membership.objects.create(user=alice, organisation=elsewhere, role="member")
    abroad = create_folder(actor=alice, organisation=elsewhere, name="Abroad")
    with pytest.raises(Invalid, match="another organisation"):
        move_conversation(actor=alice, conversation=conversation, folder=abroad)


@pytest.mark.parametrize("name", ["bob", "mallory"])
def test_who_is_no_member_finds_no_folder(
    name: str,
    request: pytest.FixtureRequest,
    folder: Folder,
    conversation: Conversation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    stranger = request.getfixturevalue(name)
    file = FolderFile.objects.get().file
    acts = (
        lambda: change_folder(actor=stranger, folder=folder, name="x", instructions=""),
        lambda: delete_folder(actor=stranger, folder=folder),
        lambda: share_folder(actor=stranger, folder=folder, whom=name, role="editor"),
        lambda: unshare_folder(actor=stranger, folder=folder, member_uid=stranger.uid),
        lambda: add_folder_file(actor=stranger, folder=folder, upload=Upload("a", 1, [b"a"])),
        lambda: filing.remove_folder_file(actor=stranger, folder=folder, file_uid=file.uid),
        lambda: filing.open_folder_file(actor=stranger, folder=folder, file_uid=file.uid),
        lambda: started(stranger, folder, agent, environment),
        lambda: move_conversation(actor=stranger, conversation=conversation, folder=None),
    )
    for act in acts:
        with pytest.raises(NotFound):
            act()
    with pytest.raises(Invalid):
        understand(stranger, folder.organisation, "in:tax")
    client = client_of(stranger)
    base = f"/folders/{folder.uid}/"
    for address in (base, f"{base}change/", f"{base}delete/", f"{base}files/{file.uid}/"):
        assert client.get(address).status_code == 404, address
    for part in ("", "change/", "delete/", "members/", "files/", f"files/{file.uid}/remove/"):
        assert client.post(base + part).status_code == 404, part
    assert client.post(f"/c/{conversation.uid}/move/", {"folder": folder.uid}).status_code == 404
    assert "Tax 2026" not in client.get("/folders/").content.decode()
    assert client.get(f"/api/folders/{folder.uid}").status_code == 404
    assert client.get("/api/folders").json() == []
    assert Folder.objects.get().name == "Tax 2026"


def test_a_member_sees_the_folder_and_her_own_conversations_in_it_alone(
    alice: User,
    bob: User,
    folder: Folder,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    hers = started(alice, folder, agent, environment)
    share_folder(actor=alice, folder=folder, whom="bob@EXAMPLE.org", role="viewer")
    his = started(bob, folder, agent, environment)
    Conversation.objects.filter(pk=hers.pk).update(title="Secret of alice")
    client = client_of(bob)
    html = client.get(f"/folders/{folder.uid}/").content.decode()
    assert "Round to whole euros." in html
    assert "rates.txt" in html
    assert f"row-{his.uid}" in html
    assert hers.uid not in html
    assert "Secret of alice" not in html
    assert client.get(f"/c/{hers.uid}/").status_code == 404
    assert found(bob, folder, "in:tax") == {his.pk}
    assert found(alice, folder, "in:tax") == {hers.pk}
    assert "whole euros" in plan_kit(his).system
    file = FolderFile.objects.get().file
    answer = client.get(f"/folders/{folder.uid}/files/{file.uid}/")
    assert b"".join(answer) == b"19%"
    assert answer["Content-Disposition"].startswith("attachment")
    # A viewer changes nothing; an editor the instructions and files; the owner alone the rest.
    with pytest.raises(Forbidden):
        change_folder(actor=bob, folder=folder, name="Mine", instructions="")
    assert client.post(f"/folders/{folder.uid}/change/", {"name": "Mine"}).status_code == 403
    share_folder(actor=alice, folder=folder, whom="bob", role="editor")
    change_folder(actor=bob, folder=folder, name="Tax 2027", instructions="x")
    add_folder_file(actor=bob, folder=folder, upload=Upload("his.txt", 1, [b"b"]))
    for act in (
        lambda: delete_folder(actor=bob, folder=folder),
        lambda: share_folder(actor=bob, folder=folder, whom="alice", role="editor"),
        lambda: unshare_folder(actor=bob, folder=folder, member_uid=alice.uid),
    ):
        with pytest.raises(Forbidden):
            act()
    told_of = AuditEntry.objects.filter(action__startswith="folder_").order_by("pk")
    assert list(told_of.values_list("action", flat=True)) == [
        "folder_changed",
        "folder_shared",
        "folder_shared",
        "folder_changed",
        "folder_changed",
    ]


def test_who_is_let_out_or_leaves_the_organisation_keeps_only_her_conversations(
    alice: User, bob: User, folder: Folder, agent: Agent, environment: Environment
):
    share_folder(actor=alice, folder=folder, whom="bob", role="editor")
    his = started(bob, folder, agent, environment)
    add_folder_file(actor=bob, folder=folder, upload=Upload("his.txt", 1, [b"b"]))
    unshare_folder(actor=bob, folder=folder, member_uid=bob.uid)
    assert not Folder.objects.visible_to(bob).exists()
    assert folder_of(bob, his) is None
    assert Conversation.objects.visible_to(bob).get() == his
    share_folder(actor=alice, folder=folder, whom="bob", role="viewer")
    Membership.objects.filter(user=bob).delete()
    assert not Folder.objects.visible_to(bob).exists()
    assert [each.file.filename for each in folder.files.there()] == ["rates.txt"]
    with pytest.raises(Invalid):
        share_folder(actor=alice, folder=folder, whom="bob", role="viewer")


def test_who_comes_back_to_the_organisation_is_not_in_its_folders_again(
    alice: User, bob: User, acme: Organisation, folder: Folder
):
    share_folder(actor=alice, folder=folder, whom="bob", role="editor")
    remove_member(actor=alice, membership=Membership.objects.get(user=bob, organisation=acme))
    join(bob, acme)
    assert not Folder.objects.visible_to(bob).exists()


def test_what_cannot_be_is_refused_by_name(
    alice: User, mallory: User, acme: Organisation, folder: Folder, monkeypatch, make_agent
):
    for name, instructions, field in (
        (" ", "", "name"),
        ("x" * 101, "", "name"),
        ("x", "y" * (INSTRUCTIONS_LIMIT + 1), "instructions"),
    ):
        with pytest.raises(Invalid) as refused:
            create_folder(actor=alice, organisation=acme, name=name, instructions=instructions)
        assert refused.value.field == field
    for whom in ("", "nobody", "mallory", "alice"):
        with pytest.raises(Invalid) as refused:
            share_folder(actor=alice, folder=folder, whom=whom, role="viewer")
        assert refused.value.field == "whom"
    with pytest.raises(Invalid):
        share_folder(actor=alice, folder=folder, whom="mallory", role="owner")
    with pytest.raises(NotFound):
        create_folder(actor=mallory, organisation=acme, name="x")
    monkeypatch.setattr(making, "MOST", 1)
    with pytest.raises(LimitReached):
        create_folder(actor=alice, organisation=acme, name="One too many")
    monkeypatch.setattr(filing, "MOST", 1)
    with pytest.raises(LimitReached):
        add_folder_file(actor=alice, folder=folder, upload=Upload("b", 1, [b"b"]))
    assert StoredFile.objects.count() == 1


def test_a_person_makes_fills_shares_and_deletes_a_folder_by_its_pages(
    alice: User,
    bob: User,
    acme: Organisation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    client = client_of(alice)
    refused = client.post("/folders/", shown(acme, name="", instructions="Keep this"))
    assert refused.status_code == 422
    assert "Keep this" in refused.content.decode()
    made = client.post("/folders/", shown(acme, name="Tax", instructions="Round.", agent=agent.uid))
    folder = Folder.objects.get()
    base = f"/folders/{folder.uid}/"
    assert made["Location"] == base
    file = SimpleUploadedFile("rates.txt", b"19%")
    assert "get a copy" in told(client.post(f"{base}files/", {"file": file}))
    html = client.get(base).content.decode()
    assert "About" in html
    assert f'value="{agent.uid}" required checked' in html
    assert (
        "Nobody in Acme"
        in client.post(f"{base}members/", {"whom": "x", "role": "viewer"}).content.decode()
    )
    client.post(f"{base}members/", {"whom": "bob", "role": "viewer"})
    assert FolderMember.objects.get().user == bob
    given = shown(acme, agent=agent.uid, environment=environment.uid)
    begun = client.post(base, {**given, "agent": "nobody"})
    assert begun.status_code == 422
    begun = client.post(base, given)
    conversation = Conversation.objects.get()
    assert begun["Location"] == conversation.get_absolute_url()
    html = client.get(begun["Location"]).content.decode()
    assert "Begun in the folder “Tax”" in html
    way_back = f'<dt>Folder</dt><dd><a href="{base}">Tax</a></dd>'
    assert way_back in html
    html = client.get(f"/c/{conversation.uid}/move/", headers=HTMX).content.decode()
    assert f'<option value="{folder.uid}" selected>' in html
    moved = client.post(f"/c/{conversation.uid}/move/", {"folder": ""}, headers=HTMX)
    assert moved.status_code == 204
    assert way_back not in client.get(begun["Location"]).content.decode()
    client.post("/selected/", {"act": "move", "move": folder.uid, "chosen": conversation.uid})
    assert folder_of(alice, conversation) == folder
    client.post(f"{base}change/", {"name": "Taxes", "instructions": "", "agent": ""})
    client.post(f"{base}files/{FolderFile.objects.get().file.uid}/remove/")
    client.post(f"{base}members/{bob.uid}/remove/")
    assert not FolderMember.objects.exists()
    assert not FolderFile.objects.exists()
    assert "Delete this folder?" in client.get(f"{base}delete/").content.decode()
    client.post(f"{base}delete/")
    assert not Folder.objects.exists()
    assert Conversation.objects.exists()


def test_programs_make_list_change_and_delete_folders(
    alice: User, folder: Folder, conversation: Conversation, agent: Agent, client_of: ClientOf
):
    client = client_of(alice)

    def send(method: str, address: str, body: dict[str, Any] | None = None) -> Any:
        return getattr(client, method)(address, body, content_type="application/json")

    made = send("post", "/api/folders", {"name": "Harbour", "default_agent_id": agent.uid})
    assert made.status_code == 201
    uid = made.json()["id"]
    assert [row["name"] for row in client.get("/api/folders").json()] == ["Harbour", "Tax 2026"]
    changed = send("patch", f"/api/folders/{uid}", {"instructions": "Ships first."})
    assert changed.json()["name"] == "Harbour"
    assert changed.json()["instructions"] == "Ships first."
    assert changed.json()["default_agent_id"] == agent.uid
    assert send("patch", f"/api/folders/{uid}", {"name": ""}).status_code == 422
    address = f"/api/conversations/{conversation.uid}/folder"
    assert send("put", address, {"folder_id": uid}).json() == {"folder_id": uid}
    assert found(alice, folder, "in:harbour") == {conversation.pk}
    assert client.get(address).json() == {"folder_id": uid}
    assert send("put", address, {"folder_id": "fold_none"}).status_code == 404
    assert send("put", address, {"folder_id": None}).json() == {"folder_id": None}
    assert client.delete(f"/api/folders/{uid}").json() == {"status": "deleted"}
    assert client.get(f"/api/folders/{uid}").status_code == 404
