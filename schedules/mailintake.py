"""A mail that came in begins the orders that it is addressed to: each once, by whichever way and however
often it comes. What is refused stands on the order's page with the reason; nobody is answered, or two
programs would talk.

What a mail says is a stranger's, whoever it says that it is from: it reaches the model in a message that is
marked. Which ways a mail comes in by, `mailhook` and `mailbox` say.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from conversations.actions.stored_files import remove_files, store_file
from conversations.models import StoredFile
from harness.errors import AgentError
from reading.mails import Mail, address_in, confirms, read_mail

from .access import may_go_on
from .mailaddresses import is_among, keys_in
from .models import Arrival, OrderRun, StandingOrder
from .running import queue_run

logger = logging.getLogger(__name__)

FOLDER = "mail"
"""Of the workspace: what came with the mail."""
KEPT = timedelta(days=7)
"""How long a mail's files wait for their run to begin; it has copies of its own then."""
HOUR = timedelta(hours=1)

Refusal = Arrival.Refusal


@sensitive_variables()
def is_secret(given: str) -> bool:
    """Whether this is the secret by which mail services show themselves."""
    secret = settings.AGENTSITE_INBOUND_MAIL_SECRET
    return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())


def take_in(
    raw: bytes, recipients: Sequence[str] = (), *, now: datetime | None = None
) -> list[Arrival]:
    """What became of the mail for each order that it is for: none, where it is for none. `recipients`: whom
    the mail service says that it was for, beside what the mail says. Raises `reading.mails.Unreadable`."""
    now = now or timezone.now()
    mail = read_mail(raw)
    keys = keys_in([*recipients, *mail.recipients])
    orders = StandingOrder.objects.filter(mail_key__in=keys).select_related("owner", "organisation")
    return [_take(order, mail, now) for order in orders.order_by("pk")]


def _take(order: StandingOrder, mail: Mail, now: datetime) -> Arrival:
    known = Arrival.objects.filter(order=order, key=mail.key).first()
    if known is not None:
        return known
    refusal = _why_not(order, mail, now)
    files: list[StoredFile] = []
    if refusal is None:
        try:
            files = _stored(order, mail)
        except AgentError as problem:
            logger.warning("the files of a mail to %s have no room: %s", order.uid, problem.code)
            refusal = Refusal.ROOM
    arrival = _begin(order, mail, refusal, files, now)
    if files and (arrival.run is None or not _has(arrival.run, files)):
        remove_files(files)  # somebody else took the same mail in meanwhile, or it was paused
    return arrival


def _begin(
    order: StandingOrder,
    mail: Mail,
    refusal: Arrival.Refusal | None,
    files: Sequence[StoredFile],
    now: datetime,
) -> Arrival:
    with transaction.atomic():
        held = (
            StandingOrder.objects.select_for_update(of=("self",), no_key=True)
            .select_related("owner", "organisation")
            .get(pk=order.pk)
        )
        known = Arrival.objects.filter(order=held, key=mail.key).first()
        if known is not None:
            return known
        refusal = refusal or _why_paused(held) or _too_many(held, now)
        run = None
        if refusal is None:
            run = queue_run(
                held,
                OrderRun.Trigger.MAIL,
                key=mail.key,
                payload=_payload(mail, files),
                attachments=[
                    (file.uid, f"{FOLDER}/{each.name}")
                    for file, each in zip(files, mail.files, strict=False)
                ],
            )
        return Arrival.objects.create(
            order=held,
            key=mail.key,
            sender=mail.sender[:254],
            subject=mail.subject[:200],
            refusal=refusal.value if refusal is not None else "",
            run=run,
        )


def _why_not(order: StandingOrder, mail: Mail, now: datetime) -> Arrival.Refusal | None:
    """Asked before anything of it is stored."""
    if mail.sender == address_in(settings.DEFAULT_FROM_EMAIL) or keys_in([mail.sender]):
        return Refusal.OURS
    if mail.automatic:
        return Refusal.AUTOMATIC
    if not is_among(mail.sender, order.mail_from):
        return Refusal.SENDER
    server = settings.AGENTSITE_INBOUND_MAIL_SERVER
    if server and not confirms(mail.verdicts, server, mail.sender):
        return Refusal.FORGED
    return _why_paused(order) or _too_many(order, now)


def _why_paused(order: StandingOrder) -> Arrival.Refusal | None:
    stands_still = order.archived_at is not None or order.paused_at is not None
    return Refusal.PAUSED if stands_still or not may_go_on(order) else None


def _too_many(order: StandingOrder, now: datetime) -> Arrival.Refusal | None:
    """A loop that shows no sign of one is one that does not end."""
    begun = Arrival.objects.filter(order=order, refusal="", created_at__gt=now - HOUR)
    return Refusal.TOO_MANY if begun.count() >= settings.AGENTSITE_INBOUND_MAILS else None


def _stored(order: StandingOrder, mail: Mail) -> list[StoredFile]:
    """Its files as uploads of the owner's, all or none."""
    made: list[StoredFile] = []
    if order.environment.has_workers:
        return made
    try:
        for file in mail.files:
            stored = store_file(
                actor=order.owner,
                organisation=order.organisation,
                filename=file.name,
                mime_type=file.mime_type,
                chunks=[file.data],
                expires_in=KEPT,
            )
            made.append(stored)
    except AgentError:
        remove_files(made)
        raise
    return made


def _has(run: OrderRun, files: Sequence[StoredFile]) -> bool:
    return {uid for uid, _path in run.attachments} == {file.uid for file in files}


def _payload(mail: Mail, files: Sequence[StoredFile]) -> dict[str, Any]:
    """As templates are filled with it."""
    came = [file.name for file in mail.files]
    return {
        "from": mail.sender,
        "subject": mail.subject,
        "date": mail.date,
        "text": mail.text,
        "files": [f"{FOLDER}/{name}" for name in came] if files else [],
        "files_left_out": mail.more_files + (0 if files else len(came)),
    }


def prune(now: datetime | None = None, *, days: int) -> int:
    """Forget mails that came so long ago, some at a time; how many. A mail that comes once more after that
    begins a run again, if the run of it is forgotten as well."""
    before = (now or timezone.now()) - timedelta(days=days)
    old = Arrival.objects.filter(created_at__lt=before).order_by("pk")
    keys = list(old.values_list("pk", flat=True)[:500])
    return Arrival.objects.filter(pk__in=keys).delete()[0] if keys else 0
