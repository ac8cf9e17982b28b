"""Run by `test_on_postgresql`: every change of rows, however made, leaves the index
with what they have."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from memory.actions.remembering import own_store, remember
from memory.models import Memory
from memory.termindex import index_of

pytestmark = pytest.mark.django_db


def kept() -> set[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT term, id FROM {index_of('memory_memory', 'postgresql')}")
        return set(cursor.fetchall())


def wanted() -> set[tuple[str, int]]:
    rows = Memory.objects.values_list("pk", "audience", "terms")
    return {(f"{audience}{term}", pk) for pk, audience, terms in rows for term in terms.split(" ")}


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_the_index_follows_every_way_to_change_rows(alice, bob, acme):
    store = own_store(actor=alice, organisation=acme)
    texts = ["one two two", "½ of ﱞ", "x" * 1_900, "東京 " * 50, "'quoted' \\ {braces},NULL"]
    made = [remember(actor=alice, store=store, text=text).memory for text in texts]
    other = remember(actor=bob, store=own_store(actor=bob, organisation=acme), text="his").memory
    assert kept() == wanted() != set()
    made[0].terms = "three"
    made[1].terms = ""
    Memory.objects.bulk_update(made[:2], ["terms"])
    assert kept() == wanted()
    Memory.objects.filter(pk=made[2].pk).update(audience=other.audience)
    assert kept() == wanted()
    more = {"store": store, "content": "a", "size": 1, "terms": "a b a", "audience": "q"}
    Memory.objects.bulk_create([Memory(path=path, **more) for path in ("/p1.md", "/p2.md")])
    assert kept() == wanted()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Memory.objects.filter(pk=made[3].pk).update(terms="gone")
        _ = 1 / 0
    assert kept() == wanted()
    run(f"DELETE FROM memory_memoryversion; DELETE FROM memory_memory WHERE id = {made[0].pk}")
    assert kept() == wanted()
    store.delete()
    assert kept() == wanted() != set()
    run("SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE memory_memorystore CASCADE")
    assert kept() == wanted() == set()
