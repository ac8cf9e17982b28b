"""Staff see whose collections there are and what could not be read, and nothing of what stands in them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import User
from documents import indexing
from documents.actions.collections import create_collection
from documents.actions.documents import add_document
from tests.cast import make_user

pytestmark = pytest.mark.django_db
SECRET = ("Salaries", "raise-for-bob.md", "Bob gets a raise")


@pytest.fixture
def operator() -> User:
    return make_user("olga", is_staff=True, is_superuser=True)


def test_staff_see_that_there_is_a_document_and_not_what_it_says(alice, acme, operator, client_of):
    own = create_collection(actor=alice, organisation=acme, name=SECRET[0])
    shared = create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)
    read = add_document(actor=alice, collection=own, name=SECRET[1], data=SECRET[2].encode())
    odd = add_document(actor=alice, collection=shared, name="odd.bin", data=b"\0\1")
    for document in (read, odd):
        indexing.index_document(document.pk)
    client = client_of(operator)
    seen = ""
    for name, rows in (("collection", (own, shared)), ("document", (read, odd))):
        page = client.get(reverse(f"admin:documents_{name}_changelist"))
        seen += page.content.decode()
        for row in rows:
            one = reverse(f"admin:documents_{name}_change", args=[row.pk])
            text = client.get(one).content.decode()
            assert row.uid in text
            seen += text
            assert client.post(one, {}).status_code == 403
    assert "Handbooks" in seen
    assert "unreadable" in seen
    for word in SECRET:
        assert word not in seen


def test_members_have_no_way_there(alice, bob, client_of):
    for user in (alice, bob):
        answer = client_of(user).get(reverse("admin:documents_collection_changelist"))
        assert answer.status_code == 302
