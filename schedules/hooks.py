"""Signed requests that begin an order: Standard Webhooks, as this server signs its own.

A request is good for five minutes either way of its time, and its id begins one run however often it comes.
The body is limited before it is read (`views.hook`).
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from standardwebhooks import Webhook, WebhookVerificationError

from accounts import vault
from harness.errors import Conflict, Invalid, NotFound
from reading.foreignjson import Unreadable, read_json

from .access import may_go_on
from .models import OrderRun, StandingOrder
from .running import queue_run

BODY_BYTES = 64 * 1024
KEY_LIMIT = 100


@sensitive_variables("opened")
def receive(uid: str, headers: Mapping[str, str], body: bytes) -> OrderRun:
    """The run that this request begins, or began. Raises NotFound for what is not signed by this order's
    secret within its time, Conflict for one that is paused or archived, Invalid for what is no JSON."""
    rows = StandingOrder.objects.exclude(hook_secret="").select_related("owner", "organisation")
    order = rows.filter(uid=uid).first()
    if order is None:
        raise _nothing()
    opened = Webhook(vault.open_sealed(order.hook_secret))
    try:
        opened.verify(body.decode("utf-8", "surrogateescape"), dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError, OverflowError):
        raise _nothing() from None
    key = headers["webhook-id"]
    if not (0 < len(key) <= KEY_LIMIT and key.isprintable()):
        raise Invalid(
            _("The id has more than %(limit)d characters.") % {"limit": KEY_LIMIT},
            field="webhook-id",
        )
    try:
        payload = read_json(body, limit=BODY_BYTES) if body.strip() else None
    except Unreadable as problem:
        raise Invalid(
            _("The body is no JSON that can be read: %(why)s.") % {"why": problem},
            hint=_("Send a JSON value, or nothing."),
        ) from None
    with transaction.atomic():
        held = StandingOrder.objects.select_for_update(of=("self",), no_key=True).get(pk=order.pk)
        if held.archived_at is not None or held.paused_at is not None or not may_go_on(order):
            raise Conflict(
                _("This schedule is paused."),
                hint=_("Its owner can let it go on, then send it again."),
            )
        return queue_run(held, OrderRun.Trigger.WEBHOOK, key=key, payload=payload)


def _nothing() -> NotFound:
    return NotFound(_("There is nothing at this address, or the signature is not valid."))


def reseal_hooks() -> int:
    """Seal every secret under the first vault key; how many. In the caller's transaction."""
    count = 0
    for order in StandingOrder.objects.exclude(hook_secret="").select_for_update():
        order.hook_secret = vault.reseal(order.hook_secret)
        order.save(update_fields=["hook_secret"])
        count += 1
    return count
