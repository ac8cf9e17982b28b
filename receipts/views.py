"""A conversation's receipt: the page that tells of it, the receipt itself, and the key it is checked with."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.views.lookup import find_conversation

from .actions.receipts import make_receipt
from .signing import current_key


@login_required
@require_safe
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    context = {
        "conversation": conversation,
        "key": current_key(),
        "is_own": conversation.owner_id == request.user.pk,
    }
    return render(request, "receipts/receipt.html", context)


@login_required
@require_safe
@never_cache
def download(request: SignedInRequest, uid: str) -> HttpResponse:
    """With `words=0`, without what was said."""
    conversation = find_conversation(request.user, uid)
    receipt = make_receipt(
        actor=request.user, conversation=conversation, words=request.GET.get("words") != "0"
    )
    return _file(receipt, f"{conversation.uid}.receipt.json", "application/json")


@login_required
@require_safe
def key(request: SignedInRequest) -> HttpResponse:
    """The public key with which receipts that are made now are checked."""
    return _file(current_key().public_pem.encode(), "receipts.pem", "application/x-pem-file")


def _file(content: bytes, name: str, kind: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=kind,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
