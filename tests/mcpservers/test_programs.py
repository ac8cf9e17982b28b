"""MCP servers that are programs: started in the sandbox of the conversation that uses them, held there."""

from __future__ import annotations

import asyncio
import json
import shutil
import site
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Environment
from audit.models import AuditEntry
from conversations.actions.conversations import archive_conversation
from conversations.actions.messages import post_message, stop
from conversations.judging import history_of
from conversations.models import Conversation, ForeignMark
from conversations.sandboxing import close_ended_shells
from harness.agentconfig import McpUse, ToolRule
from harness.content import text_of
from harness.errors import Conflict, Forbidden, Invalid, NotConfigured, NotFound
from harness.events import AgentMcpToolResult
from jobs.engine import engine
from mcpservers.actions.connections import begin_connection
from mcpservers.actions.servers import add_from_json, add_server, change_server, look_again
from mcpservers.models import McpServer, McpTool
from mcpservers.programs import (
    MOST_BYTES,
    Terms,
    checked_command,
    checked_variables,
    on_trial,
    trial_terms,
)
from mcpservers.secrets import headers_of
from mcpservers.sessions import Listing, Sessions, Unreachable, Where, look_at
from providers.scripted import Hold, call, reply, say
from sandbox.policy import SYSTEM_FOLDERS, parse_policy
from tests.cast import ClientOf, shown
from tests.conversations.conftest import Converse, rested, until
from tests.sandbox.test_conformance import alive, mark
from tools_app import sandboxes
from tools_app.workspace import PUBLIC_ROOT, workspace_for

__all__ = ["mark"]

INSIDE = Path(__file__).parent / "inside"
PYTHON = "/usr/bin/python3"
PACKAGES = (
    "mcp", "mcp_types", "anyio", "annotated_types", "click", "cryptography", "httpcore2", "httpx2", "idna",
    "h11", "jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr", "attrs", "opentelemetry",
    "pydantic", "pydantic_core", "pydantic_settings", "dotenv", "python_multipart", "sniffio",
    "sse_starlette", "starlette", "typing_extensions.py", "typing_inspection", "uvicorn", "jwt", "certifi",
    "truststore", "cffi", "_cffi_backend*.so", "httpx2-*.dist-info", "opentelemetry*.dist-info",
    "mcp*.dist-info", "pydantic*.dist-info",
)  # fmt: skip
"""What the official server needs; of those, what is installed."""
TOOL = "mcp__prog__do"
ALLOWED = (ToolRule(tool="*"), ToolRule(tool="mcp:prog:*"))
USES = (McpUse(name="prog"),)
SECRET = "sesame-of-the-server"
Scope = McpServer.Scope


def policy_for(folder: Path) -> dict[str, Any]:
    return {"filesystem_policy": {"read_only": [*SYSTEM_FOLDERS, str(folder)]}}


@pytest.fixture
def opened(settings: Any) -> Iterator[Path]:
    """A folder that the operator opens for programs, with ours in it."""
    with tempfile.TemporaryDirectory(prefix="agentsite-programs-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        for path in INSIDE.glob("*server.py"):
            shutil.copy(path, folder)
        settings.AGENTSITE_MOUNT_ROOTS = [str(folder)]
        yield folder


# --- what one can do to who speaks to it ----------------------------------------------------------


async def _keep(_listing: Listing) -> None:
    pass


def raw(opened: Path, manner: str = "", **variables: str) -> Where:
    argv = (PYTHON, f"{opened}/rawserver.py", manner)
    terms = Terms("bubblewrap", parse_policy(policy_for(opened)))
    return Where(1, "sesn_1", "", program=on_trial(terms, argv, variables))


def called(where: Where, *asked: dict[str, str], seconds: float = 20.0) -> list[str]:
    """What calls of its tool bring, over one session."""

    async def each() -> list[str]:
        held = Sessions()
        try:
            return [await once(held, given) for given in asked]
        finally:
            await held.close()

    async def once(held: Sessions, given: dict[str, str]) -> str:
        result: Any = await held.call(where, "do", given, seconds=seconds, on_listing=_keep)
        return str(result.content[0].text)

    return asyncio.run(each())


def test_a_session_is_one_program_which_keeps_what_it_knows(opened: Path):
    first, second = called(raw(opened), {"what": "pid"}, {"what": "pid"})
    assert first == second


def test_it_finds_the_declared_variables_and_nothing_of_the_servers_environment(
    opened: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_SERVER", "hidden")
    (said,) = called(raw(opened, API_KEY=SECRET), {"what": "variables"})
    found = json.loads(said)
    assert found["API_KEY"] == SECRET
    assert not {"OF_THE_SERVER", "AGENTSITE_SECRET_KEY", "DJANGO_SETTINGS_MODULE"} & set(found)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("endless line", "larger than 5,242,880 bytes"),
        ("notices", "says too much"),
        ("many parts", "more than 40,000 parts"),
        ("garbage", "no message of the protocol"),
    ],
)
def test_whoever_says_what_nobody_can_take_is_given_up(opened: Path, what: str, words: str):
    with pytest.raises(Unreachable, match=words):
        called(raw(opened), {"what": what})


def test_one_that_dies_in_a_call_says_how_and_the_next_call_starts_another(opened: Path):
    where = raw(opened)
    with pytest.raises(Unreachable, match="It ended with exit code 3") as problem:
        called(where, {"what": "die", "with": "for my secret"})
    assert problem.value.errors == "I was asked for my secret"
    assert called(where, {"what": "x"}) == ["done"]


def test_what_it_prints_beside_the_protocol_is_passed_over_as_long_as_it_is_little(opened: Path):
    assert called(raw(opened, "prints"), {"what": "x"}) == ["done"]


def test_one_that_never_answers_or_ends_at_once_is_tried_again_after_a_while(
    opened: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mcpservers.sessions.CONNECT_SECONDS", 1.0)
    with pytest.raises(Unreachable, match="did not answer within 1 seconds"):
        called(raw(opened, "mute"), {"what": "x"})
    monkeypatch.undo()
    where = raw(opened, "broken", API_KEY=SECRET)

    async def twice() -> None:
        held = Sessions()
        for _time in range(2):
            with pytest.raises(Unreachable, match="exit code 1") as problem:
                await held.call(where, "do", {}, seconds=5, on_listing=_keep)
            assert "the key API_KEY is" in problem.value.errors
            assert SECRET not in problem.value.errors
        assert held._failed[where.key][1] == 1  # the second was not tried

    asyncio.run(twice())


def test_what_it_forks_ends_with_its_session(opened: Path, mark: str):
    assert called(raw(opened), {"what": "fork", "with": f"9{mark}"}) == ["forked"]
    until(lambda: not alive(mark))


def test_a_call_that_takes_too_long_leaves_no_program_behind(opened: Path):
    where = raw(opened)

    async def late() -> None:
        held = Sessions()
        with pytest.raises(TimeoutError):
            await held.call(where, "do", {"what": "sleep"}, seconds=0.3, on_listing=_keep)
        await held.close()

    asyncio.run(late())
    until(lambda: not alive(str(opened)))


def test_without_a_sandbox_nothing_is_started(opened: Path, settings: Any):
    settings.AGENTSITE_SANDBOX_UNCONFINED = True
    terms = Terms("none", parse_policy({"require": []}))
    program = on_trial(terms, (PYTHON, f"{opened}/rawserver.py"), {})
    with pytest.raises(Unreachable, match="MCP servers are started in one only"):
        asyncio.run(look_at(Where(1, "", "", program=program)))


def test_one_made_with_the_official_package_counts_in_one_session(opened: Path):
    """And is looked at by the newest revision that it speaks."""
    packages = Path(site.getsitepackages()[0])
    (opened / "site").mkdir()
    for path in (found for name in PACKAGES for found in packages.glob(name)):
        copy: Any = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, opened / "site" / path.name)
    if sys.base_prefix.startswith("/usr"):
        python = str(
            Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        )
    else:
        python = PYTHON
    argv = (python, f"{opened}/officialserver.py")
    paths = {"PYTHONPATH": f"{opened}/site"}
    terms = Terms("bubblewrap", parse_policy(policy_for(opened)))
    where = Where(1, "sesn_1", "", program=on_trial(terms, argv, paths))

    async def count() -> tuple[list[str], str]:
        held = Sessions()
        heard: list[Listing] = []

        async def told(listing: Listing) -> None:
            heard.append(listing)

        results: list[Any] = [
            await held.call(where, "count", {"name": "a"}, seconds=20, on_listing=told)
            for _time in range(2)
        ]
        await held.close()
        return [each.content[0].text for each in results], heard[0].protocol

    assert asyncio.run(count()) == (["1", "2"], "2026-07-28")


@pytest.mark.django_db
def test_a_program_for_everybody_is_looked_at_where_this_server_runs_commands():
    Environment.objects.create(name="once", backend="docker", archived_at=timezone.now())
    Environment.objects.create(name="elsewhere", backend="worker")
    with pytest.raises(NotConfigured):
        trial_terms(McpServer(name="x"))
    Environment.objects.create(name="here", backend="bubblewrap")
    assert trial_terms(McpServer(name="x")).backend == "bubblewrap"


# --- in conversations -----------------------------------------------------------------------------


@pytest.fixture
def program(opened: Path, environment: Environment, alice: User, acme: Organisation) -> McpServer:
    """One that alice added for her organisation, looked at once."""
    Environment.objects.update(policy=json.dumps(policy_for(opened)))
    environment.refresh_from_db()
    return add_server(
        actor=alice,
        organisation=acme,
        scope=Scope.ORGANISATION,
        name="prog",
        command=PYTHON,
        arguments=[f"{opened}/rawserver.py"],
        variables={"API_KEY": SECRET},
    )


def asked_for(alice: User, converse: Converse, *calls: dict[str, str]) -> Conversation:
    """A turn in which the agent calls its tool so often, at once: the first has later ones ask."""
    asked = reply(*(call(TOOL, **given) for given in calls))
    conversation, _script = converse([asked, reply("Done.")], tools=ALLOWED, mcp_servers=USES)
    post_message(actor=alice, conversation=conversation, text="Go.")
    return rested(conversation)


def answers(conversation: Conversation) -> list[str]:
    rows = conversation.events.filter(type="agent.mcp_tool_result").order_by("seq")
    found = [row.value for row in rows]
    assert all(isinstance(each, AgentMcpToolResult) for each in found)
    return [text_of(each.content) for each in found]


def open_programs() -> tuple[str, ...]:
    held = sandboxes.opened()
    return held.programs.open_keys() if held is not None else ()


@pytest.mark.django_db(transaction=True)
def test_it_works_in_the_conversations_workspace_and_what_it_leaves_there_is_foreign(
    alice: User, program: McpServer, converse: Converse
):
    assert (program.failing_since, program.software) == (None, "raw 1")
    assert program.tools.get().state == McpTool.State.RELEASED
    conversation = asked_for(
        alice,
        converse,
        {"what": "write", "with": "left.txt"},
        {"what": "variables"},
    )
    workdir, variables = sorted(answers(conversation))
    assert workdir == PUBLIC_ROOT
    assert (workspace_for(conversation.uid) / "left.txt").read_text() == "written by the server"
    assert SECRET not in variables
    assert "API_KEY" in variables
    # Both calls run at once, and each may see what the other left.
    sources = ForeignMark.objects.filter(conversation=conversation).values_list("source", flat=True)
    assert sources
    assert all("“prog”, which is a program of others" in source for source in sources)
    assert history_of(conversation).tainted_by


@pytest.mark.django_db(transaction=True)
def test_it_reads_nothing_of_another_conversation_and_nothing_of_the_server(
    alice: User, program: McpServer, converse: Converse, settings: Any
):
    first = asked_for(alice, converse, {"what": "write", "with": "own.txt"})
    theirs = workspace_for(first.uid)
    assert (theirs / "own.txt").exists()
    conversation = asked_for(
        alice,
        converse,
        {"what": "read", "with": str(theirs / "own.txt")},
        {"what": "list", "with": PUBLIC_ROOT},
        {"what": "read", "with": str(Path(settings.BASE_DIR) / "manage.py")},
        {"what": "read", "with": "/proc/1/environ"},
    )
    said = answers(conversation)
    assert sorted(each.partition(":")[0] for each in said) == [
        f"{PUBLIC_ROOT}/outputs",
        "refused",
        "refused",
        "refused",
    ]


@pytest.mark.django_db(transaction=True)
def test_it_lives_from_call_to_call_and_ends_with_its_conversation(
    alice: User, program: McpServer, converse: Converse
):
    conversation = asked_for(alice, converse, {"what": "pid"}, {"what": "pid"})
    first, second = answers(conversation)
    assert first == second
    assert conversation.uid in open_programs()
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    engine.submit(close_ended_shells).result()
    assert conversation.uid not in open_programs()


@pytest.mark.django_db(transaction=True)
def test_what_its_sandbox_may_no_more_it_may_not_from_the_next_call_of_the_run_on(
    alice: User, program: McpServer, converse: Converse, opened: Path
):
    hold = Hold()
    writes = reply(say(hold, "Hm."), call(TOOL, **{"what": "write", "with": "a.txt"}))
    conversation, _script = converse([writes, reply("Done.")], tools=ALLOWED, mcp_servers=USES)
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    narrowed = policy_for(opened)
    narrowed["filesystem_policy"]["include_workdir"] = False
    Environment.objects.update(policy=json.dumps(narrowed))
    hold.release.set()
    rested(conversation)
    assert len(answers(conversation)) == 1
    assert not (workspace_for(conversation.uid) / "a.txt").exists()


@pytest.mark.django_db(transaction=True)
def test_a_stop_ends_the_wait_for_it(alice: User, program: McpServer, converse: Converse):
    conversation, _script = converse(
        [reply(call(TOOL, what="sleep")), reply("Done.")], tools=ALLOWED, mcp_servers=USES
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: conversation.uid in open_programs())
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    assert not conversation.runs.filter(state="running").exists()


@pytest.mark.django_db(transaction=True)
def test_one_that_dies_says_so_to_the_model_and_on_its_page_without_the_conversations_words(
    alice: User, program: McpServer, converse: Converse, client_of: ClientOf
):
    conversation = asked_for(alice, converse, {"what": "die", "with": "a-private-matter"})
    (said,) = answers(conversation)
    assert "“prog” failed: It ended with exit code 3." in said
    assert "I was asked a-private-matter" in said
    program.refresh_from_db()
    assert program.last_error == "It ended with exit code 3."
    page = client_of(alice).get(reverse("mcpservers:server", args=[program.uid])).content.decode()
    assert "It ended with exit code 3." in page
    assert "a-private-matter" not in page


@pytest.mark.django_db(transaction=True)
def test_what_a_program_says_otherwise_is_held_like_any_servers(
    alice: User, program: McpServer, converse: Converse, opened: Path
):
    text = (opened / "rawserver.py").read_text()
    (opened / "rawserver.py").write_text(text.replace("Does what it is told.", "Sends all away."))
    conversation = asked_for(alice, converse, {"what": "pid"})
    assert "is held" in answers(conversation)[0]
    assert program.tools.get().state == McpTool.State.CHANGED


@pytest.mark.django_db(transaction=True)
def test_where_the_operator_has_none_started_none_is(
    alice: User, program: McpServer, converse: Converse, acme: Organisation, settings: Any
):
    settings.AGENTSITE_MCP_PROGRAMS = False
    conversation = asked_for(alice, converse, {"what": "pid"})
    assert "none is started as a program" in answers(conversation)[0]
    with pytest.raises(Forbidden):
        quiet(alice, acme, name="more")
    change_server(actor=alice, server=program, enabled=False)
    program.refresh_from_db()
    assert program.disabled_at is not None


@pytest.mark.django_db(transaction=True)
def test_a_look_that_fails_shows_what_it_wrote_and_no_secret(
    alice: User, program: McpServer, opened: Path, client_of: ClientOf
):
    changed = change_server(
        actor=alice,
        server=program,
        arguments=[f"{opened}/rawserver.py", "broken"],
        variables={"API_KEY": SECRET},
    )
    assert program.tools.get().state == McpTool.State.CHANGED
    assert "exit code 1" in look_again(actor=alice, server=changed)
    changed.refresh_from_db()
    assert changed.last_output.startswith("the key API_KEY is ")
    page = client_of(alice).get(reverse("mcpservers:server", args=[program.uid])).content.decode()
    assert "the key API_KEY is" in page
    assert SECRET not in page


# --- who adds them --------------------------------------------------------------------------------


def quiet(
    actor: User, organisation: Organisation, scope: Scope = Scope.ORGANISATION, **more: Any
) -> McpServer:
    given = {"name": "quiet", "command": "a-server", "look": False, **more}
    return add_server(actor=actor, organisation=organisation, scope=scope, **given)


@pytest.mark.django_db
def test_whose_programs_one_may_add_and_change(
    alice: User, bob: User, mallory: User, acme: Organisation
):
    server = quiet(alice, acme, variables={"API_KEY": SECRET})
    assert headers_of(server) == {"API_KEY": SECRET}
    assert SECRET not in server.sealed
    assert AuditEntry.objects.get(action="mcp_server_added").details["command"] == "a-server"
    with pytest.raises(Forbidden):
        quiet(bob, acme, name="other")
    with pytest.raises(NotFound):
        quiet(mallory, acme, name="other")
    with pytest.raises(Forbidden):
        change_server(actor=bob, server=server, command="evil")
    with pytest.raises(NotFound):
        change_server(actor=mallory, server=server, command="evil")
    with pytest.raises(NotFound):
        look_again(actor=mallory, server=server)
    with pytest.raises(Conflict, match="nobody has an account"):
        begin_connection(actor=alice, organisation=acme, server=server, redirect_uri="https://x/")


@pytest.mark.django_db
def test_nobodys_own_program_takes_the_place_of_a_broader_one(bob: User, alice: User, acme: Any):
    quiet(alice, acme, arguments=["--port", "1"])
    with pytest.raises(Conflict):
        quiet(
            bob, acme, Scope.PERSON, name="mine", command="/bin/a-server", arguments=["--port", "1"]
        )
    other = quiet(bob, acme, Scope.PERSON, name="mine", arguments=["--port", "2"])
    assert other.owner == bob


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"command": "rm -rf /"}, "command"),
        ({"command": "-x"}, "command"),
        ({"command": "./server"}, "command"),
        ({"command": "bin/server"}, "command"),
        ({"command": "x", "url": "https://mcp.example.org/"}, "command"),
        ({"command": "x", "arguments": ["a\nb"]}, "arguments"),
        ({"command": "x", "arguments": ["a"] * 51}, "arguments"),
        ({"command": "x", "headers": {"Authorization": "y"}}, "headers"),
        ({"command": "x", "variables": {"A B": "y"}}, "variables"),
        ({"command": "x", "variables": {"A": "y\nz"}}, "variables"),
        ({"command": "x", "variables": {f"A{n}": "y" * 8_000 for n in range(12)}}, "variables"),
        (
            {"command": "x", "variables": {"A": "\u00e9" * 8_000, "B": "\u00e9" * 8_000}},
            "variables",
        ),
        ({"command": "x", "arguments": ["\N{GRINNING FACE}" * 2_000] * 4}, "arguments"),
        ({"command": "", "url": "https://mcp.example.org/", "variables": {"A": "y"}}, "variables"),
    ],
)
@pytest.mark.django_db
def test_what_is_no_program_is_refused_with_its_field(
    alice: User, acme: Organisation, given: dict[str, Any], field: str
):
    with pytest.raises(Invalid) as refusal:
        quiet(alice, acme, **given)
    assert refusal.value.field == field


def test_the_most_that_may_be_declared_reaches_it(opened: Path):
    most = MOST_BYTES // 8_000
    variables = checked_variables({f"A{number}": "x" * 7_980 for number in range(most)})
    checked_command(PYTHON, arguments := ["\u00e9" * 2_000] * 7)
    argv = (PYTHON, f"{opened}/rawserver.py", "", *arguments)
    terms = Terms("bubblewrap", parse_policy(policy_for(opened)))
    where = Where(1, "sesn_1", "", program=on_trial(terms, argv, variables))
    (said,) = called(where, {"what": "variables"})
    assert variables.items() <= json.loads(said).items()


@pytest.mark.django_db
def test_another_program_is_another_server_and_forgets_its_variables(
    alice: User, acme: Organisation
):
    server = quiet(alice, acme, variables={"API_KEY": SECRET})
    same = change_server(actor=alice, server=server, timeout_seconds=9)
    assert headers_of(same) == {"API_KEY": SECRET}
    moved = change_server(actor=alice, server=server, arguments=["--other"])
    assert headers_of(moved) == {}
    told = AuditEntry.objects.filter(action="mcp_server_changed").order_by("pk").last()
    assert told.details["moved"]


@pytest.mark.django_db
def test_an_mcp_json_brings_programs_with_their_arguments_and_variables(
    alice: User, acme: Organisation
):
    text = {"mcpServers": {"Time Server": {"command": "mcp-time", "args": ["--tz", "UTC"],
                                           "env": {"KEY": "a-long-secret"}}}}  # fmt: skip
    (added,) = add_from_json(
        actor=alice, organisation=acme, scope=Scope.PERSON, text=json.dumps(text)
    )
    assert (added.name, added.argv) == ("time-server", ("mcp-time", "--tz", "UTC"))
    assert headers_of(added) == {"KEY": "a-long-secret"}
    for odd in ({"command": 3}, {"command": "x", "args": "y"}, {"command": "x", "env": {"A": 1}}):
        with pytest.raises(Invalid, match="are no texts"):
            add_from_json(
                actor=alice,
                organisation=acme,
                scope=Scope.PERSON,
                text=json.dumps({"mcpServers": {"odd": odd}}),
            )


@pytest.mark.django_db(transaction=True)
def test_a_page_adds_shows_and_changes_a_program(
    alice: User, bob: User, acme: Organisation, client_of: ClientOf, program: McpServer
):
    client = client_of(alice)
    page = reverse("mcpservers:servers")
    given = {
        **shown(acme),
        "program-name": "second",
        "program-command": "no-such-program",
        "program-arguments": "--flag\nwith space",
        "program-variables": f"API_KEY={SECRET}",
        "program-scope": "organisation",
        "program-timeout_seconds": 5,
    }
    answer = client.post(page, given, follow=True)
    second = McpServer.objects.get(name="second")
    text = answer.content.decode()
    assert second.argv == ("no-such-program", "--flag", "with space")
    assert "no-such-program --flag &#x27;with space&#x27;" in text
    assert "there is no program no-such-program" in text
    assert SECRET not in text
    refused = client.post(page, {**given, "program-name": "third", "program-command": "a b"})
    assert refused.status_code == 422
    assert "no name or path of a program" in refused.content.decode()
    assert SECRET not in refused.content.decode()
    own = reverse("mcpservers:server", args=[second.uid])
    changed = client.post(own, {"command": "other", "arguments": "", "timeout_seconds": 7})
    assert changed.status_code == 302
    second.refresh_from_db()
    assert list(second.argv) == ["other"]
    assert (second.timeout_seconds, second.sealed) == (7, "")
    assert client_of(bob).post(own, {"command": "evil", "timeout_seconds": 7}).status_code == 403


@pytest.mark.django_db
def test_programs_at_the_api(
    alice: User, mallory: User, acme: Organisation, elsewhere: Organisation, client: Client
):
    server = quiet(alice, acme, variables={"API_KEY": SECRET})

    def headers(user: User, organisation: Organisation) -> dict[str, str]:
        token = create_token(
            actor=user, organisation=organisation, name="t", scopes=[TokenScope.ADMIN]
        )
        return {"authorization": f"Bearer {token.secret}"}

    answer = client.get(f"/api/mcp-servers/{server.uid}", headers=headers(alice, acme))
    told = answer.json()
    assert (told["url"], told["command"], told["arguments"]) == ("", "a-server", [])
    assert SECRET not in answer.content.decode()
    theirs = client.patch(
        f"/api/mcp-servers/{server.uid}",
        {"command": "evil"},
        content_type="application/json",
        headers=headers(mallory, elsewhere),
    )
    assert theirs.status_code == 404
    server.refresh_from_db()
    assert server.command == "a-server"
