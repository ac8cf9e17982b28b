"""Vectors by a service elsewhere: asked in batches in the background, waited for by no transaction, counted
for whose texts they are."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from memory.actions.memories import create_memory
from memory.actions.remembering import own_store, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.embedding.asking import asked_vector, look_up
from memory.embedding.chosen import chosen, chosen_service
from memory.embedding.indexing import make_vectors
from memory.embedding.paying import Payer
from memory.embedding.service import Service, Unanswered
from memory.models import EmbeddingClaim, EmbeddingScale, Memory, MemoryStore, MemoryVector
from memory.searching import search_memories
from memory.vectors import MEMORIES
from operations.home import panels
from spending.models import Budget, BudgetPeriod, ModelPrice, Usage

from .embedding_service import embedding_service

pytestmark = pytest.mark.django_db
WAREHOUSE = "The warehouse is managed by Petronella."
MISSPELT = "warehuose Petronela"


@pytest.fixture
def service(settings):
    with embedding_service() as made:
        settings.AGENTSITE_EMBEDDINGS = made.address
        settings.AGENTSITE_EMBEDDING_MODEL = "text-small"
        settings.AGENTSITE_EMBEDDING_KEY = "sk-of-embeddings"
        yield made


@pytest.fixture
def shared(alice, acme) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)


def found(user, query: str = MISSPELT):
    return search_memories(user, query, MemoryStore.objects.all())


def made_by() -> Service:
    service = chosen_service()
    assert service is not None
    return service


def rests() -> float:
    """Seconds in which the service is asked nothing in the background."""
    until = EmbeddingClaim.objects.get().rests_until
    return (until - timezone.now()).total_seconds() if until is not None else 0.0


def told_to(user) -> list[str]:
    """The figures of the admin's first page."""
    return [line.figure for panel in panels(user) for line in panel.lines]


def awake() -> None:
    EmbeddingClaim.objects.update(rests_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("told", [0, True, None, -1])
def test_what_a_service_reads_and_does_not_count_is_not_free(service, told):
    vector = [1.0] + [0.0] * 7
    data = [{"index": 0, "embedding": vector}]
    service.answer = {"data": data, "usage": {"total_tokens": told}}
    made = made_by().ask([WAREHOUSE])
    assert made.tokens is None, "then it is estimated"


def test_what_is_said_otherwise_is_found_once_the_service_has_made_its_vectors(
    alice, acme, shared, service
):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    remember(actor=alice, store=shared, text="Tea is green.")
    assert not make_vectors(MEMORIES)
    assert set(service.keys) == {"Bearer sk-of-embeddings"}
    assert {each["model"] for each in service.asked} == {"text-small"}
    assert look_up(Payer(acme.pk, alice.pk), alice.pk, MISSPELT)
    (hit,) = found(alice).hits
    assert (hit.memory.content, hit.why) == (WAREHOUSE, ())
    assert not found(alice).by_words_alone
    scale = EmbeddingScale.objects.get()
    assert 0 < scale.floor < scale.alike < hit.likeness


def test_a_search_asks_nothing_itself_and_says_that_words_found_it_alone(alice, shared, service):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    make_vectors(MEMORIES)
    service.asked.clear()
    told = found(alice, "Who is Petronella?")
    assert ([hit.memory.content for hit in told.hits], told.by_words_alone) == ([WAREHOUSE], True)
    assert found(alice).hits == ()
    assert found(alice).by_words_alone
    assert service.asked == []


def test_a_question_is_asked_once_and_is_each_persons_own(alice, bob, acme, service):
    payer = Payer(acme.pk, alice.pk)
    assert look_up(payer, alice.pk, "Where?")
    assert look_up(payer, alice.pk, "Where?")
    assert len(service.asked) == 1
    assert asked_vector(made_by(), alice.pk, "Where?") is not None
    assert asked_vector(made_by(), bob.pk, "Where?") is None
    assert look_up(Payer(acme.pk, bob.pk), bob.pk, "Where?")
    assert len(service.asked) == 2


def test_a_service_that_does_not_answer_is_not_waited_for_again(alice, acme, service):
    service.holds.clear()
    payer = Payer(acme.pk, alice.pk)
    assert not look_up(payer, alice.pk, "Where?", seconds=0.2)
    assert not look_up(payer, alice.pk, "And when?")
    assert len(service.asked) == 1
    assert asked_vector(made_by(), alice.pk, "Where?") is None


def test_what_a_service_was_sent_and_did_not_answer_is_not_free(alice, acme, service):
    service.holds.clear()
    assert not look_up(Payer(acme.pk, alice.pk), alice.pk, "Where?", seconds=0.2)
    assert Usage.objects.get().input_tokens > 0


def test_nor_what_it_broke_off_to_answer(alice, acme, service):
    service.breaks_off = True
    assert not look_up(Payer(acme.pk, alice.pk), alice.pk, "Where?")
    assert Usage.objects.get().input_tokens > 0


def test_nor_what_it_answered_with_no_vectors(alice, shared, service):
    service.answer = {"data": []}
    EmbeddingScale.objects.create(model=chosen().name, floor=0.3, alike=0.5)
    remember(actor=alice, store=shared, text=WAREHOUSE)
    assert not make_vectors(MEMORIES)
    assert Usage.objects.get().input_tokens > 0


def test_a_dead_one_leaves_texts_without_vectors_and_is_tried_later_and_later(
    alice, shared, settings
):
    settings.AGENTSITE_EMBEDDINGS = "http://127.0.0.1:9/v1"
    settings.AGENTSITE_EMBEDDING_MODEL = "text-small"
    remember(actor=alice, store=shared, text=WAREHOUSE)
    for most in (5, 10, 20):
        assert not make_vectors(MEMORIES)
        assert most / 2 < rests() <= most
        assert EmbeddingClaim.objects.get().holder == ""
        assert not MemoryVector.objects.exists()
        assert not make_vectors(MEMORIES)
        awake()
    assert [hit.memory.content for hit in found(alice, "Petronella").hits] == [WAREHOUSE]


def test_a_busy_one_is_left_alone_for_as_long_as_it_asks(alice, shared, service):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    service.refusals = [(429, {"Retry-After": "120"})]
    assert not make_vectors(MEMORIES)
    assert 110 < rests() <= 120
    awake()
    assert not make_vectors(MEMORIES)
    assert (MemoryVector.objects.count(), EmbeddingClaim.objects.get().failures) == (1, 0)


def test_a_text_that_it_refuses_keeps_no_other_waiting(alice, shared, service):
    for number in range(5):
        text = f"Text {number}" if number != 2 else "POISON " * 400
        create_memory(actor=alice, store=shared, path=f"/{number}.md", content=text)
    service.never = "POISON"
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 5
    assert look_up(Payer(shared.organisation_id, None), alice.pk, "text 3")
    assert "POISON" not in found(alice, "text 3").hits[0].memory.content
    service.asked.clear()
    assert not make_vectors(MEMORIES)
    assert service.asked == []


def test_one_that_refuses_every_text_is_at_fault_itself(alice, staff, shared, service):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    make_vectors(MEMORIES)
    remember(actor=alice, store=shared, text="Tea is green.")
    service.nothing = True
    assert not make_vectors(MEMORIES)
    assert (MemoryVector.objects.count(), rests() > 0) == (1, True)
    assert "it takes no text: it answered 400" in told_to(staff)
    service.nothing = False
    awake()
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 2
    assert "it takes no text" not in told_to(staff)


def test_another_model_or_size_makes_all_anew(alice, shared, service, settings):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    make_vectors(MEMORIES)
    before = MemoryVector.objects.get()
    settings.AGENTSITE_EMBEDDING_MODEL, settings.AGENTSITE_EMBEDDING_DIMENSIONS = "text-large", 64
    assert found(alice, "Petronella").by_words_alone
    make_vectors(MEMORIES)
    after = MemoryVector.objects.get()
    assert (before.model != after.model, len(bytes(after.data))) == (True, 2 * 64)
    assert service.asked[-1]["dimensions"] == 64


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": ["1"]}]},
        {"data": [{"index": 0, "embedding": [True]}]},
        {"data": [{"index": 0, "embedding": [1e300, 1e300]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
        {"error": "no"},
        [],
        {"data": [{"index": 0, "embedding": [10**400]}]},
    ],
)
def test_an_answer_that_is_none_is_refused(service, answer):
    service.answer = answer
    with pytest.raises(Unanswered):
        chosen_service().ask(["Tea"])


def test_what_hands_out_credentials_is_never_asked():
    with pytest.raises(Unanswered, match="nothing is sent to"):
        Service("http://169.254.169.254/v1", "text-small").ask(["Tea"])


def test_the_key_is_in_nothing_that_is_told(service):
    service.refusals = [(401, {})]
    with pytest.raises(Unanswered) as refused:
        chosen_service().ask(["Tea"])
    assert "sk-of" not in f"{refused.value}{chosen_service().name}"
    assert "sk-of" not in repr(chosen_service())


def test_a_pass_keeps_its_place_and_takes_up_first_what_is_new(alice, shared, service):
    for number in range(4):
        create_memory(actor=alice, store=shared, path=f"/{number}.md", content=f"Text {number}")
    key = Memory.objects.get(path="/2.md").pk
    EmbeddingClaim.objects.create(name="memory", model=chosen().name, top=key, below=key)
    assert not make_vectors(MEMORIES)
    made = [text for text in service.texts if text.startswith("Text")]
    assert made == ["Text 3", "Text 1", "Text 0", "Text 2"]
    assert EmbeddingClaim.objects.get().below is None


# --- what it costs --------------------------------------------------------------------------------


def test_each_call_is_counted_for_whose_text_it_is(alice, acme, shared, service):
    ModelPrice.objects.create(
        provider="embeddings", model="text-", input=2, output=0, cache_write=0, cache_read=0
    )
    remember(actor=alice, store=shared, text=WAREHOUSE)
    remember(actor=alice, store=own_store(actor=alice, organisation=acme), text="Tea is green.")
    make_vectors(MEMORIES)
    look_up(Payer(acme.pk, alice.pk), alice.pk, "Where?")
    usage = Usage.objects.order_by("pk")
    measuring, *calls = usage.values_list("user", "purpose", "input_tokens", "cost")
    cost = Decimal("0.000014")
    assert sorted(calls, key=str) == sorted(
        [(each, "embedding", 7, cost) for each in (None, alice.pk, alice.pk)], key=str
    )
    # Once for each model, at the charge of whoever's text is the first.
    assert measuring in [(each, "embedding", 16 * 7, 16 * cost) for each in (None, alice.pk)]


@pytest.mark.parametrize(("told", "used"), [({"data": []}, True), (None, False)])
def test_measuring_a_model_that_gives_no_vectors_costs_what_it_may_have_read(
    alice, shared, service, told, used
):
    service.answer = told
    service.refusals = [] if told else [(503, {})]
    remember(actor=alice, store=shared, text=WAREHOUSE)
    assert not make_vectors(MEMORIES)
    assert len(service.asked) == 1
    assert (Usage.objects.get().input_tokens > 0) is used
    assert not EmbeddingScale.objects.exists()


def test_measuring_costs_what_it_may_have_read_also_where_the_database_does_not_keep_it(
    alice, shared, service
):
    remember(actor=alice, store=shared, text=WAREHOUSE)

    def away(execute, sql, params, many, context):
        if sql.startswith('INSERT INTO "memory_embeddingscale"'):
            raise OperationalError("The database is away.")
        return execute(sql, params, many, context)

    with pytest.raises(OperationalError), connection.execute_wrapper(away):
        make_vectors(MEMORIES)

    assert len(service.asked) == 1
    assert Usage.objects.get().input_tokens > 0


def test_where_a_budget_has_no_room_nothing_is_asked_and_words_still_find(
    alice, acme, shared, service
):
    budget = Budget.objects.create(
        scope=Budget.Scope.ORGANISATION, organisation=acme, unit="tokens", period="day", limit=5
    )
    remember(actor=alice, store=shared, text=WAREHOUSE)
    assert not make_vectors(MEMORIES)
    assert not look_up(Payer(acme.pk, alice.pk), alice.pk, "Where is Petronella?")
    assert service.texts == []
    assert found(alice, "Petronella").hits
    Budget.objects.filter(pk=budget.pk).update(limit=1_000)
    BudgetPeriod.objects.update(limit=1_000)
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 1
    assert BudgetPeriod.objects.get().spent == 16 * 7 + 7


def test_what_was_made_before_it_stopped_answering_is_kept_and_not_paid_again(
    alice, acme, shared, service
):
    remember(actor=alice, store=shared, text=WAREHOUSE)
    remember(actor=alice, store=own_store(actor=alice, organisation=acme), text="Tea is green.")
    EmbeddingScale.objects.create(model=chosen().name, floor=0.3, alike=0.5)
    service.answers = 1
    assert not make_vectors(MEMORIES)
    assert MemoryVector.objects.count() == 1
    awake()
    assert not make_vectors(MEMORIES)
    assert sorted(service.texts) == sorted([WAREHOUSE, "Tea is green.", "Tea is green."])
    assert sorted(Usage.objects.values_list("input_tokens", flat=True)) == [0, 7, 7]
