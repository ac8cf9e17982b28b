"""A person's folders in the organisation she works in, for what stands beside every page."""

from __future__ import annotations

from typing import Any

from django import template

from folders.finding import folders_of
from folders.models import Folder

register = template.Library()


@register.simple_tag(takes_context=True)
def folders_here(context: dict[str, Any]) -> list[Folder]:
    request = context["request"]
    return folders_of(request.user, request.organisation)
