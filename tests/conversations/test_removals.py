"""The files of deleted conversations and the bytes of deleted uploads go, whoever deleted these and
whatever died meanwhile.

What is to happen after a commit never happens in these tests, as in a process that was killed then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.actions.organisations import delete_organisation
from accounts.actions.people import delete_account
from accounts.models import Organisation, User
from conversations import removals
from conversations.actions.conversations import delete_conversation
from conversations.actions.stored_files import delete_file, remove_expired, store_file
from conversations.models import Conversation, FileResource, Removal, StoredFile
from conversations.models.stored_file import new_file_id
from conversations.storedbytes import path_of
from harness.errors import Conflict, TooLarge
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(converse) -> Conversation:
    made: Conversation = converse()[0]
    (workspace_for(made.uid) / "note.txt").write_text("mine")
    return made


@pytest.fixture
def upload(bob: User, acme: Organisation, settings, tmp_path: Path) -> StoredFile:
    settings.AGENTSITE_FILES_DIR = tmp_path
    return store_file(
        actor=bob, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=[b"mine"]
    )


def bytes_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_of_files_that_were_noted_only_those_go_that_are_still_there(conversation: Conversation):
    folder = workspace_for(conversation.uid)
    (folder / "a").mkdir()
    (folder / "b").write_text("old")
    removals.note_paths(conversation, ["a", "b", "c", "note.txt"])
    FileResource.objects.create(conversation=conversation, file_uid="file_1", path="note.txt")
    removals.clear_left()
    assert {each.name for each in folder.iterdir()} == {"a", "note.txt"}
    assert not Removal.objects.exists()


def test_folders_deeper_than_any_program_needs_go_as_well(alice: User, conversation: Conversation):
    folder = workspace_for(conversation.uid)
    deep = folder
    for _ in range(1_100):
        deep /= "d"
        deep.mkdir()
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "d" / "link").symlink_to(outside)
    delete_conversation(actor=alice, conversation=conversation)
    removals.clear_left()
    assert not folder.exists()
    assert outside.exists()
    assert not Removal.objects.exists()


def test_files_of_a_deletion_that_was_cut_off_go_with_the_next_sweep(
    alice: User, conversation: Conversation
):
    folder = workspace_for(conversation.uid)
    delete_conversation(actor=alice, conversation=conversation)
    assert (folder / "note.txt").exists()
    removals.clear_left()
    assert not folder.exists()
    assert not Removal.objects.exists()


def test_conversations_that_go_with_their_organisation_leave_no_files(
    acme: Organisation, conversation: Conversation
):
    folder = workspace_for(conversation.uid)
    acme.delete()
    removals.clear_left()
    assert not folder.exists()


def test_files_of_conversations_that_are_there_are_not_touched(conversation: Conversation):
    removals.clear_left()
    assert (workspace_for(conversation.uid) / "note.txt").exists()


def test_a_deletion_that_is_not_cut_off_removes_the_files_at_once(
    alice: User, conversation: Conversation, django_capture_on_commit_callbacks
):
    folder = workspace_for(conversation.uid)
    with django_capture_on_commit_callbacks(execute=True):
        delete_conversation(actor=alice, conversation=conversation)
    assert not folder.exists()
    assert not Removal.objects.exists(), "what was removed at once is not noted any more"


def test_what_cannot_be_removed_stays_noted_and_keeps_nothing_else(tmp_path, settings):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path
    (tmp_path / "sesn_stuck").write_text("a file where a folder was to be")
    Removal.objects.create(uid="sesn_stuck")
    workspace_for("sesn_free")
    Removal.objects.create(uid="sesn_free")
    removals.clear_left()
    assert [row.uid for row in Removal.objects.all()] == ["sesn_stuck"]
    assert not (tmp_path / "sesn_free").exists()


def by_its_person(upload: StoredFile, staff: User) -> None:
    delete_file(actor=upload.owner, file=upload)


def by_time(upload: StoredFile, staff: User) -> None:
    StoredFile.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    remove_expired()


def with_its_account(upload: StoredFile, staff: User) -> None:
    delete_account(actor=staff, user=upload.owner)


def with_its_organisation(upload: StoredFile, staff: User) -> None:
    delete_organisation(actor=staff, organisation=upload.organisation)


def by_whoever_deletes_rows(upload: StoredFile, staff: User) -> None:
    StoredFile.objects.all().delete()


@pytest.mark.parametrize(
    "delete",
    [
        by_its_person,
        by_time,
        with_its_account,
        with_its_organisation,
        by_whoever_deletes_rows,
    ],
)
def test_the_bytes_of_an_upload_go_whichever_way_it_goes(
    upload: StoredFile, staff: User, tmp_path: Path, delete: Callable[[StoredFile, User], None]
):
    assert bytes_in(tmp_path) == [upload.uid]
    delete(upload, staff)
    assert not StoredFile.objects.exists()
    removals.clear_left()
    assert not bytes_in(tmp_path)
    assert not Removal.objects.exists()


def test_an_upload_keeps_its_bytes_until_its_deletion_is_stored(
    upload: StoredFile, tmp_path: Path, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        delete_file(actor=upload.owner, file=upload)
        assert bytes_in(tmp_path), "the transaction may still fail"
    assert not bytes_in(tmp_path)


def test_an_upload_that_cannot_be_removed_keeps_no_other(
    bob: User, acme: Organisation, upload: StoredFile, tmp_path: Path
):
    store_file(
        actor=bob, organisation=acme, filename="b.txt", mime_type="text/plain", chunks=[b"two"]
    )
    (stuck,) = tmp_path.rglob(upload.uid)
    stuck.unlink()
    stuck.mkdir()
    StoredFile.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    remove_expired()
    removals.clear_left()
    assert not StoredFile.objects.exists()
    assert not bytes_in(tmp_path)
    assert [row.uid for row in Removal.objects.all()] == [upload.uid]
    stuck.rmdir()
    removals.clear_left()
    assert not Removal.objects.exists()


def test_an_upload_under_way_is_noted_and_left_alone(
    bob: User, acme: Organisation, settings: Any, tmp_path: Path
):
    settings.AGENTSITE_FILES_DIR = tmp_path
    seen: list[list[str]] = []

    def pieces() -> Iterator[bytes]:
        yield b"mi"
        seen.append(list(Removal.objects.values_list("uid", flat=True)))
        removals.clear_left()
        seen.append(bytes_in(tmp_path))
        yield b"ne"

    kept = store_file(
        actor=bob, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=pieces()
    )
    assert seen == [[kept.uid], [kept.uid]]
    assert not Removal.objects.exists()
    assert path_of(kept.uid).read_bytes() == b"mine"


def test_the_bytes_of_an_upload_whose_process_died_go_a_day_later(settings: Any, tmp_path: Path):
    settings.AGENTSITE_FILES_DIR = tmp_path
    uid = new_file_id()
    Removal.objects.create(uid=uid, not_before=timezone.now() + timedelta(days=1))
    path_of(uid).parent.mkdir(parents=True)
    path_of(uid).write_bytes(b"mi")  # and then it died
    removals.clear_left()
    assert bytes_in(tmp_path) == [uid]
    Removal.objects.update(not_before=timezone.now())
    removals.clear_left()
    assert not bytes_in(tmp_path)
    assert not Removal.objects.exists()


def test_an_upload_that_takes_longer_than_any_may_is_refused(
    bob: User, acme: Organisation, settings: Any, tmp_path: Path
):
    settings.AGENTSITE_FILES_DIR = tmp_path

    def pieces() -> Iterator[bytes]:
        yield b"mi"
        Removal.objects.update(not_before=timezone.now())
        removals.clear_left()
        yield b"ne"

    with pytest.raises(Conflict, match="too long"):
        store_file(
            actor=bob, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=pieces()
        )
    assert not StoredFile.objects.exists()
    assert not bytes_in(tmp_path)


def test_an_upload_that_fails_leaves_no_note(
    bob: User, acme: Organisation, settings: Any, tmp_path: Path
):
    settings.AGENTSITE_FILES_DIR = tmp_path
    settings.AGENTSITE_FILE_BYTES = 3
    with pytest.raises(TooLarge):
        store_file(
            actor=bob, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=[b"mine"]
        )
    assert not bytes_in(tmp_path)
    assert not Removal.objects.exists()
