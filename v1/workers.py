"""Who works on this wire without being a person's program: holders of environment keys, and of the
secret that came with one work item.

Neither is an API token: a key opens the queue of its environment, an item's secret its own item and
session. What they may do there is `actions.work`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission

from accounts.api.authentication import TokenAuthentication, presented_secret
from accounts.api.scopes import HasScope
from accounts.tokens import hash_token
from harness.errors import Forbidden
from workers.actions.items import Holder
from workers.actions.keys import SECRET_PREFIX as KEY_PREFIX
from workers.items import SECRET_PREFIX as ITEM_PREFIX
from workers.models import EnvironmentKey, WorkItem

from .door import Door

SECRET_LENGTH = 200
USE_NOTED_EVERY = timedelta(minutes=1)

Kind = type[EnvironmentKey] | type[WorkItem]


@sensitive_variables("secret")
def worker_with(secret: str) -> EnvironmentKey | WorkItem | None:
    """Whose secret this is; None for no worker's. Raises AuthenticationFailed for one that is unknown
    or revoked. Whether an item's lease still lasts, the actions ask."""
    if not secret.startswith((KEY_PREFIX, ITEM_PREFIX)):
        return None
    found: EnvironmentKey | WorkItem | None = None
    if len(secret) <= SECRET_LENGTH and secret.isascii():
        digest = hash_token(secret)
        if secret.startswith(KEY_PREFIX):
            keys = EnvironmentKey.objects.select_related("environment").valid()
            found = keys.filter(digest=digest).first()
        else:
            items = WorkItem.objects.select_related("conversation", "environment")
            found = items.filter(digest=digest).first()
    if found is None:
        raise AuthenticationFailed(_("This key is not valid."))
    if isinstance(found, EnvironmentKey):
        _note_use(found)
    return found


def _note_use(key: EnvironmentKey) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_NOTED_EVERY)
    EnvironmentKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


class WorkerAuthentication(BaseAuthentication):
    """`request.worker` is the key or the item. What is no worker's secret is left to API tokens."""

    @sensitive_variables()
    def authenticate(self, request: Any) -> tuple[AnonymousUser, None] | None:
        worker = worker_with(presented_secret(request.headers))
        if worker is None:
            return None
        request.worker = worker
        return AnonymousUser(), None

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


class WorkerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = WorkerAuthentication
    name = "workerKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The key of an environment, or the secret of a work item.",
        }


class OpenTo(BasePermission):
    """Reads `workers` of the view: which of a worker's secrets a method takes. API tokens are judged
    by their scopes, as everywhere."""

    def has_permission(self, request: Any, view: Any) -> bool:
        worker = getattr(request, "worker", None)
        if worker is None:
            return HasScope().has_permission(request, view)
        if not hasattr(view, request.method.lower()):
            return True  # nothing is served: the answer is 405
        if not isinstance(worker, tuple(view.workers.get(request.method, ()))):
            raise Forbidden(
                _("This key may not be used for this."),
                hint=_(
                    "Show the environment's key for its queue, the item's secret for its session."
                ),
            )
        return True


class WorkDoor(Door):
    """A door that workers may come through too."""

    authentication_classes = [WorkerAuthentication, TokenAuthentication]
    permission_classes = [OpenTo]
    workers: Mapping[str, tuple[Kind, ...]] = {}

    @property
    def holder(self) -> Holder:
        worker: EnvironmentKey | WorkItem | None = getattr(self.request, "worker", None)
        return worker if worker is not None else self.caller.user


def for_workers(usual: Any, theirs: Any) -> Callable[..., Any]:
    """One address, two views: who shows a worker's secret gets `theirs`, everybody else `usual`. Both
    are coroutines, or neither is."""

    def chosen(request: HttpRequest) -> Callable[..., Any]:
        secret = presented_secret(request.headers)
        return theirs if secret.startswith((KEY_PREFIX, ITEM_PREFIX)) else usual  # type: ignore[no-any-return]

    def at_once(request: HttpRequest, **parameters: Any) -> Any:
        return chosen(request)(request, **parameters)

    async def awaited(request: HttpRequest, **parameters: Any) -> Any:
        return await chosen(request)(request, **parameters)

    view: Callable[..., Any] = awaited if iscoroutinefunction(usual) else at_once
    view.cls = usual.cls  # type: ignore[attr-defined]
    view.initkwargs = usual.initkwargs  # type: ignore[attr-defined]
    view.csrf_exempt = True  # type: ignore[attr-defined]
    return view
