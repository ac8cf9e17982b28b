"""Memory stores and the memories in them: who may, what is kept of every change, what is refused."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, Organisation, User
from agents.models import Agent
from audit.models import AuditEntry
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge
from memory.access import may_write, writable
from memory.actions.memories import (
    MemoryChanged,
    change_memory,
    create_memory,
    delete_memory,
    redact_version,
)
from memory.actions.stores import (
    AGENT,
    ORGANIZATION,
    archive_store,
    change_store,
    create_store,
    delete_store,
)
from memory.models import Memory, MemoryStore, MemoryVersion
from memory.writing import CONTENT_LIMIT, HoldsSecret

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(alice, acme) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Alice's notes")


@pytest.fixture
def memory(alice, store) -> Memory:
    return create_memory(actor=alice, store=store, path="/job/tea.md", content="Green, no sugar.")


def seen(user) -> set[str]:
    return set(MemoryStore.objects.visible_to(user).values_list("name", flat=True))


def history(store: MemoryStore) -> list[tuple[str, str | None]]:
    return list(store.versions.values_list("operation", "content"))


# --- who ------------------------------------------------------------------------------------------


def test_a_persons_own_store_is_nobody_elses_whatever_they_manage(alice, bob, staff, store):
    assert "Alice's notes" in seen(alice)
    assert seen(bob) == seen(staff) == set()


def test_what_is_shared_is_seen_by_members_while_they_are(alice, bob, mallory, acme):
    create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    assert seen(bob) == {"Ours"}
    assert seen(mallory) == set()
    Membership.objects.filter(user=bob).delete()
    assert seen(bob) == set()


def test_an_agents_store_is_seen_by_those_who_see_the_agent(alice, bob, acme):
    private = Agent.objects.create(name="Mine", organisation=acme, owner=alice, private=True)
    create_store(actor=alice, organisation=acme, name="Its", scope=AGENT, agent=private)
    assert seen(alice) == {"Its"}
    assert seen(bob) == set()


def test_a_member_makes_her_own_stores_and_no_shared_ones(bob, acme):
    assert create_store(actor=bob, organisation=acme, name="Bob's").scope == "person"
    with pytest.raises(Forbidden):
        create_store(actor=bob, organisation=acme, name="All", scope=ORGANIZATION)


def test_a_stranger_makes_none_and_borrows_no_agent(alice, mallory, acme, elsewhere):
    with pytest.raises(NotFound):
        create_store(actor=mallory, organisation=acme, name="In")
    agent = Agent.objects.create(name="Acme's", organisation=acme)
    with pytest.raises(NotFound):
        create_store(actor=mallory, organisation=elsewhere, name="In", scope=AGENT, agent=agent)


def test_who_only_reads_a_shared_store_changes_nothing_in_it(alice, bob, acme):
    store = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    memory = create_memory(actor=alice, store=store, path="/a", content="1")
    for refused in (
        lambda: create_memory(actor=bob, store=store, path="/b", content="1"),
        lambda: change_memory(actor=bob, memory=memory, content="2"),
        lambda: delete_memory(actor=bob, memory=memory),
        lambda: redact_version(actor=bob, version=store.versions.get()),
        lambda: change_store(actor=bob, store=store, name="His"),
        lambda: archive_store(actor=bob, store=store),
        lambda: delete_store(actor=bob, store=store),
    ):
        with pytest.raises(Forbidden):
            refused()
    assert history(store) == [("created", "1")]


def test_to_mallory_nothing_of_alices_is_there(mallory, elsewhere, store, memory):
    version = store.versions.get()
    assert not Memory.objects.visible_to(mallory).exists()
    assert not MemoryVersion.objects.visible_to(mallory).exists()
    for refused in (
        lambda: create_memory(actor=mallory, store=store, path="/b", content="1"),
        lambda: change_memory(actor=mallory, memory=memory, content="2"),
        lambda: delete_memory(actor=mallory, memory=memory),
        lambda: redact_version(actor=mallory, version=version),
        lambda: change_store(actor=mallory, store=store, name="Hers"),
        lambda: archive_store(actor=mallory, store=store),
        lambda: delete_store(actor=mallory, store=store),
    ):
        with pytest.raises(NotFound):
            refused()


# --- what is kept ---------------------------------------------------------------------------------


def test_every_change_is_a_version_that_stays_when_the_memory_goes(alice, store, memory):
    change_memory(actor=alice, memory=memory, content="Black.")
    change_memory(actor=alice, memory=memory, path="/job/drinks/tea.md")
    delete_memory(actor=alice, memory=memory)
    assert history(store) == [
        ("created", "Green, no sugar."),
        ("modified", "Black."),
        ("modified", "Black."),
        ("deleted", None),
    ]
    assert set(store.versions.values_list("memory_uid", flat=True)) == {memory.uid}
    assert set(store.versions.values_list("author_uid", flat=True)) == {alice.uid}


def test_what_changes_nothing_adds_no_version(alice, store, memory):
    change_memory(actor=alice, memory=memory, content=memory.content, path=memory.path)
    assert len(history(store)) == 1


def test_who_read_something_older_is_told_and_overwrites_nothing(alice, store, memory):
    before = memory.sha256
    change_memory(actor=alice, memory=memory, content="Black.", expected_sha256=before)
    with pytest.raises(MemoryChanged):
        change_memory(actor=alice, memory=memory, content="White.", expected_sha256=before)
    with pytest.raises(MemoryChanged):
        delete_memory(actor=alice, memory=memory, expected_sha256=before)
    assert Memory.objects.get().content == "Black."


def test_what_a_version_says_can_be_taken_out_but_not_what_is_said_now(alice, store, memory):
    change_memory(actor=alice, memory=memory, content="Black.")
    first, head = store.versions.all()
    with pytest.raises(Conflict):
        redact_version(actor=alice, version=head)
    for _twice in range(2):
        redact_version(actor=alice, version=first)
    first.refresh_from_db()
    assert (first.path, first.content, first.sha256, first.size) == (None, None, None, None)
    assert first.author_uid == first.redacted_uid == alice.uid
    told = AuditEntry.objects.get(action=AuditEntry.Action.MEMORY_REDACTED)
    assert "Green" not in str(told.details)


def test_an_archived_store_is_read_and_cleared_but_not_written(alice, store, memory):
    archive_store(actor=alice, store=store)
    with pytest.raises(Conflict):
        create_memory(actor=alice, store=store, path="/b", content="1")
    with pytest.raises(Conflict):
        change_memory(actor=alice, memory=memory, content="2")
    with pytest.raises(Conflict):
        change_store(actor=alice, store=store, name="New")
    delete_memory(actor=alice, memory=memory)
    assert not store.memories.exists()


def test_with_its_store_everything_goes(alice, store, memory):
    delete_store(actor=alice, store=store)
    assert not Memory.objects.exists()
    assert not MemoryVersion.objects.exists()


# --- what is refused ------------------------------------------------------------------------------

PATHS = ("", "notes", "/", "/a//b", "/a/../b", "/a\nb", "/e\u0301", "/\u200b", "/a\u2028", "/\0")


@pytest.mark.parametrize("path", [*PATHS, "/" + "a/" * 20 + "a", "/" + "a" * 1_024])
def test_a_path_that_is_none_is_refused(alice, store, path):
    with pytest.raises(Invalid) as caught:
        create_memory(actor=alice, store=store, path=path, content="1")
    assert caught.value.field == "path"
    assert not store.memories.exists()


@pytest.mark.parametrize("path", ["/" + "a/" * 19 + "a", "/" + "a" * 1_023, "/Ä b/ü.md"])
def test_a_path_at_the_limit_is_taken(alice, store, path):
    assert create_memory(actor=alice, store=store, path=path, content="").path == path


def test_a_path_is_one_memorys_and_no_folder_of_others(alice, store, memory):
    for path in ("/job/tea.md", "/job", "/job/tea.md/pot"):
        with pytest.raises(Conflict):
            create_memory(actor=alice, store=store, path=path, content="1")
    other = create_memory(actor=alice, store=store, path="/job/tea", content="1")
    with pytest.raises(Conflict):
        change_memory(actor=alice, memory=other, path="/job/tea.md")


def test_a_memory_has_a_size_to_the_byte(alice, store):
    create_memory(actor=alice, store=store, path="/a", content="ä" * (CONTENT_LIMIT // 2))
    with pytest.raises(TooLarge):
        create_memory(actor=alice, store=store, path="/b", content="ä" * (CONTENT_LIMIT // 2) + "a")


@pytest.mark.parametrize(
    "secret",
    [
        "the key is sk-ant-api03-abcdefghijklmnop",
        "password: hunter2hunter2",
        "https://alice:s3cret@example.org/",
        "-----BEGIN RSA PRIVATE KEY-----\nabc",
    ],
)
def test_what_looks_like_a_secret_is_not_remembered(alice, store, memory, secret):
    with pytest.raises(HoldsSecret):
        create_memory(actor=alice, store=store, path="/s", content=secret)
    with pytest.raises(HoldsSecret):
        change_memory(actor=alice, memory=memory, content=secret)
    assert len(history(store)) == 1


def test_limits_are_refused_past_them(alice, store, memory, acme, settings):
    settings.AGENTSITE_MEMORIES = 1
    with pytest.raises(LimitReached):
        create_memory(actor=alice, store=store, path="/b", content="1")
    settings.AGENTSITE_MEMORY_STORES = 1
    with pytest.raises(LimitReached):
        create_store(actor=alice, organisation=acme, name="Second")
    archive_store(actor=alice, store=store)
    create_store(actor=alice, organisation=acme, name="Second")


def test_who_may_write_in_many_stores_is_asked_once_for_each_organisation(
    alice: User, bob: User, acme: Organisation
):
    made = [
        create_store(actor=alice, organisation=acme, name=f"Ours {number}", scope=ORGANIZATION)
        for number in range(5)
    ]
    own = create_store(actor=bob, organisation=acme, name="His")
    stores = [*made, own]
    for each, may_in_shared in ((alice, True), (bob, False)):
        with CaptureQueriesContext(connection) as asked:
            found = writable(each, stores)
        assert len(asked) == 1
        assert found == {store.pk: may_write(each, store) for store in stores}
        assert found[made[0].pk] is may_in_shared
