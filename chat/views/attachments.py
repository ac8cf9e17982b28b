"""Files on their way into a message: uploaded one by one, or taken back. Scripts ask; answers are JSON."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST

from accounts.models import Organisation
from accounts.requests import SignedInRequest
from agents.models import Environment
from chat.attaching import chips
from conversations.actions.attachments import keep_attachment, remove_attachment
from conversations.actions.conversations import find_environment
from conversations.uploads import received
from harness.errors import Invalid
from wire.uploads import LimitedUploadHandler

from .lookup import find_conversation


@csrf_exempt  # the token is looked for in the body, which may be read only once the limit is known
@login_required
@require_POST
def attach(request: SignedInRequest) -> HttpResponseBase:
    """For a message in the conversation that the query names, or in one that is to begin in the
    environment it names."""
    if uid := request.GET.get("conversation"):
        conversation = find_conversation(request.user, uid)
        organisation, environment = conversation.organisation, conversation.environment
    else:
        organisation = request.organisation
        environment = find_environment(
            actor=request.user, organisation=organisation, wanted=request.GET.get("environment", "")
        )
    handler = LimitedUploadHandler(request, environment.upload_limit)
    request.upload_handlers.insert(0, handler)
    return _attach(request, organisation, environment)


@csrf_protect
def _attach(
    request: HttpRequest, organisation: Organisation, environment: Environment
) -> HttpResponse:
    assert request.user.is_authenticated  # noqa: S101 - attach() requires it
    uploads = received(request, "file")
    if len(uploads) != 1:
        raise Invalid(
            _("No file was sent."), field="file", hint=_("Send one file in each request.")
        )
    kept = keep_attachment(
        actor=request.user, organisation=organisation, environment=environment, upload=uploads[0]
    )
    return JsonResponse(chips([kept])[0], status=201)


@login_required
@require_POST
def remove(request: SignedInRequest, file_uid: str) -> HttpResponse:
    remove_attachment(actor=request.user, uid=file_uid)
    return HttpResponse(status=204)
