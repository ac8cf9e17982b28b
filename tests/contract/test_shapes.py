"""Every shape that `/v1` serves satisfies the SDK's type for it, walked field by field.

A new release of the SDK that requires more shows itself here, before any client meets it.
"""

from __future__ import annotations

import json
import types
import typing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import beta
from anthropic.types.beta import environments as worked
from anthropic.types.beta import sessions as wire
from anthropic.types.beta import skills as taught
from anthropic.types.beta import vaults as vaulted
from pydantic import BaseModel, TypeAdapter

from harness.events import Event, dump, load
from v1 import (
    agents,
    credentialbodies,
    credentials,
    deploymentruns,
    deployments,
    environments,
    files,
    modellist,
    resources,
    sessions,
    skills,
    snapshots,
    threads,
    vaults,
    work,
)
from v1.outgoing import OURS, _body, timestamp

GOLDEN = Path(__file__).parent.parent / "golden" / "events"

SERVED: list[tuple[type[BaseModel], type[BaseModel]]] = [
    (agents.AgentShape, beta.BetaManagedAgentsAgent),
    (agents.ConfiguredAgent, beta.BetaManagedAgentsSessionAgent),
    (agents.ModelShape, beta.BetaManagedAgentsModelConfig),
    (environments.EnvironmentShape, beta.BetaEnvironment),
    (environments.EnvironmentDeleted, beta.BetaEnvironmentDeleteResponse),
    (work.WorkShape, worked.BetaSelfHostedWork),
    (work.SessionWork, worked.BetaSessionWorkData),
    (work.HeartbeatShape, worked.BetaSelfHostedWorkHeartbeatResponse),
    (work.StatsShape, worked.BetaSelfHostedWorkQueueStats),
    (sessions.SessionDeleted, beta.BetaManagedAgentsDeletedSession),
    (snapshots.SessionShape, beta.BetaManagedAgentsSession),
    (snapshots.Stats, beta.BetaManagedAgentsSessionStats),
    (snapshots.UsageShape, beta.BetaManagedAgentsSessionUsage),
    (snapshots.BudgetShape, beta.BetaManagedAgentsBudgetLimit),
    (snapshots.FileResourceShape, wire.BetaManagedAgentsFileResource),
    (resources.ResourceDeleted, wire.BetaManagedAgentsDeleteSessionResource),
    (threads.ThreadShape, wire.BetaManagedAgentsSessionThread),
    (skills.SkillShape, beta.BetaSkill),
    (skills.SkillDeleted, beta.BetaDeletedSkill),
    (skills.SkillVersionShape, taught.BetaSkillVersion),
    (skills.SkillVersionDeleted, taught.BetaDeletedSkillVersion),
    (vaults.VaultShape, beta.BetaManagedAgentsVault),
    (vaults.VaultDeleted, beta.BetaManagedAgentsDeletedVault),
    (credentialbodies.CredentialShape, vaulted.BetaManagedAgentsCredential),
    (credentialbodies.BearerShape, vaulted.BetaManagedAgentsStaticBearerAuthResponse),
    (credentialbodies.OAuthShape, vaulted.BetaManagedAgentsMCPOAuthAuthResponse),
    (credentialbodies.RefreshShape, vaulted.BetaManagedAgentsMCPOAuthRefreshResponse),
    (credentials.CredentialDeleted, vaulted.BetaManagedAgentsDeletedCredential),
    (credentials.Validation, vaulted.BetaManagedAgentsCredentialValidation),
    (deployments.DeploymentShape, beta.BetaManagedAgentsDeployment),
    (deployments.ScheduleShape, beta.BetaManagedAgentsSchedule),
    (deployments.FileConfig, beta.BetaManagedAgentsFileResourceConfig),
    (deployments.UserMessageShape, beta.BetaManagedAgentsDeploymentUserMessageEvent),
    (deploymentruns.DeploymentRunShape, beta.BetaManagedAgentsDeploymentRun),
    (deploymentruns.AgentRef, beta.BetaManagedAgentsAgentReference),
    (modellist.ModelInfo, beta.BetaModelInfo),
    (files.FileShape, beta.BetaFileMetadata),
    (files.FileDeleted, beta.BetaDeletedFile),
]
EXTRA = "x_"
"""How fields of ours begin; any other must be one of the SDK's."""


@pytest.mark.parametrize(("ours", "theirs"), SERVED, ids=lambda cls: cls.__name__)
def test_every_field_the_sdk_requires_is_always_there(ours, theirs):
    missing = {
        name
        for name, field in theirs.model_fields.items()
        if field.is_required() and name not in ours.model_fields
    }
    assert not missing


@pytest.mark.parametrize(("ours", "theirs"), SERVED, ids=lambda cls: cls.__name__)
def test_every_field_of_ours_is_the_sdks_or_marked(ours, theirs):
    unknown = {
        name
        for name in ours.model_fields
        if name not in theirs.model_fields and not name.startswith(EXTRA)
    }
    assert not unknown


@pytest.mark.parametrize(("ours", "theirs"), SERVED, ids=lambda cls: cls.__name__)
def test_what_we_send_is_what_the_sdk_reads(ours, theirs):
    for value in examples(ours):
        sent = value.model_dump(mode="json")
        read = TypeAdapter(theirs).validate_python(sent)
        for name in ours.model_fields:
            assert hasattr(read, name), name


def examples(model: type[BaseModel]) -> list[BaseModel]:
    """One value with every nullable field null, and one with none of them null."""
    return [
        model.model_validate(
            {name: filled(field.annotation, full) for name, field in model.model_fields.items()}
        )
        for full in (False, True)
    ]


def filled(kind: Any, full: bool) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        real = [one for one in arguments if one is not type(None)]
        return filled(real[0], full) if full or type(None) not in arguments else None
    if origin is typing.Literal:
        return arguments[0]
    if origin is list:
        return [filled(arguments[0], full)] if full and issubclass_(arguments[0]) else []
    if origin is dict:
        return {}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: filled(field.annotation, full) for name, field in kind.model_fields.items()}
    return {str: "text", int: 1, float: 1.0, bool: True, type(None): None}.get(
        kind, datetime(2026, 1, 1, tzinfo=UTC)
    )


def issubclass_(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


# --- events ---------------------------------------------------------------------------------------

EVENTS: TypeAdapter[Any] = TypeAdapter(wire.BetaManagedAgentsStreamSessionEvents)


def stored() -> list[Event]:
    """Every event there is, as it was stored by any release."""
    return [load(json.loads(file.read_text())) for file in sorted(GOLDEN.glob("*/*.json"))]


@pytest.mark.parametrize("event", stored(), ids=lambda event: event.type)
def test_every_event_on_the_wire_is_one_the_sdk_knows(event):
    body = _body(event, ours=False)
    if body is None:
        return
    moment = timestamp(datetime(2026, 1, 1, tzinfo=UTC))
    sent = {"type": event.type, "id": "sevt_1", **body, "processed_at": moment}
    read = EVENTS.validate_python(sent)
    assert read.type == event.type
    assert type(read).__name__ != "object"
    fields = {name for name in sent if not name.startswith(EXTRA)}
    unknown = fields - set(type(read).model_fields)
    assert not unknown


@pytest.mark.parametrize("event", stored(), ids=lambda event: event.type)
def test_what_the_public_vocabulary_lacks_is_for_those_who_ask(event):
    if event.type.startswith(OURS):
        assert _body(event, ours=False) is None
        assert _body(event, ours=True) is not None
        assert dump(event)["type"] == event.type
