"""What is not there answers in the door's own words, not with a page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema

from harness.errors import NotFound

from .base import ApiView


@extend_schema(exclude=True)
class MissingView(ApiView):
    authentication_classes = []
    permission_classes: Any = []

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        raise NotFound(_("There is no such address."), hint=_("GET /api/schema/ lists them."))

    def get(self, request: Any, rest: str) -> None:
        """Never reached, as `post` is not."""

    post = get
