"""The page of the board."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest

from .models import Note


@require_safe
@login_required
def board(request: SignedInRequest) -> HttpResponse:
    notes = Note.objects.visible_to(request.user)
    return render(request, "noteboard/board.html", {"notes": notes})
