"""Prompts on their pages, at `/api` and on the command line."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from conversations.actions.messages import post_message
from prompts.models import Prompt
from tests.cast import shown
from tests.conversations.conftest import rested, still

from .conftest import TEXT

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_manager_makes_a_prompt_adds_a_version_and_moves_a_label(alice, acme, client_of):
    client = client_of(alice)
    form = shown(acme, name="tone", text=TEXT, variables="tone = kind # how", label="production")
    client.post("/prompts/", form)
    prompt = Prompt.objects.get()
    place = f"/prompts/{prompt.uid}/"
    client.post(place, {"text": "Shout,\r\n{{tone}}.", "variables": "tone", "note": "Louder"})
    page = client.get(f"{place}versions/2/").content.decode()
    assert "<del>" in page
    assert "Louder" in page
    assert "Without a value: tone" in page
    client.post(f"{place}label/", {"label": "production", "version": "2"})
    assert prompt.labels.get().version.number == 2
    refused = client.post(f"{place}label/", {"label": "production", "version": "9"})
    assert refused.status_code == 422
    assert "Its versions: 1 to 2." in refused.content.decode()
    refused = client.post(place, {"text": "x", "variables": "Not a name"})
    assert refused.status_code == 422
    assert "Line 1 declares no variable" in refused.content.decode()
    file = client.get(f"{place}export/").content.decode()
    client.post(f"{place}label/", {"remove": "production"})
    client.post(f"{place}delete/")
    assert not Prompt.objects.exists()
    client.post("/prompts/import/", shown(acme, file=file))
    assert Prompt.objects.get().labels.get().version.number == 2


def test_a_version_is_previewed_against_a_conversation(alice, acme, tone, converse, client_of):
    conversation, _scripted = converse(
        ["One."], prompts=[{"name": "tone", "values": {"tone": "dry"}}]
    )
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    client = client_of(alice)
    client.post(f"/prompts/{tone.uid}/", {"text": "Be {{tone}}, {{agent}}.", "variables": "tone"})
    page = client.get(f"/prompts/{tone.uid}/versions/2/?conversation={conversation.uid}")
    name = conversation.agent_version.agent.name
    assert f"Be dry, {name}." in page.content.decode()
    assert "What differs from what it was told" in page.content.decode()
    said = client.get(f"/c/{conversation.uid}/prompts/").content.decode()
    assert "in a dry tone" in said
    before = client.get(f"/c/{conversation.uid}/prompts/?seq=0").content.decode()
    assert "in a dry tone" not in before
    still()


def test_members_read_prompts_and_strangers_find_none(tone, bob, mallory, client_of):
    assert "New version" not in client_of(bob).get(f"/prompts/{tone.uid}/").content.decode()
    assert client_of(bob).post(f"/prompts/{tone.uid}/", {"text": "x"}).status_code == 403
    for address in ("", "versions/1/", "export/", "delete/"):
        assert client_of(mallory).get(f"/prompts/{tone.uid}/{address}").status_code == 404
    assert tone.uid not in client_of(mallory).get("/prompts/").content.decode()


@pytest.fixture
def program(acme, client):
    """Asks `/api` as a person's token does."""

    def ask(person, method: str, address: str, body=None, scopes=tuple(TokenScope.values)):
        organisation = person.memberships.get().organisation
        secret = create_token(
            actor=person, organisation=organisation, name="t", scopes=list(scopes)
        ).secret
        return client.generic(
            method,
            f"/api/{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": secret},
        )

    return ask


def test_programs_do_the_same_at_api(alice, acme, program):
    body = {"name": "tone", "text": "Be {{tone}}.", "variables": [{"name": "tone"}]}
    made = program(alice, "POST", "prompts", body)
    assert (made.status_code, made.json()["labels"]) == (201, {})
    added = program(alice, "POST", "prompts/tone/versions", {"text": "Shout.", "label": "staging"})
    assert (added.status_code, added.json()["version"]) == (201, 2)
    moved = program(alice, "PUT", "prompts/tone/labels/production", {"version": "1"})
    assert moved.json()["labels"] == {"production": 1, "staging": 2}
    shown_text = program(
        alice, "POST", "prompts/tone/versions/1/preview", {"values": {"tone": "dry"}}
    )
    assert shown_text.json()["text"] == "Be dry."
    assert program(alice, "GET", "prompts/tone/versions/1").json()["variables"][0]["name"] == "tone"
    assert [row["version"] for row in program(alice, "GET", "prompts/tone/versions").json()] == [
        2,
        1,
    ]
    missing = program(alice, "GET", "prompts/tune")
    assert missing.status_code == 404
    assert "There are: tone." in json.dumps(missing.json())
    file = program(alice, "GET", "prompts/tone/export").json()["file"]
    for label in ("production", "staging"):
        assert program(alice, "DELETE", f"prompts/tone/labels/{label}").status_code == 200
    assert program(alice, "DELETE", "prompts/tone").json() == {"status": "deleted"}
    assert program(alice, "POST", "prompts/import", {"file": file}).json()["newest"] == 2
    assert [row["name"] for row in program(alice, "GET", "prompts").json()] == ["tone"]
    without = program(alice, "POST", "prompts", body, scopes=[TokenScope.CONVERSATIONS_READ])
    assert without.status_code == 403


def test_a_strangers_program_finds_nothing(alice, mallory, elsewhere, tone, converse, program):
    conversation, _scripted = converse(["One."], prompts=[{"name": "tone"}])
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    hers = program(alice, "GET", f"conversations/{conversation.uid}/prompts").json()
    assert [(row["name"], row["version"], row["wanted"]) for row in hers] == [
        ("tone", 1, "production")
    ]
    for address in (
        f"prompts/{tone.uid}",
        "prompts/tone",
        f"conversations/{conversation.uid}/prompts",
    ):
        assert program(mallory, "GET", address).status_code == 404
    preview = {"conversation": conversation.uid}
    program(mallory, "POST", "prompts", {"name": "own", "text": "x"})
    assert program(mallory, "POST", "prompts/own/versions/1/preview", preview).status_code == 404
    still()


def test_the_command_line_adds_shows_labels_and_copies_prompts(alice, acme, tmp_path, capsys):
    def run(*words: str) -> str:
        call_command("agent", "prompt", *words, "--user", "alice")
        return str(capsys.readouterr().out)

    file = tmp_path / "tone.txt"
    file.write_text("Be {{tone}}.", encoding="utf-8")
    assert "version 1" in run("add", "tone", str(file), "--variable", "tone=dry")
    file.write_text("Shout.", encoding="utf-8")
    assert "version 2" in run("add", "tone", str(file), "--label", "staging")
    assert "production is version 1" in run("label", "tone", "production", "1")
    assert run("list").split() == ["tone", "production=1", "staging=2"]
    assert run("show", "tone", "--version", "production") == "Be {{tone}}.\n"
    copy = tmp_path / "copy.yaml"
    copy.write_text(run("export", "tone").replace("name: tone", "name: copy", 1), encoding="utf-8")
    assert "2 new versions" in run("import", str(copy))
    with pytest.raises(CommandError, match="There are: copy, tone"):
        run("show", "tune")
