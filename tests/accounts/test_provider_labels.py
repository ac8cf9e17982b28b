"""What providers are called is told in the reader's language, as far as it is words."""

from __future__ import annotations

from django.utils import translation
from django.utils.functional import Promise

from accounts.provider_labels import provider_label, told_label
from chat.presentation.failures import in_words
from providers.table import KINDS
from spending.administration.prices import PROVIDERS

NAMES = {"anthropic"}
"""Whose labels are names, the same in every language."""


def test_each_label_that_is_words_is_translated_when_it_is_drawn():
    drawn = {name: provider_label(kind) for name, kind in KINDS.items()}
    assert {name for name, label in drawn.items() if not isinstance(label, Promise)} == NAMES
    assert {name for name, label in PROVIDERS if not isinstance(label, Promise)} == NAMES
    with translation.override("en"):
        assert {name: str(label) for name, label in drawn.items()} == {
            name: kind.label for name, kind in KINDS.items()
        }


def test_a_failure_that_names_a_provider_says_its_label_in_the_same_language():
    demo = KINDS["demo"]
    with translation.override("de"):
        assert told_label(demo.label) == str(provider_label(demo))
        assert told_label("'another'") == "'another'"
        assert str(provider_label(demo)) in in_words(f"{demo.label} needs a key and there is none.")
