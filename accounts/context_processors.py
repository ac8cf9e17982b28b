"""The organisations a page's header lets a person choose from."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.models import Organisation
from jobs.prepared import Prepared

_OWN = Prepared(lambda given: Organisation.objects.of_member(given.user))


def organisations(request: HttpRequest) -> dict[str, Any]:
    """`organisations`: the person's own, asked for only when a template shows them."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"organisations": Organisation.objects.none()}
    return {"organisations": SimpleLazyObject(lambda: _OWN.all(user=user.pk))}
