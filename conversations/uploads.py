"""The files of a form as actions take them in; how long they may be is seen to by `wire.uploads`."""

from __future__ import annotations

from django.http import HttpRequest

from .actions.files import Upload


def received(request: HttpRequest, field: str) -> list[Upload]:
    """What was sent under `field`, in order."""
    return [
        Upload(file.name or "", file.size or 0, file.chunks())
        for file in request.FILES.getlist(field)
    ]
