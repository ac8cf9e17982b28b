"""A person takes along all that is kept of her, as one archive, and nothing that is not hers."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.provider_keys import store_provider_key
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import Membership, TokenScope
from audit.models import AuditEntry
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.models import ShareRole
from documents.actions.collections import create_collection
from folders.actions.folders import create_folder, share_folder
from folders.actions.places import move_conversation
from folders.models import FolderMember
from harness.errors import Forbidden, LimitReached
from memory.actions.remembering import own_store, remember
from owndata import archive
from owndata.actions.exporting import A_DAY, export_own_data
from owndata.archive import archive_of
from owndata.parts import File, Part, parts
from providers.scripted import reply
from skills_app.actions.skills import create_skill
from teams_app.actions.tasks import create_task
from teams_app.boards import board_of, stored
from tests.cast import PASSWORD
from tests.conversations.conftest import rested
from tests.documents.reading import added
from tests.skills_app.conftest import files_of
from vaults.actions.vaults import create_vault

pytestmark = pytest.mark.django_db


def opened(pieces: Iterator[bytes]) -> dict[str, str]:
    """Each file of the archive with its text."""
    with ZipFile(BytesIO(b"".join(pieces))) as held:
        assert held.testzip() is None
        return {name: held.read(name).decode() for name in held.namelist()}


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.django_db(transaction=True)
def test_the_archive_holds_all_that_is_hers(converse, alice, bob, acme):
    conversation, _script = converse([reply("It is blue-42.")])
    post_message(actor=alice, conversation=conversation, text="What is the code?")
    rested(conversation)
    remember(actor=alice, store=own_store(actor=alice, organisation=acme), text="I write short.")
    papers = create_collection(actor=alice, organisation=acme, name="Papers")
    document = added(alice, papers, b"A lunch costs 14.", "a.md")

    create_task(actor=alice, board=stored(board_of(acme)), subject="Tell of the quay")
    create_vault(actor=alice, organisation=acme, display_name="Services")
    folder = create_folder(actor=alice, organisation=acme, name="Tax", instructions="Round up.")
    move_conversation(actor=alice, conversation=conversation, folder=folder)
    share_folder(actor=alice, folder=folder, whom="bob", role=FolderMember.Role.VIEWER)
    skill = create_skill(actor=alice, organisation=acme, files=files_of(), own=True)

    held = opened(export_own_data(actor=alice))

    told = json.loads(held[f"conversations/{conversation.uid}.json"])
    assert [event["seq"] for event in told["events"]] == list(range(1, conversation_end(told) + 1))
    assert "blue-42" in json.dumps(told["events"])
    (memory,) = lines(held[f"memory/{acme.uid}.jsonl"])
    assert memory["content"] == "I write short."
    head, passage = lines(held[f"documents/{document.uid}.jsonl"])
    assert (head["name"], passage["text"]) == ("a.md", "A lunch costs 14.")
    account = json.loads(held["account.json"])
    assert account["username"] == "alice"
    assert acme.uid in [each["id"] for each in account["organisations"]]
    (call,) = lines(held["usage.jsonl"])
    assert call["conversation"] == conversation.uid
    actions = [entry["action"] for entry in lines(held["audit.jsonl"])]
    assert actions[-1] == "data_exported"
    assert [each["subject"] for each in lines(held["tasks.jsonl"])] == ["Tell of the quay"]
    assert [each["name"] for each in lines(held["vaults.jsonl"])] == ["Services"]
    (kept,) = lines(held["folders.jsonl"])
    assert (kept["instructions"], kept["conversations"]) == ("Round up.", [conversation.uid])
    assert kept["members"] == [{"user": "bob", "role": "viewer"}]
    assert opened(archive_of(bob))["folders.jsonl"] == ""
    script = held[f"skills/{skill.skill.uid}/{skill.uid}/scripts/look.py"]
    assert script == files_of()["scripts/look.py"].decode()
    assert {"briefs.jsonl", "schedules.jsonl"} <= set(held)
    for part in parts():
        assert str(part.words) in held["README.txt"]


def conversation_end(told: dict[str, Any]) -> int:
    return int(told["events"][-1]["seq"])


def test_no_secret_is_in_it(alice, acme):
    issued = create_token(
        actor=alice, organisation=acme, name="Robot", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    store_provider_key(
        actor=alice, provider="anthropic", key="sk-ant-very-secret-key", scope="user"
    )
    held = opened(export_own_data(actor=alice))
    everything = "".join(held.values())
    assert "Robot" in held["account.json"]
    assert json.loads(held["account.json"])["provider_keys"][0]["provider"] == "anthropic"
    for secret in (issued.secret, issued.token.digest, "very-secret", alice.password):
        assert secret not in everything


def test_nothing_of_others_is_in_it_not_even_what_they_share(
    converse, alice, bob, mallory, acme, elsewhere
):
    conversation, _script = converse([])
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.WRITER
    )
    remember(actor=alice, store=own_store(actor=alice, organisation=acme), text="I write short.")
    for user in (bob, mallory):
        held = opened(export_own_data(actor=user))
        assert conversation.uid not in "".join(held)
        assert "I write short" not in "".join(held.values())


def test_what_belongs_to_an_organisation_stays_there_when_she_leaves(converse, alice, acme):
    conversation, _script = converse([])
    Membership.objects.filter(user=alice, organisation=acme).delete()
    assert f"conversations/{conversation.uid}.json" not in opened(archive_of(alice))


def test_a_service_account_takes_nothing_along(alice, acme):
    account = create_service_account(actor=alice, organisation=acme, name="Robot")
    with pytest.raises(Forbidden):
        export_own_data(actor=account)


def test_of_so_many_archives_a_day_each_is_in_the_audit_log(alice):
    for _time in range(A_DAY):
        export_own_data(actor=alice)
    assert AuditEntry.objects.filter(action="data_exported", actor=alice).count() == A_DAY
    with pytest.raises(LimitReached):
        export_own_data(actor=alice)


def test_neither_the_archive_nor_a_file_of_it_is_ever_held_whole(alice, monkeypatch):
    size, of_one = 60, 1_000_000
    pages = File("long.txt", (f"{number:07d} " * (of_one // 8) for number in range(size)))
    monkeypatch.setattr(archive, "parts", lambda: [Part("Much", lambda _user: iter([pages]))])
    tracemalloc.start()
    try:
        length = sum(map(len, archive_of(alice)))
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert length > 10_000
    assert most < size * of_one / 8


# --- the page -------------------------------------------------------------------------------------


def test_the_page_says_what_there_is_and_gives_it(alice, client_of):
    client = client_of(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    page = client.get("/settings/data/").content.decode()
    for part in parts():
        assert str(part.words).replace("'", "&#x27;") in page
    answer = client.post("/settings/data/")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert "attachment" in answer["Content-Disposition"]
    assert json.loads(opened(iter(answer))["account.json"])["id"] == alice.uid
    for _time in range(A_DAY - 1):
        client.post("/settings/data/")
    refused = client.post("/settings/data/")
    assert refused.status_code == 409
    assert "within a day" in refused.content.decode()


def test_a_session_alone_takes_nothing_along(alice, client_of):
    client = client_of(alice)
    for answer in (client.get("/settings/data/"), client.post("/settings/data/")):
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert not AuditEntry.objects.filter(action="data_exported").exists()


def test_a_stranger_is_sent_to_sign_in():
    answer = Client().post("/settings/data/")
    assert answer.status_code == 302
    assert "/accounts/login/" in answer["Location"]
