"""Files of `/v1`: which are listed, how long they are kept, what an agent made, and the paths told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agents.models import Environment
from conversations.actions.stored_files import remove_expired
from conversations.models import Conversation, StoredFile
from conversations.sandboxing import session_root
from harness.tools import ToolContext
from tools_app.builtin.files import read_file
from tools_app.workspace import PUBLIC_ROOT, inside, workspace_for


def by_token(user, organisation) -> Client:
    issued = create_token(
        actor=user, organisation=organisation, name="program", scopes=list(TokenScope.values)
    )
    return Client(headers={"x-api-key": issued.secret})


@pytest.fixture
def program(alice, acme) -> Client:
    return by_token(alice, acme)


@pytest.fixture
def session(converse) -> Conversation:
    conversation: Conversation = converse()[0]
    return conversation


def upload(program: Client, name: str = "a.txt", **more: Any) -> Any:
    return program.post("/v1/files", {"file": SimpleUploadedFile(name, b"content"), **more})


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [one["id"] for one in answer.json()["data"]]


MANY = {
    "fields": {f"field{number}": "1" for number in range(1_001)},
    "files": {"file": [SimpleUploadedFile(f"{number}.txt", b"-") for number in range(101)]},
}


@pytest.mark.django_db
@pytest.mark.parametrize("what", MANY)
@pytest.mark.parametrize(
    "address",
    [
        "/v1/files",
        "/v1/skills",
        "/v1/agents",
        "/api/workspace/upload",
        "/api/chat",
        "/agui",
        "/mcp",
    ],
)
def test_a_form_of_more_parts_than_are_read_is_refused_in_words(program, session, address, what):
    program.raise_request_exception = False
    query = f"?conversation_id={session.uid}" if "workspace" in address else ""
    answer = program.post(f"{address}{query}", MANY[what])
    assert 400 <= answer.status_code < 500, answer.content
    assert answer.json()["error"]["message"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"file": [SimpleUploadedFile("a.txt", b"a"), SimpleUploadedFile("b.txt", b"b")]}, "file"),
        ({"expires_in_seconds": ["3600", "7200"]}, "expires_in_seconds"),
        ({"expires_in_seconds": SimpleUploadedFile("a.txt", b"a")}, "expires_in_seconds"),
        ({"other": "1"}, "other"),
        ({"file": "text"}, "file"),
    ],
    ids=["two files", "two texts", "a file for a text", "an unknown field", "a text for a file"],
)
def test_no_part_of_a_form_is_passed_over(program, form, field):
    answer = program.post("/v1/files", {"file": SimpleUploadedFile("c.txt", b"c")} | form)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["field"] == field
    assert not StoredFile.objects.exists()


@pytest.mark.django_db
def test_a_list_of_named_files_holds_those_and_no_other(program):
    made = [upload(program).json()["id"] for _number in range(3)]
    wanted = [made[2], made[0], made[0], "file_unknown"]
    query = "&".join(f"ids[]={uid}" for uid in wanted)
    assert ids(program.get(f"/v1/files?{query}")) == [made[2], made[0]]
    assert ids(program.get("/v1/files?ids[]=file_unknown")) == []
    refused = program.get(f"/v1/files?{query}&limit=1")
    assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (400, "limit")


@pytest.mark.django_db
def test_what_an_agent_made_is_listed_of_its_session_fetched_and_deleted(program, session, mallory):
    folder = workspace_for(session.uid) / "outputs"
    (folder / "charts").mkdir(parents=True)
    (folder / "report.md").write_text("Done.")
    (folder / "charts" / "a.png").write_bytes(b"png")
    (workspace_for(session.uid) / "notes.txt").write_text("No deliverable")
    plain = upload(program).json()["id"]
    listed = program.get(f"/v1/files?scope_id={session.uid}").json()["data"]
    assert {one["x_path"].partition("/outputs/")[2] for one in listed} == {
        "report.md",
        "charts/a.png",
    }
    assert {one["scope"]["id"] for one in listed} == {session.uid}
    assert ids(program.get("/v1/files")) == [plain]
    report = next(one for one in listed if one["filename"] == "report.md")
    again = ids(program.get(f"/v1/files?scope_id={session.uid.replace('sesn_', 'session_')}"))
    assert report["id"] in again, "it keeps its id, and both spellings of the session's do"
    got = program.get(f"/v1/files/{report['id']}/content")
    assert b"".join(got.streaming_content) == b"Done."
    assert program.get(f"/v1/files/{report['id']}").json() == report
    # A named list may be narrowed to a session.
    both = f"ids[]={report['id']}&ids[]={plain}"
    assert ids(program.get(f"/v1/files?{both}")) == [report["id"], plain]
    assert ids(program.get(f"/v1/files?{both}&scope_id={session.uid}")) == [report["id"]]
    assert program.delete(f"/v1/files/{report['id']}").status_code == 200
    assert not (folder / "report.md").exists()
    assert program.get(f"/v1/files/{report['id']}").status_code == 404


@pytest.mark.django_db
def test_what_an_agent_made_is_nothing_to_anybody_else(program, session, mallory, elsewhere):
    folder = workspace_for(session.uid) / "outputs"
    folder.mkdir()
    (folder / "report.md").write_text("Done.")
    (uid,) = ids(program.get(f"/v1/files?scope_id={session.uid}"))
    hers = by_token(mallory, elsewhere)
    assert hers.get(f"/v1/files?scope_id={session.uid}").status_code == 404
    for method, address in (("get", ""), ("get", "/content"), ("delete", "")):
        assert getattr(hers, method)(f"/v1/files/{uid}{address}").status_code == 404
    assert ids(hers.get(f"/v1/files?ids[]={uid}")) == []
    assert (folder / "report.md").exists()


@pytest.mark.django_db
def test_an_output_that_is_a_link_is_not_followed(program, session, tmp_path):
    (tmp_path / "secret").write_text("secret")
    folder = workspace_for(session.uid) / "outputs"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    assert ids(program.get(f"/v1/files?scope_id={session.uid}")) == []
    (folder / "real").write_text("x")
    (uid,) = ids(program.get(f"/v1/files?scope_id={session.uid}"))
    (folder / "real").unlink()
    (folder / "real").symlink_to(tmp_path / "secret")
    assert program.get(f"/v1/files/{uid}/content").status_code == 404


@pytest.mark.django_db
def test_an_upload_is_gone_once_its_time_is_over(program, alice):
    answer = upload(program, expires_in_seconds="3600").json()
    assert answer["expires_at"] is not None
    assert program.get(f"/v1/files/{answer['id']}").status_code == 200
    StoredFile.objects.filter(uid=answer["id"]).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert program.get(f"/v1/files/{answer['id']}").status_code == 404
    assert program.get(f"/v1/files/{answer['id']}/content").status_code == 404
    assert ids(program.get("/v1/files")) == []
    kept = upload(program).json()
    assert kept["expires_at"] is None
    remove_expired()
    assert list(StoredFile.objects.values_list("uid", flat=True)) == [kept["id"]]


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["3599", "7776001", "-1", "soon", "", "9" * 30])
def test_a_time_that_is_none_is_refused_and_nothing_is_stored(program, value):
    answer = upload(program, expires_in_seconds=value)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["field"] == "expires_in_seconds"
    assert not StoredFile.objects.exists()


@pytest.mark.django_db
def test_a_field_of_an_upload_that_nobody_knows_is_refused(program):
    answer = upload(program, purpose="assistants")
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "purpose")
    assert not StoredFile.objects.exists()


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/mnt/session/uploads/a.txt", "uploads/a.txt"),
        ("/mnt/session", "."),
        ("/mnt/session/", "."),
        ("/mnt/session//a", "a"),
        ("/mnt/sessions/a", "/mnt/sessions/a"),
        ("/mnt/session/../../etc/passwd", "../../etc/passwd"),
        ("/etc/passwd", "/etc/passwd"),
        ("a/b", "a/b"),
    ],
)
def test_a_path_as_commands_know_it_is_one_of_the_workspace(given, path, tmp_path):
    assert inside(tmp_path, given) == path
    assert inside(tmp_path, f"{tmp_path}/x/y") == "x/y"
    assert inside(tmp_path, f"{tmp_path}x") == f"{tmp_path}x"


@pytest.mark.django_db
@pytest.mark.parametrize("backend", list(Environment.Backend.values))
def test_the_path_that_is_told_is_true_where_commands_run(program, session, backend, settings):
    settings.AGENTSITE_SANDBOXES = ["bubblewrap", "process"]
    Environment.objects.filter(pk=session.environment_id).update(backend=backend)
    session.refresh_from_db()
    session.environment.refresh_from_db()
    root = session_root(session)
    if backend in {"process", "none"}:
        assert root == str(workspace_for(session.uid))
    else:
        assert root == PUBLIC_ROOT
    if backend == Environment.Backend.WORKER:
        return
    file = upload(program).json()["id"]
    made = program.post(
        f"/v1/sessions/{session.uid}/resources",
        {"type": "file", "file_id": file},
        "application/json",
    ).json()
    assert made["mount_path"] == f"{root}/uploads/a.txt"
    told = read_file(ToolContext("call", workspace_for(session.uid)), {"path": made["mount_path"]})
    assert "content" in str(told)


@pytest.mark.django_db
def test_a_session_that_is_refused_leaves_no_copies_and_one_that_is_asked_for_again_makes_none(
    program, make_agent, environment, settings, tmp_path
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path
    body = {
        "agent": make_agent(provider="scripted", model="none").uid,
        "environment_id": environment.uid,
        "resources": [{"type": "file", "file_id": upload(program).json()["id"]}],
    }

    def begin(**more: Any) -> Any:
        headers = {"idempotency-key": "one"}
        return program.post("/v1/sessions", {**body, **more}, "application/json", headers=headers)

    def folders() -> list[str]:
        return [path.name for path in tmp_path.iterdir() if path.name.startswith("sesn_")]

    assert begin(vault_ids=["vlt_none"]).status_code == 400
    assert folders() == []
    answer = begin().json()
    StoredFile.objects.get().delete()  # who copied it would find out
    assert begin().json() == answer
    assert folders() == [answer["id"]]
