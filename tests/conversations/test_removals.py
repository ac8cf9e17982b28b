"""The files of deleted conversations and the bytes of deleted uploads go, whoever deleted these and
whatever died meanwhile.

What is to happen after a commit never happens in these tests, as in a process that was killed then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.actions.organisations import delete_organisation
from accounts.actions.people import delete_account
from accounts.models import Organisation, User
from agents.models import Environment
from conversations import removals
from conversations.actions.attachments import attached, keep_attachment
from conversations.actions.conversations import delete_conversation
from conversations.actions.files import Upload, add_files
from conversations.actions.stored_files import delete_file, remove_expired, store_file
from conversations.models import Conversation, FileResource, Removal, StoredFile
from conversations.models.stored_file import new_file_id
from conversations.storedbytes import path_of
from harness.errors import Conflict, TooLarge
from jobs.connections import with_healthy_connections
from programs.actions.resources import add_resource, remove_resource
from tools_app.leases import leased
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


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_another_remover_leaves_what_is_somebody_elses_by_then(
    conversation: Conversation,
):
    """The name of a thread is one conversation's again once the first remover is through."""
    uid = conversation.uid
    Removal.objects.create(uid=uid, path="")
    root = workspace_for(uid)
    with leased(root), ThreadPoolExecutor() as threads:
        late = threads.submit(with_healthy_connections, partial(removals.clear, [uid]))
        with suppress(TimeoutError):
            late.result(0.5)
        assert (root / "note.txt").read_text() == "mine", "no two remove at once"
        Removal.objects.all().delete()
        (root / "note.txt").write_text("anew")
    assert (root / "note.txt").read_text() == "anew"


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


@pytest.fixture
def waiting(alice: User, acme: Organisation, environment: Environment, settings: Any) -> StoredFile:
    """A file that waits for its message."""
    return keep_attachment(
        actor=alice,
        organisation=acme,
        environment=environment,
        upload=Upload("a.txt", 4, [b"mine"]),
    )


def pass_a_day() -> None:
    Removal.objects.update(not_before=F("not_before") - removals.UNDER_WAY)


def test_an_attachment_whose_process_died_before_its_message_was_stored_goes_a_day_later(
    alice: User, conversation: Conversation, waiting: StoredFile
):
    with attached(actor=alice, conversation=conversation, uids=[waiting.uid]) as given:
        copy = workspace_for(conversation.uid) / given.files[0].path
        removals.clear_left()
        assert copy.exists(), "it may still be under way"
        pass_a_day()
        removals.clear_left()
        assert not copy.exists()
        assert not Removal.objects.exists()
        with pytest.raises(Conflict, match="too long"):
            given.take(conversation)


def test_an_attachment_stays_with_its_message_and_goes_where_there_is_none(
    alice: User, conversation: Conversation, waiting: StoredFile
):
    with attached(actor=alice, conversation=conversation, uids=[waiting.uid]) as given:
        copy = workspace_for(conversation.uid) / given.files[0].path
    assert not copy.exists()
    with (
        pytest.raises(OSError, match="the commit fails"),
        attached(actor=alice, conversation=conversation, uids=[waiting.uid]) as given,
        transaction.atomic(),
    ):
        given.take(conversation)
        raise OSError("the commit fails")
    assert not copy.exists()
    with attached(actor=alice, conversation=conversation, uids=[waiting.uid]) as given:
        given.take(conversation)
    removals.clear_left()
    assert copy.read_bytes() == b"mine"
    assert not Removal.objects.exists()


@pytest.mark.parametrize("change", ["another", "longer"])
def test_what_somebody_made_of_a_copy_that_was_left_behind_stays(
    alice: User, conversation: Conversation, waiting: StoredFile, change: str
):
    with attached(actor=alice, conversation=conversation, uids=[waiting.uid]) as given:
        copy = workspace_for(conversation.uid) / given.files[0].path
        if change == "another":
            copy.with_name("new").write_text("hers")
            copy.with_name("new").rename(copy)
        else:
            copy.write_text("hers")
            Removal.objects.update(created_at=F("created_at") - timedelta(minutes=2))
        pass_a_day()
        removals.clear_left()
    assert copy.read_text() == "hers"
    assert not Removal.objects.exists()


def test_a_resource_whose_process_died_leaves_neither_row_without_copy_nor_copy_without_row(
    alice: User, acme: Organisation, conversation: Conversation, waiting: StoredFile
):
    make = partial(add_resource, actor=alice, conversation=conversation, file_uid=waiting.uid)
    resource = make()
    assert not Removal.objects.exists()
    copy = workspace_for(conversation.uid) / resource.path
    with pytest.raises(OSError, match="the commit fails"), transaction.atomic():
        remove_resource(actor=alice, conversation=conversation, resource=resource)
        raise OSError("the commit fails")
    assert copy.exists()
    assert FileResource.objects.exists()
    remove_resource(actor=alice, conversation=conversation, resource=resource)
    assert not FileResource.objects.exists()
    removals.clear_left()
    assert not copy.exists()
    with pytest.raises(Conflict):
        make(path="note.txt")
    assert (workspace_for(conversation.uid) / "note.txt").read_text() == "mine"
    assert bytes_in(workspace_for(conversation.uid)) == ["note.txt"]
    assert not Removal.objects.exists()


def test_a_resource_is_noted_before_anybody_can_read_its_copy(
    alice: User, conversation: Conversation, waiting: StoredFile
):
    with removals.each_unless_begun(conversation.uid) as note:
        told: list[bool] = []

        def look(path: str, inode: int) -> None:
            note(path, inode)
            told.append((workspace_for(conversation.uid) / path).exists())

        (entry,) = add_files(
            actor=alice, conversation=conversation, uploads=[Upload("a", 1, [b"1"])], note=look
        )
        assert told == [False]
        assert list(Removal.objects.values_list("path", "inode")) == [("a", entry.inode)]
    assert bytes_in(workspace_for(conversation.uid)) == ["note.txt"]
