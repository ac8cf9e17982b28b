"""Files follow the branch: kept before a turn changes them, brought back where a person goes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from conversations.actions.branching import edit_and_resend, regenerate, rewind, switch_branch
from conversations.actions.files import Upload, add_files
from conversations.actions.messages import post_message
from conversations.actions.reverting import revert_files
from conversations.checkpoints import bring_back_due, bring_back_left
from conversations.fileevents import FilesNotKept, FilesRestored
from conversations.models import BackgroundCommand, Checkpoint, Conversation, Event
from conversations.provenance import TableProvenance
from harness.errors import Conflict, Invalid, NotFound
from providers.scripted import call, reply
from tests.conversations.conftest import rested, still, types, until
from tools_app.provenance import UPLOADED
from tools_app.snapshots import Store, store_of
from tools_app.workspace import Workspace, remove_workspace, workspace_for

pytestmark = pytest.mark.django_db(transaction=True)


def settled(conversation: Conversation, times: int) -> Conversation:
    rested(conversation, times)
    still()
    conversation.refresh_from_db()
    return conversation


def say(alice, conversation, text: str, times: int) -> Event:
    row = post_message(actor=alice, conversation=conversation, text=text)
    settled(conversation, times)
    return row


def write(content: str, path: str = "plan.md") -> object:
    return reply(call("write_file", path=path, content=content))


def files(conversation: Conversation) -> dict[str, str]:
    root = workspace_for(conversation.uid)
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def done(conversation: Conversation) -> dict[str, str]:
    until(lambda: not Conversation.objects.filter(pk=conversation.pk, files_due_seq__gt=0).exists())
    still()
    return files(conversation)


def told(conversation: Conversation, kind: type) -> list[Any]:
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    return [row.value for row in rows if isinstance(row.value, kind)]


@pytest.fixture
def work(alice, converse):
    """Three turns, of which the first and the last write a file, and the second reads only."""
    conversation, _ = converse(
        [
            *(write("first"), reply("one done")),
            *(reply(call("list_files")), reply("two done")),
            *(write("third"), write("more", "new.md"), reply("three done")),
            *(write("another"), reply("another done")),
        ]
    )
    rows = [say(alice, conversation, text, n) for n, text in enumerate(("one", "two", "three"), 1)]
    return conversation, rows


def test_files_go_back_with_the_dialogue_and_come_again_with_its_branch(alice, work):
    conversation, (one, _, three) = work
    assert files(conversation) == {"new.md": "more", "plan.md": "third"}
    assert Checkpoint.objects.filter(conversation=conversation).count() == 2
    row = rewind(actor=alice, conversation=conversation, event_uid=three.uid)
    assert (row.value.files, bool(row.value.checkpoint)) == ("follow", True)
    assert done(conversation) == {"plan.md": "first"}
    assert types(conversation)[-2:] == ["x.rewound", "x.files_restored"]
    switch_branch(actor=alice, conversation=conversation, event_uid=three.uid)
    assert done(conversation) == {"new.md": "more", "plan.md": "third"}
    rewind(actor=alice, conversation=conversation, event_uid=one.uid)
    assert done(conversation) == {}
    (last,) = told(conversation, FilesRestored)[-1:]
    assert (last.written, last.removed, last.problem) == (0, 2, "")


def test_an_answer_done_anew_begins_with_the_files_as_they_were(alice, work):
    conversation, (_, _, three) = work
    regenerate(actor=alice, conversation=conversation, event_uid=three.uid)
    settled(conversation, 4)
    assert files(conversation) == {"plan.md": "another"}


def test_a_message_said_anew_keeps_the_files_that_came_with_it(alice, converse):
    conversation, _ = converse([write("1"), reply("done"), reply("again")])
    row = say(alice, conversation, "one", 1)
    upload = Upload("data.csv", 1, [b"x"])
    add_files(actor=alice, conversation=conversation, uploads=[upload])
    edit_and_resend(actor=alice, conversation=conversation, message_uid=row.uid, text="1")
    settled(conversation, 2)
    assert files(conversation) == {}
    assert TableProvenance(conversation.pk).foreign().paths == {"data.csv": UPLOADED}


def test_files_are_left_alone_where_the_person_says_so(alice, work):
    conversation, (one, _, _) = work
    row = rewind(actor=alice, conversation=conversation, event_uid=one.uid, files=False)
    assert (row.value.files, row.value.checkpoint) == ("stay", "")
    assert done(conversation) == {"new.md": "more", "plan.md": "third"}


def test_a_turn_that_changed_nothing_owes_nothing(alice, converse):
    conversation, _ = converse([reply("hello")])
    row = say(alice, conversation, "one", 1)
    assert rewind(actor=alice, conversation=conversation, event_uid=row.uid).value.files == ""
    assert not Checkpoint.objects.filter(conversation=conversation).exists()


def test_a_workspace_that_is_too_large_is_said_once_and_stays_as_it_is(alice, work, settings):
    conversation, _ = work
    settings.AGENTSITE_CHECKPOINT_FILES = 1
    four = say(alice, conversation, "four", 4)
    (said,) = told(conversation, FilesNotKept)
    assert said.reason == "too_many"
    assert "too many" in said.remark()
    row = rewind(actor=alice, conversation=conversation, event_uid=four.uid)
    assert row.value.files == "not_kept"
    assert files(conversation)["plan.md"] == "another"


def test_what_could_not_be_undone_is_not_done(alice, work, settings):
    conversation, (one, _, _) = work
    settings.AGENTSITE_CHECKPOINT_FILES = 1
    rewind(actor=alice, conversation=conversation, event_uid=one.uid)
    assert done(conversation) == {"new.md": "more", "plan.md": "third"}
    assert told(conversation, FilesRestored)[-1].problem == "too_many"


def test_going_back_waits_for_no_background_command(alice, work):
    conversation, (one, _, _) = work
    running = BackgroundCommand.objects.create(
        conversation=conversation,
        call_uid="sevt_x",
        command="sleep 9",
        output_path="x",
        timeout_seconds=9,
        host="elsewhere",
        boot="x",
        pid=1,
        seen_at=timezone.now(),
        started_at=timezone.now(),
    )
    with pytest.raises(Conflict, match="background command"):
        rewind(actor=alice, conversation=conversation, event_uid=one.uid)
    rewind(actor=alice, conversation=conversation, event_uid=one.uid, files=False)
    running.delete()


def test_what_a_process_left_half_done_is_done_by_the_next_one(alice, work, monkeypatch):
    conversation, (one, _, _) = work
    monkeypatch.setattr("conversations.actions.branching.ask_for_files", lambda pk: None)
    rewind(actor=alice, conversation=conversation, event_uid=one.uid)
    assert files(conversation) == {"new.md": "more", "plan.md": "third"}
    with pytest.raises(Conflict, match="brought back"):
        switch_branch(actor=alice, conversation=conversation, event_uid=one.uid)

    def dies(*_args, **_given):
        (workspace_for(conversation.uid) / "new.md").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "bring_back", dies)
        with pytest.raises(KeyboardInterrupt):
            bring_back_due(conversation.pk)
    bring_back_left()
    bring_back_due(conversation.pk)
    assert files(conversation) == {}
    assert len(told(conversation, FilesRestored)) == 1
    switch_branch(actor=alice, conversation=conversation, event_uid=one.uid)
    bring_back_left()
    assert files(conversation) == {"new.md": "more", "plan.md": "third"}


def test_words_of_strangers_stay_theirs_in_files_that_come_back(alice, converse):
    conversation, _ = converse([write("x", "a.md"), reply("done")])
    upload = Upload("data.csv", 1, [b"x"])
    add_files(actor=alice, conversation=conversation, uploads=[upload])
    root = workspace_for(conversation.uid)
    marks = TableProvenance(conversation.pk)
    marks.begin_command("call_1", "a command")
    (root / "data.csv").rename(root / "moved.csv")
    marks.end_command("call_1", "a command that may have read data.csv")
    row = say(alice, conversation, "one", 1)
    (root / "moved.csv").unlink()
    rewind(actor=alice, conversation=conversation, event_uid=row.uid)
    assert done(conversation) == {"moved.csv": "x"}
    source = marks.foreign().source_of(Workspace(root).stat("moved.csv"))
    assert source == f"{UPLOADED}, and has another name since"


def test_the_oldest_checkpoints_make_room_and_all_go_with_the_conversation(
    alice, work, settings, monkeypatch
):
    conversation, (one, _, _) = work
    settings.AGENTSITE_CHECKPOINTS_MEGABYTES = 0
    monkeypatch.setattr("tools_app.snapshots.ORPHAN_SECONDS", -1)
    say(alice, conversation, "four", 4)
    first = Checkpoint.objects.filter(conversation=conversation).order_by("seq")[0]
    assert (first.snapshot, first.problem) == ("", "dropped")
    row = rewind(actor=alice, conversation=conversation, event_uid=one.uid)
    assert row.value.files == "not_kept"
    place: Path = store_of(workspace_for(conversation.uid))
    assert place.exists()
    remove_workspace(conversation.uid)
    assert not place.exists()


def test_one_file_or_all_are_put_back_and_that_is_undone(alice, mallory, work):
    conversation, _ = work
    results = Event.objects.filter(conversation=conversation, payload__display__type="diff")
    first, third, new = results.order_by("seq")

    def put_back(row: Event, path: str = "", who: User = alice) -> dict[str, str]:
        revert_files(actor=who, conversation=conversation, event_uid=row.uid, path=path)
        return done(conversation)

    def restored() -> Event:
        log = Event.objects.filter(conversation=conversation, type="x.files_restored")
        return log.order_by("seq")[log.count() - 1]

    assert put_back(third, "plan.md") == {"new.md": "more", "plan.md": "first"}
    assert put_back(restored()) == {"new.md": "more", "plan.md": "third"}
    assert put_back(new, "new.md") == {"plan.md": "third"}
    assert put_back(first) == {}
    assert put_back(restored()) == {"plan.md": "third"}
    for who, uid in ((mallory, first.uid), (alice, "sevt_none")):
        with pytest.raises(NotFound):
            revert_files(actor=who, conversation=conversation, event_uid=uid)
    with pytest.raises(Invalid):
        put_back(first, "../x")
    with pytest.raises(Conflict, match="not kept"):
        put_back(Event.objects.get(conversation=conversation, seq=1))
    # What is said anew afterwards begins with the files as they were put back.
    row = say(alice, conversation, "four", 4)
    rewind(actor=alice, conversation=conversation, event_uid=row.uid)
    assert done(conversation) == {"plan.md": "third"}
