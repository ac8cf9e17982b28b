"""Asks sources of prompts what they have, and keeps copies: new texts are versions that wait to be allowed.

Conversations read the copies alone. While a source is away it is asked less and less often, and its row says
since when. What it sends is `fetching`'s part.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import vault
from accounts.models import Organisation, User
from agents.holding import is_held
from agents.models import Agent
from harness.errors import AgentError, Conflict, Declined
from jobs.apart import each_apart

from .access import may_change
from .actions.prompts import add_fetched, allow_fetched, drop_overtaken
from .choosing import LATEST
from .fetching import Fetched, Haul, Place, fetch
from .holding import judged
from .models import Prompt, PromptSource, PulledLabel

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
            held = _unchanged(source)
            if held is not None:
                _keep(actor, held, haul)
                _note_reached(held, haul)
    except AgentError as problem:
        _note_away(source, problem.words)
    except Exception:
        # Whatever it sent to bring this about: others come first the next time.
        _note_away(source, _("What it has could not be kept. The server's log says why."))
        raise
    return PromptSource.objects.filter(pk=source.pk).first() or source


def _unchanged(source: PromptSource) -> PromptSource | None:
    """The row as it is now, locked, with the rule that holds now; None where it was taken away meanwhile, or
    is read at another commit. Needs a transaction."""
    rows = PromptSource.objects.select_for_update(of=("self",)).select_related("organisation")
    return rows.filter(pk=source.pk, commit=source.commit).first()


def place_of(source: PromptSource) -> Place:
    return Place(
        kind=source.kind,
        address=source.address,
        secret=vault.open_sealed(source.sealed) if source.sealed else "",
        folder=source.folder,
        commit=source.commit,
        labels=tuple(source.labels),
    )


Gates = dict[tuple[str, str], list[str]]


def gates_of(organisation: Organisation) -> Gates:
    """Of each prompt and label, the agents that are given it by just these, in use or as a canary, and whose
    changes wait for a release: a text that comes by itself would pass their gate unseen."""
    found: Gates = {}
    rows = Agent.objects.filter(Q(organisation=organisation) | Q(organisation=None))
    for agent in rows.filter(archived_at=None).select_related("current", "canary").iterator():
        versions = [each for each in (agent.current, agent.canary) if each is not None]
        uses = {(use.name, use.version) for each in versions for use in each.config.prompts}
        if uses and is_held(agent):
            for use in uses:
                found.setdefault(use, []).append(agent.name)
    return found


def holding_agents(gates: Gates, prompt: Prompt, label: str) -> list[str]:
    """Names of those whose texts change where this label moves to what was fetched: this is the latest then,
    too."""
    named = [gates.get((prompt.name, wanted), []) for wanted in (label, LATEST)]
    return sorted({name for names in named for name in names})


def _keep(actor: User, source: PromptSource, haul: Haul) -> None:
    gates = gates_of(source.organisation) if source.moves_labels else {}
    # In one order, or two sources would wait for each other's prompts.
    for found in sorted(haul.found, key=lambda each: each.name):
        try:
            with transaction.atomic():
                _keep_one(actor, source, found, gates)
        except AgentError as problem:
            haul.remarks.append(f"{found.remote_name}: {problem.message}")


def _keep_one(actor: User, source: PromptSource, found: Fetched, gates: Gates) -> None:
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
    if news:
        drop_overtaken(version.prompt)
    if news and source.moves_labels and not holding_agents(gates, version.prompt, label):
        # An agent may name it otherwise, such as by the number of the server's prompt of this name.
        gate = judged(actor, source.organisation, version.prompt.name, reason="")
        with suppress(Conflict), transaction.atomic(), gate:
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
