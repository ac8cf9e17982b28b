"""Memory stores through the official SDK, strict: memories, versions, what is taken out, preconditions."""

from __future__ import annotations

import hashlib
import uuid

import anthropic
import pytest

from tests.contract.conftest import error_type


@pytest.fixture
def store(alice):
    return alice.beta.memory_stores.create(
        name=f"Notes {uuid.uuid4()}", description="What we know.", metadata={"a": "1"}
    )


@pytest.fixture
def memory(alice, store):
    return alice.beta.memory_stores.memories.create(
        store.id, path="/tea.md", content="Green.", view="full"
    )


def test_a_store_is_made_found_changed_archived_and_deleted(alice, store):
    stores = alice.beta.memory_stores
    assert stores.retrieve(store.id) == store
    assert store.id in {one.id for one in stores.list(limit=1, created_at_gte=store.created_at)}
    assert store.id not in {one.id for one in stores.list(created_at_lte="2020-01-01T00:00:00Z")}
    changed = stores.update(store.id, name="Other", description="", metadata={"a": None, "b": "2"})
    assert (changed.name, changed.description, changed.metadata) == ("Other", "", {"b": "2"})
    assert stores.archive(store.id).archived_at is not None
    assert store.id not in {one.id for one in stores.list()}
    assert store.id in {one.id for one in stores.list(include_archived=True)}
    with pytest.raises(anthropic.ConflictError):
        stores.memories.create(store.id, path="/a", content="1")
    assert stores.delete(store.id).type == "memory_store_deleted"
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve(store.id)


def test_a_memory_is_read_by_anybody_who_has_its_hash(alice, store, memory):
    memories = alice.beta.memory_stores.memories
    digest = hashlib.sha256(b"Green.").hexdigest()
    assert (memory.content, memory.content_sha256, memory.content_size_bytes) == (
        "Green.",
        digest,
        6,
    )
    assert memories.retrieve(memory.id, memory_store_id=store.id) == memory
    assert memories.retrieve(memory.id, memory_store_id=store.id, view="basic").content is None
    assert memories.create(store.id, path="/empty", content="").content is None


def test_a_change_that_rests_on_something_older_is_a_conflict(alice, store, memory):
    memories = alice.beta.memory_stores.memories
    seen = {"type": "content_sha256", "content_sha256": memory.content_sha256}
    changed = memories.update(
        memory.id, memory_store_id=store.id, content="Black.", path="/drinks.md", precondition=seen
    )
    assert (changed.id, changed.path) == (memory.id, "/drinks.md")
    assert changed.memory_version_id != memory.memory_version_id
    with pytest.raises(anthropic.ConflictError) as caught:
        memories.update(memory.id, memory_store_id=store.id, content="White.", precondition=seen)
    assert error_type(caught) == "conflict_error"
    with pytest.raises(anthropic.ConflictError):
        memories.delete(
            memory.id,
            memory_store_id=store.id,
            expected_content_sha256=memory.content_sha256,
        )
    gone = memories.delete(
        memory.id, memory_store_id=store.id, expected_content_sha256=changed.content_sha256
    )
    assert gone.type == "memory_deleted"


def test_nothing_is_written_over_another(alice, store, memory):
    with pytest.raises(anthropic.ConflictError):
        alice.beta.memory_stores.memories.create(store.id, path="/tea.md", content="2")


def test_a_list_rolls_up_what_lies_deeper_and_pages_by_path(alice, store):
    memories = alice.beta.memory_stores.memories
    for path in ("/a.md", "/b/c.md", "/b/d/e.md", "/b-c.md", "/é.md"):
        memories.create(store.id, path=path, content=path)
    every = [one.path for one in memories.list(store.id, limit=2)]
    assert every == ["/a.md", "/b-c.md", "/b/c.md", "/b/d/e.md", "/é.md"]
    top = list(memories.list(store.id, depth=1))
    assert [(one.type, one.path) for one in top] == [
        ("memory", "/a.md"),
        ("memory", "/b-c.md"),
        ("memory_prefix", "/b/"),
        ("memory", "/é.md"),
    ]
    below = list(memories.list(store.id, path_prefix="/b/", depth=1, view="full"))
    assert [(one.type, one.path) for one in below] == [
        ("memory", "/b/c.md"),
        ("memory_prefix", "/b/d/"),
    ]
    assert below[0].content == "/b/c.md"
    with pytest.raises(anthropic.BadRequestError):
        memories.list(store.id, path_prefix="/b")


def test_versions_say_who_did_what_and_can_be_taken_out(alice, store, memory):
    kept = alice.beta.memory_stores.memory_versions
    alice.beta.memory_stores.memories.update(memory.id, memory_store_id=store.id, content="Black.")
    alice.beta.memory_stores.memories.delete(memory.id, memory_store_id=store.id)
    found = list(kept.list(store.id, memory_id=memory.id, view="full", limit=1))
    assert [(one.operation, one.content) for one in found] == [
        ("deleted", None),
        ("modified", "Black."),
        ("created", "Green."),
    ]
    made = found[-1]
    assert made.created_by.type == "api_actor"
    key = made.created_by.api_key_id
    assert len(list(kept.list(store.id, api_key_id=key))) == 3
    assert not list(kept.list(store.id, session_id="sesn_none"))
    assert [one.id for one in kept.list(store.id, operation="created")] == [made.id]
    redacted = kept.redact(made.id, memory_store_id=store.id)
    assert (redacted.content, redacted.path, redacted.content_sha256) == (None, None, None)
    assert redacted.redacted_at is not None
    assert redacted.redacted_by.api_key_id == key
    assert kept.retrieve(made.id, memory_store_id=store.id) == redacted


def test_what_a_memory_says_now_is_not_taken_out(alice, store, memory):
    with pytest.raises(anthropic.ConflictError):
        alice.beta.memory_stores.memory_versions.redact(
            memory.memory_version_id, memory_store_id=store.id
        )


def test_a_secret_is_refused_with_a_code_that_stays(alice, store):
    with pytest.raises(anthropic.BadRequestError) as caught:
        alice.beta.memory_stores.memories.create(
            store.id, path="/a", content="password=correct-horse-battery"
        )
    details = caught.value.response.json()["error"]["details"]
    assert (details["error_code"], details["field"]) == ("holds_secret", "content")


def test_a_session_with_a_mounted_store_says_where_it_is(alice, mallory, world, make_agent, store):
    read_only = {
        "type": "memory_store",
        "memory_store_id": store.id,
        "access": "read_only",
        "instructions": "Read it first.",
    }
    agent = make_agent()
    session = alice.beta.sessions.create(
        agent=agent.id, environment_id=world.environment, resources=[read_only]
    )
    (mounted,) = session.resources
    assert mounted.type == "memory_store"
    assert (mounted.memory_store_id, mounted.access) == (store.id, "read_only")
    assert mounted.mount_path.startswith("/mnt/memory/notes-")
    assert (mounted.instructions, mounted.name) == ("Read it first.", store.name)
    assert list(alice.beta.sessions.resources.list(session.id)) == [mounted]
    with pytest.raises(anthropic.BadRequestError) as caught:
        alice.beta.sessions.create(
            agent=agent.id,
            environment_id=world.environment,
            resources=[{"type": "memory_store", "memory_store_id": "memstore_none"}],
        )
    assert caught.value.response.json()["error"]["details"]["field"] == "resources[0]"


def test_mallory_finds_none_of_it(mallory, store, memory):
    stores = mallory.beta.memory_stores
    assert store.id not in {one.id for one in stores.list(include_archived=True)}
    version = memory.memory_version_id
    for refused in (
        lambda: stores.retrieve(store.id),
        lambda: stores.delete(store.id),
        lambda: stores.memories.list(store.id),
        lambda: stores.memories.create(store.id, path="/m", content="1"),
        lambda: stores.memories.retrieve(memory.id, memory_store_id=store.id),
        lambda: stores.memories.update(memory.id, memory_store_id=store.id, content="2"),
        lambda: stores.memories.delete(memory.id, memory_store_id=store.id),
        lambda: stores.memory_versions.list(store.id),
        lambda: stores.memory_versions.retrieve(version, memory_store_id=store.id),
        lambda: stores.memory_versions.redact(version, memory_store_id=store.id),
    ):
        with pytest.raises(anthropic.NotFoundError):
            refused()
