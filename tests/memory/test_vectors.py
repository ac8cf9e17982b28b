"""Vectors of memories: made in the background, found by whom words are found by, gone with their text."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership
from harness.errors import Declined
from memory.actions.memories import change_memory, create_memory, redact_version
from memory.actions.remembering import forget_memory, own_store, remember
from memory.actions.stores import ORGANIZATION, create_store, delete_store
from memory.embedding import indexing, minilm
from memory.embedding.chosen import EMBEDDERS, chosen
from memory.embedding.codes import (
    BITS,
    as_words,
    code_at,
    code_of,
    distances,
    heights_of,
    least,
    likeness,
)
from memory.embedding.contract import Vectors
from memory.embedding.held import BLOCK, SMALLEST, Held, held
from memory.embedding.indexing import make_vectors
from memory.embedding.letters import Letters
from memory.embedding.nearest import as_stored
from memory.models import EmbeddingClaim, Memory, MemoryStore, MemoryVector, MemoryVersion
from memory.retrieval.ranking import Near, fused
from memory.retrieval.turns import Turn, TurnIndex
from memory.searching import search_memories
from memory.vectors import EMBED, MEMORIES, embed_memories
from tests.asked_for import asked_for
from tests.memory.embedders import OneAtATime, embedder

pytestmark = pytest.mark.django_db
__all__ = ["embedder"]
WAREHOUSE = "The warehouse is managed by Petronella."
MISSPELT = "warehuose Petronela"
"""It shares no word with that, and most of its letters."""


class TwoAtATime(Letters):
    at_once = 2


class OfAnotherKind(Letters):
    name = "letters-of-another-kind"


class Disturbed(OneAtATime):
    """Something happens while it is at it."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.meanwhile()
        return super().embed(texts)


@pytest.fixture(autouse=True)
def by_letters(settings):
    settings.AGENTSITE_EMBEDDINGS = "letters"


@pytest.fixture
def shared(alice, acme) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)


def known(alice, store, text: str = WAREHOUSE) -> Memory:
    memory = remember(actor=alice, store=store, text=text).memory
    assert not make_vectors(MEMORIES)
    return memory


def found(user, query: str = MISSPELT, **options) -> list[str]:
    every = MemoryStore.objects.all()
    return [hit.memory.content for hit in search_memories(user, query, every, **options).hits]


# --- finding --------------------------------------------------------------------------------------


def test_what_is_spelt_otherwise_is_found_and_says_why(alice, shared, settings):
    known(alice, shared)
    known(alice, shared, "Tea is green.")
    (hit,) = search_memories(alice, MISSPELT, MemoryStore.objects.all()).hits
    assert (hit.memory.content, hit.why) == (WAREHOUSE, ())
    assert hit.likeness == pytest.approx(0.607, abs=0.001)
    settings.AGENTSITE_EMBEDDINGS = ""
    assert found(alice) == []


def test_what_vectors_alone_find_is_told_as_unsure(alice, shared):
    known(alice, shared)
    assert search_memories(alice, MISSPELT, MemoryStore.objects.all()).low
    assert not search_memories(alice, "warehouse Petronella", MemoryStore.objects.all()).low


def test_what_is_about_something_else_is_not_found(alice, shared):
    known(alice, shared)
    assert found(alice, "How is the weather on Mars?") == []
    assert found(alice, "?!") == []


def test_a_phrase_in_quotation_marks_still_has_to_stand_there(alice, shared):
    known(alice, shared)
    assert found(alice, 'warehouse "managed by Petronella"') == [WAREHOUSE]
    assert found(alice, 'warehouse "manged by Petronela"') == []


def test_before_its_vector_is_made_a_memory_is_found_by_its_words(alice, shared):
    known(alice, shared, "The warehouse is in Lisbon.")
    remember(actor=alice, store=shared, text=WAREHOUSE)
    assert asked_for(EMBED) == [{}, {}]
    assert found(alice, "Who is Petronella of the warehouse?")[0] == WAREHOUSE


def test_times_and_trust_narrow_what_vectors_find_as_what_words_find(alice, shared):
    memory = known(alice, shared)
    assert found(alice, at=memory.created_at - timedelta(days=1)) == []
    Memory.objects.update(untrusted=True, confirmed_at=None)
    assert found(alice) == [WAREHOUSE]
    assert found(alice, for_agents=True) == []


def others(store, count: int, text: str) -> None:
    """So many more with one text's vector, which no word finds."""
    rows = [
        Memory(
            store=store,
            path=f"/{hashlib.sha256(text.encode()).hexdigest()}/{number}.md",
            content=text,
            sha256="1" * 64,
            size=len(text),
            audience=store.audience,
        )
        for number in range(count)
    ]
    (vector,) = Letters().embed([text])
    stored = as_stored(vector)
    MemoryVector.objects.bulk_create(
        MemoryVector(
            memory=row,
            model=Letters.name,
            sha256=row.sha256,
            audience=row.audience,
            code=stored.code,
            data=stored.data,
        )
        for row in Memory.objects.bulk_create(rows)
    )


def test_the_oldest_of_many_is_found_by_its_vector(alice, shared):
    known(alice, shared)
    others(shared, 3_100, "Tea is green.")
    assert found(alice) == [WAREHOUSE]


def test_those_that_are_nearer_and_gone_hide_nothing(alice, shared):
    known(alice, shared)
    others(shared, 900, MISSPELT)
    assert set(found(alice)) == {MISSPELT}
    Memory.objects.filter(content=MISSPELT).delete()
    assert found(alice) == [WAREHOUSE]
    with CaptureQueriesContext(connection) as queries:
        assert found(alice) == [WAREHOUSE]
    assert sum('"memory_memoryvector"."data"' in each["sql"] for each in queries) == 1


def test_what_is_written_later_is_found_at_once_and_what_was_rolled_back_never(alice, shared):
    known(alice, shared, "Tea is green.")
    assert found(alice) == []
    with transaction.atomic():
        known(alice, shared)
        assert found(alice) == [WAREHOUSE]
        transaction.set_rollback(True)
    assert found(alice) == []
    known(alice, shared, "Warehouses are run by Petronella.")
    assert found(alice) == ["Warehouses are run by Petronella."]


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="others keep statistics to plan by")
def test_what_was_found_is_looked_up_by_its_keys_and_not_by_going_through_stores(alice, shared):
    known(alice, shared)
    others(shared, 450, MISSPELT)
    with CaptureQueriesContext(connection) as queries:
        assert found(alice, f"{MISSPELT} Petronella")
    asked = [each["sql"] for each in queries if 'FROM "memory_memory' in each["sql"]]
    with connection.cursor() as cursor:
        plans = [cursor.execute(f"EXPLAIN QUERY PLAN {sql}", None).fetchall() for sql in asked]
    steps = [step[-1] for plan in plans for step in plan]
    assert len(plans) > 3
    assert not [step for step in steps if "store_id=?" in step or "SCAN memory_" in step]


def test_a_process_holds_the_codes_of_those_that_were_asked_last(alice, acme, shared):
    own = own_store(actor=alice, organisation=acme)
    for store in (shared, own):
        others(store, 90, "Tea is green.")
    code = as_words(code_of(Letters().embed([MISSPELT])[0]))[:, 0]
    kept = Held(most=2 * SMALLEST)

    def asked(audience: str) -> int:
        found = kept.nearest(MemoryVector, "memory", Letters.name, audience, code, 10)
        return 0 if found is None else len(found.keys)

    assert asked(shared.audience) == asked(own.audience) == 10
    assert kept.size == 2 * SMALLEST
    for number in range(5):
        assert asked(f"nobody {number}") == 0
    assert kept.size == 2 * SMALLEST


def test_the_nearest_of_many_blocks_come_with_their_own_keys_and_codes(alice, shared):
    """Also where some of a block are gone."""
    texts = (f"Tea number {number} is greener than {number + 1}." for number in range(4))
    for text in texts:
        others(shared, BLOCK // 4 + 3, text)
    code = as_words(code_of(Letters().embed(["green tea"])[0]))[:, 0]
    kept, place = Held(), (MemoryVector, "memory", Letters.name, shared.audience)
    assert kept.nearest(*place, code, 50) is not None
    gone = list(Memory.objects.order_by("pk").values_list("pk", flat=True))[5:-5:800]
    Memory.objects.filter(pk__in=gone).delete()
    kept.drop(MemoryVector, Letters.name, shared.audience, gone)
    rows = dict(MemoryVector.objects.values_list("memory", "code"))
    every = distances(as_words(b"".join(map(bytes, rows.values()))), code)
    for most in (1, BLOCK // 2, len(rows), 2 * BLOCK):
        found = kept.nearest(*place, code, most)
        assert found is not None
        assert len(found.keys) == min(most, len(rows))
        theirs = as_words(b"".join(bytes(rows[key]) for key in found.keys.tolist()))
        assert numpy.array_equal(found.codes, theirs)
        assert numpy.array_equal(found.far, distances(theirs, code))
        assert sorted(found.far.tolist()) == sorted(every.tolist())[:most]


def test_a_row_that_is_said_to_be_gone_is_let_go_of_only_if_it_is(alice, shared):
    memory = known(alice, shared)
    assert found(alice) == [WAREHOUSE]
    held.drop(MemoryVector, Letters.name, shared.audience, [memory.pk])
    assert found(alice) == [WAREHOUSE]


def test_how_far_a_question_lies_from_planes_tells_more_than_on_which_side():
    drawn = numpy.random.default_rng(7).normal(size=(3_000, 64)).astype(numpy.float32)
    vectors = drawn / numpy.linalg.norm(drawn, axis=1, keepdims=True)
    codes = as_words(b"".join(map(code_of, vectors)))
    by_sides = by_heights = 0
    for asked in vectors[:20]:
        best = set(numpy.argsort(-(vectors @ asked))[1:11].tolist())
        heights = heights_of(asked)
        far = distances(codes, as_words(code_at(heights))[:, 0])
        by_sides += len(best & set(least(far, 20).tolist()))
        like = likeness(codes, heights)
        by_heights += len(best & set(numpy.argsort(-like)[:20].tolist()))
    assert by_heights > by_sides + 10


def test_a_forked_process_waits_for_no_thread_of_its_parent():
    with held._holding:
        child = os.fork()
        if child == 0:
            os._exit(held._holding.locked())
    assert os.waitpid(child, 0)[1] == 0


def test_codes_are_as_far_apart_as_vectors_and_the_same_for_ever():
    tea, warehouse, misspelt = Letters().embed(["Tea is green.", WAREHOUSE, MISSPELT])
    codes = as_words(b"".join(map(code_of, (tea, warehouse, misspelt))))
    far, near, same = distances(codes, codes[:, 2]).tolist()
    assert same == 0
    assert numpy.cos(numpy.pi * near / BITS) == pytest.approx(float(warehouse @ misspelt), abs=0.15)
    assert numpy.cos(numpy.pi * far / BITS) == pytest.approx(float(tea @ misspelt), abs=0.15)
    heights = heights_of(misspelt)
    assert code_at(heights) == code_of(misspelt)
    assert numpy.argsort(-likeness(codes, heights)).tolist() == [2, 1, 0]
    axis = numpy.eye(1, 512)[0]
    assert (
        hashlib.sha256(code_of(axis)).hexdigest()
        == "a05149eb4c3876921f33aa7a493bc4a314bf5e5499b3f7921d95a02d6a01924a"
    )


def test_without_an_embedder_nothing_more_is_asked(alice, shared, settings):
    known(alice, shared)
    settings.AGENTSITE_EMBEDDINGS = ""
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert found(alice, "Petronella") == [WAREHOUSE]
        assert found(alice) == []
    assert "vector" not in str([query["sql"] for query in asked.captured_queries])
    remember(actor=alice, store=shared, text="Tea is green.")
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 1


# --- who may --------------------------------------------------------------------------------------


def test_vectors_find_nothing_of_others(alice, bob, mallory, acme, elsewhere, shared):
    own = own_store(actor=alice, organisation=acme)
    known(alice, own, "Petronella of the warehouse owes alice money.")
    known(alice, shared)
    assert len(found(alice)) == 2
    assert found(bob) == [WAREHOUSE]
    assert found(mallory) == []
    Membership.objects.filter(user=bob, organisation=acme).delete()
    assert found(bob) == []


def test_what_others_have_moves_nothing_in_an_order(alice, mallory, elsewhere, shared):
    known(alice, shared)
    known(alice, shared, "Petronilla has a warehouse.")
    before = search_memories(alice, MISSPELT, MemoryStore.objects.all())
    theirs = own_store(actor=mallory, organisation=elsewhere)
    for number in range(5):
        known(mallory, theirs, f"Number {number}: warehuose Petronela.")
    assert search_memories(alice, MISSPELT, MemoryStore.objects.all()) == before


# --- with the text --------------------------------------------------------------------------------


def test_a_changed_text_leaves_no_vector_of_the_one_before(alice, shared):
    memory = known(alice, shared)
    change_memory(actor=alice, memory=memory, path="/elsewhere.md")
    assert MemoryVector.objects.exists()
    change_memory(actor=alice, memory=memory, content="Tea is green.")
    assert not MemoryVector.objects.exists()
    version = MemoryVersion.objects.filter(content=WAREHOUSE).latest("pk")
    redact_version(actor=alice, version=version)
    make_vectors(MEMORIES)
    assert found(alice) == []
    assert found(alice, "grene teas") == ["Tea is green."]


def test_a_vector_of_another_text_counts_for_nothing(alice, shared):
    known(alice, shared)
    MemoryVector.objects.update(sha256="0" * 64)
    assert found(alice) == []
    make_vectors(MEMORIES)
    assert found(alice) == [WAREHOUSE]


def test_what_is_forgotten_or_deleted_takes_its_vector_along(alice, shared):
    forget_memory(actor=alice, memory=known(alice, shared))
    assert not MemoryVector.objects.exists()
    known(alice, shared)
    delete_store(actor=alice, store=shared)
    assert not MemoryVector.objects.exists()


def test_another_model_makes_them_anew_and_finds_nothing_by_the_old(alice, shared, embedder):
    known(alice, shared)
    embedder(OfAnotherKind())
    assert found(alice) == []
    make_vectors(MEMORIES)
    assert found(alice) == [WAREHOUSE]
    assert MemoryVector.objects.get().model == "letters-of-another-kind"


# --- in the background ----------------------------------------------------------------------------


def test_a_vector_of_another_width_is_made_anew(alice, shared):
    known(alice, shared)
    kept = MemoryVector.objects.get()
    wide = numpy.frombuffer(kept.data, dtype="<f2").astype("<f4").tobytes()
    MemoryVector.objects.update(model=kept.model.removesuffix("-f16"), data=wide)
    assert found(alice) == []
    make_vectors(MEMORIES)
    assert bytes(MemoryVector.objects.get().data) == bytes(kept.data)
    (hit,) = search_memories(alice, MISSPELT, MemoryStore.objects.all()).hits
    there, asked = Letters().embed([WAREHOUSE, MISSPELT])
    assert hit.likeness == pytest.approx(float(there @ asked), abs=0.00015)


def test_some_are_made_at_a_time_and_the_rest_is_asked_for(alice, shared, embedder):
    embedder(TwoAtATime())
    for number in range(3):
        create_memory(actor=alice, store=shared, path=f"/{number}.md", content=f"Text {number}")
    written = len(asked_for(EMBED))
    embed_memories(batches=1)
    assert (MemoryVector.objects.count(), len(asked_for(EMBED))) == (2, written + 1)
    embed_memories(batches=2)
    assert (MemoryVector.objects.count(), len(asked_for(EMBED))) == (3, written + 1)
    create_memory(actor=alice, store=shared, path="/empty.md", content="")
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 4


def test_what_has_its_vector_is_not_looked_through_for_each_batch(alice, shared, embedder):
    embedder(OneAtATime())
    for number in range(3):
        create_memory(actor=alice, store=shared, path=f"/{number}.md", content=f"Text {number}")
    with CaptureQueriesContext(connection) as queries:
        assert not make_vectors(MEMORIES)
    looked = [each["sql"] for each in queries if "NOT (EXISTS" in each["sql"]]
    keys = sorted(Memory.objects.values_list("pk", flat=True), reverse=True)
    bounds = [f'"memory_memory"."id" < {key}' for key in keys]
    assert [next((b for b in bounds if b in sql), "") for sql in looked] == ["", *bounds, ""]
    assert MemoryVector.objects.count() == 3


def test_what_is_written_behind_a_pass_is_found_by_the_next_one(alice, shared, embedder):
    for number in range(2):
        create_memory(actor=alice, store=shared, path=f"/{number}.md", content=f"Text {number}")
    late = ["/new.md"]

    def meanwhile():
        while late:
            create_memory(actor=alice, store=shared, path=late.pop(), content="A new text.")

    embedder(Disturbed(meanwhile))
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 3


def test_one_at_a_time_makes_them_and_who_died_is_followed(alice, shared):
    create_memory(actor=alice, store=shared, path="/a.md", content="A text.")
    assert indexing._claim("memory", "somebody")
    assert not make_vectors(MEMORIES)
    assert not MemoryVector.objects.exists()
    EmbeddingClaim.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    make_vectors(MEMORIES)
    assert MemoryVector.objects.exists()
    assert EmbeddingClaim.objects.get().holder == ""


def test_who_was_overtaken_keeps_nothing(alice, shared, embedder):
    create_memory(actor=alice, store=shared, path="/a.md", content="A text.")
    embedder(Disturbed(lambda: EmbeddingClaim.objects.update(holder="somebody")))
    assert not make_vectors(MEMORIES)
    assert not MemoryVector.objects.exists()
    assert EmbeddingClaim.objects.get().holder == "somebody"


def test_what_changes_or_goes_while_its_vector_is_made_keeps_none(alice, shared, embedder):
    gone = create_memory(actor=alice, store=shared, path="/a.md", content="A text.")
    changed = create_memory(actor=alice, store=shared, path="/b.md", content="Another.")

    def meanwhile():
        if Memory.objects.filter(pk=gone.pk).exists():
            forget_memory(actor=alice, memory=gone)
            change_memory(actor=alice, memory=changed, content="Yet another.")

    embedder(Disturbed(meanwhile))
    make_vectors(MEMORIES)
    (vector,) = MemoryVector.objects.all()
    assert vector.sha256 == Memory.objects.get().sha256


# --- what makes them ------------------------------------------------------------------------------


def test_letters_give_the_same_for_the_same_whatever_stands_beside():
    embedder = Letters()
    one = embedder.embed([WAREHOUSE])
    other = embedder.embed(["", "Tea", WAREHOUSE])
    assert numpy.array_equal(one[0], other[2])
    assert numpy.linalg.norm(other, axis=1) == pytest.approx([0, 1, 1])
    assert embedder.embed([]).shape == (0, 512)


def test_the_offline_model_says_what_it_lacks(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package")
    with pytest.raises(Declined, match="not installed"):
        EMBEDDERS["minilm"]().embed(["Tea"])


def test_one_of_each_serves_a_process(settings):
    assert chosen() is chosen()
    settings.AGENTSITE_EMBEDDINGS = ""
    assert chosen() is None


# --- words and vectors ----------------------------------------------------------------------------


def near(**cosines: float) -> Near:
    return Near(cosines, 0.25, (0.1, 0.6))


def test_where_words_cover_the_question_vectors_only_settle_what_is_close():
    lexical = {1: 10.0, 2: 9.8, 3: 5.0}
    mixed = fused(lexical, {1: 0.3, 2: 0.6, 3: 0.9}, near(), covered=1.0)
    assert sorted(mixed, key=mixed.__getitem__) == [3, 1, 2]
    mixed = fused(lexical, {1: 0.3, 2: 0.6, 3: 0.9}, near(), covered=0.0)
    assert max(mixed, key=mixed.__getitem__) == 3


def test_what_is_far_or_has_no_vector_is_judged_by_its_words():
    assert fused({1: 10.0, 2: 5.0}, {1: 0.2}, near(), covered=0.0) == {1: 10.0, 2: 5.0}
    mixed = fused({1: 10.0}, {2: 0.2, 3: 0.5}, near(), covered=0.0)
    assert (mixed[1], set(mixed)) == (1.0, {1, 3})


def test_the_same_score_is_put_in_the_same_order():
    turns = [Turn(str(number), "Tea is green.", group=str(number)) for number in range(4)]
    index = TurnIndex(turns)
    cosines = {str(number): 0.5 for number in range(4)}
    orders = [
        [hit.turn.id for hit in index.search("green tea", near=near(**given)).hits]
        for given in (cosines, dict(reversed(cosines.items())))
    ]
    assert orders == [["3", "2", "1", "0"]] * 2
