"""Files attached to a message: kept, sent with it, told to the model, and refused in words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Environment
from chat.presentation.frames import page
from conversations.actions.attachments import KEPT, keep_attachment, remove_attachment
from conversations.actions.beginning import begin_conversation
from conversations.actions.conversations import create_conversation
from conversations.actions.files import Upload
from conversations.actions.messages import post_message
from conversations.actions.stored_files import remove_expired
from conversations.actions.together import deny_with_message
from conversations.models import Conversation, StoredFile
from harness.content import Image, Text
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from harness.events import UserMessage
from harness.messages import ModelRequest
from keeping.export import as_markdown
from providers.scripted import call, reply
from tests.cast import ClientOf, shown
from tests.conversations.conftest import Converse, MakeAgent, rested
from tests.conversations.strangers import more_tools, then_send, why_it_asks
from tests.papers import letter
from tests.pictures import bomb, picture
from tools_app.workspace import workspace_for

__all__ = ["more_tools"]

pytestmark = pytest.mark.django_db(transaction=True)

JSON = {"Accept": "application/json"}


@pytest.fixture
def quay(alice: User, acme: Organisation, environment: Environment) -> StoredFile:
    return kept(alice, acme, environment, "quay.docx", letter("Seven metres."))


def kept(
    actor: User, organisation: Organisation, environment: Environment, name: str, body: bytes
) -> StoredFile:
    return keep_attachment(
        actor=actor,
        organisation=organisation,
        environment=environment,
        upload=Upload(name, len(body), [body]),
    )


def names(conversation: Conversation) -> list[str]:
    root = workspace_for(conversation.uid)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def said_to(request: ModelRequest) -> list[Any]:
    return list(request.messages[-1].parts)


def test_a_file_goes_into_the_workspace_with_its_message_and_the_model_is_told(
    alice: User, converse: Converse, quay: StoredFile
):
    conversation, scripted = converse(lambda _request: "Seven.")
    row = post_message(actor=alice, conversation=conversation, text="How deep?", files=[quay.uid])
    rested(conversation)
    message = row.value
    assert isinstance(message, UserMessage)
    (file,) = message.files
    assert (file.path, file.size) == ("uploads/quay.docx", quay.size)
    assert names(conversation) == ["uploads/quay.docx"]
    question, told = said_to(scripted.requests[0])
    assert question == Text(text="How deep?")
    assert "uploads/quay.docx (application/vnd.openxml" in told.text
    assert not StoredFile.objects.exists(), "it counts as an upload no longer"


def test_a_picture_is_shown_to_the_model_and_lies_in_the_workspace_too(
    alice: User, acme: Organisation, environment: Environment, converse: Converse
):
    conversation, scripted = converse(lambda _request: "Teal.")
    # Its first bytes count, and not its name.
    file = kept(alice, acme, environment, "square.txt", picture("WEBP"))
    post_message(actor=alice, conversation=conversation, text="", files=[file.uid])
    rested(conversation)
    shown_, told = said_to(scripted.requests[0])
    assert isinstance(shown_, Image)
    assert shown_.source.media_type == "image/webp"
    assert "uploads/square.txt (image/webp" in told.text
    assert conversation.title == "square.txt"


def test_what_stands_in_an_attached_file_is_foreign_and_its_name_is_not(
    alice: User, converse: Converse, quay: StoredFile, more_tools: None
):
    conversation, _ = converse(
        then_send(call("list_files"), call("read_file", path="uploads/quay.docx"))
    )
    post_message(actor=alice, conversation=conversation, text="Read it.", files=[quay.uid])
    reason = why_it_asks(rested(conversation))
    assert "uploads/quay.docx: it was uploaded" in reason
    names_, words = conversation.events.filter(type="agent.tool_result").order_by("seq")[:2]
    assert not names_.value.untrusted
    assert words.value.untrusted
    assert "Seven metres." in words.value.content[0].text


def test_sent_again_under_its_key_a_message_is_stored_once_with_its_files(
    alice: User, converse: Converse, quay: StoredFile
):
    conversation, _ = converse(lambda _request: "Yes.")
    sent: dict[str, Any] = {
        "actor": alice,
        "conversation": conversation,
        "text": "Look",
        "files": [quay.uid],
    }
    first = post_message(**sent, key="k")
    assert post_message(**sent, key="k").pk == first.pk
    rested(conversation)
    assert names(conversation) == ["uploads/quay.docx"]


def test_a_message_with_files_is_no_reason_to_deny_a_call(
    alice: User, converse: Converse, quay: StoredFile
):
    conversation, _ = converse(
        [reply(call("write_file", path="a", content="b")), reply("Done.")],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    (asked,) = rested(conversation).events.filter(type="agent.tool_use")
    sent = post_message(actor=alice, conversation=conversation, text="No", files=[quay.uid])
    with pytest.raises(Invalid, match="pictures or files"):
        deny_with_message(
            actor=alice,
            conversation=conversation,
            call_uids=[asked.uid],
            message_uid=sent.uid,
        )


def test_a_refused_message_leaves_its_files_where_they_were(
    alice: User, converse: Converse, quay: StoredFile, settings: Any
):
    conversation, _ = converse()
    settings.AGENTSITE_QUEUED_MESSAGES = 0
    with pytest.raises(Conflict):
        post_message(actor=alice, conversation=conversation, text="Look", files=[quay.uid])
    assert names(conversation) == []
    settings.AGENTSITE_QUEUED_MESSAGES = 20
    post_message(actor=alice, conversation=conversation, text="Look", files=[quay.uid])
    assert names(conversation) == ["uploads/quay.docx"]


def test_nobody_sends_removes_or_finds_what_another_attached(
    alice: User,
    acme: Organisation,
    bob: User,
    mallory: User,
    converse: Converse,
    quay: StoredFile,
    environment: Environment,
    make_agent: MakeAgent,
):
    conversation, _ = converse()
    for other in (bob, mallory):
        with pytest.raises(NotFound):
            post_message(actor=other, conversation=conversation, text="Hi", files=[quay.uid])
        with pytest.raises(NotFound):
            remove_attachment(actor=other, uid=quay.uid)
    theirs = create_conversation(
        actor=bob, organisation=acme, agent=make_agent("Own"), environment=environment
    )
    with pytest.raises(NotFound):
        post_message(actor=bob, conversation=theirs, text="Hi", files=[quay.uid])
    with pytest.raises(NotFound):
        kept(mallory, acme, environment, "a.txt", b"a")
    assert StoredFile.objects.filter(pk=quay.pk).exists()
    assert names(conversation) == names(theirs) == []


def test_a_file_waits_a_day_for_its_message_and_is_then_to_be_attached_again(
    alice: User, converse: Converse, quay: StoredFile
):
    conversation, _ = converse()
    assert quay.expires_at is not None
    assert timedelta() < quay.expires_at - timezone.now() <= KEPT
    StoredFile.objects.update(expires_at=timezone.now())
    with pytest.raises(NotFound) as refused:
        post_message(actor=alice, conversation=conversation, text="Look", files=[quay.uid])
    assert "attach it again" in refused.value.hint
    remove_expired()
    assert not StoredFile.objects.exists()


def test_limits_are_named_and_what_is_past_them_is_not_kept(
    alice: User, acme: Organisation, environment: Environment, converse: Converse, settings: Any
):
    conversation, _ = converse()
    settings.AGENTSITE_ATTACHMENTS = 2
    files = [kept(alice, acme, environment, f"{name}.txt", b"words").uid for name in "abc"]
    with pytest.raises(Invalid, match="at most 2 files"):
        post_message(actor=alice, conversation=conversation, text="Look", files=files)
    post_message(actor=alice, conversation=conversation, text="Look", files=files[:2])
    environment.upload_limit = 5
    assert kept(alice, acme, environment, "a.txt", b"words").size == 5
    with pytest.raises(TooLarge, match="has 6 bytes and is larger than 5 bytes"):
        kept(alice, acme, environment, "a.txt", b"words.")
    settings.AGENTSITE_FILES_BYTES = StoredFile.objects.count() * 5
    with pytest.raises(LimitReached):
        kept(alice, acme, environment, "b.txt", b"words")
    assert StoredFile.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (picture()[:-20], "cannot be decoded"),
        (bomb(60_000), "60000 × 60000 pixels"),
        (picture() + b"\0" * 2_000, "at most 1000 are taken"),
    ],
    ids=["broken", "wide", "heavy"],
)
def test_a_picture_that_no_model_could_open_is_refused_at_once(
    alice: User, acme: Organisation, environment: Environment, settings: Any, body, words
):
    if words.startswith("at most"):
        settings.AGENTSITE_IMAGE_BYTES = 1_000
    with pytest.raises(Invalid, match=words):
        kept(alice, acme, environment, "a.png", body)
    assert not StoredFile.objects.exists()


def test_where_workers_hold_the_files_pictures_alone_can_be_attached(
    alice: User, acme: Organisation, converse: Converse
):
    conversation, _ = converse(lambda _request: "Teal.")
    there = conversation.environment
    there.backend = Environment.Backend.WORKER
    there.save()
    with pytest.raises(Invalid, match="on a worker's machine"):
        kept(alice, acme, there, "a.txt", b"words")
    file = kept(alice, acme, there, "a.png", picture())
    row = post_message(actor=alice, conversation=conversation, text="", files=[file.uid])
    assert isinstance(row.value, UserMessage)
    assert isinstance(row.value.content[0], Image)
    assert not row.value.files
    assert names(conversation) == []


def test_a_conversation_begins_with_its_files_or_not_at_all(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    quay: StoredFile,
    settings: Any,
    tmp_path: Path,
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path
    given: dict[str, Any] = {
        "actor": alice,
        "organisation": acme,
        "agent": make_agent("Own"),
        "environment": environment,
        "features": {},
        "files": [quay.uid],
    }
    settings.AGENTSITE_QUEUED_MESSAGES = 0
    with pytest.raises(Conflict):
        begin_conversation(**given, text="Look")
    assert not Conversation.objects.exists()
    assert list(tmp_path.glob("sesn_*")) == []
    settings.AGENTSITE_QUEUED_MESSAGES = 20
    conversation = begin_conversation(**given, text="")
    assert names(conversation) == ["uploads/quay.docx"]
    assert conversation.events.filter(type="user.message").count() == 1


def test_the_page_and_the_export_name_what_came_with_a_message(
    alice: User, converse: Converse, quay: StoredFile, client_of: ClientOf
):
    conversation, _ = converse(lambda _request: "Yes.")
    post_message(actor=alice, conversation=conversation, text="Look", files=[quay.uid])
    rested(conversation)
    html = "".join(page(conversation).units)
    address = f"/c/{conversation.uid}/files/view/?path=uploads%2Fquay.docx"
    assert f'href="{address}"' in html
    assert client_of(alice).get(address).status_code == 200
    assert "- Attached file: uploads/quay.docx" in "".join(as_markdown(conversation))


# --- the door -------------------------------------------------------------------------------------


def attach(client: Client, name: str, body: bytes, **query: str) -> Any:
    asked = "&".join(f"{key}={value}" for key, value in query.items())
    return client.post(
        f"/attachments/?{asked}", {"file": SimpleUploadedFile(name, body)}, headers=JSON
    )


def test_a_script_attaches_one_file_for_a_conversation_or_for_a_new_one_and_takes_it_back(
    alice: User, converse: Converse, client_of: ClientOf, environment: Environment
):
    conversation, _ = converse()
    client = client_of(alice)
    for query in ({"conversation": conversation.uid}, {"environment": environment.uid}):
        answer = attach(client, "a.txt", b"words", **query)
        assert answer.status_code == 201
        file = answer.json()
        assert file == {"id": file["id"], "name": "a.txt", "size": 5, "picture": False}
        assert client.post(f"/attachments/{file['id']}/remove/").status_code == 204
        assert client.post(f"/attachments/{file['id']}/remove/").status_code == 404
    assert not StoredFile.objects.exists()


def test_a_script_is_told_in_words_what_is_wrong_with_a_file(
    alice: User, mallory: User, converse: Converse, client_of: ClientOf, environment: Environment
):
    conversation, _ = converse()
    environment.upload_limit = 4
    environment.save()
    refused = attach(client_of(alice), "a.txt", b"words", conversation=conversation.uid)
    assert refused.status_code == 413
    assert "“a.txt” has 5 bytes" in refused.json()["error"]["message"]
    assert refused.json()["error"]["hint"]
    none = client_of(alice).post(f"/attachments/?conversation={conversation.uid}", headers=JSON)
    assert (none.status_code, none.json()["error"]["code"]) == (400, "invalid")
    theirs = attach(client_of(mallory), "a.txt", b"a", conversation=conversation.uid)
    assert theirs.status_code == 404
    assert not StoredFile.objects.exists()


def test_an_upload_without_the_form_s_token_is_refused(alice: User, environment: Environment):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    answer = attach(strict, "a.txt", b"words", environment=environment.uid)
    assert answer.status_code == 403
    assert not StoredFile.objects.exists()


def test_the_form_begins_with_what_was_attached_and_refused_shows_it_again(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
    quay: StoredFile,
    settings: Any,
):
    client, agent = client_of(alice), make_agent("Own")
    given = shown(acme, agent=agent.uid, environment=environment.uid, files=[quay.uid, "file_no"])
    refused = client.post("/new/", {**given, "message": "Look"})
    assert refused.status_code == 422
    html = refused.content.decode()
    assert "no longer kept" in html
    assert ">Look</textarea>" in html
    assert "quay.docx" in html
    assert "file_no" not in html
    begun = client.post("/new/", {**given, "files": [quay.uid], "message": "Look"})
    assert begun.status_code == 302
    assert names(Conversation.objects.get()) == ["uploads/quay.docx"]
