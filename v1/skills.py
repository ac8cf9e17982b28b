"""`/v1/skills`: what agents are taught, and its versions, as the official SDK knows them.

An upload belongs to the organisation. Where its sender may release it alone, it is released; else it waits
for a review, which is done on the pages or at `/api`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from harness.errors import Invalid, NotFound
from skills_app.access import why_not_decide
from skills_app.actions.releases import ask_for_release, decide_release, yank_version
from skills_app.actions.skills import add_version, create_skill, delete_skill
from skills_app.files import folder_of
from skills_app.listing import listed
from skills_app.models import Skill, SkillVersion
from skills_app.packing import pack

from .door import READ, Door, Shape, operation
from .paging import Page, describe, page_of, paging, parameter
from .skillfiles import FolderParser, folder_from

MANAGE = TokenScope.SKILLS_MANAGE
MOST = 1000
CUSTOM, SHIPPED = "custom", "anthropic"
"""What the wire calls sources. Of the second kind are those that came with this server."""

FOLDER = {
    "multipart/form-data": {
        "type": "object",
        "properties": {
            "files[]": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "required": ["files[]"],
    }
}
NAMED_FOLDER = {
    "multipart/form-data": {
        **FOLDER["multipart/form-data"],
        "properties": {
            "files[]": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "display_name": {"type": "string", "maxLength": 100},
        },
    }
}


class SkillSource(Shape):
    type: Literal["custom", "anthropic", "anthropic_example", "plugin"]


class SkillShape(Shape):
    type: Literal["skill"] = "skill"
    id: str
    display_name: str
    latest_version_id: str
    source: SkillSource
    created_at: datetime
    updated_at: datetime
    x_name: str
    x_stopped: str | None
    """Why no conversation may use it any more."""


class SkillVersionShape(Shape):
    type: Literal["skill_version"] = "skill_version"
    id: str
    skill_id: str
    name: str
    description: str
    created_at: datetime
    x_version: str
    x_state: Literal["draft", "waiting", "released", "refused", "yanked"]
    x_digest: str
    """SHA-256 of all its files."""


class SkillPage(Page[SkillShape]):
    pass


class SkillVersionPage(Page[SkillVersionShape]):
    pass


class SkillDeleted(Shape):
    type: Literal["skill_deleted"] = "skill_deleted"
    id: str


class SkillVersionDeleted(Shape):
    type: Literal["skill_version_deleted"] = "skill_version_deleted"
    id: str


def skill_shape(skill: Skill, newest: SkillVersion) -> dict[str, Any]:
    return SkillShape(
        id=skill.uid,
        display_name=skill.title or skill.name,
        latest_version_id=newest.uid,
        source=SkillSource(type="anthropic" if skill.shipped else "custom"),
        created_at=skill.created_at,
        updated_at=newest.created_at,
        x_name=skill.name,
        x_stopped=skill.killed_reason if skill.killed_at else None,
    ).wire()


def version_shape(version: SkillVersion) -> dict[str, Any]:
    return SkillVersionShape(
        id=version.uid,
        skill_id=version.skill.uid,
        name=version.skill.name,
        description=version.description,
        created_at=version.created_at,
        x_version=version.label,
        x_state=version.state,
        x_digest=version.digest,
    ).wire()


def visible_versions(caller: Caller) -> Any:
    rows = SkillVersion.objects.visible_to(caller.user)
    return rows.select_related("skill__organisation", "skill__owner")


def find_skill(caller: Caller, uid: str) -> Skill:
    found = listed(caller.user, caller.organisation).filter(uid=uid).first()
    if not isinstance(found, Skill):
        raise NotFound(_("There is no such skill."))
    return found


def newest_of(caller: Caller, skill: Skill) -> SkillVersion:
    """What `latest` means: the newest that is offered, or where none is, that she sees."""
    if skill.latest is not None:
        return skill.latest
    found = visible_versions(caller).filter(skill=skill).order_by("-number").first()
    if not isinstance(found, SkillVersion):
        raise NotFound(_("There is no such skill."))
    return found


def find_version(caller: Caller, uid: str, version: str) -> SkillVersion:
    skill = find_skill(caller, uid)
    wanted = newest_of(caller, skill).uid if version == "latest" else version
    found = visible_versions(caller).filter(skill=skill, uid=wanted).first()
    if not isinstance(found, SkillVersion):
        raise NotFound(_("There is no such version."))
    return found


def offer(caller: Caller, version: SkillVersion) -> SkillVersion:
    """Released where nobody else has to look at it first."""
    asked = ask_for_release(actor=caller.user, version=version)
    if asked.state != SkillVersion.State.WAITING or why_not_decide(caller.user, asked) is not None:
        return asked
    return decide_release(
        actor=caller.user, version=asked, approve=True, expected_digest=asked.digest
    )


class Skills(Door):
    scopes = {"GET": READ, "POST": MANAGE}
    parser_classes = [FolderParser]
    body_limit = 0
    """The route bounds the upload, and the action each skill."""

    @operation(
        "skills_list",
        tag="skills",
        response=SkillPage,
        query=(
            *paging(MOST),
            parameter("source", text=f"`{CUSTOM}`, or `{SHIPPED}`: what came with this server."),
        ),
        summary="List skills, newest first",
    )
    def get(self, request: Request) -> Response:
        query, caller = request.query_params, self.caller
        rows = listed(caller.user, caller.organisation)
        source = query.get("source")
        if source not in {None, CUSTOM, SHIPPED}:
            raise Invalid(
                _("There is no such source."), field="source", hint=f"{CUSTOM}, {SHIPPED}"
            )
        if source is not None:
            rows = rows.filter(shipped=source == SHIPPED)

        def show(skills: Sequence[Skill]) -> list[dict[str, Any]]:
            return [skill_shape(skill, newest_of(caller, skill)) for skill in skills]

        return Response(page_of(rows, query, about=describe("skills", query), show=show, most=MOST))

    @operation(
        "skills_create",
        tag="skills",
        request=NAMED_FOLDER,
        response=SkillShape,
        summary="Upload a skill, for the organisation",
    )
    def post(self, request: Request) -> Response:
        caller = self.caller
        called, files = folder_from(request, "display_name")
        # A folder that breaks the standard leaves nothing behind.
        with transaction.atomic():
            version = create_skill(
                actor=caller.user,
                organisation=caller.organisation,
                files=files,
                called=called,
                title=request.POST.get("display_name", ""),
            )
            offer(caller, version)
        skill = find_skill(caller, version.skill.uid)
        return Response(skill_shape(skill, newest_of(caller, skill)))


class OneSkill(Door):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @operation("skills_retrieve", tag="skills", response=SkillShape, summary="Read about a skill")
    def get(self, request: Request, uid: str) -> Response:
        skill = find_skill(self.caller, uid)
        return Response(skill_shape(skill, newest_of(self.caller, skill)))

    @operation(
        "skills_delete",
        tag="skills",
        response=SkillDeleted,
        summary="Delete a skill that no session used, with all versions",
    )
    def delete(self, request: Request, uid: str) -> Response:
        delete_skill(actor=self.caller.user, skill=find_skill(self.caller, uid))
        return Response(SkillDeleted(id=uid).wire())


class SkillVersions(Door):
    scopes = {"GET": READ, "POST": MANAGE}
    parser_classes = [FolderParser]
    body_limit = 0

    @operation(
        "skills_versions_list",
        tag="skills",
        response=SkillVersionPage,
        query=paging(MOST),
        summary="List a skill's versions, newest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        skill = find_skill(self.caller, uid)
        return Response(
            page_of(
                visible_versions(self.caller).filter(skill=skill),
                request.query_params,
                about=f"versions of {skill.uid}",
                show=lambda rows: [version_shape(each) for each in rows],
                most=MOST,
                key="number",
            )
        )

    @operation(
        "skills_versions_create",
        tag="skills",
        request=FOLDER,
        response=SkillVersionShape,
        summary="Upload a further version",
    )
    def post(self, request: Request, uid: str) -> Response:
        caller = self.caller
        skill = find_skill(caller, uid)
        _called, files = folder_from(request)
        with transaction.atomic():
            version = offer(caller, add_version(actor=caller.user, skill=skill, files=files))
        return Response(version_shape(version))


class OneSkillVersion(Door):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @operation(
        "skills_versions_retrieve",
        tag="skills",
        response=SkillVersionShape,
        summary="Read about a version, or `latest`",
    )
    def get(self, request: Request, uid: str, version: str) -> Response:
        return Response(version_shape(find_version(self.caller, uid, version)))

    @operation(
        "skills_versions_delete",
        tag="skills",
        response=SkillVersionDeleted,
        summary="Withdraw a version; sessions that have it keep it",
    )
    def delete(self, request: Request, uid: str, version: str) -> Response:
        found = find_version(self.caller, uid, version)
        yank_version(actor=self.caller.user, version=found, reason=_("Deleted by a program."))
        return Response(SkillVersionDeleted(id=found.uid).wire())


class SkillVersionContent(Door):
    scopes = {"GET": READ}

    @operation(
        "skills_versions_download",
        tag="skills",
        response={(200, "application/zip"): OpenApiTypes.BINARY},
        summary="Download a version's folder as a ZIP file",
    )
    def get(self, request: Request, uid: str, version: str) -> HttpResponse:
        found = find_version(self.caller, uid, version)
        name = found.skill.name
        return HttpResponse(
            pack(name, folder_of(found).files),
            content_type="application/zip",
            headers={"Content-Disposition": f'attachment; filename="{name}.zip"'},
        )
