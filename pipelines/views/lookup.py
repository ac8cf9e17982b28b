"""What the addresses of pipelines name, for the person who asks. Somebody else's does not exist."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.forms import add_error
from accounts.models import User
from harness.errors import AgentError, Conflict, Forbidden, LimitReached, NotFound
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


def refused(form: Any, problem: AgentError) -> int:
    """Puts the refusal into the form; what is nobody's business passes."""
    if isinstance(problem, NotFound | Forbidden):
        raise problem
    add_error(form, problem)
    return 409 if isinstance(problem, Conflict | LimitReached) else 422
