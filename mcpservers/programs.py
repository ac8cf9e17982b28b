"""MCP servers that are programs: what may be named as one, and the sandbox that each is started in.

They run in the sandbox of the conversation that uses them, under its policy, with the variables that were
declared for them and nothing else; where they are looked at, in one of its own. Never without a sandbox. What
is said to them is `stdio`'s.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from agents.commandtrial import trial_ground
from agents.models import Environment
from conversations.defaults import default_environment
from conversations.sandboxing import WORKSPACE, policy_in
from harness.errors import Forbidden, Invalid, NotConfigured, ToolError
from sandbox.choice import choose
from sandbox.contract import Mount, Mounts, Program, SandboxBackend
from sandbox.docker import NAME as DOCKER
from sandbox.images import IMAGE, is_image
from sandbox.policy import Policy
from tools_app.builtin.shell import ShellAccess
from tools_app.provenance import Provenance
from tools_app.sandboxes import Sandboxes, sandboxes

from .models import McpServer

MOST_ARGUMENTS = 50
LONGEST_ARGUMENT = 2_000
LONGEST_TOGETHER = 16_000
MOST_VARIABLES = 30
LONGEST_VALUE = 8_000
MOST_BYTES = 90_000
"""Of all arguments and of all variables, as a sandbox is told them: both go there in one message."""
_COMMAND = re.compile(r"[A-Za-z0-9_./+@-]{1,200}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Started:
    """A program that can be started anew each time it is needed."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    rules: str
    """Of its sandbox; under others it is another session."""
    opened: Callable[[], AbstractAsyncContextManager[Program]] = field(repr=False)
    """For as long as the block lasts. Raises AgentError."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What one is started under by itself, apart from a run."""

    backend: str
    policy: Policy
    mounts: Mounts | None = None
    """None: an empty workspace, which is gone with it."""


def require_programs() -> None:
    """Raises Forbidden where the operator has none started."""
    if not settings.AGENTSITE_MCP_PROGRAMS:
        raise Forbidden(
            _("MCP servers are reached by their address here; none is started as a program."),
            hint=_("Ask the operator to set AGENTSITE_MCP_PROGRAMS."),
        )


def checked_command(command: str, arguments: Sequence[str]) -> dict[str, object]:
    """As a server keeps them. Raises Invalid on `command` or `arguments`."""
    command = command.strip()
    # A path from where it happens to begin is nobody's.
    relative = "/" in command and not command.startswith("/")
    if not IMAGE.fullmatch(command) and (
        not _COMMAND.fullmatch(command) or command.startswith("-") or relative
    ):
        raise Invalid(
            _("The command is no name or path of a program."),
            field="command",
            hint=_("Type such as python3 or /opt/tools/server, and what follows it as arguments."),
        )
    fits = len(arguments) <= MOST_ARGUMENTS and sum(map(len, arguments)) <= LONGEST_TOGETHER
    for each in arguments:
        if not each or len(each) > LONGEST_ARGUMENT or not each.isprintable():
            fits = False
    if not fits:
        raise Invalid(
            _("Arguments are at most %(most)d lines of printable characters.")
            % {"most": MOST_ARGUMENTS},
            field="arguments",
            hint=_("Type each on a line of its own."),
        )
    _require_room(list(arguments), "arguments")
    return {"command": command, "arguments": list(arguments)}


@sensitive_variables("variables")
def checked_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid, on `variables`, naming no value."""
    if len(variables) > MOST_VARIABLES:
        raise _refused(_("There are more than %(most)d variables.") % {"most": MOST_VARIABLES})
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise _refused(_("“%(name)s” is no name of a variable.") % {"name": name[:64]})
        if not value.isprintable() or not 1 <= len(value) <= LONGEST_VALUE:
            raise _refused(
                _("The value of “%(name)s” is not one line of printable characters.")
                % {"name": name}
            )
    _require_room(dict(variables), "variables")
    return dict(variables)


def command_line(server: McpServer) -> str:
    """What is started, for people's eyes."""
    return shlex.join(server.argv)


def mark_workspace(marks: Provenance, call_id: str, server: str) -> None:
    """To be called before it is started there: from then on it may write into any file, while it lives. In a
    thread with tables."""
    if not marks.foreign().settled:
        words = f"the MCP server “{server}”, which is a program of others in this workspace"
        marks.begin_command(call_id, words)
        marks.end_command(call_id, words)


def in_conversation(
    access: ShellAccess, argv: tuple[str, ...], variables: Mapping[str, str]
) -> Started:
    """In the sandbox of a conversation's commands, which sees its workspace; it ends with that."""
    sandboxes = [backend.name for backend in access.backends]
    rules = f"{access.policy.digest} {access.mounts} {sandboxes}"
    return Started(argv, variables, rules, partial(_in_conversation, access, argv, variables))


def on_trial(terms: Terms, argv: tuple[str, ...], variables: Mapping[str, str]) -> Started:
    """In a sandbox of the terms. On any loop."""
    opened = partial(_on_trial, terms, argv, variables)
    return Started(argv, variables, terms.policy.digest, opened)


def trial_terms(server: McpServer) -> Terms:
    """Those of the environment that the work of whoever added it begins in. In a thread with tables. Raises
    Invalid, and NotConfigured where there is no environment."""
    person, organisation = server.owner or server.created_by, server.organisation
    environment = Environment.objects.of_this_server().first()
    if person is not None and organisation is not None:
        environment = default_environment(person, organisation)
    if environment is None:
        raise NotConfigured(
            _("There is no environment in which the program could be looked at."),
            hint=_("A member of staff can add one in the administration."),
        )
    return Terms(environment.backend, policy_in(environment, server.organisation_id))


@asynccontextmanager
async def _in_conversation(
    access: ShellAccess, argv: tuple[str, ...], variables: Mapping[str, str]
) -> AsyncIterator[Program]:
    if access.problem is not None:
        raise ToolError(access.problem.message, hint=access.problem.hint)
    backend = await _confining(access.backends, access.policy, argv)
    program = await sandboxes().programs.open(
        access.key,
        partial(backend.open_program, argv, access.policy, access.mounts, environment=variables),
    )
    try:
        yield program
    finally:
        await program.close()


@asynccontextmanager
async def _on_trial(
    terms: Terms, argv: tuple[str, ...], variables: Mapping[str, str]
) -> AsyncIterator[Program]:
    here = Sandboxes()
    ground = None if terms.mounts else await asyncio.to_thread(trial_ground)
    try:
        mounts = terms.mounts
        if ground is not None:
            mounts = Mounts(Mount(Path(ground.name) / "workspace", WORKSPACE, writable=True))
        assert mounts is not None  # noqa: S101 - for the type checker
        backend = await _confining(here.preferred(terms.backend), terms.policy, argv)
        yield await backend.open_program(argv, terms.policy, mounts, environment=variables)
    finally:
        await here.close()
        if ground is not None:
            await asyncio.to_thread(ground.cleanup)


async def _confining(
    backends: Sequence[SandboxBackend], policy: Policy, argv: Sequence[str]
) -> SandboxBackend:
    """The one that confines nothing is never among them."""
    if backends and is_image(argv):
        backends = [each for each in backends if each.name == DOCKER]
        if not backends:
            raise ToolError(
                "The server is an image, which the sandbox “docker” alone starts; the environment has its "
                "commands run in another one.",
                hint="Go on without it, or tell the person: an environment with docker starts it, and so "
                "does any with the same server as an installed package of npm or PyPI.",
            )
    if not backends:
        raise ToolError(
            "The program was not started: the environment has its commands run without a sandbox, and MCP "
            "servers are started in one only.",
            hint="Go on without it, or tell the person.",
        )
    return await choose(backends, policy)


@sensitive_variables("told")
def _require_room(told: list[str] | dict[str, str], field: str) -> None:
    if len(json.dumps(told)) > MOST_BYTES:
        raise Invalid(
            _("They take more than %(most)d bytes together.") % {"most": MOST_BYTES},
            field=field,
            hint=_("Leave out what it does not need."),
        )


def _refused(message: str) -> Invalid:
    return Invalid(message, field="variables", hint=_("Write one a line, as NAME=value."))
