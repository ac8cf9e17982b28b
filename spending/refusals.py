"""What budgets say of a call that they refuse, in the language of whoever reads it: `budgets` says it in
English, as the log keeps it.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

from chat.presentation.sentences import Sentences, one_of

from .amounts import amount_text

_TOKENS = re.compile(r"([\d,]{1,30}) tokens?")
_AMOUNT = r"< \$[\d.]+|\$[\d.,]+|[\d,]+ tokens?"
_AMOUNTS = ("limit", "spent", "reserved", "need")
_PERIODS = (
    gettext_noop("a day"),
    gettext_noop("a month"),
    gettext_noop("in all"),
    gettext_noop("a run"),
)
_WHOSE = Sentences(
    gettext_noop("This conversation"),
    gettext_noop("The conversation that started this one"),
    gettext_noop("This server"),
    gettext_noop("Each person on this server's keys"),
    gettext_noop("%(person)s on this server's keys"),
    gettext_noop("A conversation of %(person)s"),
    gettext_noop("%(person)s in %(organisation)s"),
)


def _amount(said: str) -> str:
    found = _TOKENS.fullmatch(said)
    return amount_text("tokens", int(found[1].replace(",", ""))) if found else said


def _whose(said: str) -> str:
    return _WHOSE.told(said) or said


REFUSALS = Sentences(
    gettext_noop(
        "A personal budget (%(name)s, %(period)s) has no room for this call, which may take up to"
        " %(need)s. The person it caps finds its figures under “Budgets”."
    ),
    gettext_noop(
        "The next call could go over the budget of %(limit)s %(period)s (%(name)s): %(spent)s are"
        " spent, %(reserved)s are reserved for calls under way, and it may take up to %(need)s."
    ),
    gettext_noop(
        "The budget of %(limit)s %(period)s is reached (%(name)s): %(spent)s are spent, %(reserved)s"
        " are reserved for calls under way, and this call may take up to %(need)s."
    ),
    gettext_noop(
        "The model %(model)s of %(provider)s has no price, so a personal budget in money (%(name)s,"
        " %(period)s) cannot be kept with it."
    ),
    gettext_noop(
        "The model %(model)s of %(provider)s has no price, so the budget of %(limit)s %(period)s"
        " (%(name)s) cannot be kept with it."
    ),
    gettext_noop("Staff can enter a price in the administration. Or choose another model."),
    gettext_noop(
        "Send a message, or “Try again”: that begins another run. Whoever set the budget can raise it."
    ),
    gettext_noop("An administrator of this server can raise it."),
    gettext_noop(
        "Whoever set it can raise it, and so can the owners and administrators of"
        " %(organisation)s; then the conversation goes on by itself."
    ),
    gettext_noop(
        "The owners and administrators of %(organisation)s can raise it; then the conversation"
        " goes on by itself."
    ),
    places={"period": one_of(_PERIODS), **dict.fromkeys(_AMOUNTS, _AMOUNT)},
    told={"period": gettext, "name": _whose, **dict.fromkeys(_AMOUNTS, _amount)},
)
