"""Why a turn ended before its answer, in the language of whoever reads it: providers, the loop and budgets
say it in English.

What a model's service said of itself stays as it said it.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

from spending.amounts import amount_text
from spending.models import Budget

from .sentences import Sentences, one_of

_TOKENS = re.compile(r"([\d,]{1,30}) tokens?")
_AMOUNT = r"< \$[\d.]+|\$[\d.,]+|[\d,]+ tokens?"
_PERIODS = (
    gettext_noop("a day"),
    gettext_noop("a month"),
    gettext_noop("in all"),
    gettext_noop("a run"),
)


def _amount(said: str) -> str:
    found = _TOKENS.fullmatch(said)
    return amount_text(Budget.Unit.TOKENS, int(found[1].replace(",", ""))) if found else said


_WHOSE = Sentences(
    gettext_noop("This conversation"),
    gettext_noop("The conversation that started this one"),
    gettext_noop("This server"),
    gettext_noop("Each person on this server's keys"),
    gettext_noop("%(person)s on this server's keys"),
    gettext_noop("A conversation of %(person)s"),
    gettext_noop("%(person)s in %(organisation)s"),
)
_SERVICE = (
    gettext_noop("The model service refused the key"),
    gettext_noop("The model service refused for want of credit"),
    gettext_noop("The model service takes no request of this length"),
    gettext_noop("The model service is failing or overloaded"),
    gettext_noop("The model service did not answer in time"),
    gettext_noop("The model service could not be reached"),
    gettext_noop("The model service is asked too often"),
    gettext_noop("The model service knows no such model"),
    gettext_noop("The model service refused the request"),
    gettext_noop("The reply broke off"),
)
_FAILURES = Sentences(
    # What a model's service answered, and what to do then.
    gettext_noop("%(service)s (HTTP %(status)s)."),
    gettext_noop("%(service)s: %(cause)s."),
    gettext_noop("%(service)s."),
    gettext_noop("Check credit and spending limits of the account behind this key."),
    gettext_noop("Check the provider key under Settings → Provider keys."),
    gettext_noop("Check the key's permissions: it may not use %(model)s."),
    gettext_noop("Check the agent's model name: nobody there knows %(model)s."),
    gettext_noop("Nothing answers at this address. Check the provider's base URL."),
    gettext_noop("Shorten the conversation or choose a larger model window."),
    gettext_noop("The request is larger than the service takes. Attach less."),
    gettext_noop("The service took too long. Try again."),
    gettext_noop("Wait a little: this key may ask only so often."),
    gettext_noop("The service is failing or overloaded. Try again later."),
    gettext_noop("The model service sent nothing for %(seconds)s seconds."),
    gettext_noop("Try again, or raise the provider's timeout."),
    gettext_noop("Check the network and the provider's base URL."),
    gettext_noop("What had arrived is kept. Ask to continue."),
    gettext_noop("The model service sent a reply that cannot be taken: %(cause)s."),
    gettext_noop("What had arrived is kept. Ask whoever runs the model service."),
    gettext_noop("The reply is longer than %(count)s characters and was cut."),
    gettext_noop("Ask for less at once, or ask whoever runs the model service."),
    gettext_noop("The reply ended before it was complete."),
    gettext_noop("The reply had not ended after %(seconds)s seconds, and was cut."),
    gettext_noop("What had arrived is kept. Ask for less at once, or raise %(setting)s."),
    gettext_noop("The provider failed unexpectedly: %(cause)s"),
    # What was not sent.
    gettext_noop("There is no provider %(provider)s."),
    gettext_noop("Choose one of: %(choices)s."),
    gettext_noop("%(provider)s needs a key and there is none."),
    gettext_noop("Add one under Settings → Provider keys, or choose the demo provider."),
    gettext_noop("The key for %(provider)s holds characters that no key has, such as spaces."),
    gettext_noop("Enter it again under Settings → Provider keys."),
    gettext_noop("%(provider)s needs a base URL and there is none."),
    gettext_noop("Set it, for example %(example)s for Ollama."),
    gettext_noop("The agent names no model, and %(provider)s has no default one."),
    gettext_noop("Staff can enter a model in the agent's settings."),
    gettext_noop("%(provider)s is not configured."),
    gettext_noop("MCP servers are not told to a model service at this address."),
    gettext_noop("This provider calls no tools of MCP servers by itself."),
    gettext_noop("This provider cannot be sent a %(kind)s by %(source)s."),
    gettext_noop("The file %(file)s was not read before the request was built."),
    gettext_noop("Attach the file again."),
    gettext_noop("Attach the file itself, or use another provider."),
    # Limits of the agent.
    gettext_noop("The model declined to answer this."),
    gettext_noop("Say it differently, or ask something else."),
    gettext_noop("The answer is longer than the output limit, even with continuations."),
    gettext_noop("Ask it to go on, or raise the agent's output limit."),
    gettext_noop("The limit of %(count)s model steps for one message is reached."),
    gettext_noop("Send another message to go on, or have staff raise the agent's step limit."),
    gettext_noop("This message has used %(count)s of its %(limit)s tokens."),
    gettext_noop(
        "Go on with “Try again”, which starts a new budget, or have staff raise the agent's."
    ),
    gettext_noop("This message has been worked on for longer than %(count)s seconds."),
    gettext_noop("Go on with “Try again”, or have staff raise the agent's time limit."),
    # Budgets.
    gettext_noop(
        "The budget of %(limit)s %(period)s is reached (%(name)s): %(spent)s are spent, %(reserved)s"
        " are reserved for calls under way, and this call may take up to %(need)s."
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
    # This server.
    gettext_noop("A worker of the environment carries this out."),
    gettext_noop("Subagents work at this."),
    gettext_noop("The person this agent works for has left the organisation."),
    gettext_noop("Nothing runs here until she is a member again."),
    gettext_noop("The run failed because of a fault in this server."),
    gettext_noop("Try again; if it stays, tell the people who run this server."),
    gettext_noop("At least %(count)s processes in a row ended while they worked on this."),
    gettext_noop("Tell the people who run this server: it is listed there as a dead letter."),
    places={
        "service": one_of(_SERVICE),
        "status": r"\d+",
        "seconds": r"[\d.]+",
        "count": r"[\d,]+",
        "period": one_of(_PERIODS),
        **dict.fromkeys(("limit", "spent", "reserved", "need"), rf"{_AMOUNT}|[\d,]+"),
    },
    told={
        "service": gettext,
        "period": gettext,
        "name": _WHOSE.in_words,
        **dict.fromkeys(("limit", "spent", "reserved", "need"), _amount),
    },
)


def in_words(said: str) -> str:
    """The message or the hint of a stop, in the language of the moment."""
    return _FAILURES.in_words(said)
