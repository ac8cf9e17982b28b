"""`/v1/files`: what programs upload, to be put into sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.http import FileResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import BaseModel
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.actions.stored_files import delete_file, open_file, store_file
from conversations.models import StoredFile
from harness.errors import Invalid, NotFound

from .door import READ, WRITE, Door, Shape, operation
from .paging import page_of, paging, parameter


class FileShape(Shape):
    type: Literal["file"] = "file"
    id: str
    filename: str
    mime_type: str
    size_bytes: int
    downloadable: bool = True
    expires_at: datetime | None = None
    scope: None = None
    created_at: datetime
    x_sha256: str


class FilePage(BaseModel):
    data: list[FileShape]
    has_more: bool
    first_id: str | None
    last_id: str | None
    next_page: str | None


class FileDeleted(Shape):
    type: Literal["file_deleted"] = "file_deleted"
    id: str


def file_shape(row: StoredFile) -> dict[str, Any]:
    return FileShape(
        id=row.uid,
        filename=row.filename,
        mime_type=row.mime_type,
        size_bytes=row.size,
        created_at=row.created_at,
        x_sha256=row.sha256,
    ).wire()


def visible_files(door: Door) -> Any:
    caller = door.caller
    return StoredFile.objects.visible_to(caller.user).filter(organisation=caller.organisation)


def find_file(door: Door, uid: str) -> StoredFile:
    row: StoredFile | None = visible_files(door).filter(uid=uid).first()
    if row is None:
        raise NotFound(_("There is no such file."))
    return row


def _shapes(rows: Sequence[StoredFile]) -> list[dict[str, Any]]:
    return [file_shape(row) for row in rows]


class Files(Door):
    scopes = {"GET": READ, "POST": WRITE}
    parser_classes = [MultiPartParser]
    body_limit = 0
    """The action bounds each file."""

    @operation(
        "files_list",
        tag="files",
        response=FilePage,
        query=(
            *paging(1000),
            parameter("after_id", text="List what was uploaded before this file."),
            parameter("before_id", text="List what was uploaded after this file."),
        ),
        summary="List uploaded files, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_files(self)
        for name, lookup in (("after_id", "pk__lt"), ("before_id", "pk__gt")):
            if given := query.get(name):
                rows = rows.filter(**{lookup: find_file(self, given).pk})
        body = page_of(rows, query, about="files", show=_shapes, most=1000)
        data = body["data"]
        return Response(
            {
                **body,
                "has_more": body["next_page"] is not None,
                "first_id": data[0]["id"] if data else None,
                "last_id": data[-1]["id"] if data else None,
            }
        )

    @operation(
        "files_upload",
        tag="files",
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            }
        },
        response=FileShape,
        summary="Upload a file",
    )
    def post(self, request: Request) -> Response:
        upload = request.FILES.get("file")
        if upload is None:
            raise Invalid(
                _("No file was sent."),
                field="file",
                hint=_("Send multipart/form-data with a part called “file”."),
            )
        caller = self.caller
        row = store_file(
            actor=caller.user,
            organisation=caller.organisation,
            filename=upload.name or "",
            mime_type=upload.content_type or "",
            chunks=upload.chunks(),
        )
        return Response(file_shape(row))


class OneFile(Door):
    scopes = {"GET": READ, "DELETE": WRITE}

    @operation("files_retrieve", tag="files", response=FileShape, summary="Read about a file")
    def get(self, request: Request, uid: str) -> Response:
        return Response(file_shape(find_file(self, uid)))

    @operation("files_delete", tag="files", response=FileDeleted, summary="Delete a file")
    def delete(self, request: Request, uid: str) -> Response:
        row = find_file(self, uid)
        delete_file(actor=self.caller.user, file=row)
        return Response(FileDeleted(id=uid).wire())


class FileContent(Door):
    scopes = {"GET": READ}

    @operation(
        "files_download",
        tag="files",
        response={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        summary="Download a file",
    )
    def get(self, request: Request, uid: str) -> Any:
        row = find_file(self, uid)
        content = open_file(actor=self.caller.user, file=row)
        # Never shown by a browser as a page of this site, whatever its sender called it.
        return FileResponse(
            content,
            as_attachment=True,
            filename=row.filename,
            content_type="application/octet-stream",
        )
