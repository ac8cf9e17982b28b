"""A server that cannot run commands finds it out by itself and says so, with what mends it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from agents import commandtrial
from agents.commandtrial import Trial, known_trials, try_a_command
from agents.models import Agent, Environment
from agentsite.seeding import seed
from conversations import sandboxing
from conversations.actions.conversations import create_conversation
from conversations.sandboxing import known_sandboxes, probe_sandboxes
from jobs.hostreports import keep
from tools_app import sandboxes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def untried(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(commandtrial, "_last", None)
    monkeypatch.setattr(sandboxes, "_found", {})
    monkeypatch.setattr(sandboxes, "_held", None)
    cache.delete_many([commandtrial.FOUND, sandboxing.FOUND])
    yield
    cache.delete_many([commandtrial.FOUND, sandboxing.FOUND])


async def test_a_server_with_a_sandbox_runs_its_trial(settings, tmp_path):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    assert await try_a_command() == Trial()
    assert [trial.works for trial in known_trials().values()] == [True]
    assert commandtrial.commands_problem() is None
    assert not list((tmp_path / "workspaces").iterdir())
    await sandboxes.close_sandboxes()


async def test_an_environment_whose_commands_run_elsewhere_or_never_tells_nothing_of_this_server(
    settings, tmp_path
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    make = Environment.objects.acreate
    await make(name="once", backend="docker", archived_at=timezone.now())
    await make(name="elsewhere", backend="worker")
    here = await make(name="here")
    await make(name="later", backend="docker")
    assert await Environment.objects.of_this_server().afirst() == here
    assert await try_a_command() == Trial()
    await sandboxes.close_sandboxes()


@pytest.mark.parametrize(
    ("policy", "problem", "remedy"),
    [
        (
            "process: {env_allow: [LANG, PYTHONPATH]}",
            "variable “PYTHONPATH”",
            "AGENTSITE_SANDBOX_ENVIRONMENT",
        ),
        (
            'network_policies: {web: {endpoints: [{host: "*"}]}}',
            "not every public one",
            "AGENTSITE_SANDBOX_UNRESTRICTED",
        ),
        ("nonsense: [", "policy", ""),
        ("filesystem_policy: {read_write: [/root]}", "/root", "AGENTSITE_MOUNT_ROOTS"),
    ],
)
async def test_a_policy_that_lets_no_command_run_is_the_problem_until_it_is_corrected(
    settings, tmp_path, policy, problem, remedy
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    row = await Environment.objects.acreate(name="here", policy=policy)
    trial = await try_a_command()
    assert problem in trial.problem
    assert trial.remedy
    assert remedy in trial.remedy
    assert commandtrial.commands_problem() == trial
    row.policy = ""
    await row.asave()
    assert await try_a_command() == Trial()
    assert commandtrial.commands_problem() is None
    await sandboxes.close_sandboxes()


async def test_a_command_that_did_not_end_in_time_is_tried_again_and_said_once(
    settings, tmp_path, monkeypatch, caplog
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    with caplog.at_level(logging.WARNING, "agents.commandtrial"), monkeypatch.context() as busy:
        busy.setattr(commandtrial, "SECONDS", 0.0)
        late = await try_a_command()
        assert await try_a_command() == late
    assert "did not end within 0 seconds" in late.problem
    assert [record.name for record in caplog.records] == ["agents.commandtrial"]
    assert commandtrial.commands_problem() == late
    assert await try_a_command() == Trial()
    assert commandtrial.commands_problem() is None
    await sandboxes.close_sandboxes()


async def test_a_sandbox_that_is_installed_later_is_found_without_a_new_start(
    settings, tmp_path, monkeypatch
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    settings.AGENTSITE_SANDBOXES = ["bubblewrap"]
    with monkeypatch.context() as before:
        before.setenv("PATH", str(tmp_path))
        await probe_sandboxes()
        assert not (await try_a_command()).works
        assert not _sandbox_known()["available"]
    await probe_sandboxes()
    assert _sandbox_known()["available"]
    assert await try_a_command() == Trial()
    await sandboxes.close_sandboxes()


def _sandbox_known() -> dict[str, Any]:
    (host,) = known_sandboxes()
    (described,) = host["sandboxes"]
    return dict(described)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's sandboxes have users of their own")
async def test_without_bubblewrap_root_s_closed_data_folder_is_found_and_said(
    settings, tmp_path, monkeypatch, caplog
):
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    closed = Path("/tmp") / f"agentsite-closed-{os.getpid()}"
    closed.mkdir(mode=0o700)
    settings.AGENTSITE_WORKSPACES_DIR = closed / "workspaces"
    try:
        with caplog.at_level(logging.WARNING, "agents.commandtrial"):
            trial = await try_a_command()
    finally:
        for path in sorted(closed.rglob("*"), reverse=True):
            path.rmdir()
        closed.rmdir()
        await sandboxes.close_sandboxes()
    assert not trial.works
    assert "apt-get install bubblewrap" in trial.remedy
    assert "no command can run on this server" in caplog.text
    assert commandtrial.commands_problem() == trial


@pytest.fixture
def nothing_runs() -> None:
    keep(commandtrial.FOUND, "host", ("no bwrap.", "apt-get install bubblewrap"))


def test_staff_reads_the_problem_and_its_remedy_on_every_page(client_of, staff, nothing_runs):
    page = client_of(staff).get("/settings/").content.decode()
    assert "No command can run on this server: no bwrap." in page
    assert "<code>apt-get install bubblewrap</code>" in page


def test_people_read_a_plain_line_in_the_conversation_and_nothing_of_the_server(
    client_of, alice, acme, nothing_runs
):
    seed()
    conversation = create_conversation(
        actor=alice,
        organisation=acme,
        agent=Agent.objects.earliest("pk"),
        environment=Environment.objects.earliest("pk"),
    )
    page = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "Commands cannot run on this server at present" in page
    assert "bwrap" not in page
    keep(commandtrial.FOUND, "other", ("", ""))
    page = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "Commands cannot run" not in page
