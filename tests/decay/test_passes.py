"""Memories fade by the rules in force: never unseen, never what is used or pinned, and what goes is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.signals import post_save, pre_delete
from django.utils import timezone

from audit.models import AuditEntry
from conversations.actions.messages import post_message
from conversations.kitparts import mounts_of
from conversations.models import Conversation
from decay.actions import passes
from decay.fading import extent_of
from decay.models import DecayRule, DecayRun, Faded, Step
from decay.statistics import statistics_of
from memory.access import Author
from memory.actions.memories import create_memory
from memory.actions.remembering import Source, confirm_memory, correct_memory, mark_memory, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import AuthorKind, Memory, MemoryStore, MemoryVersion
from memory.searching import search_memories
from providers.scripted import call, reply
from recall.actions.attaching import Wanted, attach_stores
from recall.models import AttachedStore
from tests.conversations.conftest import rested

from .conftest import DAYS, LEFT, LONG, InForce, Old, fade

pytestmark = pytest.mark.django_db


def said(memory: Memory) -> str | None:
    found = Memory.objects.filter(pk=memory.pk).first()
    return found.content if found else None


def found(user, query: str) -> list[str]:
    every = MemoryStore.objects.all()
    return [hit.memory.content for hit in search_memories(user, query, every).hits]


# --- the steps ------------------------------------------------------------------------------------


def test_by_age_a_memory_is_a_summary_a_marker_and_gone(old: Old, in_force: InForce):
    young, five, forty, hundred = old(1), old(5), old(40), old(100)
    in_force()
    fade()
    assert said(young) == LONG
    assert said(five) == LEFT
    day = (timezone.now() - timedelta(days=40)).date()
    assert said(forty) == f"[faded {day}] office Acme Lisbon since spring"
    assert said(hundred) is None


def test_step_by_step_it_ends_as_at_once(old: Old, in_force: InForce):
    memory, other = old(5), old(40)
    in_force()
    fade()
    then = timezone.now() - timedelta(days=40)
    Memory.objects.filter(pk=memory.pk).update(updated_at=then, confirmed_at=then, valid_from=then)
    fade()
    assert said(memory) == said(other)
    assert [faded.step for faded in Faded.objects.all()] == [Step.MARKER, Step.MARKER]


def test_again_nothing_happens(old: Old, in_force: InForce):
    memory = old(5)
    in_force()
    fade()
    versions, runs = memory.store.versions.count(), DecayRun.objects.count()
    fade()
    assert (memory.store.versions.count(), DecayRun.objects.count()) == (versions, runs)


def test_steps_that_a_rule_has_not_are_passed_over(old: Old, in_force: InForce):
    memory = old(5_000)
    in_force({Step.MARKER: 30})
    fade()
    assert str(said(memory)).startswith("[faded ")


def test_it_is_as_old_as_before_and_its_day_stays(old: Old, in_force: InForce):
    memory = old(5)
    in_force()
    fade()
    now = Memory.objects.get(pk=memory.pk)
    assert (now.updated_at, now.valid_from) == (memory.updated_at, memory.valid_from)


# --- what is gone ---------------------------------------------------------------------------------


def test_what_it_said_is_nowhere_any_more(alice, old: Old, in_force: InForce):
    memory = old(5, "It was elsewhere before, in the house with the sundial.")
    correct_memory(actor=alice, memory=memory, text=LONG)
    then = timezone.now() - timedelta(days=5)
    Memory.objects.update(updated_at=then, confirmed_at=then)
    assert found(alice, "Walburga") == [LONG]
    in_force()
    fade()
    assert found(alice, "Walburga") == found(alice, "sundial") == []
    assert found(alice, "Lisbon") == [LEFT]
    held = MemoryVersion.objects.exclude(content=None).values_list("content", flat=True)
    assert list(held) == [LEFT]
    taken = MemoryVersion.objects.filter(redacted_at__isnull=False)
    assert {(each.content, each.path, each.redacted_uid) for each in taken} == {
        (None, None, alice.uid)
    }
    current = MemoryVersion.objects.get(content=LEFT)
    assert (current.author_kind, current.author_uid) == ("user_actor", alice.uid)


def test_of_a_marker_the_path_does_not_tell_what_it_said(alice, old: Old, in_force: InForce):
    named = old(40, "My sister lives in Ghent.", key="family", path="/facts/family.md")
    memory = old(40, "The garden gate squeaks.", key="", path="/facts/the-garden-gate-squeaks.md")
    note = create_memory(actor=alice, store=named.store, path="/gate/plans.md", content=LONG)
    Memory.objects.filter(pk=note.pk).update(updated_at=memory.updated_at)
    in_force()
    fade()
    paths = dict(Memory.objects.values_list("pk", "path"))
    assert paths[memory.pk] == f"/facts/{memory.uid}.md"
    assert (paths[named.pk], paths[note.pk]) == ("/facts/family.md", "/gate/plans.md")
    assert not MemoryVersion.objects.filter(path__contains="squeak").exists()


def test_of_what_is_gone_only_that_it_was_there_is_left(alice, old: Old, in_force: InForce):
    memory = old(100)
    in_force()
    fade()
    assert not Memory.objects.exists()
    versions = MemoryVersion.objects.filter(memory_uid=memory.uid)
    assert [each.operation for each in versions] == ["created", "deleted"]
    assert {(each.path, each.content, each.sha256) for each in versions} == {(None, None, None)}
    assert found(alice, "Lisbon") == []


def test_what_looks_like_a_secret_once_it_is_cut_leaves_its_day_alone(
    old: Old, in_force: InForce, monkeypatch
):
    memory = old(5)
    monkeypatch.setattr("memory.writing.redacted_text", lambda text: text.replace("Lisbon", "…"))
    in_force()
    fade()
    day = (timezone.now() - timedelta(days=5)).date()
    assert said(memory) == f"[faded {day}]"


# --- what stays -----------------------------------------------------------------------------------


def test_what_is_pinned_or_was_used_marked_or_written_of_late_stays(
    alice, old: Old, in_force: InForce
):
    pinned = old(500, pinned=True)
    told, marked, confirmed = old(500), old(500, pinned=True), old(500)
    Memory.objects.filter(pk=told.pk).count_use()
    mark_memory(actor=alice, memory=marked, pinned=False)
    confirm_memory(actor=alice, memory=confirmed, version_uid=confirmed.version_uid)
    in_force()
    fade()
    assert {said(each) for each in (pinned, told, marked, confirmed)} == {LONG}


def test_what_was_written_anew_is_whole_again(alice, old: Old, in_force: InForce):
    memory = old(5)
    in_force()
    fade()
    correct_memory(actor=alice, memory=memory, text=f"{LONG} And more.")
    then = timezone.now() - timedelta(days=2)
    Memory.objects.update(updated_at=then, confirmed_at=then)
    assert statistics_of([memory.store])[memory.store_id].whole == 1
    fade()
    assert said(memory) == f"{LONG} And more."
    then = timezone.now() - timedelta(days=4)
    Memory.objects.update(updated_at=then, confirmed_at=then)
    fade()
    assert said(memory) == LEFT


@pytest.mark.parametrize("also", [False, True])
def test_what_waits_for_a_yes_fades_where_the_rule_says_so(
    alice, store, in_force: InForce, also: bool
):
    made = remember(
        actor=alice,
        store=store,
        text=LONG,
        source=Source(untrusted=True),
        author=Author(AuthorKind.SESSION, "sesn_1"),
    ).memory
    Memory.objects.update(updated_at=timezone.now() - timedelta(days=5))
    in_force(also_unconfirmed=also)
    fade()
    assert (said(made) == LEFT) is also
    assert Memory.objects.get().confirmed_at is None


def test_other_stores_and_archived_ones_stay(
    alice, bob, mallory, acme, elsewhere, old: Old, in_force: InForce
):
    team = create_store(actor=alice, organisation=acme, name="Team", scope=ORGANIZATION)
    theirs = create_store(actor=mallory, organisation=elsewhere, name="Theirs")
    shared, foreign = old(5, store=team), old(5, store=theirs, actor=mallory)
    put_away = create_store(actor=alice, organisation=acme, name="Away")
    away = old(5, store=put_away)
    in_force()
    in_force(store=put_away)
    MemoryStore.objects.filter(pk=put_away.pk).update(archived_at=timezone.now())
    fade()
    assert said(shared) == said(foreign) == said(away) == LONG


@pytest.mark.django_db(transaction=True)
def test_what_an_agent_searches_or_reads_is_used(converse, alice, old: Old, in_force: InForce):
    read, searched = old(5), old(5, "The kettle is red, which everybody calls the beacon.")
    conversation, _script = converse(
        [
            reply(call("read_memory", id=read.uid), call("search_memory", query="beacon")),
            reply("Ok."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Go on.")
    rested(conversation)
    in_force()
    fade()
    assert (said(read), said(searched)) == (read.content, searched.content)


@pytest.mark.django_db(transaction=True)
def test_what_commands_see_as_a_file_stays_while_they_work_and_fades_in_the_folder(
    converse, alice, acme, in_force: InForce
):
    store = create_store(actor=alice, organisation=acme, name="Notes")
    conversation = converse([])[0]
    attach_stores(actor=alice, conversation=conversation, stores=[Wanted(store.uid)])
    memory = create_memory(actor=alice, store=store, path="/office.md", content=LONG)
    gone = create_memory(actor=alice, store=store, path="/old.md", content=LONG)
    file = mounts_of(conversation)[0].source / "office.md"
    old = timezone.now() - timedelta(days=5)
    Memory.objects.filter(pk=memory.pk).update(updated_at=old)
    Memory.objects.filter(pk=gone.pk).update(updated_at=timezone.now() - timedelta(days=100))
    in_force(store=store)
    fade()
    assert file.read_text() == LONG
    Conversation.objects.update(active_at=old)
    fade()
    # Used as a whole five days ago, also the old one goes no further.
    assert {said(memory), said(gone)} == {LEFT}
    assert not file.exists()
    mounts_of(conversation)
    assert file.read_text() == LEFT
    Conversation.objects.update(active_at=timezone.now() - timedelta(days=95))
    fade()
    assert said(gone) is None
    assert not file.with_name("old.md").exists()


@pytest.mark.django_db(transaction=True)
def test_a_conversation_at_rest_does_not_note_the_path_of_what_went(
    converse, alice, acme, in_force: InForce
):
    store = create_store(actor=alice, organisation=acme, name="Notes")
    conversation = converse([])[0]
    attach_stores(actor=alice, conversation=conversation, stores=[Wanted(store.uid)])
    create_memory(actor=alice, store=store, path="/walburga.md", content=LONG)
    kept = create_memory(actor=alice, store=store, path="/kept.md", content=LONG)
    mark_memory(actor=alice, memory=kept, pinned=True)
    folder = mounts_of(conversation)[0].source
    long_ago = timezone.now() - timedelta(days=100)
    Memory.objects.update(updated_at=long_ago)
    Conversation.objects.update(active_at=long_ago)
    in_force(store=store)
    fade()
    assert [path.name for path in folder.iterdir()] == ["kept.md"]
    assert list(AttachedStore.objects.get().laid_out) == ["/kept.md"]
    mounts_of(conversation)
    assert list(store.memories.values_list("path", flat=True)) == ["/kept.md"]


def test_a_file_that_could_not_be_removed_stays_noted_and_comes_back_as_nothing_new(
    converse, alice, acme, django_capture_on_commit_callbacks
):
    store = create_store(actor=alice, organisation=acme, name="Notes")
    conversation = converse([])[0]
    attach_stores(actor=alice, conversation=conversation, stores=[Wanted(store.uid)])
    memory = create_memory(actor=alice, store=store, path="/a.md", content=LONG)
    file = mounts_of(conversation)[0].source / "a.md"
    file.unlink()
    file.mkdir()  # commands put a folder there, which is not removed as a file is
    with django_capture_on_commit_callbacks(execute=True):
        memory.delete()
    assert list(AttachedStore.objects.get().laid_out) == ["/a.md"]
    file.rmdir()
    file.write_text(LONG)
    mounts_of(conversation)
    assert not store.memories.exists()
    assert not file.exists()


# --- passes ---------------------------------------------------------------------------------------


def test_a_pass_that_dies_leaves_everything_as_it_was_and_the_next_one_does_it(
    old: Old, in_force: InForce
):
    first, second = old(6), old(5)
    in_force()

    def die(**_kwargs) -> None:
        raise KeyboardInterrupt

    for signal, sender in ((post_save, Faded), (post_save, DecayRun), (post_save, AuditEntry)):
        signal.connect(die, sender=sender)
        try:
            with pytest.raises(KeyboardInterrupt):
                fade()
        finally:
            signal.disconnect(die, sender=sender)
        assert [said(first), said(second)] == [LONG, LONG]
        assert not MemoryVersion.objects.filter(redacted_at__isnull=False).exists()
        assert not DecayRun.objects.exists()
    fade()
    assert [said(first), said(second)] == [LEFT, LEFT]
    run = DecayRun.objects.get()
    assert (run.summaries, run.markers, run.gone) == (2, 0, 0)


def test_what_cannot_fade_now_keeps_nothing_else_waiting(old: Old, in_force: InForce):
    stuck, other = old(200), old(100)

    def refuse(instance: Memory, **_kwargs) -> None:
        if instance.pk == stuck.pk:
            raise OSError("no")

    pre_delete.connect(refuse, sender=Memory)
    in_force()
    try:
        fade()
    finally:
        pre_delete.disconnect(refuse, sender=Memory)
    assert (said(stuck), said(other)) == (LONG, None)
    assert MemoryVersion.objects.filter(memory_uid=stuck.uid, content=LONG).exists()
    fade()
    assert said(stuck) is None


def test_much_fades_bit_by_bit_and_a_pass_has_an_end(old: Old, in_force: InForce):
    for _ in range(5):
        old(5)
    in_force()
    fade(at_a_time=2, most=3)
    assert [run.summaries for run in DecayRun.objects.all()] == [2, 2]
    fade(at_a_time=2, most=3)
    assert sum(run.summaries for run in DecayRun.objects.all()) == 5


def test_a_rule_that_was_lifted_or_changed_meanwhile_does_nothing(
    alice, store, old: Old, in_force: InForce
):
    memory = old(5)
    rule = in_force()
    DecayRule.objects.filter(pk=rule.pk).update(in_force_at=None)
    assert passes._fade_some(rule.pk) == 0
    rule.delete()
    assert passes._fade_some(rule.pk or 0) == 0
    assert said(memory) == LONG


# --- what is told ---------------------------------------------------------------------------------


def test_a_dry_run_tells_what_a_pass_does(alice, store, old: Old, in_force: InForce):
    for text in (LONG, "Short.", "# Heading\n\n" + "word " * 400, "本文。" * 300, "x" * 2_000):
        for days in (5, 40, 100):
            old(days, text)
    rule = in_force()
    extent = extent_of(rule, named=100)
    assert {step: extent.memories[step] for step in Step if step} == dict.fromkeys(DAYS, 5)
    left = {goes.memory.pk: goes.left for goes in extent.first if goes.step != Step.GONE}
    before = statistics_of([store])[store.pk]
    fade()
    assert dict(Memory.objects.values_list("pk", "content")) == left
    after = statistics_of([store])[store.pk]
    assert (before.whole, after.whole) == (15, 0)
    assert (after.summaries, after.markers, after.gone) == (5, 5, 5)
    assert after.tokens_saved == extent.tokens_saved
    assert abs(before.tokens - after.tokens - after.tokens_saved) <= 15
    assert extent_of(rule).count == 0


def test_it_is_told_to_those_whose_it_is(alice, bob, acme, old: Old, in_force: InForce):
    team = create_store(actor=alice, organisation=acme, name="Team", scope=ORGANIZATION)
    old(5)
    old(5, store=team)
    in_force()
    in_force(store=team)
    fade()
    own, shared = AuditEntry.objects.filter(action="decay_done").order_by("pk")
    assert (own.actor, own.organisation) == (alice, None)
    assert (shared.actor, shared.organisation) == (None, acme)
    assert shared.details == {
        "store": team.uid,
        "rule": 1,
        "summaries": 1,
        "markers": 0,
        "gone": 0,
    }
