"""What the addresses of pipelines name, for the person who asks. Somebody else's does not exist."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import NotFound
from pipelines.models import Pipeline, PipelineVersion


def pipeline_at(user: User, uid: str) -> Pipeline:
    rows = Pipeline.objects.visible_to(user).select_related("organisation")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such pipeline."))
    return found


def version_at(user: User, uid: str, number: int) -> PipelineVersion:
    pipeline = pipeline_at(user, uid)
    found = pipeline.versions.filter(number=number).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    found.pipeline = pipeline
    return found
