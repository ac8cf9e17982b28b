"""`/api/prompts`: named prompts, their versions and labels; which texts a conversation was told."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from harness.errors import Invalid, NotFound
from prompts.access import find_prompt
from prompts.actions.prompts import (
    add_version,
    create_prompt,
    delete_prompt,
    import_prompt,
    move_label,
    remove_label,
    spec_of,
)
from prompts.choosing import version_named
from prompts.files import read_prompt, written_prompt
from prompts.filling import Variable
from prompts.models import Prompt, PromptVersion
from prompts.previewing import preview
from prompts.using import told
from reading.digits import number_of

from .base import ApiView
from .bodies import read_body
from .schema import answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "Prompts"
READ, MANAGE = TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE
SEQ = OpenApiParameter("seq", int, description="As a request at that place of the log had them.")


class PromptVariable(serializers.Serializer[Any]):
    name = serializers.RegexField(r"^[a-z][a-z0-9_]{0,63}$")
    description = StrictText(required=False, allow_blank=True, max_length=300)
    default = StrictText(
        required=False, allow_blank=True, allow_null=True, max_length=500, help_text="One line."
    )


class ReasonGiven(serializers.Serializer[Any]):
    reason = StrictText(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Where agents whose suites are not green are given it all the same; a person's.",
    )


class NewPromptVersion(ReasonGiven):
    text = StrictText(max_length=50_000)
    variables = PromptVariable(many=True, required=False)
    note = StrictText(required=False, allow_blank=True, max_length=500)
    label = StrictText(  # type: ignore[assignment]  # the base's own is a text
        required=False, allow_blank=True, max_length=50, help_text="Moved to this version."
    )


class NewPrompt(NewPromptVersion):
    name = StrictText(max_length=64, help_text="Small letters, digits and single hyphens.")
    description = StrictText(required=False, allow_blank=True, max_length=500)


class PromptFile(serializers.Serializer[Any]):
    file = StrictText(max_length=10_000_000, help_text="YAML or JSON, as the export has it.")


class NewPromptFile(PromptFile, ReasonGiven):
    pass


class PromptRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    scope = serializers.ChoiceField(choices=["organisation", "server"])
    labels = serializers.DictField(child=serializers.IntegerField(), help_text="Versions by label.")
    newest = serializers.IntegerField(help_text="The highest version.")


class PromptVersionRow(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    sha256 = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class PromptVersionContent(PromptVersionRow):
    text = serializers.CharField()
    variables = PromptVariable(many=True)


class MovedLabel(ReasonGiven):
    version = StrictText(max_length=50, help_text="A number, another label, or latest.")


class AskedPreview(serializers.Serializer[Any]):
    conversation = StrictText(required=False, max_length=64)
    values = serializers.DictField(
        child=StrictText(allow_blank=True, max_length=500), required=False
    )


class PromptPreview(serializers.Serializer[Any]):
    text = serializers.CharField()
    tokens = serializers.IntegerField(help_text="About how many of each request.")
    missing = serializers.ListField(child=serializers.CharField())
    told = serializers.CharField(
        allow_blank=True, help_text="What the conversation was told of it."
    )


class ToldPrompt(serializers.Serializer[Any]):
    name = serializers.CharField()
    prompt = serializers.CharField(help_text="Its id.")
    version = serializers.IntegerField()
    sha256 = serializers.CharField()
    wanted = serializers.CharField(help_text="The label or number that the agent named.")
    since_seq = serializers.IntegerField()
    text = serializers.CharField()


def _row(prompt: Prompt) -> dict[str, Any]:
    newest = prompt.versions.order_by("-number").values_list("number", flat=True).first()
    return {
        "id": prompt.uid,
        "name": prompt.name,
        "description": prompt.description,
        "scope": "organisation" if prompt.organisation_id else "server",
        "labels": {
            label.name: label.version.number for label in prompt.labels.select_related("version")
        },
        "newest": newest or 0,
    }


def _version_row(version: PromptVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "sha256": version.digest,
        "note": version.note,
        "created_at": version.created_at,
    }


def _given(body: dict[str, Any]) -> dict[str, Any]:
    try:
        variables = [Variable.model_validate(each) for each in body.get("variables", ())]
    except ValueError:
        raise Invalid(
            _("A default or a description has several lines."),
            field="variables",
            hint=_("Put what is longer into the text."),
        ) from None
    return {
        "text": body["text"],
        "variables": variables,
        "note": body.get("note", ""),
        "label": body.get("label", ""),
        "reason": body.get("reason", ""),
    }


class PromptView(ApiView):
    def prompts(self) -> Any:
        return Prompt.objects.visible_to(self.actor).usable_in(self.organisation)

    def find(self, uid: str) -> Prompt:
        """By id or name. NotFound that names those there are."""
        found = find_prompt(self.actor, self.organisation, uid)
        if not self.prompts().filter(pk=found.pk).exists():
            raise NotFound(_("There is no such prompt."))
        return found

    def find_version(self, uid: str, number: int) -> PromptVersion:
        return version_named(self.find(uid), str(number))


class PromptsView(PromptView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="prompts_list",
        summary="List the prompts that agents of the organisation may name",
        tags=[TAG],
        responses=listed(PromptRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.prompts()])

    @extend_schema(
        operation_id="prompts_create",
        summary="Make a prompt with its first version",
        tags=[TAG],
        request=NewPrompt,
        responses={201: PromptRow, **errors(401, 403, 409, 413, 422)},
    )
    def post(self, request: Any) -> Response:
        body = read_body(NewPrompt, request.data)
        made = create_prompt(
            actor=self.actor,
            organisation=self.organisation,
            name=body["name"],
            description=body.get("description", ""),
            **_given(body),
        )
        return Response(_row(made), status=201)


class ImportView(PromptView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="prompts_import",
        summary="Add what a file says to the prompt of its name, which is made if there is none",
        tags=[TAG],
        request=NewPromptFile,
        responses=answers(PromptRow, 401, 403, 409, 413, 422),
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewPromptFile, request.data)
        prompt, _added = import_prompt(
            actor=self.actor,
            organisation=self.organisation,
            spec=read_prompt(given["file"]),
            reason=given.get("reason", ""),
        )
        return Response(_row(prompt))


class OnePromptView(PromptView):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @extend_schema(
        operation_id="prompts_retrieve",
        summary="Read a prompt, by its id or name",
        tags=[TAG],
        responses=answers(PromptRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_row(self.find(uid)))

    @extend_schema(
        operation_id="prompts_destroy",
        summary="Delete a prompt that no agent names and no conversation was told",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_prompt(actor=self.actor, prompt=self.find(uid))
        return Response({"status": "deleted"})


class ExportView(PromptView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="prompts_export",
        summary="A prompt with its labels and all versions that do not wait, as a file",
        tags=[TAG],
        responses=answers(PromptFile, 401, 403, 404, 409),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response({"file": written_prompt(spec_of(self.find(uid)))})


class VersionsView(PromptView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="prompts_versions_list",
        summary="List the versions of a prompt, newest first",
        tags=[TAG],
        responses=listed(PromptVersionRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = self.find(uid).versions.defer("text").order_by("-number")
        return Response([_version_row(each) for each in rows])

    @extend_schema(
        operation_id="prompts_versions_create",
        summary="Add a version; the newest is answered where it says just that already",
        tags=[TAG],
        request=NewPromptVersion,
        responses={201: PromptVersionRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        prompt = self.find(uid)
        given = _given(read_body(NewPromptVersion, request.data))
        made = add_version(actor=self.actor, prompt=prompt, **given)
        return Response(_version_row(made), status=201)


class OneVersionView(PromptView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="prompts_versions_retrieve",
        summary="Read a version of a prompt",
        tags=[TAG],
        responses=answers(PromptVersionContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, number: int) -> Response:
        version = self.find_version(uid, number)
        return Response(
            {
                **_version_row(version),
                "text": version.text,
                "variables": [each.model_dump() for each in version.variables],
            }
        )


class PreviewView(PromptView):
    scopes = {"POST": READ}

    @extend_schema(
        operation_id="prompts_versions_preview",
        summary="What a version would say, in a conversation or without one",
        tags=[TAG],
        request=AskedPreview,
        responses=answers(PromptPreview, 401, 403, 404, 422),
    )
    def post(self, request: Any, uid: str, number: int) -> Response:
        version = self.find_version(uid, number)
        body = read_body(AskedPreview, request.data)
        named = body.get("conversation")
        shown = preview(
            version,
            body.get("values", {}),
            self.find_conversation(named) if named else None,
        )
        return Response(
            {
                "text": shown.text,
                "tokens": shown.tokens,
                "missing": list(shown.missing),
                "told": shown.told,
            }
        )


class LabelView(PromptView):
    scopes = {"PUT": MANAGE, "DELETE": MANAGE}

    @extend_schema(
        operation_id="prompts_labels_move",
        summary="Move a label to a version; new conversations follow it",
        tags=[TAG],
        request=MovedLabel,
        responses=answers(PromptRow, 401, 403, 404, 409, 422),
    )
    def put(self, request: Any, uid: str, label: str) -> Response:
        prompt = self.find(uid)
        given = read_body(MovedLabel, request.data)
        move_label(actor=self.actor, prompt=prompt, label=label, **given)
        return Response(_row(prompt))

    @extend_schema(
        operation_id="prompts_labels_destroy",
        summary="Take a label away that no agent names",
        tags=[TAG],
        responses=answers(PromptRow, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str, label: str) -> Response:
        prompt = self.find(uid)
        remove_label(actor=self.actor, prompt=prompt, label=label)
        return Response(_row(prompt))


class ConversationPromptsView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="conversations_prompts_list",
        summary="The texts of prompts that stand in a conversation's requests",
        tags=[TAG],
        parameters=[SEQ],
        responses=listed(ToldPrompt, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = request.query_params.get("seq")
        seq = number_of(given)
        if given is not None and seq is None:
            raise Invalid(
                _("seq: A number is needed."),
                field="seq",
                hint=_("Give the place of an event, or leave it out."),
            )
        rows = told(conversation, seq)
        return Response(
            [
                {
                    "name": used.version.prompt.name,
                    "prompt": used.version.prompt.uid,
                    "version": used.version.number,
                    "sha256": used.version.digest,
                    "wanted": used.wanted,
                    "since_seq": used.set.since_seq,
                    "text": used.text,
                }
                for used in rows
            ]
        )
