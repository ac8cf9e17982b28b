"""A mailbox in a process that is killed at its commits: nothing of it is lost, and nothing is heard twice.

Each point is a process of its own that writes to a teammate and carries its turn, and is killed right before
or right behind one of its commits. After that the same call is made again, as the ledger does with calls that
may be repeated, and what sweeps do at a restart is done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.jobs import sweep
from conversations.models import Conversation
from harness.content import text_of
from jobs.engine import engine
from providers.scripted import registered, reply
from teams_app import attending
from teams_app.actions.mail import send_mail
from teams_app.actions.teams import spawn_teammate
from teams_app.members import Member, Status, member_of
from teams_app.models import Mail, Teammate
from tests.conversations.conftest import Converse, MakeAgent, still, until
from tests.killing.commits import When, commits
from tests.killing.databases import release
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 9
"""Of the points only some are tried, each time others of the two sides."""
MOST = 60


def status(teammate: Teammate) -> Status:
    row = Teammate.objects.select_related("team", "conversation").get(pk=teammate.pk)
    return Member(row.team, row.conversation, row).status


def quiet(teammate: Teammate) -> None:
    until(lambda: status(teammate) is not Status.WORKING)
    still()


def killed(work: Callable[[], Any], point: int, when: When) -> bool:
    """Whether a process that does it was killed at that commit; it may have been done before."""
    engine.stop()
    release()
    child = os.fork()
    if child == 0:
        try:
            plain = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

            def counted(self: Any) -> Any:
                return commits.around(lambda: plain(self))

            BaseDatabaseWrapper._commit = counted  # type: ignore[attr-defined]
            commits.arm(point, when)
            work()
        finally:
            os._exit(0)
    _pid, state = os.waitpid(child, 0)
    return os.WIFSIGNALED(state) and os.WTERMSIG(state) == signal.SIGKILL


async def swept() -> None:
    await sweep()
    await engine.in_database(attending.sweep)


def heard(conversation: Conversation, text: str) -> int:
    """How often a message entered the dialogue."""
    taken = [
        uid
        for row in conversation.events.filter(type="x.input_taken")
        for uid in row.value.event_ids
    ]
    said = conversation.events.filter(type="user.message", uid__in=taken)
    assert len(taken) == len(set(taken))
    return sum(text in text_of(row.value.content) for row in said)


def test_a_message_reaches_a_mailbox_once_wherever_the_process_is_killed(
    converse: Converse, make_agent: MakeAgent, settings: Any
) -> None:
    settings.AGENTSITE_TEAMMATES = MOST
    lead, _script = converse(lambda _request: reply("I see."), features={"teams": True})
    points = 0
    with registered("mailbox", lambda _request: reply("Yes.")):
        make_agent("Writer", provider="scripted", model="mailbox")
        for place, point in enumerate(range(1, MOST, EVERY)):
            anna = spawn_teammate(
                actor=lead.owner,
                lead=lead,
                name=f"anna{point}",
                role="",
                text="Wait.",
                agent="Writer",
            )
            quiet(anna)
            words = f"Message {point}."

            def write(anna: Teammate = anna, words: str = words) -> None:
                sender, receiver = member_of(lead), member_of(anna.conversation)
                assert sender is not None
                assert receiver is not None
                send_mail(
                    actor=lead.owner, sender=sender, receivers=[receiver], text=words, key=words
                )

            def carried(anna: Teammate = anna, write: Callable[[], None] = write) -> None:
                write()
                quiet(anna)

            died = killed(carried, point, ("before", "after")[place % 2])
            points += died
            write()
            for _restart in range(2):
                engine.submit(swept).result(PATIENCE)
                quiet(anna)

            assert Mail.objects.get(key=words).is_read, f"lost at {point}"
            assert heard(anna.conversation, words) == 1, f"at {point}"
            rests = Mail.objects.filter(receiver=lead, key__startswith="rest:")
            here = [mail for mail in rests if mail.text.startswith(f"{anna.name} ")]
            assert len(here) == 2, f"at {point}: one for each rest"
            assert {heard(lead, mail.text) for mail in here} == {2}
            if not died:
                break
    assert points >= 2, "the test found its points"
