"""Receiving files: a handler that stops keeping a file once it is longer than it may be.

How long one may be, and what becomes of it, is said by who takes it in.
"""

from __future__ import annotations

from io import BytesIO
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest


class LimitedUploadHandler(FileUploadHandler):
    """Stands before the others. Of a file past `limit` nothing more is kept, neither on disk nor in
    memory; what is handed on in its place is empty and says how long it was."""

    def __init__(self, request: HttpRequest, limit: int) -> None:
        super().__init__(request)
        self.limit = limit
        self._size = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._size = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        self._size += len(raw_data)
        return raw_data if self._size <= self.limit else None

    def file_complete(self, file_size: int) -> UploadedFile[bytes] | None:
        if self._size <= self.limit:
            return None
        return UploadedFile(BytesIO(), name=self.file_name, size=self._size)

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: dict[str, str],  # noqa: N803 - Django's name
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        return None
