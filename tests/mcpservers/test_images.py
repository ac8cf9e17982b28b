"""MCP servers that come as images: spoken to over an engine's client, whose stand-in runs one without a
container, and refused where the environment has none.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accounts.models import Organisation, User
from harness.errors import Conflict, Invalid
from mcpservers.actions.registry import offered_ways
from mcpservers.actions.servers import add_server, change_server
from mcpservers.models import McpServer
from mcpservers.programs import Terms, on_trial
from mcpservers.publishing import listed_for
from mcpservers.serverjson import fill, read_server
from mcpservers.sessions import Unreachable, Where, look_at
from sandbox.policy import parse_policy
from tests.sandbox.test_docker import IMAGE, Client

INSIDE = Path(__file__).parent / "inside"
SECRET = "secret-of-the-program"


def test_what_an_image_has_is_asked_over_the_engines_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
):
    settings.AGENTSITE_SANDBOXES = ["docker"]
    client = Client(tmp_path)
    (tmp_path / "program").write_text(str(INSIDE / "rawserver.py"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    terms = Terms("docker", parse_policy({"require": []}))
    program = on_trial(terms, (IMAGE,), {"API_KEY": SECRET})
    found = asyncio.run(look_at(Where(1, "", "", program=program)))
    assert [tool.name for tool in found.tools] == ["do"]
    assert f"API_KEY={SECRET}\n" in (tmp_path / "given").read_text()
    assert SECRET not in (tmp_path / "asked").read_text()
    assert client.asked("rm")


@pytest.mark.parametrize("backend", ["bubblewrap", "process"])
def test_an_image_is_refused_in_words_where_no_engine_runs_commands(backend: str):
    program = on_trial(Terms(backend, parse_policy({"require": []})), (IMAGE,), {})
    with pytest.raises(Unreachable, match="an image, which the sandbox “docker” alone starts"):
        asyncio.run(look_at(Where(1, "", "", program=program)))


@pytest.mark.django_db
def test_an_image_of_a_registry_is_added_by_its_digest_and_told_by_it(
    alice: User, acme: Organisation
):
    held = {
        "registryType": "oci",
        "identifier": IMAGE,
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "named", "name": "--root", "default": "/mnt/session"}],
        "runtimeArguments": [{"type": "named", "name": "-v", "value": "/:/host"}],
    }
    entry = {"name": "com.example/notes", "version": "1.0.0", "packages": [held]}
    (way,) = offered_ways(read_server(entry))
    assert (way.refusal, fill(way, {}).arguments) == ("", ("--root=/mnt/session",))
    server = add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.ORGANISATION,
        name="notes",
        command=IMAGE,
        arguments=["--root=/mnt/session"],
        look=False,
    )
    assert server.argv == (IMAGE, "--root=/mnt/session")
    change_server(actor=alice, server=server, listed=True)
    (told,) = listed_for(alice, acme, "agents.example.com")
    (package,) = told.told["server"]["packages"]
    assert (package["registryType"], package["identifier"]) == ("oci", IMAGE)
    for wrong in ("tools.example/notes:latest", IMAGE[:-1], f"-{IMAGE}", f"{IMAGE} --privileged"):
        with pytest.raises(Invalid):
            change_server(actor=alice, server=server, command=wrong)


@pytest.mark.django_db
def test_an_image_by_another_name_is_the_same_server(alice: User, bob: User, acme: Organisation):
    """Rules about the organisation's would not know it by a second name."""
    given: dict[str, Any] = {"organisation": acme, "look": False}
    scope = McpServer.Scope
    add_server(actor=alice, scope=scope.ORGANISATION, name="notes", command=IMAGE, **given)
    name, _at, digest = IMAGE.partition("@")
    for spelt in (f"{name}:2@{digest}", f"mirror.example/other@{digest}"):
        with pytest.raises(Conflict):
            add_server(actor=bob, scope=scope.PERSON, name="mine", command=spelt, **given)
