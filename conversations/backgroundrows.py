"""The registry of background commands: rows that come into being, give signs of life and end once.

An end is told with the row's change, in one transaction: the event that announces it is stored exactly
when the row stops running. Carrying the commands is `conversations.background`'s part.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from harness.errors import Conflict, Forbidden
from harness.events import BackgroundFinished, NetworkRecord
from harness.history import Entry
from tools_app.builtin.commandmarks import CommandMarks

from . import log, processes
from .models import BackgroundCommand, Conversation
from .provenance import WORDS, TableProvenance
from .wakes import wake

State = BackgroundCommand.State

SILENCE_SECONDS = 60
"""A command whose process gave no sign of life for so long is taken for lost."""
FOLDER = "background"
"""Of the workspace: where output goes."""
TAIL = 2_000
"""Characters of output that an end tells."""
SHOWN = 200
"""Characters of the command that an end tells."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """A process of ours, told from every other one on every machine, before and after restarts."""

    host: str
    boot: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Carrier:
        pid = os.getpid()
        return cls(socket.gethostname()[:255], processes.boot(), pid, processes.began(pid))

    def is_gone(self, *, here: Carrier) -> bool:
        """Whether the process is known to be over; False where that cannot be seen from `here`."""
        if self.host != here.host or not (self.boot and here.boot):
            return False
        return self.boot != here.boot or processes.began(self.pid) != self.started


def carrier_of(row: BackgroundCommand) -> Carrier:
    return Carrier(row.host, row.boot, row.pid, row.process_started)


def begin(
    conversation_id: int, call_uid: str, command: str, seconds: int, marks: CommandMarks
) -> BackgroundCommand:
    """The row of a command that is about to be started, with what it may bring marked; that of an
    earlier try of the same call as it is. Raises Conflict when too many run already, and Forbidden when
    its person has left."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
        if not Conversation.objects.of_members().filter(pk=conversation_id).exists():
            raise Forbidden(_("The person this would run for has left the organisation."))
        known = BackgroundCommand.objects.filter(call_uid=call_uid).first()
        if known is not None:
            return known
        running = BackgroundCommand.objects.running().filter(conversation=conversation).count()
        if running >= settings.AGENTSITE_BACKGROUND_COMMANDS:
            raise Conflict(
                _("%(count)d background commands run already.") % {"count": running},
                hint=_("Wait for one of them to end, or cancel one."),
            )
        here, now = Carrier.this(), timezone.now()
        row = BackgroundCommand(
            conversation=conversation,
            call_uid=call_uid,
            command=command,
            timeout_seconds=seconds,
            host=here.host,
            boot=here.boot,
            pid=here.pid,
            process_started=here.started,
            seen_at=now,
            started_at=now,
            untrusted_by=marks.begin()[:WORDS],
        )
        row.output_path = f"{FOLDER}/{row.uid}.log"
        row.save()
    return row


def sign_of_life(pk: int) -> bool:
    """Whether the command shall go on: its row is there, runs, nobody asked for its end and its person
    has not left."""
    running = BackgroundCommand.objects.running().filter(pk=pk, cancel_asked_at=None)
    wanted = running.filter(conversation__in=Conversation.objects.of_members())
    return bool(wanted.update(seen_at=timezone.now()))


def end(
    pk: int,
    state: str,
    *,
    exit_code: int | None = None,
    detail: str = "",
    tail: str = "",
    network: NetworkRecord | None = None,
    untrusted_by: str | None = None,
) -> bool:
    """Write down how the command ended and have its conversation told. False when that was done
    before, or when there is no such row any more. `untrusted_by` None: what had to be feared when it
    began stays so."""
    with transaction.atomic():
        row = _held(pk)
        if row is None or row.state != State.RUNNING:
            return False
        row.state, row.exit_code, row.detail = state, exit_code, detail[:500]
        row.ended_at = timezone.now()
        row.network = network.model_dump(mode="json") if network is not None else None
        if untrusted_by is not None:
            row.untrusted_by = untrusted_by[:WORDS]
        row.save(
            update_fields=["state", "exit_code", "detail", "ended_at", "network", "untrusted_by"]
        )
        if state != State.LOST:
            TableProvenance(row.conversation_id).forget_waiting(row.call_uid)
        finished = BackgroundFinished.model_validate(
            {
                "background_id": row.uid,
                "command": " ".join(row.command.split())[:SHOWN],
                "state": state,
                "exit_code": exit_code,
                "seconds": round((row.ended_at - row.started_at).total_seconds(), 3),
                "output_path": row.output_path,
                "tail": tail[-TAIL:],
                "detail": row.detail,
                "network": row.network,
                "untrusted_by": row.untrusted_by,
            }
        )
        log.append(row.conversation_id, [Entry.of(finished)])
        wake(row.conversation_id)
    return True


def _held(pk: int) -> BackgroundCommand | None:
    """The row as it is now, its conversation locked first: whoever deletes that does the same, and an
    append locks it anyhow."""
    found = BackgroundCommand.objects.filter(pk=pk).values_list("conversation_id").first()
    if found is None:
        return None
    Conversation.objects.select_for_update(no_key=True).filter(pk=found[0]).first()
    return BackgroundCommand.objects.select_for_update(no_key=True).filter(pk=pk).first()


def end_lost() -> int:
    """Write down the end of every command whose process is over or has been silent for too long."""
    here = Carrier.this()
    lost = 0
    silent_since = timezone.now() - timedelta(seconds=SILENCE_SECONDS)
    for row in BackgroundCommand.objects.running().order_by("pk"):
        if carrier_of(row).is_gone(here=here) or row.seen_at < silent_since:
            lost += end(
                row.pk,
                State.LOST,
                detail="The server's process that carried it is gone. It may or may not have done "
                "its work: look before it is done again.",
            )
    return lost
