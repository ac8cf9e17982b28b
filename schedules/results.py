"""Takes what a run brought to where its order wants it beside the conversation: mails, and a file of the
owner's.

Rows say what is to go out; they are written where a run's end is settled, so each is written once. A mail is
claimed before it is handed over: a process that dies in between has told too little rather than twice, says
so, and a person may have it sent again. A file is stored in the transaction that says that it is. Who may
have it is asked when it goes out, not when it was wanted.
"""

from __future__ import annotations

import logging
import smtplib
from datetime import datetime, timedelta
from email.utils import make_msgid
from functools import partial

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, QuerySet
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.languages import language_of
from accounts.models import User
from conversations import removals
from conversations.actions.stored_files import remove_files, store_file
from conversations.models import Conversation, StoredFile
from conversations.models.stored_file import new_file_id
from harness.errors import Invalid, LimitReached, NotFound, TooLarge
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from jobs.metrics import MAILS
from jobs.prepared import Prepared
from notices.stopping import headers_of
from notices.waiting import may_be_mailed

from .access import may_go_on
from .models import Delivery, OrderRun, StandingOrder
from .models.delivery import PAUSES
from .projection import last_words

logger = logging.getLogger(__name__)

SEND = "schedules.send"
"""The job that sends what waits."""
STOPS = "result"
"""The kind of mail that the link in one of these stops, for its schedule."""
AT_A_TIME = 200
PATIENCE = timedelta(minutes=10)
"""A mail that is being sent for longer was left behind by a process that died."""
MOST_MAILED = 20_000
"""Characters of an answer that a mail has; all of it is in the conversation."""
TEXT_TYPE = "text/markdown"

Why, State, Way = Delivery.Why, Delivery.State, Delivery.Way


_READERS = Prepared(
    lambda given: User.objects.filter(
        pk__in=StandingOrder.readers.through.objects.filter(standingorder=given.order).values(
            "user"
        )
    ).order_by("pk")
)
"""Asked for each run that ends."""


def want(run: OrderRun) -> None:
    """Write down what is to go out of a run that has ended, in the transaction that settles its end."""
    order = run.order
    wanted = [(Way.MAIL, user) for user in _readers(order)]
    if order.result_files and run.began:
        wanted.append((Way.FILE, order.owner))
    if not wanted:
        return
    rows = [Delivery(run=run, way=way, user=user) for way, user in wanted]
    Delivery.objects.bulk_create(rows, ignore_conflicts=True)
    dispatch(SEND)


def _readers(order: StandingOrder) -> list[User]:
    readers = _READERS.all(order=order.pk)
    return [order.owner, *readers] if order.mails_owner else readers


def send_waiting(now: datetime | None = None) -> int:
    """Send what waits and is due; how many rows were looked at. One query where none does."""
    now = now or timezone.now()
    left = Delivery.objects.filter(state=State.SENDING, changed_at__lt=now - PATIENCE)
    left.update(state=State.FAILED, why=Why.UNKNOWN)
    found = list(Delivery.objects.due(now).values_list("pk", flat=True)[:AT_A_TIME])
    told = "the result %s of a schedule could not go out"
    each_apart(partial(_send_one, now), found, told=told)
    return len(found)


def _send_one(now: datetime, delivery_id: int) -> None:
    """Nothing, if somebody else has it or has just tried."""
    way = Delivery.objects.due(now).filter(pk=delivery_id).values_list("way", flat=True).first()
    if way == Way.FILE:
        _store(delivery_id)
    elif way == Way.MAIL:
        claimed = Delivery.objects.due(now).filter(pk=delivery_id)
        if claimed.update(state=State.SENDING, tries=F("tries") + 1, changed_at=timezone.now()):
            _mail(_with_all(Delivery.objects.filter(pk=delivery_id)).get())


def _with_all(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    return rows.select_related(
        "user", "run__conversation", "run__order__owner", "run__order__organisation"
    )


def _settle(delivery: Delivery, state: Delivery.State, why: Delivery.Why | None = None) -> None:
    delivery.state, delivery.why = state, why.value if why is not None else ""
    delivery.save(update_fields=["state", "why", "file", "changed_at"])


# --- mails ----------------------------------------------------------------------------------------


def _mail(delivery: Delivery) -> None:
    why = _why_not(delivery)
    if why is not None:
        _settle(delivery, State.LEFT_OUT, why)
        return
    try:
        compose(delivery).send()
    except (OSError, smtplib.SMTPException) as refusal:
        # Without the exception's text: a mail server may quote the message.
        logger.warning(
            "the result %s could not be mailed: %s", delivery.uid, type(refusal).__name__
        )
        MAILS.labels("result", "failed").inc()
        given_up = delivery.tries > len(PAUSES)
        _settle(
            delivery,
            State.FAILED if given_up else State.WAITING,
            Why.REFUSED if given_up else None,
        )
        return
    MAILS.labels("result", "sent").inc()
    _settle(delivery, State.SENT)


def _why_not(delivery: Delivery) -> Delivery.Why | None:
    """Why this person gets no mail about this run now; None: she does."""
    run, user = delivery.run, delivery.user
    order = run.order
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and settings.AGENTSITE_BASE_URL):
        return Why.NO_MAIL
    if not may_go_on(order):
        return Why.RIGHTS
    if user.pk == order.owner_id:
        if not order.mails_owner:
            return Why.STOPPED
    else:
        if not order.readers.filter(pk=user.pk).exists():
            return Why.STOPPED
        seen = Conversation.objects.visible_to(user)
        if run.conversation is None or not seen.filter(pk=run.conversation.pk).exists():
            return Why.RIGHTS
    return None if may_be_mailed(user) else Why.NO_ADDRESS


def compose(delivery: Delivery) -> EmailMessage:
    """In her language. The link leads to a page that asks who one is."""
    run, user = delivery.run, delivery.user
    order, site = run.order, settings.AGENTSITE_BASE_URL
    failed = run.state == OrderRun.State.FAILED
    answer = answer_of(run)
    headers = headers_of(user, STOPS, order.uid)
    host = site.split("://")[-1].split("/")[0].split(":")[0]
    with translation.override(language_of(user)):
        name = " ".join(order.name.split())
        subject = (_("%(name)s: failed") if failed else _("%(name)s: ended well")) % {"name": name}
        page = run.conversation.get_absolute_url() if run.conversation else order.get_absolute_url()
        body = render_to_string(
            "schedules/result_mail.txt",
            {
                "user": user,
                "order": order,
                "run": run,
                "failed": failed,
                "answer": answer[:MOST_MAILED],
                "is_cut": len(answer) > MOST_MAILED,
                "page": site + page,
                "stop_link": headers["List-Unsubscribe"].strip("<>"),
            },
        )
    # The same for every try, so that a mail program sees that it is one mail.
    headers["Message-ID"] = f"<{delivery.uid}@{host}>" if host.isascii() else make_msgid()
    return EmailMessage(f"[Agentsite] {subject}", body, to=[user.email], headers=headers)


def answer_of(run: OrderRun) -> str:
    """What the agent has said last, as far as it still stands in the conversation."""
    if run.conversation is None:
        return ""
    return last_words(run.conversation)


# --- files ----------------------------------------------------------------------------------------


def _store(delivery_id: int) -> None:
    file_uid = new_file_id()
    with removals.unless_begun(file_uid), transaction.atomic():
        # Its answer is copied: whoever takes that out holds the run first as well (`forgetting`).
        runs = OrderRun.objects.select_for_update(of=("self",), no_key=True)
        runs.filter(deliveries=delivery_id).first()
        held = Delivery.objects.waiting().select_for_update(of=("self",), no_key=True)
        delivery = _with_all(held).filter(pk=delivery_id).first()
        if delivery is None:
            return
        run, order = delivery.run, delivery.run.order
        answer = answer_of(run)
        if not may_go_on(order):
            _settle(delivery, State.LEFT_OUT, Why.RIGHTS)
        elif not answer.strip():
            _settle(delivery, State.LEFT_OUT, Why.NOTHING)
        else:
            try:
                # Together: what is older stays where the new one has no room.
                with transaction.atomic():
                    _make_room(order, delivery)
                    delivery.file = store_file(
                        actor=order.owner,
                        organisation=order.organisation,
                        filename=name_of(run),
                        mime_type=TEXT_TYPE,
                        chunks=[answer.encode("utf-8", "replace")],
                        noted=file_uid,
                    )
            except (Invalid, LimitReached, NotFound, TooLarge):
                _settle(delivery, State.FAILED, Why.ROOM)
            else:
                _settle(delivery, State.SENT)


def name_of(run: OrderRun) -> str:
    """A name that sorts by time and that every system takes."""
    at = timezone.localtime(run.due_at or run.started_at or run.created_at)
    name = "".join(sign if sign.isalnum() or sign in " -_." else "-" for sign in run.order.name)
    return f"{name.strip(' .')[:100] or 'result'} {at:%Y-%m-%d %H%M}.md"


def _make_room(order: StandingOrder, made: Delivery) -> None:
    """Delete what is older than the last files that are to be kept, with the one that is to come."""
    kept = max(order.result_files, 1) - 1
    older = Delivery.objects.filter(run__order=order, way=Way.FILE).exclude(file=None)
    rows = older.exclude(pk=made.pk).order_by("-pk")[kept : kept + AT_A_TIME]
    remove_files(StoredFile.objects.filter(pk__in=[row.file_id for row in rows]))


def forget_files(conversation: Conversation) -> None:
    """Delete the files with what this conversation's runs answered: something of it was taken out."""
    held = Delivery.objects.filter(run__conversation=conversation, way=Way.FILE).exclude(file=None)
    remove_files(StoredFile.objects.filter(pk__in=held.values("file")))


# --- people ---------------------------------------------------------------------------------------


def stop_mails(user: User, order_uid: str) -> None:
    """The person gets no mails of this schedule any more; again is the same as once."""
    for order in StandingOrder.objects.filter(uid=order_uid):
        StandingOrder.objects.filter(pk=order.pk, owner=user).update(mails_owner=False)
        order.readers.remove(user)
