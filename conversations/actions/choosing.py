"""Which model a conversation's agent works with, and how hard it thinks, where its person chose that.

It changes no other conversation and not the agent. Whose key pays is looked up when a run begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.actions.agents import check_provider
from agents.modelchoices import require_usable
from conversations.actions.own import own_conversation
from conversations.kits import choose_provider
from conversations.log import append
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.errors import Invalid
from harness.events import SessionUpdated
from harness.history import Entry
from harness.modelcards import card_for
from wire.naming import NAME_LIMIT, one_line


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody chose. Without a provider it is the agent's own model."""

    provider: str = ""
    model: str = ""
    effort: str = ""
    """Empty: as the model does where nothing is said."""


def choose_model(*, actor: User, conversation: Conversation, wish: Wish) -> Event | None:
    """From the next message on, its agent works so; None where it does already. What is under way ends
    as it began, and what waits for an answer goes on with it.

    Raises NotFound, Conflict for a conversation that has ended, and what `overrides_for` raises.
    """
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        own = held.agent_version.config
        chosen = overrides_for(actor, held.organisation, own, wish)
        now = held.config
        if all(getattr(now, name) == value for name, value in chosen.items()):
            return None
        update = Entry.of(SessionUpdated(overrides=chosen))
        return append(held.pk, [update], actor=actor)[0]


def overrides_for(
    user: User, organisation: Organisation, own: AgentConfig, wish: Wish
) -> dict[str, Any]:
    """The fields of the agent's configuration that the wish is about, all of them.

    Raises Invalid for a provider that this person's work has no key for, for a name that is none, and for
    an effort that the model does not know.
    """
    if not wish.provider:
        provider, model = own.provider, own.model
    else:
        provider, model = wish.provider, one_line(wish.model)
        if len(model) > NAME_LIMIT:
            raise Invalid(
                _("A model's name has at most %(limit)d characters.") % {"limit": NAME_LIMIT},
                field="model",
                hint=_("Shorten it."),
            )
        require_usable(user, organisation, provider)
    config = own.model_copy(update={"provider": provider, "model": model})
    check_provider(config)
    asked = choose_provider(config, user, organisation).model
    if wish.effort != own.effort or wish.provider:
        _check_effort(asked, wish.effort)
    return {"provider": provider, "model": model, "effort": wish.effort}


def _check_effort(model: str, effort: str) -> None:
    levels = card_for(model).efforts
    if not effort or effort in levels:
        return
    known = ", ".join(levels)
    raise Invalid(
        _("%(model)s knows no effort “%(effort)s”.") % {"model": model, "effort": effort[:20]},
        field="effort",
        hint=_("Choose from: %(names)s.") % {"names": known} if known else _("Choose none."),
    )
