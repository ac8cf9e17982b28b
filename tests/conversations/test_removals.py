"""The files of deleted conversations go, whoever deleted these and whatever died meanwhile.

What is to happen after a commit never happens in these tests, as in a process that was killed then.
"""

from __future__ import annotations

import pytest

from accounts.models import Organisation, User
from conversations import removals
from conversations.actions.conversations import delete_conversation
from conversations.models import Conversation, Removal
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(converse) -> Conversation:
    made: Conversation = converse()[0]
    (workspace_for(made.uid) / "note.txt").write_text("mine")
    return made


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
