"""`/v1/files`: what programs upload, to be put into sessions, and what agents made for them there."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.http import FileResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import BaseModel
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from conversations.actions.stored_files import delete_file, open_file, store_file
from conversations.models import OutputFile, StoredFile
from conversations.sandboxing import session_root
from harness.errors import Invalid, NotFound
from programs.actions.outputs import (
    Output,
    delete_output,
    find_output,
    open_output,
    outputs_of,
)
from reading.digits import number_of
from wire.uploadforms import check_form

from .door import READ, WRITE, Door, Shape, operation
from .paging import describe, page_of, paging, parameter, values
from .resources import session_of

MOST, MOST_IDS = 1000, 100
SHORTEST, LONGEST = 3_600, 7_776_000
"""Seconds for which an upload may be kept: an hour to ninety days, as the public API has it."""


class Scope(Shape):
    type: Literal["session"] = "session"
    id: str


class FileShape(Shape):
    type: Literal["file"] = "file"
    id: str
    filename: str
    mime_type: str
    size_bytes: int
    downloadable: bool = True
    expires_at: datetime | None = None
    scope: Scope | None = None
    created_at: datetime
    x_sha256: str | None = None
    """Of an upload; what an agent made may change."""
    x_path: str | None = None
    """Of what an agent made: its path as commands of the session know it."""


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
        expires_at=row.expires_at,
        x_sha256=row.sha256,
    ).wire()


def output_shape(output: Output) -> dict[str, Any]:
    conversation, name = output.row.conversation, output.entry.name
    return FileShape(
        id=output.row.uid,
        filename=name,
        mime_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        size_bytes=output.entry.size,
        created_at=output.row.created_at,
        scope=Scope(id=conversation.uid),
        x_path=f"{session_root(conversation)}/{output.entry.path}",
    ).wire()


def find_shape(caller: Caller, uid: str) -> dict[str, Any]:
    """An upload or what an agent made, whichever has the id."""
    row = visible_files(caller).filter(uid=uid).first()
    if row is not None:
        return file_shape(row)
    return output_shape(_output(caller, uid))


def _output(caller: Caller, uid: str) -> Output:
    output = find_output(actor=caller.user, uid=uid)
    if output.row.conversation.organisation_id != caller.organisation.pk:
        raise NotFound(_("There is no such file."))
    return output


def visible_files(caller: Caller) -> Any:
    return StoredFile.objects.visible_to(caller.user).filter(organisation=caller.organisation)


def find_file(caller: Caller, uid: str) -> StoredFile:
    row: StoredFile | None = visible_files(caller).filter(uid=uid).first()
    if row is None:
        raise NotFound(_("There is no such file."))
    return row


def read_text_file(caller: Caller, uid: str, most: int) -> bytes:
    """The first `most` bytes, and one more where there are more, of an upload of the caller's."""
    with open_file(actor=caller.user, file=find_file(caller, uid)) as source:
        return source.read(most + 1)


def _shapes(rows: Sequence[StoredFile]) -> list[dict[str, Any]]:
    return [file_shape(row) for row in rows]


def _page(body: dict[str, Any]) -> dict[str, Any]:
    data = body["data"]
    return {
        **body,
        "has_more": body["next_page"] is not None,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def _listing(data: list[dict[str, Any]]) -> dict[str, Any]:
    return _page({"data": data, "next_page": None})


def expiry_of(request: Request) -> timedelta | None:
    """Of an upload's form."""
    given = request.POST.get("expires_in_seconds")
    if given is None:
        return None
    seconds = number_of(given, most=LONGEST)
    if seconds is None or seconds < SHORTEST:
        raise Invalid(
            _("It is not a whole number from %(least)d to %(most)d.")
            % {"least": SHORTEST, "most": LONGEST},
            field="expires_in_seconds",
            hint=_("Leave it out for a file that stays."),
        )
    return timedelta(seconds=seconds)


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
            *paging(MOST),
            parameter("after_id", text="List what was uploaded before this file."),
            parameter("before_id", text="List what was uploaded after this file."),
            parameter("ids[]", many=True, text=f"At most {MOST_IDS}; without limit and page."),
            parameter("scope_id", text="A session's id: what its agent made for you."),
        ),
        summary="List uploaded files, newest first, or what a session's agent made",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        ids, scope = values(query, "ids"), query.get("scope_id")
        if ids:
            return Response(_listing(self._named(query, ids, scope)))
        if scope is not None:
            return Response(self._of_session(query, scope))
        rows = visible_files(self.caller)
        for name, lookup in (("after_id", "pk__lt"), ("before_id", "pk__gt")):
            if given := query.get(name):
                rows = rows.filter(**{lookup: find_file(self.caller, given).pk})
        about = describe("files", query)
        return Response(_page(page_of(rows, query, about=about, show=_shapes, most=MOST)))

    def _named(self, query: Any, ids: list[str], scope: str | None) -> list[dict[str, Any]]:
        """Those of the named that there are, in the order they were named."""
        wanted = list(dict.fromkeys(ids))
        if len(wanted) > MOST_IDS:
            raise Invalid(
                _("More than %(limit)d ids are given.") % {"limit": MOST_IDS},
                field="ids",
                hint=_("Ask in several requests."),
            )
        for name in ("limit", "page", "after_id", "before_id"):
            if query.get(name) is not None:
                raise Invalid(
                    _("It cannot be given together with ids."),
                    field=name,
                    hint=_("Leave it out: the answer is a single page."),
                )
        session = session_of(self.caller, scope).uid if scope is not None else None
        found = []
        for uid in wanted:
            try:
                found.append(find_shape(self.caller, uid))
            except NotFound:
                continue
        if session is None:
            return found
        return [one for one in found if one["scope"] and one["scope"]["id"] == session]

    def _of_session(self, query: Any, scope: str) -> dict[str, Any]:
        for name in ("after_id", "before_id"):
            if query.get(name) is not None:
                raise Invalid(
                    _("It cannot be given together with scope_id."),
                    field=name,
                    hint=_("Use page, with the next_page of an earlier answer."),
                )
        session = session_of(self.caller, scope)
        there = {
            output.row.pk: output
            for output in outputs_of(actor=self.caller.user, conversation=session)
        }

        def show(rows: Sequence[OutputFile]) -> list[dict[str, Any]]:
            return [output_shape(there[row.pk]) for row in rows]

        rows = OutputFile.objects.filter(pk__in=there)
        about = f"outputs of {session.uid}"
        return _page(page_of(rows, query, about=about, show=show, most=MOST))

    @operation(
        "files_upload",
        tag="files",
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "expires_in_seconds": {
                        "type": "integer",
                        "minimum": SHORTEST,
                        "maximum": LONGEST,
                    },
                },
                "required": ["file"],
            }
        },
        response=FileShape,
        summary="Upload a file",
    )
    def post(self, request: Request) -> Response:
        check_form(
            request,
            files=["file"],
            texts=["expires_in_seconds"],
            hint=_("Send “file”, and “expires_in_seconds” if it is to expire."),
        )
        upload = request.FILES.get("file")
        if upload is None:
            raise Invalid(
                _("No file was sent."),
                field="file",
                hint=_("Send multipart/form-data with a part called “file”."),
            )
        caller = self.caller
        expires_in = expiry_of(request)
        row = store_file(
            actor=caller.user,
            organisation=caller.organisation,
            filename=upload.name or "",
            mime_type=upload.content_type or "",
            chunks=upload.chunks(),
            expires_in=expires_in,
        )
        return Response(file_shape(row))


class OneFile(Door):
    scopes = {"GET": READ, "DELETE": WRITE}

    @operation("files_retrieve", tag="files", response=FileShape, summary="Read about a file")
    def get(self, request: Request, uid: str) -> Response:
        return Response(find_shape(self.caller, uid))

    @operation("files_delete", tag="files", response=FileDeleted, summary="Delete a file")
    def delete(self, request: Request, uid: str) -> Response:
        actor = self.caller.user
        row = visible_files(self.caller).filter(uid=uid).first()
        if row is not None:
            delete_file(actor=actor, file=row)
        else:
            delete_output(actor=actor, uid=_output(self.caller, uid).row.uid)
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
        actor = self.caller.user
        row = visible_files(self.caller).filter(uid=uid).first()
        if row is not None:
            filename, content = row.filename, open_file(actor=actor, file=row)
        else:
            output, content = open_output(actor=actor, uid=_output(self.caller, uid).row.uid)
            filename = output.entry.name
        # Never shown by a browser as a page of this site, whatever its sender called it.
        return FileResponse(
            content,
            as_attachment=True,
            filename=filename,
            content_type="application/octet-stream",
        )
