"""`/v1/sessions/{id}/resources`: copies of uploaded files in a session's workspace."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field, field_validator
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from conversations.models import Conversation, FileResource
from harness.errors import NotFound
from programs.actions.resources import add_resource, remove_resource
from recall.actions.attaching import INSTRUCTIONS_LIMIT, Wanted
from recall.models import Access, AttachedStore
from wire.fieldnames import written

from .door import READ, WRITE, Body, Door, Shape, body_of, operation
from .fieldnames import RESOURCE
from .paging import ASC, page_of, paging
from .snapshots import MOUNT, FileResourceShape, ResourceShape, resource_shapes, store_shapes

MOST = 1000


class FileResourceBody(Body):
    """Repositories are not served here, and memory stores are given when a session is created."""

    type: Literal["file"]
    file_id: str = Field(max_length=60)
    mount_path: str | None = Field(default=None, max_length=400)

    @field_validator("mount_path")
    @classmethod
    def _below_the_root(cls, path: str | None) -> str | None:
        if path is not None and not path.removeprefix(MOUNT).strip("/"):
            raise ValueError("name a file below /mnt/session/")
        return path

    @property
    def path(self) -> str:
        """Relative to the workspace; empty: the usual place."""
        given = self.mount_path or ""
        return given.removeprefix(f"{MOUNT}/").lstrip("/")


class MemoryStoreResourceBody(Body):
    type: Literal["memory_store"]
    memory_store_id: str = Field(max_length=60)
    access: Literal["read_write", "read_only"] | None = None
    instructions: str | None = Field(default=None, max_length=INSTRUCTIONS_LIMIT)

    def wanted(self, place: int) -> Wanted:
        access = self.access or Access.READ_WRITE
        return Wanted(self.memory_store_id, access, self.instructions or "", place)


ResourceBody = Annotated[FileResourceBody | MemoryStoreResourceBody, Field(discriminator="type")]


class ResourceList(BaseModel):
    data: list[ResourceShape]
    next_page: str | None = None


class ResourceDeleted(Shape):
    type: Literal["session_resource_deleted"] = "session_resource_deleted"
    id: str


class Resources(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "sessions_resources_list",
        tag="sessions",
        response=ResourceList,
        query=paging(MOST, MOST),
        summary="List a session's files",
    )
    def get(self, request: Request, uid: str) -> Response:
        session = session_of(self.caller, uid)
        page = page_of(
            FileResource.objects.filter(conversation=session),
            request.query_params,
            about=f"resources of {session.uid}",
            show=lambda rows: [one.wire() for one in resource_shapes(session, rows)],
            most=MOST,
            usual=MOST,
            order=ASC,
        )
        if page["next_page"] is None:
            # Behind the files, which may be many; they are no more than eight.
            given = AttachedStore.objects.filter(conversation=session).select_related("store")
            page["data"] += [one.wire() for one in store_shapes(given)]
        return Response(page)

    @operation(
        "sessions_resources_add",
        tag="sessions",
        request=FileResourceBody,
        response=FileResourceShape,
        summary="Put a file into a session",
    )
    def post(self, request: Request, uid: str) -> Response:
        conversation = session_of(self.caller, uid)
        body = body_of(request, FileResourceBody)
        with written(RESOURCE):
            row = add_resource(
                actor=self.caller.user,
                conversation=conversation,
                file_uid=body.file_id,
                path=body.path,
            )
        return Response(_shown(row))


class OneResource(Door):
    scopes = {"GET": READ, "DELETE": WRITE}

    @operation(
        "sessions_resources_retrieve",
        tag="sessions",
        response=FileResourceShape,
        summary="Read about a session's file",
    )
    def get(self, request: Request, uid: str, resource: str) -> Response:
        return Response(_shown(self._resource(uid, resource)))

    @operation(
        "sessions_resources_delete",
        tag="sessions",
        response=ResourceDeleted,
        summary="Take a file out of a session",
    )
    def delete(self, request: Request, uid: str, resource: str) -> Response:
        row = self._resource(uid, resource)
        remove_resource(
            actor=self.caller.user, conversation=session_of(self.caller, uid), resource=row
        )
        return Response(ResourceDeleted(id=row.uid).wire())

    def _resource(self, uid: str, resource: str) -> FileResource:
        rows = FileResource.objects.filter(conversation=session_of(self.caller, uid), uid=resource)
        row = rows.first()
        if row is None:
            raise NotFound(_("There is no such resource."))
        return row


def _shown(row: FileResource) -> dict[str, Any]:
    return resource_shapes(row.conversation, [row])[0].wire()


def session_of(caller: Caller, uid: str) -> Conversation:
    """As `sessions.find_session`, for a module that sessions itself needs."""
    rows = Conversation.objects.visible_to(caller.user).filter(organisation=caller.organisation)
    rows = rows.select_related("environment").filter(parent=None)
    found = rows.named(uid).first()
    if found is None:
        raise NotFound(_("There is no such session."))
    return found
