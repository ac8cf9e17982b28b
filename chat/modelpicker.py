"""The fold in which a model is picked, with what it costs and holds, and how hard it shall think.

It shows what may be chosen and what is chosen; `conversations.actions.choosing` judges the choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Organisation, User
from accounts.provider_labels import provider_label
from agents.modelchoices import offers_for
from agents.modelnames import Tariff, tariffs_of
from conversations.actions.choosing import Wish
from conversations.kits import choose_provider
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.modelcards import LADDER, ModelCard, card_for
from providers.table import KINDS

MILLION = 1_000_000
OWN, OTHER = "", "other"
"""What is sent of the agent's own model, and of one that is typed."""
EFFORTS: Mapping[str, Promise | str] = {
    "": gettext_lazy("as it comes"),
    "low": gettext_lazy("low"),
    "medium": gettext_lazy("medium"),
    "high": gettext_lazy("high"),
    "xhigh": gettext_lazy("very high"),
    "max": gettext_lazy("highest"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """One model in the list. `value` is what is sent."""

    value: str
    model: str
    card: ModelCard
    tariff: Tariff | None

    @property
    def window(self) -> str:
        """What it holds, where that is known."""
        if not self.card.prefix:
            return ""
        window = self.card.context_window
        if window >= MILLION:
            return _("%(number)d M tokens") % {"number": window // MILLION}
        return _("%(number)d K tokens") % {"number": window // 1000}

    @property
    def efforts(self) -> tuple[str, ...]:
        return self.card.efforts


def picker(
    user: User, organisation: Organisation, own: AgentConfig, now: AgentConfig
) -> dict[str, Any]:
    """What `chat/_model_choice.html` shows: `own` is the agent's configuration, `now` what holds."""
    offers = [
        (offer.kind, tuple(dict.fromkeys(filter(None, (*offer.models, offer.kind.default_model)))))
        for offer in offers_for(user, organisation)
    ]
    default = choose_provider(own, user, organisation)
    pairs = [(kind.name, model) for kind, models in offers for model in models]
    tariffs = tariffs_of([*pairs, (default.provider, default.model)])

    def option(provider: str, model: str, value: str) -> Option:
        return Option(value, model, card_for(model), tariffs.get((provider, model)))

    is_own = (now.provider, now.model) == (own.provider, own.model)
    listed = (now.provider, now.model) in pairs
    chosen = OWN if is_own else f"{now.provider}:{now.model}" if listed else OTHER
    asked = default.model if is_own else now.model
    return {
        "own": option(default.provider, default.model, OWN),
        "model_groups": [
            (
                provider_label(kind),
                [option(kind.name, model, f"{kind.name}:{model}") for model in models],
            )
            for kind, models in offers
            if models
        ],
        "model_providers": [(kind.name, provider_label(kind)) for kind, _models in offers],
        "chosen_model": chosen,
        "other_provider": now.provider if chosen == OTHER else "",
        "other_model": now.model if chosen == OTHER else "",
        "efforts": [(level, EFFORTS[level]) for level in ("", *LADDER)],
        "known_efforts": card_for(asked).efforts,
        "chosen_effort": now.effort if now.effort in card_for(asked).efforts else "",
    }


def wish_of(posted: Mapping[str, str]) -> Wish | None:
    """What the fold sent; None where nobody opened it."""
    value, effort = posted.get("model"), posted.get("effort", "")
    if value is None:
        return None
    if value == OTHER:
        return Wish(posted.get("other_provider", ""), posted.get("other_model", ""), effort)
    provider, _colon, model = value.partition(":")
    return Wish(provider, model, effort)


def model_words(conversation: Conversation) -> str:
    """The model and the effort of the next answer, in short."""
    config = conversation.config
    choice = choose_provider(config, conversation.owner, conversation.organisation)
    return in_short(choice.model, config.effort)


def named_by(config: AgentConfig) -> str:
    """The same as far as the configuration itself says it, which asks for no key."""
    kind = KINDS.get(config.provider)
    model = config.model or (kind.default_model if kind else "")
    return in_short(model, config.effort) if model else _("the usual one")


def in_short(model: str, effort: str) -> str:
    if not model:
        return _("No model")
    taken = next((level for level in LADDER if level == effort), None)
    taken = card_for(model).effort(taken) if taken else None
    return f"{model} · {EFFORTS[taken]}" if taken else model
