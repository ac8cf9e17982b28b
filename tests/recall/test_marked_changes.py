"""What a conversation that read strangers' words does to what is remembered: it takes nothing from others
before a person says yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conversations.actions.messages import post_message
from conversations.kitparts import mounts_of, rules_of
from conversations.log import append
from conversations.models import Conversation
from harness.content import Text
from harness.errors import ToolError
from harness.events import AgentToolResult
from harness.history import Entry
from harness.tools import ToolContext
from memory.access import Author
from memory.actions.memories import change_memory, create_memory, delete_memory
from memory.actions.remembering import (
    Source,
    confirm_memory,
    correct_memory,
    forget_memory,
    own_store,
    remember,
)
from memory.actions.stores import create_store
from memory.models import AuthorKind, Memory, MemoryStore
from memory.searching import search_memories
from providers.scripted import call, reply
from recall.actions.attaching import Wanted, attach_stores
from recall.models import AttachedStore
from recall.mounted import shown_in
from recall.tools import EXTRA, forget
from recall.trained import memory_tool, work
from recall.writing import edit, write
from tests.conversations.conftest import rested

pytestmark = pytest.mark.django_db(transaction=True)
OLD, NEW = "Suppliers are paid after 30 days.", "Suppliers are paid at once."
PAGE = AgentToolResult(tool_use_id="sevt_0", content=(Text(text="Page."),), untrusted=True)


@pytest.fixture
def store(alice, acme) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Notes")


@pytest.fixture
def policy(alice, store) -> Memory:
    return create_memory(actor=alice, store=store, path="/policy.md", content=OLD)


@pytest.fixture
def two(converse, alice, store, policy) -> tuple[Conversation, Conversation]:
    """One that has read a page, and another one, both with the store."""
    made = converse([])[0], converse([])[0]
    for each in made:
        attach_stores(actor=alice, conversation=each, stores=[Wanted(store.uid)])
        folder(each)
    append(made[0].pk, [Entry.of(PAGE)])
    return made


def folder(conversation: Conversation) -> Path:
    (mount,) = mounts_of(conversation)
    return mount.source


def context(conversation: Conversation) -> ToolContext:
    return ToolContext("sevt_1", Path(), extras={EXTRA: conversation.pk})


def by_a_command(marked: Conversation, store: MemoryStore) -> None:
    (folder(marked) / "policy.md").write_text(NEW)
    rules_of(marked)


def by_editing(marked: Conversation, store: MemoryStore) -> None:
    given = {"store": store.uid, "path": "/policy.md", "old": "after 30 days", "new": "at once"}
    assert edit(context(marked), given).startswith("/policy.md is kept")


def by_writing(marked: Conversation, store: MemoryStore) -> None:
    seen = Memory.objects.get(path="/policy.md").sha256
    given = {"store": store.uid, "path": "/policy.md", "content": NEW, "expected_sha256": seen}
    assert write(context(marked), given).startswith("/policy.md is kept")


def by_the_trained_tool(marked: Conversation, store: MemoryStore) -> None:
    given = {"command": "str_replace", "path": "/memories/notes/policy.md"}
    work(context(marked), {**given, "old_str": "after 30 days", "new_str": "at once"})


def told_to_agents(user) -> list[str]:
    every = MemoryStore.objects.all()
    found = search_memories(user, "How are suppliers paid?", every, for_agents=True)
    return [hit.memory.content for hit in found.hits]


@pytest.mark.parametrize("road", [by_a_command, by_editing, by_writing, by_the_trained_tool])
def test_what_it_makes_of_what_others_are_told_waits_beside_that(alice, store, policy, two, road):
    marked, other = two
    road(marked, store)
    policy.refresh_from_db()
    assert (policy.content, policy.waits) == (OLD, False)
    assert (folder(other) / "policy.md").read_text() == OLD
    assert [path.name for path in folder(other).iterdir()] == ["policy.md"]
    assert told_to_agents(alice) == [OLD]
    assert (folder(marked) / "policy.md").read_text() == NEW
    assert [path.name for path in folder(marked).iterdir()] == ["policy.md"]
    waiting = Memory.objects.exclude(pk=policy.pk).get()
    assert (waiting.content, waiting.waits, waiting.supersedes) == (NEW, True, policy)

    said = confirm_memory(
        actor=alice,
        memory=waiting,
        version_uid=waiting.version_uid,
        replaced_version_uid=policy.version_uid,
    )
    assert (said, said.content) == (policy, NEW)
    assert Memory.objects.get() == policy
    assert told_to_agents(alice) == [NEW]
    for each in two:
        assert (folder(each) / "policy.md").read_text() == NEW


def test_it_goes_on_writing_at_what_waits_and_reads_that(alice, store, policy, two):
    marked, _other = two
    by_editing(marked, store)
    given = {"store": store.uid, "path": "/policy.md", "old": "at once", "new": "twice"}
    edit(context(marked), given)
    (folder(marked) / "policy.md").write_text("Suppliers are paid daily.")
    rules_of(marked)
    shown = work(context(marked), {"command": "view", "path": "/memories/notes/policy.md"})
    assert "paid daily" in str(shown)
    assert Memory.objects.count() == 2
    change_memory(actor=alice, memory=policy, content="Suppliers are paid monthly.")
    assert [each.content for each in shown_in(marked, store)] == ["Suppliers are paid daily."]


def test_of_what_waits_nothing_is_left_once_it_is_forgotten_or_put_right(alice, store, policy, two):
    marked, other = two
    by_editing(marked, store)
    file = folder(marked) / "policy.md"
    forget_memory(actor=alice, memory=Memory.objects.exclude(pk=policy.pk).get())
    assert not file.exists()
    assert (folder(marked) / "policy.md").read_text() == OLD
    by_editing(marked, store)
    waiting = Memory.objects.exclude(pk=policy.pk).get()
    said = correct_memory(actor=alice, memory=waiting, text="Suppliers are paid weekly.")
    assert said == policy
    assert (folder(other) / "policy.md").read_text() == "Suppliers are paid weekly."
    by_editing_again = {"store": store.uid, "path": "/policy.md", "old": "weekly", "new": "never"}
    edit(context(marked), by_editing_again)
    delete_memory(actor=alice, memory=policy)
    waiting = Memory.objects.get()
    assert confirm_memory(actor=alice, memory=waiting, version_uid=waiting.version_uid) == waiting


def test_a_command_of_it_removes_what_others_are_told_from_nobody(store, policy, two):
    marked, other = two
    (folder(marked) / "policy.md").unlink()
    rules_of(marked)
    for each in two:
        assert (folder(each) / "policy.md").read_text() == OLD
    (folder(marked) / "policy.md").rename(folder(marked) / "moved.md")
    rules_of(marked)
    assert Memory.objects.get(path="/moved.md").waits
    assert not (folder(other) / "moved.md").exists()
    assert (folder(other) / "policy.md").read_text() == OLD


def test_a_learning_takes_the_place_of_no_file_that_waits(alice, store, two, acme):
    marked, _other = two
    known = remember(actor=alice, store=store, text="Tea is green.", key="tea").memory
    given = {"store": store.uid, "path": known.path, "old": "green", "new": "black"}
    edit(context(marked), given)
    page = Source("sesn_1", untrusted=True)
    author = Author(AuthorKind.SESSION, "sesn_1")
    red = remember(
        actor=alice, store=store, text="Tea is red.", key="tea", source=page, author=author
    )
    assert (red.new, red.memory.waits) == (True, True)
    assert Memory.objects.get(content="Tea is black.").valid_until is None


def test_in_a_marked_run_forgetting_asks_a_person(converse, alice, acme):
    kept = remember(
        actor=alice, store=own_store(actor=alice, organisation=acme), text="Tea is green."
    ).memory
    made, _script = converse([reply(call("forget_memory", id=kept.uid)), reply("Done.")])
    post_message(actor=alice, conversation=made, text="Forget it.", untrusted_by="a page")
    assert rested(made).waits_for_person
    assert Memory.objects.get() == kept


def test_where_nobody_was_asked_the_log_holds_it_back_all_the_same(converse, alice, acme):
    """Of one that an agent began which had read a page; its own run says nothing of it."""
    kept = remember(
        actor=alice, store=own_store(actor=alice, organisation=acme), text="Tea is green."
    ).memory
    above, below = converse([])[0], converse([])[0]
    Conversation.objects.filter(pk=below.pk).update(parent=above)
    append(above.pk, [Entry.of(PAGE)])
    with pytest.raises(ToolError):
        forget(context(below), {"id": kept.uid})
    assert Memory.objects.get() == kept


def test_of_the_trained_tool_deleting_and_renaming_ask_and_hold_back(alice, store, policy, two):
    marked, other = two
    tool = memory_tool(list(AttachedStore.objects.filter(conversation=marked)))
    path, there = "/memories/notes/policy.md", "/memories/notes/terms.md"
    delete = {"command": "delete", "path": path}
    rename = {"command": "rename", "old_path": path, "new_path": there}
    for given in (delete, rename):
        assert tool.asks_once_tainted(given)
        with pytest.raises(ToolError):
            work(context(marked), given)
    assert not tool.asks_once_tainted({"command": "view", "path": path})
    by_editing(marked, store)
    asked = ToolContext("sevt_1", Path(), extras={EXTRA: marked.pk}, ever_tainted_by="a page")
    work(asked, rename)
    assert (folder(other) / "terms.md").read_text() == OLD
    assert (folder(marked) / "terms.md").read_text() == NEW
    work(asked, {"command": "delete", "path": there})
    assert not Memory.objects.exists()
