"""What every view of `/api` shares: who may call it, in which organisation, and how it errs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from accounts.api.authentication import Caller, TokenAuthentication
from accounts.api.scopes import require_scope
from accounts.api.throttling import TokenThrottle
from accounts.current_organisation import organisation_for
from accounts.models import Organisation, TokenScope, User
from conversations.models import Conversation
from harness.errors import NotFound
from wire.jsonbodies import GivenJsonParser
from wire.parameters import check_query

from .errors import handle

ALWAYS = ("format",)
"""Parameters of every address: DRF itself reads in which form the answer is wanted."""


class MayUse(BasePermission):
    """A token needs the scope its view names for the method; a signed-in browser needs none, and a
    CSRF token for what changes something (DRF's session authentication checks it)."""

    def has_permission(self, request: Any, view: Any) -> bool:
        scopes: Mapping[str, TokenScope | None] = getattr(view, "scopes", {})
        caller = getattr(request, "caller", None)
        if not isinstance(caller, Caller):
            return bool(request.user and request.user.is_authenticated)
        scope = scopes.get("GET" if request.method in {"HEAD", "OPTIONS"} else request.method)
        if scope is not None:
            require_scope(caller, scope)
        return True


class ApiView(APIView):
    authentication_classes = [TokenAuthentication, SessionAuthentication]
    permission_classes: Any = [MayUse]
    throttle_classes: Any = [TokenThrottle]
    renderer_classes = [JSONRenderer]
    parser_classes: Any = [GivenJsonParser]
    scopes: ClassVar[Mapping[str, TokenScope | None]] = {}

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        check_query(type(self), str(request.method), request.query_params, ALWAYS)

    @property
    def actor(self) -> User:
        user = self.request.user
        assert isinstance(user, User)  # noqa: S101 - `MayUse` let nobody else in
        return user

    @property
    def organisation(self) -> Organisation:
        """A token's own; a browser's that its person works in."""
        caller = getattr(self.request, "caller", None)
        if isinstance(caller, Caller):
            return caller.organisation
        return organisation_for(self.actor, self.request.session)

    def conversations(self) -> Any:
        """Those the caller may see. A token sees those of its organisation."""
        return self.narrowed(Conversation.objects.visible_to(self.actor))

    def narrowed(self, found: Any) -> Any:
        """Of these rows those of a token's organisation; a browser's session sees all of them."""
        if isinstance(getattr(self.request, "caller", None), Caller):
            return found.filter(organisation=self.organisation)
        return found

    def find_conversation(self, uid: str) -> Conversation:
        """NotFound for anybody else's."""
        found = (
            self.conversations()
            .select_related("agent_version__agent", "environment", "organisation", "owner")
            .named(uid)
            .first()
        )
        if not isinstance(found, Conversation):
            raise NotFound(
                _("There is no such conversation."),
                hint=_("GET /api/conversations lists yours; POST /api/chat begins one."),
            )
        return found

    def get_exception_handler(self) -> Callable[..., Any]:
        return handle
