"""Programs that a command leaves running: what they fetch, read and write when its end has been told long
ago is as foreign as what the command itself brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from shlex import quote

import pytest

from accounts.models import User
from agents.models import Environment
from conversations.actions.background import cancel_background
from conversations.actions.messages import post_message
from conversations.models import BackgroundCommand, Conversation, ForeignMark
from conversations.provenance import TableProvenance
from harness.events import BackgroundFinished, NetworkRecord
from providers.scripted import call, reply
from sandbox.contract import NOTHING as CAPTURED
from sandbox.contract import Result
from sandbox.policy import Policy
from tests.conversations.conftest import Converse, until
from tests.conversations.strangers import more_tools, then_send, turn, upload
from tests.sandbox.attack.suite import backend_for
from tests.sandbox.attack.world import World
from tests.tools_app.web_world import policy_for
from tools_app.builtin.commandmarks import CommandMarks
from tools_app.workspace import Workspace, workspace_for

__all__ = ["more_tools"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("more_tools")]

NETWORK = (
    "network_policies: {a: {endpoints: [{host: good.example, port: 80}]}}\n"
    "require: [fs_write_confined, fs_read_confined]\n"
)
FETCH = (
    "exec 5<>/dev/tcp/127.0.0.1/3128; printf 'GET http://good.example/ HTTP/1.1\\r\\n\\r\\n' >&5; "
    "cat <&5"
)
FETCH_LATER = f"until [ -e go ]; do sleep 0.02; done; ({FETCH}) > late"
COPY_LATER = "until [ -e notes.txt ]; do sleep 0.02; done; cp notes.txt copy"
REACH = "a command that could reach good.example with what it left running"


def beside(script: str) -> str:
    return f"({script}) &"


def apart(script: str) -> str:
    """Forked twice, in a session of its own, with nothing of the command's in its hands."""
    return f"(setsid bash -c {quote(script)} </dev/null >/dev/null 2>&1 &)"


ways = pytest.mark.parametrize("leaving", [beside, apart])


@pytest.fixture
def web(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Sandboxes that reach good.example, which is a server of this machine."""
    environment.policy = NETWORK
    environment.save(update_fields=["policy"])
    with World() as world:
        monkeypatch.setattr("tools_app.sandboxes._made", lambda name: backend_for(name, world))
        yield world


def holds(conversation: Conversation, name: str, words: str) -> bool:
    path = workspace_for(conversation.uid) / name
    return path.exists() and words in path.read_text()


def ended(network: NetworkRecord | None = None, *, left: bool = False) -> Result:
    return Result("bubblewrap", True, 0, 0.1, CAPTURED, CAPTURED, network=network, left=left)


@ways
@pytest.mark.usefixtures("web")
def test_what_a_program_fetches_after_its_command_and_its_turn_have_ended_is_foreign(
    alice: User, converse: Converse, leaving: Callable[[str], str]
) -> None:
    conversation, _ = converse(
        [
            reply(call("bash", command=leaving(FETCH_LATER))),
            reply("Left."),
            *then_send(call("read_file", path="late")),
        ]
    )
    assert turn(alice, conversation) == ""
    (workspace_for(conversation.uid) / "go").touch()
    until(lambda: holds(conversation, "late", "welcome"))

    assert f"late: it was changed by, or after, {REACH}" in turn(alice, conversation, 2)


@pytest.mark.usefixtures("web")
def test_a_command_that_leaves_nothing_running_and_reaches_nothing_stays_the_agents_own(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse(then_send(call("bash", command="echo own > a & wait; cat a")))

    assert turn(alice, conversation) == ""
    assert not ForeignMark.objects.exists()


@ways
def test_a_program_left_without_network_may_copy_what_is_uploaded_after_its_command(
    alice: User, converse: Converse, leaving: Callable[[str], str]
) -> None:
    """It is left by a turn before, and no later command tells of it."""
    conversation, _ = converse(
        [
            reply(call("write_file", path="own.txt", content="mine\n")),
            reply(call("bash", command=leaving(COPY_LATER))),
            reply(call("read_file", path="own.txt")),
            *then_send(),
            *then_send(call("read_file", path="copy")),
        ]
    )
    assert turn(alice, conversation) == "", "nothing foreign is within its reach"
    upload(alice, conversation, "notes.txt", "evil words\n")
    until(lambda: holds(conversation, "copy", "evil"))

    words = "a command that may have read notes.txt: it was uploaded"
    assert f"copy: it was changed by, or after, {words}" in turn(alice, conversation, 2)


def test_programs_that_many_commands_left_have_one_mark_between_them(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse()
    marks = TableProvenance(conversation.pk)
    for number in range(3):
        command = CommandMarks(marks, f"sevt_{number}", Policy())
        assert command.begin() == ""
        assert command.end(ended(left=True)) == ""
    began = ForeignMark.objects.get().since
    assert not marks.foreign()

    upload(alice, conversation, "notes.txt", "evil words\n")
    entry = Workspace(workspace_for(conversation.uid)).write_bytes("copy.txt", b"evil words\n")
    words = "a command that may have read notes.txt: it was uploaded"
    assert marks.foreign().source_of(entry) == f"it was changed by, or after, {words}"
    reason = "a mapped file is written without changing its time"
    assert ForeignMark.objects.get(path="").since == began, reason


def test_what_came_in_while_a_command_ran_is_within_its_reach_though_its_end_is_never_told(
    alice: User, converse: Converse
) -> None:
    """The server's process may end before it."""
    conversation, _ = converse()
    marks = TableProvenance(conversation.pk)
    assert CommandMarks(marks, "sevt_1", Policy()).begin() == ""
    upload(alice, conversation, "notes.txt", "evil words\n")

    entry = Workspace(workspace_for(conversation.uid)).write_bytes("copy.txt", b"evil words\n")
    assert "may have read notes.txt" in marks.foreign().source_of(entry)


# --- beside background commands -------------------------------------------------------------------


@ways
@pytest.mark.usefixtures("web")
def test_a_background_command_that_leaves_programs_running_may_have_brought_what_they_fetch(
    alice: User, converse: Converse, leaving: Callable[[str], str]
) -> None:
    """They end with its sandbox, a moment after what they asked for was counted."""
    started = reply(call("background_run", command=leaving(FETCH_LATER)))
    conversation, _ = converse([started, reply("Started."), reply("Heard.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: conversation.events.filter(type="x.background_finished").exists())

    told = conversation.events.get(type="x.background_finished").value
    assert isinstance(told, BackgroundFinished)
    assert told.untrusted_by == BackgroundCommand.objects.get().untrusted_by == REACH
    assert ForeignMark.objects.get().settled


@pytest.mark.parametrize("ending", ["echo own & exit", "cancelled"])
def test_a_background_command_without_network_leaves_neither_programs_nor_marks(
    alice: User, converse: Converse, ending: str
) -> None:
    sleeping = "echo begun; sleep 600"
    command = sleeping if ending == "cancelled" else f"(sleep 600 &) ; {ending}"
    conversation, _ = converse(
        [reply(call("background_run", command=command)), reply("Started."), reply("Heard.")]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    if ending == "cancelled":
        row = until(BackgroundCommand.objects.first)
        cancel_background(actor=alice, conversation=conversation, background_uid=row.uid)
    until(lambda: conversation.events.filter(type="x.background_finished").exists())

    assert not ForeignMark.objects.exists()


def test_a_command_may_have_read_what_another_that_still_runs_has_fetched(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse()
    marks, policy = TableProvenance(conversation.pk), policy_for("a.example")
    looking, fetching = (CommandMarks(marks, uid, policy) for uid in ("sevt_1", "sevt_2"))
    looking.begin()
    fetching.begin()

    assert looking.end(ended(NetworkRecord())).startswith("a command that may have read what came")
