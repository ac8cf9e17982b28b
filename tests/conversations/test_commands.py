"""Commands of a conversation: asked for, run in its sandbox, shown while they run, stopped, ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agents.actions.environments import change_environment, set_sandbox_rules
from conversations.actions.conversations import archive_conversation, delete_conversation
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, stop
from conversations.sandboxing import close_ended_shells
from harness.content import text_of
from harness.events import AgentToolResult, CommandDisplay
from jobs.engine import engine
from live.hub import hub
from providers.scripted import call, reply
from tests.conversations.conftest import rested, still, types, until
from tests.patience import PATIENCE
from tools_app import sandboxes
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db(transaction=True)


def bash(command: str, **more):
    return reply(call("bash", command=command, **more))


def results(conversation) -> list[AgentToolResult]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [row.value for row in rows]


def said(conversation) -> list[str]:
    return [text_of(result.content) for result in results(conversation)]


def ask(conversation, actor, text="Go.", times=1):
    post_message(actor=actor, conversation=conversation, text=text)
    return rested(conversation, times)


def processes_with(mark: str) -> list[str]:
    """Seen from another process, as an operator would."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if mark in line and "ps -eo" not in line]


def environment_with(conversation, staff, **values):
    environment = conversation.environment
    given = {"name": environment.name, "description": "", "upload_limit": 5, **values}
    return change_environment(actor=staff, environment=environment, **given)


def test_a_command_runs_in_the_conversations_workspace_and_its_card_tells_all(alice, converse):
    conversation, _ = converse(
        [bash("echo out; echo err >&2; echo mine > note; exit 3"), reply("Done.")]
    )
    ask(conversation, alice)
    (result,) = results(conversation)
    assert (result.outcome, result.is_error) == ("ok", False)
    assert isinstance(result.display, CommandDisplay)
    shown = result.display
    assert (shown.stdout, shown.stderr, shown.exit_code, shown.confined) == ("out", "err", 3, True)
    assert shown.directory == "/mnt/session"
    assert shown.seconds > 0
    assert (workspace_for(conversation.uid) / "note").read_text() == "mine\n"


def test_the_shell_lasts_over_turns_and_two_conversations_have_their_own(alice, converse):
    script = [
        bash("cd /tmp; export WHO=alice; echo x > left"),
        reply("1"),
        bash("echo $PWD $WHO; ls"),
        reply("2"),
    ]
    conversation, _ = converse(script)
    other, _ = converse([bash("echo [$WHO]; ls /tmp"), reply("Nothing.")])
    ask(conversation, alice)
    ask(other, alice)
    ask(conversation, alice, "And?", times=2)
    assert said(conversation)[1].startswith("/tmp alice\nleft\n")
    assert said(other)[0].startswith("[]\n[exit code 0")


def test_a_call_that_asks_runs_nothing_before_it_is_allowed(alice, converse):
    rules = [{"tool": "*"}, {"tool": "bash", "permission": "always_ask"}]
    conversation, _ = converse([bash("touch ran"), reply("Done.")], tools=rules)
    ask(conversation, alice)
    assert conversation.waits_for_person
    assert not (workspace_for(conversation.uid) / "ran").exists()
    use = conversation.events.get(type="agent.tool_use")
    decide_call(actor=alice, conversation=conversation, call_uid=use.uid, allow=True)
    rested(conversation, 2)
    assert (workspace_for(conversation.uid) / "ran").exists()


def test_a_stop_ends_a_command_with_all_it_started(alice, converse):
    """Seen from another process, no child is left."""
    mark = f"600.{os.getpid()}1"
    conversation, _ = converse([bash(f"echo begun; sleep {mark} & sleep {mark}"), bash("echo ok")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: len(processes_with(f"sleep {mark}")) >= 2)
    stop(actor=alice, conversation=conversation)
    until(lambda: not processes_with(f"sleep {mark}"))
    rested(conversation)
    (result,) = results(conversation)
    assert result.outcome == "stopped"
    assert text_of(result.content).startswith("begun\n"), "what it had printed is kept"
    assert "stopped by a person" in text_of(result.content)
    idle = conversation.events.filter(type="session.status_idle").last()
    assert idle is not None
    assert idle.value.interrupted


def test_the_shell_and_its_directory_outlive_a_stop(alice, converse):
    script = [bash("cd /tmp && export A=1"), bash("sleep 600"), bash("echo $PWD $A"), reply("Ok.")]
    conversation, _ = converse(script)
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: types(conversation).count("span.tool_start") == 2)
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    ask(conversation, alice, "Where?", times=2)
    assert said(conversation)[-1].startswith("/tmp 1\n")


def test_output_is_shown_while_the_command_runs_and_then_gives_way(alice, converse):
    conversation, _ = converse([bash("echo first; sleep 600"), reply("Done.")])
    post_message(actor=alice, conversation=conversation, text="Go.")

    def live() -> str:
        return "".join(text.text for text in hub.open_texts(conversation.uid))  # type: ignore[attr-defined]

    until(lambda: live() == "first\n")
    use = conversation.events.get(type="agent.tool_use")
    (block,) = hub.open_texts(conversation.uid)  # type: ignore[attr-defined]
    assert (block.block, block.kind) == (f"{use.uid}.out", "output")
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    until(lambda: not live())


def test_endless_output_is_bounded_live_and_in_the_log(alice, converse):
    conversation, _ = converse([bash("seq 1 2000000"), reply("Done.")])
    ask(conversation, alice)
    (text,) = said(conversation)
    assert len(text) < 10_000
    kept = workspace_for(conversation.uid) / "tool-results"
    (file,) = kept.iterdir()
    assert f"tool-results/{file.name}" in text
    assert file.read_text().startswith("1\n2\n")
    assert "bytes left out" in file.read_text()


def test_an_earlier_command_is_opened_again_by_its_id(alice, converse):
    def history(request):
        past = request.messages[-1].parts[0].content[0].text
        return reply(call("command_history", id=past.splitlines()[1].split()[0]))

    script = [bash("echo first"), reply(call("command_history")), history, reply("Done.")]
    steps = iter([each if callable(each) else (lambda _r, each=each: each) for each in script])
    conversation, _ = converse(lambda request: next(steps)(request))
    ask(conversation, alice)
    listed, reopened = said(conversation)[1:]
    assert listed.startswith("The shell is ready.\n")
    assert "ok, exit code 0" in listed
    assert reopened.startswith("$ echo first\n[ok, exit code 0")
    assert "\nfirst\n" in reopened


def test_a_new_shell_says_that_the_old_one_is_gone(alice, converse):
    conversation, _ = converse([bash("export A=1"), reply("1"), bash("echo [$A]"), reply("2")])
    ask(conversation, alice)
    still()
    engine.stop()  # as a restart of the process does
    ask(conversation, alice, "Again.", times=2)
    assert said(conversation)[1].startswith("[This is a new shell: the earlier one was closed")
    assert "\n[]\n" in said(conversation)[1]
    assert "new shell" not in said(conversation)[0]


def test_a_missing_guarantee_is_refused_in_words_and_nothing_runs(alice, staff, converse, settings):
    settings.AGENTSITE_SANDBOXES = []
    conversation, _ = converse([bash("touch ran"), reply("Sorry.")])
    ask(conversation, alice)
    (result,) = results(conversation)
    assert result.is_error
    assert "The command was not run: no sandbox is configured." in said(conversation)[0]
    assert not (workspace_for(conversation.uid) / "ran").exists()


def test_a_sandbox_that_the_server_does_not_use_is_refused_by_name(alice, staff, converse):
    conversation, _ = converse([bash("touch ran"), reply("Sorry.")])
    environment_with(conversation, staff, backend="docker")
    ask(conversation, alice)
    assert "asks for the sandbox “docker”" in said(conversation)[0]
    assert "bubblewrap, process" in said(conversation)[0]


def test_no_sandbox_at_all_needs_the_operators_setting(alice, staff, converse, settings):
    conversation, _ = converse([bash("echo ran"), reply("1"), bash("echo ran"), reply("2")])
    environment_with(conversation, staff, backend="none", policy="require: []")
    ask(conversation, alice)
    assert "which this server does not allow" in said(conversation)[0]
    still()
    engine.stop()
    settings.AGENTSITE_SANDBOX_UNCONFINED = True
    ask(conversation, alice, "Now?", times=2)
    assert "[unconfined: no sandbox held this command back]\nran" in said(conversation)[1]
    display = results(conversation)[1].display
    assert isinstance(display, CommandDisplay)
    assert not display.confined


def test_what_the_organisation_takes_away_holds_at_the_next_command(alice, acme, staff, converse):
    script = [bash("echo 1 > a"), reply("1"), bash("echo 2 > a; cat a"), reply("2")]
    conversation, _ = converse(script)
    ask(conversation, alice)
    set_sandbox_rules(
        actor=staff, organisation=acme, policy="filesystem_policy: {include_workdir: false}"
    )
    ask(conversation, alice, "Again.", times=2)
    assert "Read-only file system" in said(conversation)[1]
    assert (workspace_for(conversation.uid) / "a").read_text() == "1\n"


def changed_in_a_run(conversation, actor, change) -> None:
    """The change is made while a command of the run is under way, and another one comes."""
    workspace = workspace_for(conversation.uid)
    post_message(actor=actor, conversation=conversation, text="Go.")
    until(lambda: (workspace / "begun").exists())
    change()
    (workspace / "go").touch()
    rested(conversation)


WAITING = "touch begun; until [ -e go ]; do sleep 0.05; done"


def test_what_the_organisation_takes_away_holds_at_the_next_command_of_the_same_run(
    alice, acme, staff, converse
):
    conversation, _ = converse([bash(WAITING), bash("echo 2 > a"), reply("Done.")])
    policy = "filesystem_policy: {include_workdir: false}"
    changed_in_a_run(
        conversation,
        alice,
        lambda: set_sandbox_rules(actor=staff, organisation=acme, policy=policy),
    )
    assert "Read-only file system" in said(conversation)[1]
    assert not (workspace_for(conversation.uid) / "a").exists()


def test_a_sandbox_that_an_environment_is_given_holds_at_the_next_command(
    alice, staff, converse, settings
):
    settings.AGENTSITE_SANDBOX_UNCONFINED = True
    script = [bash("export A=1"), reply("1"), bash("echo [$A]"), reply("2")]
    conversation, _ = converse(script)
    environment_with(conversation, staff, backend="none", policy="require: []")
    ask(conversation, alice)
    environment_with(conversation, staff, backend="bubblewrap", policy="require: []")
    ask(conversation, alice, "Again.", times=2)
    shown = [result.display for result in results(conversation)]
    assert [isinstance(each, CommandDisplay) and each.confined for each in shown] == [False, True]
    assert "\n[]\n" in said(conversation)[1]


def test_a_way_out_that_is_opened_in_a_run_is_open_from_the_next_one_on(alice, staff, converse):
    """In this one commands count as reaching nothing outside."""
    conversation, _ = converse([bash(WAITING), bash("env"), reply("Done.")])
    policy = "network_policies: {a: {endpoints: [{host: files.example.org}]}}"
    changed_in_a_run(
        conversation, alice, lambda: environment_with(conversation, staff, policy=policy)
    )
    assert "https_proxy" not in said(conversation)[1]


def test_with_a_way_out_a_command_counts_as_reaching_outside(alice, staff, converse):
    conversation, scripted = converse([bash("true"), reply("1"), bash("true"), reply("2")])
    ask(conversation, alice)
    policy = "network_policies: {a: {endpoints: [{host: files.example.org}]}}"
    environment_with(conversation, staff, policy=policy)
    ask(conversation, alice, "Again.", times=2)
    starts = conversation.events.filter(type="span.tool_start").order_by("seq")
    assert [row.value.effect for row in starts] == ["workspace", "outside"]
    told = [
        next(tool.description for tool in request.tools if tool.name == "bash")
        for request in (scripted.requests[0], scripted.requests[-1])
    ]
    assert told[0].endswith("There is no network.")
    assert told[1].endswith("Of the network only these hosts can be reached: files.example.org.")


def test_no_secret_of_the_server_reaches_a_command(alice, converse, settings, monkeypatch):
    """Neither its environment nor a file it can read nor /proc tells one."""
    secret = "not-for-agents-0123456789"
    for name in ("ANTHROPIC_API_KEY", "AGENTSITE_SECRET_KEY", "GITHUB_TOKEN", "LC_SECRET"):
        monkeypatch.setenv(name, secret)
    settings.AGENTSITE_DATA_DIR.joinpath("key").write_text(secret)
    places = "/mnt/session /tmp /home /etc /run /var /proc/self /proc/1 /proc/net"
    look = (
        "env; export -p; cat /proc/self/environ /proc/1/environ /proc/*/environ; "
        f"cat {settings.AGENTSITE_DATA_DIR}/key {settings.DATABASES['default']['NAME']}; "
        f"for file in $(find {places} -type f -size -64k); do head -c 4000 $file; done 2>/dev/null"
    )
    conversation, _ = converse([bash(look, timeout=60), reply("Done.")])
    ask(conversation, alice)
    (result,) = said(conversation)
    assert "HOME=/home/agent" in result, "it could look"
    kept = workspace_for(conversation.uid) / "tool-results"
    for text in [result, *(file.read_text() for file in kept.glob("*"))]:
        assert secret not in text


def test_deleting_or_putting_away_a_conversation_ends_its_shell(alice, converse):
    mark = f"600.{os.getpid()}2"
    first, _ = converse([bash(f"sleep {mark} >/dev/null 2>&1 &"), reply("Done.")])
    second, _ = converse([bash(f"sleep {mark} >/dev/null 2>&1 &"), reply("Done.")])
    ask(first, alice)
    ask(second, alice)
    until(lambda: len(processes_with(f"sleep {mark}")) == 2)
    archive_conversation(actor=alice, conversation=first, archived=True)
    until(lambda: len(processes_with(f"sleep {mark}")) == 1)
    delete_conversation(actor=alice, conversation=second)
    until(lambda: not processes_with(f"sleep {mark}"))


def test_a_shell_is_closed_when_another_process_deleted_its_conversation(alice, converse):
    conversation, _ = converse([bash("true"), reply("Done.")])
    ask(conversation, alice)
    still()
    held = sandboxes.opened()
    assert held is not None
    assert held.shells.open_keys() == (conversation.uid,)
    engine.submit(close_ended_shells).result(PATIENCE)
    assert held.shells.open_keys() == (conversation.uid,)
    type(conversation).objects.filter(pk=conversation.pk).delete()
    engine.submit(close_ended_shells).result(PATIENCE)
    assert held.shells.open_keys() == ()


def test_the_end_of_the_process_leaves_no_command_behind(alice, converse):
    mark = f"600.{os.getpid()}3"
    conversation, _ = converse([bash(f"sleep {mark} >/dev/null 2>&1 &"), reply("Done.")])
    ask(conversation, alice)
    until(lambda: processes_with(f"sleep {mark}"))
    still()
    engine.stop()
    until(lambda: not processes_with(f"sleep {mark}"))


def test_a_read_only_mount_cannot_be_written_through_any_tool(alice, converse):
    """What the policy only lets be read stays as it is through files and commands alike."""
    link = "ln -s /usr/share out; echo x > out/agentsite-was-here; echo x > /usr/share/agentsite"
    conversation, _ = converse(
        [
            bash(link),
            reply(call("write_file", path="out/agentsite-was-here", content="x")),
            reply(call("write_file", path="/usr/share/agentsite", content="x")),
            reply("Done."),
        ]
    )
    ask(conversation, alice)
    assert "Read-only file system" in said(conversation)[0]
    assert all(result.is_error for result in results(conversation)[1:])
    for name in ("agentsite", "agentsite-was-here"):
        assert not Path("/usr/share", name).exists()


LISTED = {"argument": "command", "prefix": "git status"}
ONLY_LISTED = [
    {"tool": name, "permission": "always_allow", "when": LISTED}
    for name in ("bash", "background_run")
]


@pytest.mark.parametrize(
    "command",
    [
        "touch ran",
        "git status\ntouch ran",
        "git status & touch ran",
        "git status && touch ran",
        "git status; touch ran",
        "git status | tee ran",
        "git status $(touch ran)",
        "git status `touch ran`",
        "git status > ran",
        "git statusx; touch ran",
    ],
)
@pytest.mark.parametrize("tool", ["bash", "background_run"])
def test_only_listed_commands_run_and_nothing_rides_along(alice, converse, tool, command):
    """An allow-list holds against newline, `&`, substitution and background runs."""
    conversation, _ = converse(
        [reply(call(tool, command=command)), reply("No.")], tools=ONLY_LISTED
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert not (workspace_for(conversation.uid) / "ran").exists()
    outcomes = [result.outcome for result in results(conversation)]
    assert outcomes == ["denied"] or conversation.waits_for_person


def test_a_listed_command_runs(alice, converse):
    conversation, _ = converse([bash("git status -s"), reply("Done.")], tools=ONLY_LISTED)
    ask(conversation, alice)
    assert results(conversation)[0].outcome == "ok"
    assert "not a git repository" in said(conversation)[0]
