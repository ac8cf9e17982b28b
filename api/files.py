"""`/api/files` and `/api/workspace`: the files of one conversation's workspace.

Each conversation has its own, so every address names one.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from typing import Any

from django.http import FileResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.models.environment import DEFAULT_UPLOAD_LIMIT
from conversations.actions.files import add_files
from conversations.models import Conversation
from conversations.uploads import received
from harness.errors import Forbidden, Invalid, NotFound
from harness.refusals import not_among
from tools_app.confinement import parse_path
from tools_app.workspace import Entry, Workspace, workspace_for
from wire.uploadforms import check_form
from wire.uploads import LimitedUploadHandler

from .base import ApiView
from .pages import cursor_of, encode_cursor, limit_of, page
from .reserved import is_shown
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import FileContent, FileRow, Uploaded, UploadForm

CONVERSATION = OpenApiParameter(
    "conversation_id", OpenApiTypes.STR, required=True, description="Whose workspace it is."
)
PATH = OpenApiParameter(
    "path", OpenApiTypes.STR, OpenApiParameter.PATH, description="Relative to the workspace."
)
MEDIA = ("image/", "audio/", "video/")
"""What is not shown as text, whatever it holds."""


class FilesView(ApiView):
    """What the addresses below share."""

    def named_conversation(self, request: Any) -> Conversation:
        uid = request.query_params.get("conversation_id")
        if not uid:
            raise Invalid(
                _("conversation_id: Which conversation's workspace is meant?"),
                field="conversation_id",
                hint=_("Add ?conversation_id=… to the address."),
            )
        return self.find_conversation(uid)


class DownloadView(FilesView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="files_retrieve",
        summary="Download a file of a conversation's workspace",
        tags=["Files"],
        parameters=[PATH],
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            **errors(401, 403, 404, 422),
        },
    )
    def get(self, request: Any, uid: str, path: str) -> Any:
        workspace = Workspace(workspace_for(self.find_conversation(uid).uid))
        allowed_path(path)
        file = workspace.open_for_read(path)
        response = FileResponse(
            file,
            as_attachment=True,
            filename=path.rstrip("/").rpartition("/")[2],
            content_type="application/octet-stream",
        )
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response


class WorkspaceFilesView(FilesView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="workspace_files_list",
        summary="List the files of a conversation's workspace",
        tags=["Files"],
        parameters=[CONVERSATION, LIMIT, CURSOR],
        responses=listed(FileRow, 401, 403, 404, 413, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, str)
        workspace = Workspace(workspace_for(self.named_conversation(request).uid))
        behind = tuple(cursor[0].split("/")) if cursor else ()
        found: list[Entry] = []
        for entry in _shown_files(workspace):
            # A walk goes folder by folder, which is the order of the paths' parts.
            if tuple(entry.path.split("/")) <= behind:
                continue
            found.append(entry)
            if len(found) > limit:
                break
        items = [{"name": e.name, "path": e.path, "size": e.size} for e in found[:limit]]
        more = encode_cursor(found[limit - 1].path) if len(found) > limit else ""
        return page(request, items, more)


class WorkspaceFileView(FilesView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="workspace_file_retrieve",
        summary="Read the beginning of a file",
        tags=["Files"],
        parameters=[PATH, CONVERSATION],
        responses=answers(FileContent, 401, 403, 404, 422),
    )
    def get(self, request: Any, path: str) -> Response:
        workspace = Workspace(workspace_for(self.named_conversation(request).uid))
        allowed_path(path)
        preview = workspace.preview(path)
        guessed = mimetypes.guess_type(preview.entry.name)[0] or ""
        binary = preview.binary or guessed.startswith(MEDIA)
        language = preview.language if preview.language not in {"", "text"} else None
        return Response(
            {
                "path": preview.entry.path,
                "name": preview.entry.name,
                "size": preview.entry.size,
                "content": None if binary else preview.text,
                "binary": binary,
                "language": None if binary else language,
                "truncated": preview.truncated and not binary,
            }
        )


class UploadView(FilesView):
    scopes = {"POST": TokenScope.CONVERSATIONS_WRITE}
    parser_classes = [MultiPartParser]
    may_be_empty = ("subdir",)
    """The workspace itself, as clients of the REST protocol say it."""

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The form may be read as early as by the CSRF check, so its limit must stand before."""
        uid = request.GET.get("conversation_id", "")
        rows = Conversation.objects.select_related("environment")
        named = rows.named(uid).first() if uid else None
        limit = named.environment.upload_limit if named else DEFAULT_UPLOAD_LIMIT
        request.upload_handlers.insert(0, LimitedUploadHandler(request, limit))
        return super().initialize_request(request, *args, **kwargs)

    @extend_schema(
        operation_id="workspace_upload_create",
        summary="Upload files",
        description=(
            "All of them or none. Of a file's name the last component counts; a file that has the "
            "name already is replaced, unless `overwrite=false`: then the new one gets a number."
        ),
        tags=["Files"],
        parameters=[
            CONVERSATION,
            OpenApiParameter("subdir", OpenApiTypes.STR, description="Made if missing."),
            OpenApiParameter("overwrite", OpenApiTypes.BOOL, default=True),
        ],
        request={"multipart/form-data": UploadForm},
        responses={
            **answers(Uploaded, 401, 403, 404, 409, 413, 415, 422),
            400: OpenApiResponse(
                description="A form that the web server itself cannot read; without a body."
            ),
        },
    )
    def post(self, request: Any) -> Response:
        conversation = self.named_conversation(request)
        subdir = request.query_params.get("subdir", "")
        allowed_path(subdir)
        overwrite = request.query_params.get("overwrite", "true").lower()
        if overwrite not in {"true", "false"}:
            raise not_among("overwrite", overwrite, ("true", "false"))
        uploads = received(request, "files")
        if uploads:  # without any, that is what is wrong with it
            check_form(request, files=["files"], several=True, hint=_("Send “files” alone."))
        stored = add_files(
            actor=self.actor,
            conversation=conversation,
            uploads=uploads,
            folder=subdir,
            replace=overwrite == "true",
        )
        return Response({"uploaded": [entry.path for entry in stored]})


def allowed_path(path: str) -> None:
    """Forbidden for what leads outside or is reserved, as the REST protocol has it; what is no path
    at all stays Invalid."""
    try:
        parts = parse_path(path)
    except Invalid as problem:
        if "\0" in path:
            raise
        hint = problem.hint or _("Choose another name.")
        raise Forbidden(problem.message, hint=hint) from None
    if not is_shown("/".join(parts)):
        raise Forbidden(
            _("This path is reserved: it belongs to the system."), hint=_("Choose another name.")
        )


def _shown_files(workspace: Workspace) -> Iterator[Entry]:
    try:
        for entry in workspace.walk():
            if entry.kind == "file" and is_shown(entry.path):
                yield entry
    except NotFound:
        return
