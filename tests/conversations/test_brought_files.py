"""Copies for a conversation that is about to begin: made before anybody waits, and gone where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Environment
from conversations import removals
from conversations.actions.beginning import begin_conversation
from conversations.actions.stored_files import delete_file, store_file
from conversations.models import Conversation, FileResource, ForeignMark, Removal, StoredFile
from conversations.ratelimits import count_message
from conversations.storedbytes import path_of
from harness.content import Text
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooMany
from harness.events import UserMessage
from programs.actions import bringing
from programs.actions.bringing import bring_files
from programs.actions.sessions import begin_session
from tests.conversations.conftest import MakeAgent, until
from tests.patience import PATIENCE
from tools_app.workspace import workspace_for

Keep = Callable[..., StoredFile]


@pytest.fixture(autouse=True)
def workspaces(settings: LazySettings, tmp_path: Path) -> Path:
    settings.AGENTSITE_FILES_DIR = tmp_path / "files"
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    (tmp_path / "workspaces").mkdir()
    return tmp_path / "workspaces"


@pytest.fixture
def keep(alice: User, acme: Organisation) -> Keep:
    def store(name: str = "a.txt") -> StoredFile:
        return store_file(
            actor=alice,
            organisation=acme,
            filename=name,
            mime_type="text/plain",
            chunks=[b"hello"],
        )

    return store


@pytest.fixture
def place(alice: User, acme: Organisation, environment: Environment) -> dict[str, Any]:
    return {"actor": alice, "organisation": acme, "environment": environment}


@pytest.fixture
def begin(place: dict[str, Any], make_agent: MakeAgent) -> Callable[..., Conversation]:
    agent = make_agent(provider="scripted", model="none")

    def begun(**values: Any) -> Conversation:
        return begin_session(caller=None, agent=agent, **{**place, **values})

    return begun


def folders(workspaces: Path) -> list[str]:
    return [each.name for each in workspaces.iterdir() if not each.name.startswith(".")]


def left(workspaces: Path) -> list[str]:
    return [*folders(workspaces), *Removal.objects.values_list("uid", flat=True)]


@pytest.mark.django_db
def test_a_session_that_cannot_begin_leaves_no_copies(
    keep: Keep, begin: Callable[..., Conversation], workspaces: Path
) -> None:
    files = [(keep().uid, "")]
    with pytest.raises(Invalid):
        begin(files=files, vaults=["vlt_none"])
    with pytest.raises(NotFound):
        begin(files=[*files, ("file_none", "")])
    with pytest.raises(Conflict, match="name already"):
        begin(files=[(keep().uid, "a.txt"), (keep().uid, "a.txt")])
    assert left(workspaces) == []
    session = begin(files=files)
    assert left(workspaces) == [session.uid]


@pytest.mark.django_db
def test_what_is_brought_counts_as_uploaded_by_a_person(
    keep: Keep, begin: Callable[..., Conversation]
) -> None:
    session = begin(files=[(keep().uid, ""), (keep().uid, ""), (keep().uid, "b/c.txt")])
    paths = ["uploads/a.txt", "uploads/a (2).txt", "b/c.txt"]
    rows = FileResource.objects.filter(conversation=session)
    assert list(rows.values_list("path", flat=True)) == paths
    marks = ForeignMark.objects.filter(conversation=session).order_by("pk")
    inodes = [(workspace_for(session.uid) / path).stat().st_ino for path in paths]
    assert list(marks.values_list("path", "inode")) == list(zip(paths, inodes, strict=True))


@pytest.mark.django_db
def test_nothing_is_copied_for_who_may_send_no_message_now(
    alice: User,
    keep: Keep,
    begin: Callable[..., Conversation],
    workspaces: Path,
    settings: LazySettings,
) -> None:
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    file = keep()
    path_of(file.uid).unlink()  # whoever copies it finds that out
    count_message(alice)
    with pytest.raises(TooMany):
        begin(files=[(file.uid, "")], messages=[UserMessage(content=(Text(text="Hi"),))])
    assert left(workspaces) == []


@pytest.mark.django_db
def test_more_files_than_a_session_may_have_are_refused_before_any_is_copied(
    begin: Callable[..., Conversation], workspaces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "RESOURCES", 1)
    with pytest.raises(LimitReached):
        begin(files=[("file_a", ""), ("file_b", "")])
    assert left(workspaces) == []


@pytest.mark.django_db
def test_a_file_that_was_deleted_while_it_was_copied_begins_nothing(
    alice: User,
    keep: Keep,
    begin: Callable[..., Conversation],
    place: dict[str, Any],
    workspaces: Path,
) -> None:
    file = keep()

    def lost() -> None:
        with bring_files(files=[(file.uid, "")], says=False, **place) as brought:
            delete_file(actor=alice, file=file)
            begin(brought=brought)

    with pytest.raises(NotFound):
        lost()
    assert folders(workspaces) == []
    assert not Conversation.objects.exists()


@pytest.mark.django_db
def test_the_copies_of_a_process_that_died_go_a_day_later(
    keep: Keep, place: dict[str, Any], workspaces: Path
) -> None:
    with bring_files(files=[(keep().uid, "")], says=False, **place) as brought:
        removals.clear_left()
        assert left(workspaces) == [brought.uid, brought.uid]
        Removal.objects.update(not_before=timezone.now() - timedelta(seconds=1))
        removals.clear_left()
        assert left(workspaces) == []


@pytest.mark.django_db
def test_a_copy_that_took_longer_than_any_may_begins_nothing(
    keep: Keep, begin: Callable[..., Conversation], place: dict[str, Any]
) -> None:
    with bring_files(files=[(keep().uid, "")], says=False, **place) as brought:
        Removal.objects.all().delete()
        with pytest.raises(Conflict, match="too long"):
            begin(brought=brought)


@pytest.mark.django_db
def test_what_a_person_begins_with_is_noted_until_it_has_begun(
    place: dict[str, Any], make_agent: MakeAgent, workspaces: Path
) -> None:
    agent = make_agent(provider="scripted", model="none")
    seen: list[list[str]] = []

    def look(conversation: Conversation) -> None:
        (workspace_for(conversation.uid) / "a.txt").write_text("a")
        seen.append(left(workspaces))

    session = begin_conversation(agent=agent, features={}, first=look, **place)
    assert seen == [[session.uid, session.uid]]
    assert left(workspaces) == [session.uid]
    with pytest.raises(Invalid):
        begin_conversation(agent=agent, features={}, first=look, text="x" * 10**6, **place)
    assert len(seen) == 2
    assert left(workspaces) == [session.uid]


@pytest.fixture
def slow(keep: Keep) -> tuple[StoredFile, Callable[[], None]]:
    """A file whose bytes come when it is told."""
    file = keep()
    path = path_of(file.uid)
    path.unlink()
    os.mkfifo(path)

    def come() -> None:
        path.write_bytes(b"hello")

    return file, come


@pytest.mark.django_db(transaction=True)
def test_while_files_are_copied_nobody_waits_and_what_is_copied_is_noted(
    begin: Callable[..., Conversation],
    slow: tuple[StoredFile, Callable[[], None]],
    workspaces: Path,
    bob: User,
) -> None:
    file, come = slow

    def work() -> Conversation:
        try:
            return begin(files=[(file.uid, "")], cap=100)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        beginning = threads.submit(work)
        try:
            until(lambda: Removal.objects.exists() and bool(folders(workspaces)))
            User.objects.filter(pk=bob.pk).update(first_name="Robert")
        finally:
            come()
        session = beginning.result(PATIENCE)
    assert left(workspaces) == [session.uid]
    assert (workspaces / session.uid / "uploads" / "a.txt").read_bytes() == b"hello"
