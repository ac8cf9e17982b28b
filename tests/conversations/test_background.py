"""Background commands: started at once, told exactly once, cancelled with all they started, never lost
in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from chat.presentation.frames import page
from conversations import background, backgroundrows
from conversations.actions.background import cancel_all_background, cancel_background
from conversations.actions.conversations import delete_conversation
from conversations.actions.messages import post_message, stop
from conversations.background import ConversationsBackground
from conversations.backgroundrows import Carrier
from conversations.models import BackgroundCommand, Event
from conversations.provenance import TableProvenance
from conversations.sandboxing import plan_sandbox, shell_access
from harness.content import text_of
from harness.errors import NotFound
from harness.events import BackgroundFinished
from jobs.engine import engine
from providers.scripted import Hold, call, reply, say
from sandbox.policy import Policy
from tests.conversations.conftest import rested, still, until
from tests.patience import PATIENCE
from tools_app.builtin.commandmarks import CommandMarks
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db(transaction=True)

State = BackgroundCommand.State


def run(command: str, **more):
    return reply(call("background_run", command=command, **more))


def said(conversation) -> list[str]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [text_of(row.value.content) for row in rows]


def ends(conversation) -> list[BackgroundFinished]:
    rows = conversation.events.filter(type="x.background_finished").order_by("seq")
    return [row.value for row in rows]


def ask(conversation, actor, text="Go.", times=1):
    post_message(actor=actor, conversation=conversation, text=text)
    return rested(conversation, times)


def row_of(conversation) -> BackgroundCommand:
    return BackgroundCommand.objects.get(conversation=conversation)


def processes_with(mark: str) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if mark in line and "ps -eo" not in line]


def told(scripted) -> list[str]:
    """What the last request says of ends."""
    return [
        part.text
        for message in scripted.requests[-1].messages
        for part in message.parts
        if "background command" in getattr(part, "text", "")
    ]


def test_it_answers_at_once_and_its_end_begins_a_turn_that_is_told_of_it(alice, converse):
    conversation, scripted = converse(
        [
            run("until [ -e go ]; do sleep 0.05; done; echo built; exit 4"),
            reply("Started."),
            reply("It failed."),
        ]
    )
    ask(conversation, alice)
    assert "Started as bg_" in said(conversation)[0]
    (workspace_for(conversation.uid) / "go").touch()
    rested(conversation, 2)
    (end,) = ends(conversation)
    assert (end.state, end.exit_code, end.tail) == ("failed", 4, "built\n")
    assert "has ended: failed, exit code 4" in told(scripted)[0]
    row = row_of(conversation)
    assert (row.state, row.exit_code) == (State.FAILED, 4)
    file = workspace_for(conversation.uid) / row.output_path
    assert file.read_text() == "built\n"
    still()
    conversation.refresh_from_db()
    assert not conversation.owes_run
    assert len(ends(conversation)) == 1


def test_an_end_while_the_agent_works_is_told_in_that_turn(alice, converse):
    working = Hold()
    script = [
        reply(call("background_run", command="echo quick")),
        reply(say("I look. ", working), call("bash", command="true")),
        reply("Both done."),
    ]
    conversation, scripted = converse(script)
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: ends(conversation))
    working.release.set()
    rested(conversation)
    still()
    assert len(told(scripted)) == 1
    assert conversation.events.filter(type="session.status_idle").count() == 1


def test_an_end_is_written_down_once_whoever_writes_it(alice, converse):
    conversation, _ = converse([run("sleep 600"), reply("Started."), reply("Ended.")])
    ask(conversation, alice)
    row = row_of(conversation)
    assert backgroundrows.end(row.pk, State.COMPLETED, exit_code=0)
    assert not backgroundrows.end(row.pk, State.LOST)
    rested(conversation, 2)
    until(lambda: not processes_with("sleep 600"))  # its process hears that it is over
    still()
    assert [end.state for end in ends(conversation)] == ["completed"]


def test_a_stop_leaves_it_alone(alice, converse):
    mark = f"600.{os.getpid()}5"
    conversation, _ = converse([run(f"sleep {mark}"), reply(call("bash", command="sleep 300"))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: conversation.events.filter(type="span.tool_start").count() == 2)
    until(lambda: processes_with(f"sleep {mark}"))
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    assert row_of(conversation).state == State.RUNNING
    assert processes_with(f"sleep {mark}")
    assert cancel_all_background(actor=alice, conversation=conversation) == 1
    until(lambda: not processes_with(f"sleep {mark}"))


def test_cancelling_kills_all_it_started_and_says_so(alice, converse):
    mark = f"600.{os.getpid()}6"
    command = f"echo begun; (sleep {mark} &) ; setsid sleep {mark} & sleep {mark}"
    conversation, _ = converse([run(command), reply("Started."), reply("Cancelled.")])
    ask(conversation, alice)
    until(lambda: len(processes_with(f"sleep {mark}")) >= 3)
    row = row_of(conversation)
    cancel_background(actor=alice, conversation=conversation, background_uid=row.uid)
    until(lambda: not processes_with(f"sleep {mark}"))
    rested(conversation, 2)
    (end,) = ends(conversation)
    assert (end.state, end.exit_code) == ("cancelled", None)
    assert end.tail == "begun\n"


UNTIL_IT_SAYS_HELLO = "until grep -q hello background/*; do sleep 0.05; done"


def test_the_agent_looks_at_it_and_cancels_it_by_its_id(alice, converse):
    def with_id(tool):
        def step(request):
            words = [
                part.content[0].text
                for message in request.messages
                for part in message.parts
                if hasattr(part, "call_id") and "Started as" in part.content[0].text
            ]
            return reply(call(tool, id=words[0].split()[2].rstrip(".")))

        return step

    steps = iter(
        [
            lambda _r: run("echo hello; sleep 600"),
            lambda _r: reply(call("bash", command=UNTIL_IT_SAYS_HELLO)),
            with_id("check_background"),
            lambda _r: reply(call("check_background")),
            with_id("cancel_background"),
            lambda _r: reply(call("check_background", id="bg_none")),
            lambda _r: reply("Done."),
            lambda _r: reply("Told."),
        ]
    )
    conversation, _ = converse(lambda request: next(steps)(request))
    ask(conversation, alice)
    _started, _slept, looked, listed, cancelled, unknown = said(conversation)
    assert "running for" in looked
    assert looked.endswith("hello\n")
    assert "echo hello; sleep 600" in listed
    assert "is being ended" in cancelled
    assert "There is no background command “bg_none”" in unknown
    until(lambda: ends(conversation))
    assert ends(conversation)[0].state == "cancelled"


def test_what_takes_too_long_is_ended_and_says_so(alice, converse):
    conversation, _ = converse([run("sleep 600", timeout=1), reply("Started."), reply("Late.")])
    ask(conversation, alice)
    rested(conversation, 2)
    (end,) = ends(conversation)
    assert (end.state, end.detail) == ("timed_out", "It was ended after 1 s.")


def test_more_than_the_limit_at_once_are_refused_in_words(alice, converse, settings):
    settings.AGENTSITE_BACKGROUND_COMMANDS = 1
    script = [reply(call("background_run", command="sleep 600")), run("true"), reply("Done.")]
    conversation, _ = converse(script)
    ask(conversation, alice)
    assert "1 background commands run already" in said(conversation)[1]
    assert BackgroundCommand.objects.count() == 1


def test_no_sandbox_means_no_background_command_and_no_row(alice, converse, settings):
    settings.AGENTSITE_SANDBOXES = []
    conversation, _ = converse([run("true"), reply("Sorry.")])
    ask(conversation, alice)
    assert "no sandbox is configured" in said(conversation)[0]
    assert not BackgroundCommand.objects.exists()


def test_the_same_call_starts_one_command_only(alice, converse):
    conversation, _ = converse([run("sleep 600"), reply("Started.")])
    ask(conversation, alice)
    row = row_of(conversation)
    marks = CommandMarks(TableProvenance(conversation.pk), row.call_uid, Policy())
    again = backgroundrows.begin(conversation.pk, row.call_uid, "sleep 600", 10, marks)
    assert again.pk == row.pk


def test_a_server_that_stops_in_good_order_says_that_it_took_the_command_with_it(alice, converse):
    mark = f"600.{os.getpid()}7"
    conversation, _ = converse([run(f"echo half; sleep {mark}"), reply("Started.")])
    ask(conversation, alice)
    until(lambda: processes_with(f"sleep {mark}"))
    engine.stop()
    until(lambda: not processes_with(f"sleep {mark}"))
    (end,) = ends(conversation)
    assert (end.state, end.detail) == ("lost", "The server was stopped while it ran.")
    conversation.refresh_from_db()
    assert conversation.owes_run, "the next process tells the agent"


def lost_row(conversation, **carrier) -> BackgroundCommand:
    here, now = Carrier.this(), timezone.now()
    given = {
        "host": here.host,
        "boot": here.boot,
        "pid": here.pid,
        "process_started": here.started,
        "seen_at": now,
        "call_uid": "sevt_x",
        **carrier,
    }
    return BackgroundCommand.objects.create(
        conversation=conversation,
        command="make",
        output_path="background/x.log",
        timeout_seconds=60,
        started_at=now,
        **given,
    )


def test_a_command_that_another_process_carries_is_not_started_a_second_time(alice, converse):
    conversation, _ = converse([])
    row = lost_row(conversation, host="elsewhere")
    plan = plan_sandbox(conversation, conversation.config, workspace_for(conversation.uid))

    async def again() -> None:
        access = shell_access(plan)
        await ConversationsBackground(conversation.pk, access).start(
            row.call_uid, "touch ran", 60, ""
        )

    engine.submit(again).result(timeout=30)

    assert row.pk not in background._carried


@pytest.mark.parametrize(
    "carrier",
    [
        {"boot": "another-boot"},
        {"process_started": "1"},
        {"host": "elsewhere", "seen_at": timezone.now() - timedelta(minutes=5)},
    ],
    ids=["the machine was restarted", "another process has its id", "silent elsewhere"],
)
def test_a_command_of_a_dead_process_is_told_as_lost_once(alice, converse, carrier):
    conversation, scripted = converse([reply("It was lost.")])
    lost_row(conversation, **carrier)
    assert backgroundrows.end_lost() == 1
    assert backgroundrows.end_lost() == 0
    rested(conversation)
    (end,) = ends(conversation)
    assert end.state == "lost"
    assert "may or may not have done its work" in told(scripted)[0]


def test_one_whose_process_lives_is_not_taken_for_lost(alice, converse):
    conversation, _ = converse([])
    lost_row(conversation)
    lost_row(conversation, host="elsewhere", boot="b", process_started="1", call_uid="sevt_y")
    assert backgroundrows.end_lost() == 0


def test_a_killed_server_leaves_no_command_running(tmp_path):
    """What carries a command dies by SIGKILL: the sandbox dies with it."""
    mark = f"600.{os.getpid()}8"
    program = f"""
import asyncio, pathlib
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import Mount, Mounts
from sandbox.policy import Policy
work = pathlib.Path({str(tmp_path)!r})
mounts = Mounts(Mount(work, pathlib.Path("/workspace"), writable=True))
asyncio.run(BubblewrapBackend().run("sleep {mark} & sleep {mark}", Policy(), mounts))
"""
    server = subprocess.Popen([sys.executable, "-c", program])
    until(lambda: len(processes_with(f"sleep {mark}")) >= 2)
    server.send_signal(signal.SIGKILL)
    server.wait(PATIENCE)
    until(lambda: not processes_with(f"sleep {mark}"))


def test_deleting_the_conversation_ends_it(alice, converse):
    mark = f"600.{os.getpid()}9"
    conversation, _ = converse([run(f"sleep {mark}"), reply("Started.")])
    ask(conversation, alice)
    until(lambda: processes_with(f"sleep {mark}"))
    still_running = BackgroundCommand.objects.running().count()
    assert still_running == 1
    delete_conversation(actor=alice, conversation=conversation)
    until(lambda: not processes_with(f"sleep {mark}"))
    assert not BackgroundCommand.objects.exists()


@pytest.mark.parametrize("person", ["bob", "mallory"])
def test_nobody_else_ends_or_finds_it(person, alice, converse, request):
    conversation, _ = converse([])
    row = lost_row(conversation)
    actor = request.getfixturevalue(person)
    with pytest.raises(NotFound):
        cancel_background(actor=actor, conversation=conversation, background_uid=row.uid)
    with pytest.raises(NotFound):
        cancel_all_background(actor=actor, conversation=conversation)
    assert not BackgroundCommand.objects.visible_to(actor).exists()
    row.refresh_from_db()
    assert row.cancel_asked_at is None


def test_one_of_another_conversation_is_not_found(alice, converse):
    first, _ = converse([])
    second, _ = converse([])
    row = lost_row(first)
    with pytest.raises(NotFound):
        cancel_background(actor=alice, conversation=second, background_uid=row.uid)


def test_the_panel_shows_what_runs_with_a_way_to_end_it(alice, converse):
    conversation, _ = converse([])
    assert page(conversation).panels["background"] == ""
    row = lost_row(conversation)
    panel = str(page(conversation).panels["background"])
    assert "1 background command runs" in panel
    assert f'data-background="{row.uid}"' in panel
    cancel_background(actor=alice, conversation=conversation, background_uid=row.uid)
    assert "is being ended" in str(page(conversation).panels["background"])


def test_endless_output_is_bounded_in_memory_and_file(alice, converse):
    conversation, _ = converse([run("seq 1 3000000"), reply("Started."), reply("Done.")])
    ask(conversation, alice)
    rested(conversation, 2)
    row = row_of(conversation)
    text = (workspace_for(conversation.uid) / row.output_path).read_text()
    assert len(text) < 600_000
    assert text.startswith("1\n2\n")
    assert "bytes left out" in text
    assert text.rstrip().endswith("3000000")


def test_a_file_in_the_way_of_its_output_does_not_lose_the_end(alice, converse):
    command = "rm -rf background; ln -s /etc background; echo x; sleep 1.5"
    conversation, _ = converse([run(command), reply("Started."), reply("Done.")])
    ask(conversation, alice)
    rested(conversation, 2)
    assert [end.state for end in ends(conversation)] == ["completed"]
    assert Event.objects.filter(type="x.background_finished").count() == 1
