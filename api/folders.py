"""`/api/folders`: a person's folders and those shared with her; which of her conversations lies where."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.models import Agent
from conversations.actions.conversations import find_agent
from folders.actions.folders import change_folder, create_folder, delete_folder
from folders.actions.places import move_conversation
from folders.finding import folder_of
from folders.models import Folder
from harness.errors import NotFound
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .schema import answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "Folders"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE


class NewFolder(serializers.Serializer[Any]):
    name = StrictText(max_length=100)
    instructions = StrictText(
        required=False,
        allow_blank=True,
        max_length=8_000,
        help_text="What every conversation that begins there is told.",
    )
    default_agent_id = StrictText(required=False, allow_null=True, max_length=200)


class ChangedFolder(serializers.Serializer[Any]):
    """What is left out stays. Conversations that began stay with what they were told."""

    name = StrictText(required=False, max_length=100)
    instructions = StrictText(required=False, allow_blank=True, max_length=8_000)
    default_agent_id = StrictText(required=False, allow_null=True, max_length=200)


class FolderRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    instructions = serializers.CharField(allow_blank=True)
    default_agent_id = serializers.CharField(allow_null=True)
    owner = serializers.CharField()
    created_at = serializers.DateTimeField()


class PlaceBody(serializers.Serializer[Any]):
    folder_id = StrictText(allow_null=True, max_length=64, help_text="null: in none.")


def _row(folder: Folder) -> dict[str, Any]:
    return {
        "id": folder.uid,
        "name": folder.name,
        "instructions": folder.instructions,
        "default_agent_id": folder.default_agent.uid if folder.default_agent else None,
        "owner": folder.owner.username,
        "created_at": folder.created_at,
    }


class FolderView(ApiView):
    def folders(self) -> Any:
        rows = self.narrowed(Folder.objects.visible_to(self.actor))
        return rows.select_related("default_agent", "owner", "organisation")

    def find_folder(self, uid: str) -> Folder:
        found = self.folders().filter(uid=uid).first()
        if not isinstance(found, Folder):
            raise NotFound(_("There is no such folder."), hint=_("GET /api/folders lists yours."))
        return found

    def agent(self, wanted: str | None) -> Agent | None:
        if not wanted:
            return None
        with written({"agent": "default_agent_id"}):
            return find_agent(actor=self.actor, organisation=self.organisation, wanted=wanted)


class FoldersView(FolderView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="folders_list",
        summary="List one's folders and those shared with one, by name",
        tags=[TAG],
        responses=listed(FolderRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.folders()])

    @extend_schema(
        operation_id="folders_create",
        summary="Make a folder",
        tags=[TAG],
        request=NewFolder,
        responses={201: FolderRow, **errors(401, 403, 409, 413, 422)},
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewFolder, request.data)
        made = create_folder(
            actor=self.actor,
            organisation=self.organisation,
            name=given["name"],
            instructions=given.get("instructions", ""),
            default_agent=self.agent(given.get("default_agent_id")),
        )
        return Response(_row(made), status=201)


class OneFolderView(FolderView):
    scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(
        operation_id="folders_retrieve",
        summary="Read a folder",
        tags=[TAG],
        responses=answers(FolderRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_row(self.find_folder(uid)))

    @extend_schema(
        operation_id="folders_update",
        summary="Change a folder",
        tags=[TAG],
        request=ChangedFolder,
        responses=answers(FolderRow, 401, 403, 404, 413, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        folder = self.find_folder(uid)
        given = read_body(ChangedFolder, request.data)
        agent = folder.default_agent
        if "default_agent_id" in given:
            agent = self.agent(given["default_agent_id"])
        changed = change_folder(
            actor=self.actor,
            folder=folder,
            name=given.get("name", folder.name),
            instructions=given.get("instructions", folder.instructions),
            default_agent=agent,
        )
        return Response(_row(changed))

    @extend_schema(
        operation_id="folders_destroy",
        summary="Delete a folder; its conversations stay",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_folder(actor=self.actor, folder=self.find_folder(uid))
        return Response({"status": "deleted"})


class PlaceView(FolderView):
    scopes = {"GET": READ, "PUT": WRITE}

    @extend_schema(
        operation_id="conversations_folder_retrieve",
        summary="Say in which of the caller's folders a conversation lies",
        tags=[TAG],
        responses=answers(PlaceBody, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        folder = folder_of(self.actor, self.find_conversation(uid))
        return Response({"folder_id": folder.uid if folder else None})

    @extend_schema(
        operation_id="conversations_folder_update",
        summary="Move a conversation to a folder, or out of any",
        description="In the caller's own order. What its agent was told when it began stays.",
        tags=[TAG],
        request=PlaceBody,
        responses=answers(PlaceBody, 401, 403, 404, 422),
    )
    def put(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        wanted = read_body(PlaceBody, request.data)["folder_id"]
        folder = self.find_folder(wanted) if wanted else None
        with written({"folder": "folder_id"}):
            move_conversation(actor=self.actor, conversation=conversation, folder=folder)
        return Response({"folder_id": wanted or None})
