"""Files that an agent's conversations share: read-only everywhere, changed by promotion alone."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.log import append
from harness.content import text_of
from harness.errors import Conflict, Forbidden, NotFound, ToolError
from harness.events import (
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    UserDefineOutcome,
)
from harness.history import Entry
from providers.scripted import call, reply
from sharedfiles.access import TableSharedFiles
from sharedfiles.actions.files import remove_shared_file, restore_shared_version
from sharedfiles.models import SharedVersion
from sharedfiles.versions import Shelf
from tests.conversations.conftest import rested, until
from tests.patience import PATIENCE
from tools_app.workspace import Workspace, workspace_for

pytestmark = pytest.mark.django_db(transaction=True)


def shared(conversation) -> TableSharedFiles:
    return TableSharedFiles(conversation, workspace_for(conversation.uid))


def laid_out(conversation) -> Path:
    folder = Shelf.of(conversation).lay_out()
    assert folder is not None
    return folder


def write_draft(conversation, path: str, text: str) -> None:
    Workspace(workspace_for(conversation.uid)).write_bytes(f"shared-drafts/{path}", text.encode())


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def share(conversation, path: str, text: str, expected: str = "") -> None:
    files = shared(conversation)
    files.stage(path)
    write_draft(conversation, path, text)
    files.promote(path, expected, hash_of(text))


def waits_for(lock: Path) -> bool:
    """Whether somebody stands in line for this lock."""
    inode = f":{lock.stat().st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").open())


def in_a_thread(work: Callable[[], object]) -> Callable[[], object]:
    """`work`, giving its connection back."""

    def run() -> object:
        try:
            return work()
        finally:
            connection.close()

    return run


@pytest.fixture
def two(alice, acme, environment, converse):
    """Two conversations of one agent."""
    first, _ = converse([])
    second = create_conversation(
        actor=alice, organisation=acme, agent=first.agent_version.agent, environment=environment
    )
    return first, second


def test_who_lays_files_out_last_lays_out_what_is_shared_by_then(two):
    """Another process may have been at it since."""
    first, _second = two
    share(first, "notes.md", "one")
    folder = laid_out(first)
    with (folder.parent / "lock").open() as lock, ThreadPoolExecutor(1) as threads:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder.parent / "state").write_text("as nobody left it")
        late = threads.submit(in_a_thread(Shelf.of(first).lay_out))
        until(lambda: waits_for(folder.parent / "lock"))
        shelf = Shelf.of(first)
        SharedVersion.objects.create(
            organisation_id=shelf.organisation_id,
            agent_id=shelf.agent_id,
            path="notes.md",
            number=2,
            sha256=hash_of("two"),
            content=b"two",
            owner=first.owner,
        )
        fcntl.flock(lock, fcntl.LOCK_UN)
        late.result(PATIENCE)
    assert (folder / "notes.md").read_text() == "two"


def test_a_change_is_staged_compared_promoted_and_seen_by_the_others(two):
    first, second = two
    share(first, "guides/style.md", "one\ntwo\n")
    staged = shared(second).stage("guides/style.md")
    assert hash_of("one\ntwo\n") in staged
    write_draft(second, "guides/style.md", "one\n2\n")
    compared = shared(second).compare("guides/style.md")
    assert "2 lines differ:\n-two\n+2" in compared
    assert hash_of("one\n2\n") in compared
    told = shared(second).promote("guides/style.md", hash_of("one\ntwo\n"), hash_of("one\n2\n"))
    assert (
        told
        == f"guides/style.md is version 2 now (sha256 {hash_of('one' + chr(10) + '2' + chr(10))})."
    )
    assert (
        f"version 2  6 bytes  sha256 {hash_of('one' + chr(10) + '2' + chr(10))}"
        in shared(first).overview()[0]
    )


@pytest.mark.parametrize("by_a_subagent", [False, True])
@pytest.mark.parametrize("verdict", ["satisfied", "failed", None])
def test_what_was_made_for_an_outcome_is_promoted_once_that_is_reached(
    two, alice, verdict, by_a_subagent
):
    first, second = two
    maker = second if by_a_subagent else first
    if by_a_subagent:
        second.parent = first
        second.save(update_fields=["parent"])
    asked = UserDefineOutcome(outcome_id="outc_1", description="Write it", rubric="- It is there")
    append(first.pk, [Entry.of(asked)], actor=alice)
    if verdict is not None:
        begun = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
        ended = SpanOutcomeEvaluationEnd(
            outcome_evaluation_start_id=begun.uid, outcome_id="outc_1", result=verdict
        )
        append(first.pk, [begun, Entry.of(ended)])
    if verdict == "satisfied":
        share(maker, "a", "1")
    else:
        with pytest.raises(ToolError):
            share(maker, "a", "1")
    assert SharedVersion.objects.exists() is (verdict == "satisfied")


def test_a_stale_expected_hash_refuses_the_promotion_and_changes_nothing(two):
    first, second = two
    share(first, "a", "1")
    shared(second).stage("a")
    share(first, "a", "2", hash_of("1"))
    write_draft(second, "a", "3")
    with pytest.raises(Conflict) as refusal:
        shared(second).promote("a", hash_of("1"), hash_of("3"))
    assert f"version 2, sha256 {hash_of('2')}" in refusal.value.message
    with pytest.raises(Conflict):
        shared(second).promote("a", "", hash_of("3"))
    assert SharedVersion.objects.count() == 2
    assert "stale" in shared(second).overview()[0]
    assert "has changed since this draft was staged" in shared(second).compare("a")


def test_how_drafts_stand_is_listed(two):
    first, _second = two
    share(first, "same", "1")
    for name in ("changed", "gone"):
        share(first, name, "1")
        shared(first).stage(name)
    write_draft(first, "changed", "2")
    Workspace(workspace_for(first.uid)).remove("shared-drafts/gone")
    told = shared(first).overview()[0]
    assert "draft of same: in sync" in told
    assert "draft of changed: ready" in told
    assert "draft of gone: the draft is missing" in told


def test_a_restore_brings_a_version_back_exactly(two):
    first, second = two
    share(first, "a", "first \x00\xff")
    share(first, "a", "second", hash_of("first \x00\xff"))
    shared(second).restore("a", 1, hash_of("second"))
    newest = SharedVersion.objects.current().get(path="a")
    assert (newest.number, newest.restored_from) == (3, 1)
    assert bytes(newest.content) == "first \x00\xff".encode()
    assert shared(second).versions("a").splitlines()[0].endswith("restored from version 1")
    with pytest.raises(NotFound):
        shared(second).restore("a", 9, newest.sha256)
    with pytest.raises(Conflict):
        shared(second).restore("a", 1, hash_of("second"))


def test_a_name_is_not_a_file_and_a_folder_at_once(two):
    first, _ = two
    share(first, "a", "1")
    shared(first).stage("b/c")
    write_draft(first, "b/c", "1")
    shared(first).promote("b/c", "", hash_of("1"))
    Workspace(workspace_for(first.uid)).remove("shared-drafts/a")
    for path in ("a/x", "b"):
        shared(first).stage(path)
    write_draft(first, "a/x", "1")
    with pytest.raises(Conflict, match="at once"):
        shared(first).promote("a/x", "", hash_of("1"))


def test_another_organisation_shares_nothing_with_the_same_agent(
    two, mallory, elsewhere, environment
):
    first, _ = two
    share(first, "a", "ours")
    theirs = create_conversation(
        actor=mallory,
        organisation=elsewhere,
        agent=first.agent_version.agent,
        environment=environment,
    )
    assert shared(theirs).overview()[0] == "Nothing is shared yet."
    assert Shelf.of(theirs).lay_out() is None
    share(theirs, "a", "theirs")
    assert (laid_out(first) / "a").read_text() == "ours"
    assert (laid_out(theirs) / "a").read_text() == "theirs"


def test_commands_read_shared_files_and_cannot_write_them(alice, converse):
    conversation, _ = converse(
        [
            reply(
                call(
                    "bash",
                    command="cat /shared/a; echo x > /shared/a; echo x > /shared/b; ls /shared",
                )
            ),
            reply(call("write_file", path="../shared/a", content="x")),
            reply("Done."),
        ]
    )
    share(conversation, "a", "hello\n")
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    bash, write = (row.value for row in rows)
    assert text_of(bash.content).startswith("hello\na\n")
    assert text_of(bash.content).count("Read-only file system") == 2
    assert write.is_error
    assert (laid_out(conversation) / "a").read_text() == "hello\n"


def test_promoting_and_restoring_ask_first_whatever_the_rules_say(alice, converse):
    conversation, _ = converse(
        [
            reply(call("stage_shared_file", path="a")),
            reply(call("write_file", path="shared-drafts/a", content="1")),
            reply(
                call("promote_shared_file", path="a", expected_sha256="", draft_sha256=hash_of("1"))
            ),
            reply(call("restore_shared_file", path="a", version=1, expected_sha256=hash_of("1"))),
            reply("Done."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    for number in (1, 2):
        rested(conversation, number)
        assert conversation.waits_for_person
        assert SharedVersion.objects.count() == number - 1
        use = conversation.events.filter(type="agent.tool_use").order_by("seq").last()
        decide_call(actor=alice, conversation=conversation, call_uid=use.uid, allow=True)
    rested(conversation, 3)
    assert SharedVersion.objects.count() == 2


# --- taking files away ----------------------------------------------------------------------------


def test_a_removal_is_staged_compared_promoted_and_undone_by_a_restore(two):
    first, second = two
    share(first, "guides/style.md", "one\n")
    files = shared(second)
    assert "version 1" in files.stage_removal("guides/style.md")
    assert "the file is taken away" in files.compare("guides/style.md")
    assert "-one" in files.compare("guides/style.md")
    assert "a removal, ready to be promoted" in files.overview()[0]
    with pytest.raises(Conflict):
        files.promote("guides/style.md", "", "")
    assert (laid_out(first) / "guides/style.md").exists()
    assert "shared no more" in files.promote("guides/style.md", hash_of("one\n"), "")
    assert files.overview()[0] == "Nothing is shared yet."
    assert list(laid_out(first).iterdir()) == []
    assert "shared no more" in files.versions("guides/style.md").splitlines()[0]
    with pytest.raises(NotFound):
        files.stage_removal("guides/style.md")
    with pytest.raises(NotFound):
        files.restore("guides/style.md", 2, "")
    files.restore("guides/style.md", 1, "")
    assert (laid_out(first) / "guides/style.md").read_text() == "one\n"
    assert SharedVersion.objects.get(number=3).restored_from == 1


def test_where_a_file_was_taken_away_a_folder_may_stand(two):
    first, second = two
    share(first, "a", "1")
    shared(first).stage_removal("a")
    shared(first).promote("a", hash_of("1"), "")
    share(second, "a/b", "2")
    assert (laid_out(first) / "a/b").read_text() == "2"
    with pytest.raises(Conflict, match="at once"):
        shared(first).restore("a", 1, "")


def test_a_removal_staged_before_a_change_is_stale(two):
    first, second = two
    share(first, "a", "1")
    shared(second).stage_removal("a")
    share(first, "a", "2", hash_of("1"))
    assert "has changed since" in shared(second).compare("a")
    with pytest.raises(Conflict):
        shared(second).promote("a", hash_of("1"), "")


# --- staff ----------------------------------------------------------------------------------------


def test_staff_compare_restore_and_take_away_in_the_admin_and_it_is_told(two, staff, client_of):
    first, _ = two
    share(first, "a", "one\n")
    share(first, "a", "two\n", hash_of("one\n"))
    old = SharedVersion.objects.get(number=1)
    client = client_of(staff)
    page = f"/admin/sharedfiles/sharedversion/{old.pk}"
    assert "+one" in client.get(f"{page}/change/").content.decode()
    assert hash_of("two\n") in client.get(f"{page}/restore/").content.decode()
    stale = client.post(f"{page}/restore/", {"expected_sha256": hash_of("one\n")}, follow=True)
    assert "is not what you expected" in stale.content.decode()
    client.post(f"{page}/restore/", {"expected_sha256": hash_of("two\n")})
    assert (laid_out(first) / "a").read_text() == "one\n"
    client.post(f"{page}/take-away/", {"expected_sha256": hash_of("one\n")})
    assert not (laid_out(first) / "a").exists()
    told = AuditEntry.objects.filter(actor=staff).order_by("pk").values_list("action", flat=True)
    assert list(told) == ["shared_restored", "shared_removed"]


def test_who_lacks_the_permission_changes_nothing_shared(two, alice, mallory):
    first, _ = two
    share(first, "a", "one")
    row = SharedVersion.objects.get()
    for act in (restore_shared_version, remove_shared_file):
        for actor in (alice, mallory):
            with pytest.raises(Forbidden):
                act(actor=actor, version=row, expected_sha256=row.sha256)
    assert SharedVersion.objects.count() == 1
