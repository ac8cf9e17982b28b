"""`/api/skills`: the library, its versions and reviews; which skills a conversation has."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from harness.errors import Invalid, NotFound
from skills_app.actions.packages import install_packages
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import (
    add_version,
    create_skill,
    delete_skill,
    kill_skill,
    revive_skill,
)
from skills_app.files import folder_of
from skills_app.listing import listed as listed_skills
from skills_app.models import Channel, Skill, SkillPackages, SkillVersion
from skills_app.names import SKILL, name_of
from skills_app.packages import Packages, packages_of
from skills_app.scanning import scan
from skillsets.actions.adding import add_skill
from skillsets.models import UsedSkill
from skillsets.reading import why_not

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "Skills"
READ, MANAGE = TokenScope.CONVERSATIONS_READ, TokenScope.SKILLS_MANAGE
OWN, ORGANISATION, SERVER = "own", "organisation", "server"


class SkillFileBody(serializers.Serializer[Any]):
    path = StrictText(max_length=1_024)
    text = StrictText(required=False, allow_blank=True, max_length=1_000_000)
    base64 = StrictText(required=False, allow_blank=True, max_length=15_000_000)


class NewVersion(serializers.Serializer[Any]):
    """What stands in SKILL.md, and the files beside it."""

    description = StrictText(max_length=1_024)
    body = StrictText(max_length=150_000)
    files = SkillFileBody(many=True, required=False)
    note = StrictText(required=False, allow_blank=True, max_length=500)


class NewSkill(NewVersion):
    name = StrictText(max_length=64, help_text="Small letters, digits and single hyphens.")
    scope = serializers.ChoiceField(
        choices=[OWN, ORGANISATION],
        default=OWN,
        help_text="One's own is released at once; the organisation's waits for a review.",
    )


class SkillRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    id = serializers.CharField()
    scope = serializers.ChoiceField(choices=[OWN, ORGANISATION, SERVER])
    stable = serializers.CharField(allow_null=True)
    canary = serializers.CharField(allow_null=True)
    stopped = serializers.CharField(allow_null=True, help_text="Why it is used nowhere.")


class SkillVersionRow(serializers.Serializer[Any]):
    version = serializers.CharField()
    state = serializers.ChoiceField(choices=SkillVersion.State.values)
    digest = serializers.CharField(help_text="SHA-256 of all its files.")
    description = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    deprecated = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class SkillFinding(serializers.Serializer[Any]):
    kind = serializers.CharField()
    what = serializers.CharField()
    places = serializers.ListField(child=serializers.CharField())
    declared = serializers.BooleanField()


class SkillPackage(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    digest = serializers.CharField()


class SkillPackagesRow(serializers.Serializer[Any]):
    needs = serializers.ListField(child=serializers.CharField(), help_text="As it declares them.")
    python = serializers.CharField(allow_blank=True, help_text="Conditions on the interpreter.")
    index = serializers.CharField(allow_blank=True, help_text="Where they come from.")
    state = serializers.ChoiceField(choices=SkillPackages.State.values)
    problem = serializers.CharField(allow_blank=True, help_text="Why they are not installed.")
    packages = SkillPackage(many=True, help_text="The lock: what came.")


class SkillVersionContent(SkillVersionRow):
    body = serializers.CharField(allow_blank=True)
    files = serializers.DictField(child=serializers.IntegerField(), help_text="Bytes by path.")
    requires = serializers.ListField(child=serializers.CharField())
    warnings = serializers.ListField(child=serializers.CharField())
    findings = SkillFinding(many=True)
    python = SkillPackagesRow(allow_null=True, help_text="Null: its Python files need nothing.")


class SkillDecision(serializers.Serializer[Any]):
    approve = serializers.BooleanField()
    channel = serializers.ChoiceField(
        choices=[Channel.STABLE, Channel.CANARY], default=Channel.STABLE
    )
    reason = StrictText(required=False, allow_blank=True, max_length=500)
    digest = StrictText(max_length=64, help_text="Of what was looked at.")


class SkillStop(serializers.Serializer[Any]):
    reason = StrictText(max_length=500)


class ConversationSkill(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    digest = serializers.CharField()
    by = serializers.ChoiceField(choices=UsedSkill.By.values)
    refused = serializers.CharField(allow_blank=True, help_text="Why it may not be used now.")


class AddedSkill(serializers.Serializer[Any]):
    name = StrictText(max_length=64)
    version = StrictText(
        required=False, max_length=50, help_text="Or a channel; stable by default."
    )


def _row(skill: Skill) -> dict[str, Any]:
    scope = OWN if skill.owner_id else ORGANISATION if skill.organisation_id else SERVER
    return {
        "name": skill.name,
        "description": skill.description,
        "id": skill.uid,
        "scope": scope,
        "stable": skill.stable.label if skill.stable else None,
        "canary": skill.canary.label if skill.canary else None,
        "stopped": skill.killed_reason if skill.killed_at else None,
    }


def version_row(version: SkillVersion) -> dict[str, Any]:
    return {
        "version": version.label,
        "state": version.state,
        "digest": version.digest,
        "description": version.description,
        "note": version.note,
        "deprecated": version.deprecated_at is not None,
        "created_at": version.created_at,
    }


def packages_row(found: Packages) -> dict[str, Any]:
    return {
        "needs": found.needs.packages,
        "python": found.needs.python,
        "index": found.source,
        "state": found.state,
        "problem": found.problem,
        "packages": [each.model_dump() for each in found.parts],
    }


def _content_row(version: SkillVersion) -> dict[str, Any]:
    folder = folder_of(version)
    packages = packages_of(version)
    return {
        **version_row(version),
        "body": folder.body,
        "files": {path: len(data) for path, data in folder.files.items()},
        "requires": version.requires,
        "warnings": version.warnings,
        "findings": [
            {"kind": each.kind, "what": each.what, "places": each.places, "declared": each.declared}
            for each in scan(folder).findings
        ],
        "python": packages_row(packages) if packages is not None else None,
    }


def _files(name: str, given: dict[str, Any]) -> dict[str, bytes]:
    # JSON's text is YAML's: nothing that is sent becomes another field.
    head = f"---\nname: {name}\ndescription: {json.dumps(given['description'])}\n---\n\n"
    files = {SKILL: (head + given["body"]).encode(errors="replace")}
    for number, each in enumerate(given.get("files", ())):
        field = f"files[{number}]"
        if each["path"] in files:
            raise Invalid(_("This file is sent twice."), field=f"{field}.path")
        if ("text" in each) == ("base64" in each):
            raise Invalid(_("A file has text or base64."), field=field, hint=_("Send one of them."))
        files[each["path"]] = _data(each, field)
    return files


def _data(given: dict[str, Any], field: str) -> bytes:
    if "text" in given:
        return bytes(given["text"].encode(errors="replace"))
    try:
        return base64.b64decode(given["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(
            _("This is no base64."), field=f"{field}.base64", hint=_("Encode the file's bytes.")
        ) from None


class SkillView(ApiView):
    def skills(self) -> Any:
        return listed_skills(self.actor, self.organisation)

    def find_skill(self, uid: str) -> Skill:
        found = self.skills().filter(uid=uid).first()
        if not isinstance(found, Skill):
            raise NotFound(
                _("There is no such skill."), hint=_("GET /api/skills lists those there are.")
            )
        return found

    def find_version(self, uid: str, label: str) -> SkillVersion:
        rows = SkillVersion.objects.visible_to(self.actor).filter(skill=self.find_skill(uid))
        found = (
            rows.select_related("skill__organisation", "skill__owner").filter(label=label).first()
        )
        if not isinstance(found, SkillVersion):
            raise NotFound(_("There is no such version."))
        return found


class SkillsView(SkillView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="skills_list",
        summary="List the skills that the caller sees, by name",
        tags=[TAG],
        parameters=[LIMIT, CURSOR],
        responses=listed(SkillRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, str, int)
        rows = self.skills()
        if cursor:
            name, pk = cursor
            rows = rows.filter(name__gte=name).exclude(name=name, pk__lte=pk)
        found = list(rows[: limit + 1])
        last = found[limit - 1] if len(found) > limit else None
        following = encode_cursor(last.name, last.pk) if last else ""
        return page(request, [_row(each) for each in found[:limit]], following)

    @extend_schema(
        operation_id="skills_create",
        summary="Upload a skill",
        tags=[TAG],
        request=NewSkill,
        responses=answers(SkillRow, 401, 403, 409, 413, 422),
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewSkill, request.data)
        version = create_skill(
            actor=self.actor,
            organisation=self.organisation,
            own=given["scope"] == OWN,
            files=_files(name_of(given["name"]), given),
            note=given.get("note", ""),
        )
        ask_for_release(actor=self.actor, version=version)
        return Response(_row(self.find_skill(version.skill.uid)))


class OneSkillView(SkillView):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @extend_schema(
        operation_id="skills_retrieve",
        summary="Read a skill",
        tags=[TAG],
        responses=answers(SkillRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_row(self.find_skill(uid)))

    @extend_schema(
        operation_id="skills_destroy",
        summary="Delete a skill that no conversation used",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_skill(actor=self.actor, skill=self.find_skill(uid))
        return Response({"status": "deleted"})


class SkillVersionsView(SkillView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="skills_versions_list",
        summary="List the versions of a skill, newest first",
        tags=[TAG],
        responses=listed(SkillVersionRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = SkillVersion.objects.visible_to(self.actor).filter(skill=self.find_skill(uid))
        return Response([version_row(each) for each in rows.order_by("-number")])

    @extend_schema(
        operation_id="skills_versions_create",
        summary="Add a version, and ask for its release",
        tags=[TAG],
        request=NewVersion,
        responses={201: SkillVersionRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        skill = self.find_skill(uid)
        given = read_body(NewVersion, request.data)
        version = add_version(
            actor=self.actor,
            skill=skill,
            files=_files(skill.name, given),
            note=given.get("note", ""),
        )
        return Response(version_row(ask_for_release(actor=self.actor, version=version)), status=201)


class OneSkillVersionView(SkillView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="skills_versions_retrieve",
        summary="Read a version of a skill",
        tags=[TAG],
        responses=answers(SkillVersionContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, label: str) -> Response:
        return Response(_content_row(self.find_version(uid, label)))


class SkillDecisionView(SkillView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="skills_versions_decide",
        summary="Release a version that waits for a review, or refuse it",
        tags=[TAG],
        request=SkillDecision,
        responses=answers(SkillVersionRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str, label: str) -> Response:
        version = self.find_version(uid, label)
        given = read_body(SkillDecision, request.data)
        decided = decide_release(
            actor=self.actor,
            version=version,
            approve=given["approve"],
            channel=given["channel"],
            reason=given.get("reason", ""),
            expected_digest=given["digest"],
        )
        return Response(version_row(decided))


class SkillPackagesView(SkillView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="skills_versions_install_packages",
        summary="Have the Python packages of a version installed, once more where that failed",
        tags=[TAG],
        request=None,
        responses=answers(SkillPackagesRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str, label: str) -> Response:
        version = self.find_version(uid, label)
        return Response(packages_row(install_packages(actor=self.actor, version=version)))


class SkillStopView(SkillView):
    scopes = {"POST": MANAGE, "DELETE": MANAGE}

    @extend_schema(
        operation_id="skills_stop",
        summary="Stop a skill before the next call of every conversation",
        tags=[TAG],
        request=SkillStop,
        responses=answers(SkillRow, 401, 403, 404, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        skill = self.find_skill(uid)
        reason = read_body(SkillStop, request.data)["reason"]
        return Response(_row(kill_skill(actor=self.actor, skill=skill, reason=reason)))

    @extend_schema(
        operation_id="skills_revive",
        summary="Allow a skill again that was stopped",
        tags=[TAG],
        responses=answers(SkillRow, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        return Response(_row(revive_skill(actor=self.actor, skill=self.find_skill(uid))))


class ConversationSkillsView(ApiView):
    scopes = {"GET": READ, "POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_skills_list",
        summary="List the skills that a conversation has",
        tags=[TAG],
        responses=listed(ConversationSkill, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = UsedSkill.objects.of(self.find_conversation(uid))
        return Response([_used_row(each) for each in rows])

    @extend_schema(
        operation_id="conversations_skills_create",
        summary="Give a conversation a skill, from its next turn on",
        tags=[TAG],
        request=AddedSkill,
        responses={201: ConversationSkill, **errors(401, 403, 404, 409, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(AddedSkill, request.data)
        used = add_skill(
            actor=self.actor,
            conversation=conversation,
            name=given["name"],
            version=given.get("version", "stable"),
        )
        return Response(_used_row(used), status=201)


def _used_row(used: UsedSkill) -> dict[str, Any]:
    return {
        "name": used.skill.name,
        "version": used.version.label,
        "digest": used.version.digest,
        "by": used.by,
        "refused": why_not(used),
    }
