"""A conversation as a program begins and changes it: everything it is to be, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.api.authentication import Caller
from accounts.models import Organisation, User
from agents.models import Agent, Environment
from approvals.decisions import fork_holds_back_less, holds_back_less, require_decider
from conversations.actions.conversations import create_conversation
from conversations.actions.forking import fork_conversation
from conversations.actions.lending import lend_vaults
from conversations.actions.own import require_own
from conversations.models import Conversation
from conversations.wakes import wake
from harness.errors import Conflict
from programs.actions.bringing import Brought, Uploads, bring_files
from programs.actions.metadata import note_conversation
from programs.actions.sending import Input, check_inputs, send_events
from recall.actions.attaching import Wanted, attach_stores
from spending.actions.budgets import remove_budget, set_budget
from spending.models import Budget


def begin_session(
    *,
    caller: Caller | None,
    actor: User,
    organisation: Organisation,
    agent: Agent,
    environment: Environment,
    version: int | None = None,
    title: str = "",
    metadata: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    features: Mapping[str, bool] | None = None,
    cap: int | None = None,
    files: Uploads = (),
    brought: Brought | None = None,
    vaults: Sequence[str] = (),
    stores: Sequence[Wanted] = (),
    messages: Sequence[Input] = (),
    called: Mapping[str, str] = MappingProxyType({}),
) -> Conversation:
    """A conversation with its cap (hundred-millionths of a US dollar), its files (id and path), the
    vaults it may draw on (ids), its memory stores and its first messages, or none of it. Whoever calls this
    within a transaction has `brought` the files before. Raises what `bring_files` and the actions for each
    of them raise, and Forbidden where `caller`, the token that asks, would have its agent ask less than
    staff want it to by now and may not decide. None: a person herself. `called`: as for `send_events`."""
    check_inputs(messages, actor=actor, field="initial_events")
    bringing = bring_files(
        actor=actor,
        organisation=organisation,
        environment=environment,
        files=files,
        says=bool(messages),
    )
    with nullcontext(brought) if brought else bringing as there, transaction.atomic():
        conversation = create_conversation(
            actor=actor,
            organisation=organisation,
            agent=agent,
            environment=environment,
            version=version,
            title=title,
            overrides=overrides,
            features=features,
            uid=there.uid,
        )
        if (version is not None or features) and holds_back_less(conversation):
            require_decider(caller)
        if metadata:
            note_conversation(actor=actor, conversation=conversation, metadata=metadata)
        if cap is not None:
            cap_session(actor=actor, conversation=conversation, limit=cap, begun_here=True)
        there.give(conversation)
        if stores:
            attach_stores(actor=actor, conversation=conversation, stores=stores)
        if vaults:
            lend_vaults(actor=actor, conversation=conversation, vault_uids=vaults)
        if messages:
            send_events(
                actor=actor,
                conversation=conversation,
                events=messages,
                field="initial_events",
                called=called,
            )
    return conversation


def fork_session(
    *,
    caller: Caller | None,
    actor: User,
    conversation: Conversation,
    event_uid: str,
    title: str = "",
) -> Conversation:
    """`fork_conversation`; raises also Forbidden where the fork would hold its agent back less than that does
    by itself, because a person turned a switch off in `conversation`, and `caller`, the token that asks, may
    not decide. None: a person herself."""

    def require_right(fork: Conversation) -> None:
        if fork_holds_back_less(fork, own=conversation.owner_id == actor.pk):
            require_decider(caller)

    return fork_conversation(
        actor=actor,
        conversation=conversation,
        event_uid=event_uid,
        title=title,
        first=require_right,
    )


def cap_session(
    *, actor: User, conversation: Conversation, limit: int | None, begun_here: bool = False
) -> None:
    """Cap what the conversation may spend in all, in hundred-millionths of a US dollar; None lifts it.
    `begun_here`: the caller's transaction has made it, and no usage of others waits for that.

    Raises as `set_budget` and `remove_budget`.
    """
    with transaction.atomic():
        require_own(actor, conversation)
        if limit is not None:
            set_budget(
                actor=actor,
                scope=Budget.Scope.CONVERSATION,
                unit=Budget.Unit.MONEY,
                period=Budget.Period.TOTAL,
                limit=limit,
                organisation=conversation.organisation,
                conversation=conversation,
                begun_here=begun_here,
            )
            return
        held = Budget.objects.in_force().filter(
            conversation=conversation, unit=Budget.Unit.MONEY, period=Budget.Period.TOTAL
        )
        for budget in held:
            remove_budget(actor=actor, budget=budget)


def wake_session(*, actor: User, conversation: Conversation) -> None:
    """A hint, without content: somebody looks whether the conversation owes anything. Nothing is
    stored, and one too many is harmless. NotFound unless it is the actor's."""
    require_own(actor, conversation)
    wake(conversation.pk)


def require_at_rest(conversation: Conversation) -> None:
    """Conflict while it works: a program stops it and waits before it puts it away."""
    if conversation.is_running or conversation.is_about_to_start:
        raise Conflict(
            _("This session is running."),
            hint=_("Send user.interrupt and wait until it is idle."),
        )
