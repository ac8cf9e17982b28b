"""Beginning a conversation as a person's form does: with vaults, a first message and its files, or not at
all. Programs begin theirs in `programs.actions.sessions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations import removals
from conversations.actions.attachments import check_attachments
from conversations.actions.choosing import Wish, overrides_for
from conversations.actions.conversations import create_conversation
from conversations.actions.lending import lend_vaults
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.ids import new_conversation_id


def begin_conversation(
    *,
    actor: User,
    organisation: Organisation,
    agent: Agent,
    environment: Environment,
    features: Mapping[str, bool],
    vault_uids: Sequence[str] = (),
    text: str = "",
    files: Sequence[str] = (),
    wish: Wish | None = None,
    first: Callable[[Conversation], None] | None = None,
) -> Conversation:
    """With `wish`, the agent works here by that model. `first` is called in the transaction before anything
    is said. Raises what it raises, and `create_conversation`, `overrides_for`, `lend_vaults` and
    `post_message`. A refused first message leaves no empty conversation behind, and its files where they
    were."""
    check_attachments(actor=actor, organisation=organisation, uids=files)
    uid = new_conversation_id()
    copies = bool(files) or first is not None
    with removals.unless_begun(uid) if copies else nullcontext(), transaction.atomic():
        conversation = create_conversation(
            actor=actor,
            organisation=organisation,
            agent=agent,
            environment=environment,
            features=features,
            overrides=_wished(actor, organisation, agent, wish),
            uid=uid,
        )
        if vault_uids:
            lend_vaults(actor=actor, conversation=conversation, vault_uids=vault_uids)
        if first is not None:
            first(conversation)
        if text.strip() or files:
            post_message(actor=actor, conversation=conversation, text=text, files=files)
        if copies:
            removals.begun(uid)
    return conversation


def _wished(
    actor: User, organisation: Organisation, agent: Agent, wish: Wish | None
) -> dict[str, Any]:
    """Nothing where it is as the agent has it: then the agent's later versions may say otherwise."""
    if wish is None or agent.current is None:
        return {}
    own = agent.current.config
    wanted = overrides_for(actor, organisation, own, wish)
    return {} if all(getattr(own, name) == value for name, value in wanted.items()) else wanted
