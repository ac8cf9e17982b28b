"""Uploads of skills: the files of one folder, or that folder as a ZIP file, in a form of several parts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from django.core.exceptions import TooManyFilesSent
from django.http.multipartparser import MultiPartParser as Parts
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import DataAndFiles, MultiPartParser
from rest_framework.request import Request

from harness.errors import Invalid, TooLarge
from skills_app.packing import below_its_folder, unpack
from wire.uploadforms import check_form

NAMES = ("files", "files[]")
"""Clients spell a list of files either way."""


class _PathParts(Parts):
    """Of a path Django keeps the last part only; written as one, the whole of it is kept. Whether it may be
    a path of a skill is `skills_app.folder`'s question."""

    def sanitize_file_name(self, file_name: str) -> str | None:
        return super().sanitize_file_name(quote(file_name, safe=""))


class FolderParser(MultiPartParser):
    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Any = None
    ) -> DataAndFiles[Any, Any]:
        request = (parser_context or {})["request"]
        meta = {**request.META, "CONTENT_TYPE": media_type}
        try:
            parser = _PathParts(meta, stream, request.upload_handlers, request.encoding or "utf-8")
            data, files = parser.parse()
        except TooManyFilesSent:
            raise TooLarge(
                _("These are more files than one form may hold."),
                field="files",
                hint=_("Send the folder as a ZIP file."),
            ) from None
        except MultiPartParserError as problem:
            raise ParseError(str(problem)) from None
        return DataAndFiles(data, files)


def folder_from(request: Request, *fields: str) -> tuple[str, dict[str, bytes]]:
    """The folder's name, empty where it has none, and its files by path. Of the form's other parts only
    `fields` may be there. Raises Invalid, and what `unpack` raises."""
    check_form(request, files=NAMES, texts=fields, several=True, hint=_("Send “files[]”."))
    sent = [each for name in NAMES for each in request.FILES.getlist(name)]
    if not sent:
        raise Invalid(
            _("No files were sent."),
            field="files",
            hint=_("Send multipart/form-data with parts called “files[]”."),
        )
    paths = [unquote(each.name or "") for each in sent]
    if len(sent) == 1 and paths[0].lower().endswith(".zip"):
        return unpack(sent[0].read())
    found: dict[str, bytes] = {}
    for path, each in zip(paths, sent, strict=True):
        if path in found:
            raise Invalid(_("This file is sent twice."), field="files", hint=path[:200])
        found[path] = each.read()
    return below_its_folder(found)
