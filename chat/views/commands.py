"""The commands that are offered while somebody types behind a slash."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.commands import commands_of

from .lookup import find_conversation

NAME_CHARACTERS = 100


@login_required
@require_safe
@never_cache
def list_commands(request: SignedInRequest, uid: str) -> JsonResponse:
    """`commands`: those whose name holds the query's `q`; those that begin with it first."""
    conversation = find_conversation(request.user, uid)
    wanted = request.GET.get("q", "")[:NAME_CHARACTERS].casefold()
    offered = commands_of(conversation, request.user)
    found = [each for each in offered if wanted in each.name.casefold()]
    found.sort(key=lambda each: not each.name.casefold().startswith(wanted))
    return JsonResponse({"commands": [asdict(each) for each in found]})
