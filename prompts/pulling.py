"""Asks sources of prompts what they have, and keeps copies: new texts are versions that wait to be allowed.

Conversations read the copies alone. While a source is away it is asked less and less often, and its row says
since when. What it sends is `fetching`'s part.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import vault
from accounts.models import User
from agents.holding import is_held
from agents.models import Agent
from harness.errors import AgentError, Declined
from jobs.apart import each_apart

from .access import may_change
from .actions.prompts import add_fetched, allow_fetched
from .fetching import Fetched, Haul, Place, fetch
from .models import Prompt, PromptSource, PulledLabel
from .using import agents_with

logger = logging.getLogger(__name__)

AT_A_TIME = 20
"""Sources that one look asks."""
LONGEST = timedelta(hours=6)
"""Between two looks at one that is away."""


def pull_due() -> int:
    """Ask those whose time has come; how many were asked."""
    due = PromptSource.objects.filter(due_at__lte=timezone.now()).order_by("due_at")[:AT_A_TIME]
    found = list(due)
    each_apart(pull, found, told="the source of prompts %s could not be asked")
    return len(found)


def pull(source: PromptSource) -> PromptSource:
    """Ask it now and keep what it has. That it cannot be had is noted on its row, and no error."""
    actor = source.created_by
    try:
        if actor is None or not actor.is_active or not may_change(actor, source.organisation):
            raise Declined(
                _("Whoever added this source may not change prompts here any more."),
                hint=_("Take it away and add it anew."),
            )
        haul = fetch(place_of(source))
        with transaction.atomic():
            _keep(actor, source, haul)
            _note_reached(source, haul)
    except AgentError as problem:
        _note_away(source, f"{problem.message} {problem.hint}".strip())
    source.refresh_from_db()
    return source


def place_of(source: PromptSource) -> Place:
    return Place(
        kind=source.kind,
        address=source.address,
        secret=vault.open_sealed(source.sealed) if source.sealed else "",
        folder=source.folder,
        commit=source.commit,
        labels=tuple(source.labels),
    )


def holding_agents(prompt: Prompt, label: str) -> list[str]:
    """Names of agents that are given the prompt by this label and whose changes wait for a release: a text
    that comes by itself would pass their gate unseen."""
    named = [use.uid for use in agents_with(prompt) if use.wanted == label]
    return [agent.name for agent in Agent.objects.filter(uid__in=named) if is_held(agent)]


def _keep(actor: User, source: PromptSource, haul: Haul) -> None:
    for found in haul.found:
        try:
            with transaction.atomic():
                _keep_one(actor, source, found)
        except AgentError as problem:
            haul.remarks.append(f"{found.remote_name}: {problem.message}")


def _keep_one(actor: User, source: PromptSource, found: Fetched) -> None:
    version = add_fetched(
        actor=actor,
        organisation=source.organisation,
        name=found.name,
        text=found.text,
        variables=found.variables,
        source=source,
        origin=f"{source.address}: {found.remote_name} {found.remote_version}"[:600],
    )
    label = source.labels[found.label]
    rows = PulledLabel.objects.filter(source=source, prompt=version.prompt, label=label)
    before = rows.first()
    PulledLabel.objects.update_or_create(
        source=source,
        prompt=version.prompt,
        label=label,
        defaults={
            "version": version,
            "remote_name": found.remote_name,
            "remote_version": found.remote_version,
        },
    )
    # Only news move a label: who moved it elsewhere here meant it so.
    news = before is None or before.version_id != version.pk
    if news and source.moves_labels and not holding_agents(version.prompt, label):
        allow_fetched(actor=actor, prompt=version.prompt, version=version, label=label)


def _note_reached(source: PromptSource, haul: Haul) -> None:
    now = timezone.now()
    PromptSource.objects.filter(pk=source.pk).update(
        reached_at=now,
        away_since=None,
        failures=0,
        problem="",
        remarks=[remark[:500] for remark in haul.remarks[:100]],
        due_at=now + timedelta(seconds=settings.AGENTSITE_PROMPT_SOURCE_SECONDS),
    )


def _note_away(source: PromptSource, words: str) -> None:
    now = timezone.now()
    wait = timedelta(
        seconds=settings.AGENTSITE_PROMPT_SOURCE_SECONDS * 2 ** min(source.failures, 20)
    )
    PromptSource.objects.filter(pk=source.pk).update(
        away_since=source.away_since or now,
        failures=source.failures + 1,
        problem=words[:500],
        due_at=now + min(wait, LONGEST),
    )
