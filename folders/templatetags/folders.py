"""A person's folders in the organisation she works in, for what stands beside every page."""

from __future__ import annotations

from typing import Any

from django import template

from conversations.models import Conversation
from folders.finding import folder_of, folders_of
from folders.models import Folder

register = template.Library()


@register.simple_tag(takes_context=True)
def folders_here(context: dict[str, Any]) -> list[Folder]:
    request = context["request"]
    return folders_of(request.user, request.organisation)


@register.simple_tag(takes_context=True, name="folder_of")
def folder_it_lies_in(context: dict[str, Any], conversation: Conversation) -> Folder | None:
    """That in which this person has the conversation."""
    return folder_of(context["request"].user, conversation)
