"""Staff see whose memory stores there are and how full, and nothing of what is remembered."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.actions.remembering import remember
from memory.actions.stores import ORGANIZATION, create_store
from tests.cast import make_user

pytestmark = pytest.mark.django_db


def test_staff_see_that_something_is_remembered_and_not_what(alice, acme, client_of):
    own = create_store(actor=alice, organisation=acme, name="My illness")
    shared = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    remember(actor=alice, store=own, text="I write short.", key="brevity")
    client = client_of(make_user("olga", is_staff=True, is_superuser=True))
    seen = client.get(reverse("admin:memory_memorystore_changelist")).content.decode()
    assert "1 / 2,000" in seen
    for store in (own, shared):
        one = reverse("admin:memory_memorystore_change", args=[store.pk])
        text = client.get(one).content.decode()
        assert store.uid in text
        seen += text
        assert client.post(one, {"name": "Mine"}).status_code == 403
    assert "Ours" in seen
    for word in ("illness", "write short", "brevity"):
        assert word not in seen
