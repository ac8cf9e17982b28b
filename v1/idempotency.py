"""`Idempotency-Key`: a request that is sent again is answered as before, and nothing happens twice.

Ours, not the public API's: its clients retry after a dropped connection and would send a message
twice. The row is written in the transaction of what the request does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from conversations.models import RequestKey
from conversations.request_keys import KEPT
from harness.errors import Conflict, Invalid

from .door import clean

HEADER = "Idempotency-Key"
KEY_LIMIT = 200


def once(request: Request, caller: Caller, act: Callable[[], dict[str, Any]]) -> Response:
    """`act` once for each key: its answer, or the one that the first request with the key got.

    Conflict when the key was used for another request, or one with it is under way.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return Response(act())
    if not (0 < len(key) <= KEY_LIMIT and key.isascii() and key.isprintable()):
        raise Invalid(
            _("The key has 1 to %(limit)d printable ASCII characters.") % {"limit": KEY_LIMIT},
            field=HEADER,
            hint=_("Use a new key for each request."),
        )
    digest = _digest(request)
    mine = {"organisation": caller.organisation, "user": caller.user, "key": key}
    try:
        with transaction.atomic():
            RequestKey.objects.filter(created_at__lt=timezone.now() - KEPT, **mine).delete()
            row = RequestKey.objects.create(**mine, digest=digest)
            answer = act()
            row.status, row.answer = 200, clean(answer)
            row.save(update_fields=["status", "answer"])
            return Response(answer)
    except IntegrityError:
        known = RequestKey.objects.filter(**mine).first()
        if known is None:
            raise
    if known.digest != digest:
        raise Conflict(
            _("This key was used for another request."), hint=_("Use a new key for each request.")
        )
    return Response(known.answer, headers={"x-idempotent-replay": "true"})


def was_sent(request: Request, caller: Caller) -> bool:
    """Whether one with its key was answered, so that nothing need be made ready for it. A moment later that
    may be otherwise."""
    key = request.headers.get(HEADER)
    mine = RequestKey.objects.filter(organisation=caller.organisation, user=caller.user, key=key)
    return key is not None and mine.filter(created_at__gte=timezone.now() - KEPT).exists()


def _digest(request: Request) -> str:
    text = f"{request.method} {request.path}\n".encode()
    return hashlib.sha256(text + repr(clean(request.data)).encode()).hexdigest()
