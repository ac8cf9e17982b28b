"""`/api/collections`: what the pages do, for programs."""

from __future__ import annotations

import base64

import pytest

from documents import indexing
from documents.models import Document

pytestmark = pytest.mark.django_db
TEXT = b"# Meals\n\nA lunch costs 14 euros at most.\n"


def test_a_program_makes_a_collection_fills_it_searches_and_deletes(
    alice, acme, mallory, client_of
):
    client = client_of(alice)

    def post(address: str, **body):
        return client.post(address, body, content_type="application/json")

    made = post("/api/collections", name="Papers", shared=True).json()
    one = f"/api/collections/{made['id']}"
    assert [each["id"] for each in client.get("/api/collections").json()] == [made["id"]]
    sent = base64.b64encode(TEXT).decode()
    added = post(f"{one}/documents", name="meals.md", content_base64=sent)
    assert (added.status_code, added.json()["state"]) == (201, "waiting")
    indexing.index_document(Document.objects.get().pk)
    address = f"{one}/documents/{added.json()['id']}"
    assert client.get(address).json()["state"] == "ready"
    found = client.get(f"{one}/search?q=lunch").json()
    assert [each["heading"] for each in found["passages"]] == ["Meals"]
    assert found["passages"][0]["likeness"] is None
    assert not found["low_confidence"]
    assert client.post(f"{address}/again").status_code == 409  # only its text is kept
    odd = base64.b64encode(b"\0\1").decode()
    failed = (
        f"{one}/documents/{post(f'{one}/documents', name='odd', content_base64=odd).json()['id']}"
    )
    indexing.index_document(Document.objects.get(name="odd").pk)
    assert client.get(failed).json()["problem_code"] == "unreadable"
    assert client_of(mallory).post(f"{failed}/again").status_code == 404
    assert client.post(f"{failed}/again").json()["state"] == "waiting"
    assert client.delete(failed).status_code == 200
    assert client_of(mallory).get(f"{one}/search?q=lunch").status_code == 404
    assert client.delete(address).json() == {"status": "deleted"}
    assert client.get(f"{one}/documents").json() == []
    assert client.delete(one).status_code == 200
    assert client.get(one).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a.md", "content_base64": "?"}, "content_base64"),
        ({"address": "nowhere"}, "address"),
        ({}, "name"),
    ],
)
def test_what_is_wrong_is_named(alice, acme, client_of, body, field):
    client = client_of(alice)
    made = client.post("/api/collections", {"name": "A"}, content_type="application/json").json()
    refused = client.post(
        f"/api/collections/{made['id']}/documents", body, content_type="application/json"
    )
    assert refused.status_code == 422
    assert field in refused.content.decode()
    assert client.get(f"/api/collections/{made['id']}/search").status_code == 422
