"""Vectors of passages: made once a document is read, found by who may read it now, gone with it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership
from documents import indexing
from documents.actions.collections import create_collection, delete_collection
from documents.actions.documents import add_document, delete_document
from documents.models import Collection, Document, Passage, PassageVector
from documents.searching import search_passages
from documents.vectors import EMBED, PASSAGES, embed_passages
from memory.embedding.indexing import make_vectors
from tests.asked_for import asked_for
from tests.memory.embedders import OneAtATime, embedder

pytestmark = pytest.mark.django_db
__all__ = ["embedder"]
HANDBOOK = b"# Travel\n\nTrains are booked in second class.\n\n# Meals\n\nA lunch costs 14 euros at most.\n"


@pytest.fixture(autouse=True)
def by_letters(settings):
    settings.AGENTSITE_EMBEDDINGS = "letters"


@pytest.fixture
def shared(alice, acme) -> Collection:
    return create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)


def added(alice, collection, data: bytes = HANDBOOK) -> Document:
    document = add_document(actor=alice, collection=collection, name="handbook.md", data=data)
    indexing.index_document(document.pk)
    assert not make_vectors(PASSAGES)
    return document


def found(user, query: str = "trainz") -> list[str]:
    hits = search_passages(user, query, Collection.objects.all()).hits
    return [hit.passage.text for hit in hits]


def test_a_passage_is_found_by_letters_once_its_vector_is_made(alice, shared, client_of):
    document = add_document(actor=alice, collection=shared, name="handbook.md", data=HANDBOOK)
    indexing.index_document(document.pk)
    assert (asked_for(EMBED), found(alice)) == ([{}], [])
    embed_passages()
    assert found(alice) == ["Trains are booked in second class."]
    (hit,) = search_passages(alice, "trainz", Collection.objects.all()).hits
    assert hit.why == ()
    assert hit.likeness == pytest.approx(0.387, abs=0.001)
    page = client_of(alice).get(f"/settings/documents/{shared.uid}/?q=trainz").content.decode()
    assert "second class" in page


def test_vectors_find_only_what_may_be_read_now(alice, bob, mallory, acme, shared):
    added(alice, shared)
    own = create_collection(actor=alice, organisation=acme, name="Mine")
    added(alice, own, b"Alice's trains are secret.")
    assert len(found(alice)) == 2
    assert found(bob) == ["Trains are booked in second class."]
    assert found(mallory) == []
    Membership.objects.filter(user=bob, organisation=acme).delete()
    assert found(bob) == []


def test_what_is_read_anew_or_deleted_takes_its_vectors_along(alice, shared):
    document = added(alice, shared)
    assert PassageVector.objects.count() == Passage.objects.count() == 2
    added(alice, shared, b"Ferries are booked by the office.")
    assert (found(alice), PassageVector.objects.count()) == ([], 1)
    assert found(alice, "ferrys") == ["Ferries are booked by the office."]
    delete_document(actor=alice, document=document)
    assert not PassageVector.objects.exists()
    added(alice, shared)
    delete_collection(actor=alice, collection=shared)
    assert not PassageVector.objects.exists()


def test_a_new_edition_is_found_by_its_vectors_only_when_it_is_whole(alice, shared):
    document = added(alice, shared)
    Passage.objects.create(
        document=document, edition=9, number=1, text="Trainz, trainz.", audience=shared.audience
    )
    make_vectors(PASSAGES)
    assert found(alice) == ["Trains are booked in second class."]


def test_what_has_its_vector_is_not_looked_through_for_each_batch(alice, shared, embedder):
    embedder(OneAtATime())
    with CaptureQueriesContext(connection) as queries:
        added(alice, shared)
    looked = [each["sql"] for each in queries if "NOT (EXISTS" in each["sql"]]
    newest = Passage.objects.latest("pk")
    assert f'"documents_passage"."id" < {newest.pk}' not in looked[0]
    assert f'"documents_passage"."id" < {newest.pk}' in looked[1]
    assert PassageVector.objects.count() == Passage.objects.count() == 2
