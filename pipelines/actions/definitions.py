"""Pipelines are defined in versions that never change, and put away. Running them is `actions.runs`'."""

from __future__ import annotations

import hashlib
import json

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import hold_names
from agents.models import AgentVersion
from audit.models import AuditEntry
from conversations.actions.conversations import find_agent
from harness.errors import AgentError, Conflict, Invalid, LimitReached
from pipelines.access import held_pipeline, require_pipelines_of
from pipelines.auditing import about_pipeline
from pipelines.files import stored
from pipelines.graph.checking import problems
from pipelines.graph.spec import PipelineSpec
from pipelines.models import Pin, Pipeline, PipelineVersion
from wire.naming import one_line

MOST_PIPELINES = 200
"""Of one organisation."""
MOST_VERSIONS = 1_000
MOST_TOLD = 10
"""Problems that one refusal names."""


def save_pipeline(
    *,
    actor: User,
    organisation: Organisation,
    spec: PipelineSpec,
    note: str = "",
    pipeline: Pipeline | None = None,
) -> PipelineVersion:
    """A new version of the pipeline of that name, which is made if there is none; the newest one itself where
    it says just that already. `pipeline` is the one that is changed, and then perhaps called otherwise.

    Each step is pinned to the version of its agent that it names, or else to the one in use now. Raises
    NotFound for a stranger, Forbidden, Conflict for a name that is another one's, LimitReached, and Invalid
    that says all that is wrong.
    """
    with transaction.atomic():
        hold_names(organisation if pipeline is None else pipeline.organisation)
        if pipeline is not None:
            organisation = held_pipeline(actor, pipeline).organisation
        else:
            require_pipelines_of(actor, organisation)
        name = one_line(spec.name)
        pins = _checked(actor, organisation, spec)
        there = Pipeline.objects.filter(organisation=organisation)
        named = there.filter(name=name).first()
        if pipeline is not None and named is not None and named.pk != pipeline.pk:
            raise Conflict(
                _("Another pipeline is called “%(name)s”.") % {"name": name},
                hint=_("Choose another name."),
            )
        changed = pipeline or named
        if changed is None:
            if there.count() >= MOST_PIPELINES:
                raise LimitReached(
                    _("There are %(limit)d pipelines here already.") % {"limit": MOST_PIPELINES},
                    hint=_("Change one of them."),
                )
            held = Pipeline.objects.create(organisation=organisation, name=name, created_by=actor)
        else:
            held = held_pipeline(actor, changed)
        version = _add(held, actor, spec, pins, note)
        held.name, held.description = name, one_line(spec.description)
        held.archived_at = None
        held.save()
    return version


def archive_pipeline(*, actor: User, pipeline: Pipeline, archived: bool) -> Pipeline:
    """Nobody starts it any more, or again. What runs goes on. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_pipeline(actor, pipeline)
        if archived != (held.archived_at is not None):
            held.archived_at = timezone.now() if archived else None
            held.save(update_fields=["archived_at"])
            about_pipeline(AuditEntry.Action.PIPELINE_ARCHIVED, actor, held, archived=archived)
    return held


def _checked(
    actor: User, organisation: Organisation, spec: PipelineSpec
) -> dict[str, AgentVersion]:
    """The versions of agents that its steps are done by. Raises Invalid with all that is wrong."""
    found = problems(spec)
    pins: dict[str, AgentVersion] = {}
    for step in spec.steps:
        wanted = step.agent or spec.agent
        if step.approval or not wanted:
            continue
        try:
            pins[step.name] = _pinned(actor, organisation, wanted, step.version)
        except AgentError as refusal:
            words = refusal.words
            told = {"name": step.name, "why": words}
            found.append(_("“%(name)s”: %(why)s") % told)
    if found:
        more = len(found) - MOST_TOLD
        shown = found[:MOST_TOLD] + (
            [_("And %(count)d more.") % {"count": more}] if more > 0 else []
        )
        raise Invalid(
            "\n".join(shown),
            field="file",
            hint=_("docs/pipelines.md shows what a pipeline looks like."),
        )
    return pins


def _pinned(
    actor: User, organisation: Organisation, wanted: str, number: int | None
) -> AgentVersion:
    agent = find_agent(actor=actor, organisation=organisation, wanted=wanted)
    seen = AgentVersion.objects.visible_to(actor).filter(agent=agent)
    if number is None:
        assert agent.current is not None, "on_offer() promises it"  # noqa: S101
        return agent.current
    version = seen.filter(number=number).first()
    if version is None:
        raise Invalid(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number},
            field="version",
        )
    return version


def _add(
    pipeline: Pipeline,
    actor: User,
    spec: PipelineSpec,
    pins: dict[str, AgentVersion],
    note: str,
) -> PipelineVersion:
    said = stored(spec)
    digest = _digest(said, pins)
    newest = pipeline.versions.order_by("-number").first()
    if newest is not None and newest.digest == digest:
        return newest
    number = newest.number + 1 if newest is not None else 1
    if number > MOST_VERSIONS:
        raise LimitReached(
            _("A pipeline has %(limit)d versions at most.") % {"limit": MOST_VERSIONS},
            hint=_("Give the next one another name."),
        )
    version = PipelineVersion.objects.create(
        pipeline=pipeline,
        number=number,
        stored_spec=said,
        digest=digest,
        note=one_line(note)[:500],
        created_by=actor,
    )
    Pin.objects.bulk_create(
        [Pin(version=version, step=step, agent_version=pin) for step, pin in pins.items()]
    )
    about_pipeline(AuditEntry.Action.PIPELINE_SAVED, actor, pipeline, version=number, digest=digest)
    return version


def _digest(said: object, pins: dict[str, AgentVersion]) -> str:
    pinned = {step: [version.agent.uid, version.number] for step, version in pins.items()}
    written = json.dumps([said, pinned], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
