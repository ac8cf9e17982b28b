"""Whatever signs a text has, its terms are single ones to the index, and it is found by its own words."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from memory.actions.remembering import own_store, remember
from memory.models import Memory, MemoryStore
from memory.retrieval.words import terms_of
from memory.searching import INDEX, search_memories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "text",
    [
        "½ cup",
        "วันนี้ทำงานที่บ้าน",
        "東_京",
        "aĿb",
        "aͺb",
        "⑴ one",
        "a𞤀b 𞤀𞤣𞤤𞤢𞤥",
        "aᦰb",
        "ﷲ ﱞ x",
    ],
)
def test_a_text_of_any_signs_is_found_by_its_own_words(alice, acme, text):
    store = own_store(actor=alice, organisation=acme)
    made = remember(actor=alice, store=store, text=text).memory
    found = search_memories(alice, text, MemoryStore.objects.all())
    assert [hit.memory for hit in found.hits] == [made]


def test_no_sign_whatever_makes_a_term_that_the_index_refuses(alice, acme):
    audiences = [own_store(actor=alice, organisation=acme).audience]
    odd = [
        sign
        for sign in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(sign) not in {"Cn", "Co", "Cs"} and _is_odd(sign)
    ]
    terms = sorted({term for sign in odd for term in terms_of(f"a{sign}b {sign} 京_{sign}")})
    assert len(terms) > 1_000
    for at in range(0, len(terms), 40):
        INDEX.candidates(Memory, terms[at : at + 40], audiences)
    assert [term for term in terms if " " in term] == []


def _is_odd(sign: str) -> bool:
    return (
        unicodedata.normalize("NFKD", sign.casefold()) != sign
        or unicodedata.category(sign)[0] == "M"
        or "\u1900" <= sign < "\u1d00"
    )
