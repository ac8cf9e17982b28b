"""What the audit log is told of pipelines: who defined what agents do, and who let it go on."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting

from .models import Pipeline, PipelineRun


def about_pipeline(
    action: AuditEntry.Action, actor: User, pipeline: Pipeline, **details: Any
) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=pipeline.organisation_id,
        pipeline=pipeline.uid,
        name=pipeline.name,
        **details,
    )


def about_decision(actor: User, run: PipelineRun, **details: Any) -> None:
    pipeline = run.version.pipeline
    about_setting(
        AuditEntry.Action.PIPELINE_DECIDED,
        actor=actor,
        organisation_id=pipeline.organisation_id,
        conversation_uid=run.root.uid,
        pipeline=pipeline.uid,
        run=run.uid,
        **details,
    )
