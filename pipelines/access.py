"""The first step of every action on pipelines: may the actor do this there? A stranger finds nothing."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import may_manage, require_manager
from accounts.staff import has_staff_permission
from conversations.models import Conversation
from harness.errors import Forbidden, NotFound

from .models import CHANGE_ANY, Pipeline, PipelineRun, PipelineRunQuerySet

MOST_NAMED = 30


def may_change(actor: User, organisation: Organisation) -> bool:
    """Whether `require_pipelines_of` would let her pass."""
    return has_staff_permission(actor, CHANGE_ANY) or may_manage(actor, organisation)


def require_pipelines_of(actor: User, organisation: Organisation) -> None:
    """Pass owners and administrators of it, and staff with the permission."""
    if not has_staff_permission(actor, CHANGE_ANY):
        require_manager(actor, organisation)


def held_pipeline(actor: User, pipeline: Pipeline) -> Pipeline:
    """The row as it is now, locked. Needs a transaction. NotFound, Forbidden."""
    seen = Pipeline.objects.visible_to(actor).values("pk")
    rows = Pipeline.objects.filter(pk__in=seen).select_for_update(of=("self",))
    found = rows.select_related("organisation").filter(pk=pipeline.pk).first()
    if found is None:
        raise NotFound(_("There is no such pipeline."))
    require_pipelines_of(actor, found.organisation)
    return found


def find_pipeline(user: User, organisation: Organisation, wanted: str) -> Pipeline:
    """By id or name. NotFound that names those there are."""
    seen = Pipeline.objects.visible_to(user).select_related("organisation")
    here = seen.filter(organisation=organisation)
    found = here.filter(uid=wanted).first() or here.filter(name=wanted).first()
    if found is None:
        names = ", ".join(here.on_offer().values_list("name", flat=True)[:MOST_NAMED])
        hint = _("There are: %(names)s.") % {"names": names} if names else _("There is none yet.")
        raise NotFound(_("There is no such pipeline."), hint=hint)
    return found


def find_run(user: User, uid: str, rows: PipelineRunQuerySet | None = None) -> PipelineRun:
    """Of all that she sees, or of those `rows` among them."""
    rows = (PipelineRun.objects.all() if rows is None else rows).visible_to(user)
    rows = rows.select_related(
        "version__pipeline", "root__owner", "root__organisation", "root__environment"
    )
    found = rows.filter(uid=uid.replace("\0", "")).first()
    if found is None:
        raise NotFound(_("There is no such run."))
    return found


def held_run(actor: User, run: PipelineRun, *, deciding: bool = False) -> PipelineRun:
    """The row as it is now, locked, for who may write in its conversation, or decide there. Needs a
    transaction. NotFound, Forbidden."""
    rows = Conversation.objects
    allowed = rows.decidable_by(actor) if deciding else rows.writable_by(actor)
    if not allowed.filter(pk=run.root_id).exists():
        if not rows.visible_to(actor).filter(pk=run.root_id).exists():
            raise NotFound(_("There is no such run."))
        raise Forbidden(
            _("This run was shared with you, but not for this."), hint=_("Ask its owner.")
        )
    held = PipelineRun.objects.select_for_update(of=("self",))
    found = held.select_related("version__pipeline", "root__owner").filter(pk=run.pk).first()
    if found is None:
        raise NotFound(_("There is no such run."))
    return found
