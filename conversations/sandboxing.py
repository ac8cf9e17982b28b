"""What a conversation's commands run in: the policy that holds for it, its mounts, its shell's end.

The policy is read from tables in a database thread (`plan_sandbox`); access to shells is made on the
loop that runs them (`shell_access`). Sandboxes themselves are `tools_app`'s.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.models import Environment, SandboxRules
from harness.agentconfig import AgentConfig
from harness.errors import AgentError, Invalid
from harness.ids import new_id
from harness.outcomechecks import Ran
from jobs.engine import engine
from jobs.hostreports import report, reports
from jobs.prepared import Prepared
from live.output import LiveOutput
from sandbox.contract import Mount, Mounts, Unavailable
from sandbox.guarantees import MEANING, Guarantee
from sandbox.narrowing import narrow, narrow_where_said
from sandbox.policy import Policy, read_policy
from tools_app import quota, sandboxes
from tools_app.builtin.alone import run_alone
from tools_app.builtin.shell import ShellAccess
from tools_app.reach import check_reach
from tools_app.workspace import OUTPUTS, PUBLIC_ROOT, Workspace, workspace_for

from .commandlog import TableCommandLog
from .kitparts import Concerned, mounts_of
from .models import Conversation
from .provenance import TableProvenance

FOUND = "sandboxes:found"
"""What hosts report of their probes."""
WORKSPACE = Path(PUBLIC_ROOT)
"""Where sandboxes that have a view of files of their own show the workspace."""

CHECK_OUTPUT = 100_000
"""Characters of a check's output, of which the log keeps beginning and end (`harness.outcomechecks`)."""

OWN_VIEW = ("bubblewrap", "docker", "openshell")
"""Sandboxes that do so. The others show folders where they lie on the host."""

engine.at_end(sandboxes.close_sandboxes)

_RULES = Prepared(lambda given: SandboxRules.objects.filter(organisation=given.organisation))


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What tables say about a conversation's commands."""

    conversation_id: int
    conversation_uid: str
    workspace: Path
    backend: str
    policy: Policy
    problem: AgentError | None = None
    more: tuple[Mount, ...] = ()
    """What apps mount beside the workspace."""
    own: str = ""
    """The agent's own policy."""

    @property
    def mounts(self) -> Mounts:
        label = "this conversation's own workspace"
        workdir = Mount(self.workspace, WORKSPACE, writable=True, label=label)
        return Mounts(workdir, self.more)


def plan_sandbox(
    conversation: Conversation,
    config: AgentConfig,
    workspace: Path,
    concerned: Concerned | None = None,
) -> SandboxPlan:
    """What environment, organisation and agent allow together. A policy that cannot be read (one of
    an older version, say) lets no command run, and says so."""
    problem: AgentError | None = None
    policy = Policy()
    with suppress(AgentError):  # the agent itself may have made a file of this name
        Workspace(workspace).make_folder(OUTPUTS)
    try:
        policy = policy_of(conversation, config)
    except Invalid as invalid:
        problem = _not_in_force(invalid)
    return SandboxPlan(
        conversation.pk,
        conversation.uid,
        workspace,
        conversation.environment.backend,
        policy,
        problem,
        mounts_of(conversation, concerned),
        config.sandbox,
    )


def plan_by_now(plan: SandboxPlan) -> SandboxPlan:
    """What environment and organisation allow by now of what the plan allowed when its run began: what its
    tools are taken to reach was said of that. In a database thread."""
    conversation = (
        Conversation.objects.select_related("environment").filter(pk=plan.conversation_id).first()
    )
    if conversation is None:
        return plan
    environment = conversation.environment
    opened = environment.backend == sandboxes.NONE != plan.backend
    backend = plan.backend if opened else environment.backend
    try:
        policy = policy_in(environment, conversation.organisation_id, plan.own)
    except Invalid as invalid:
        return replace(plan, backend=backend, policy=Policy(), problem=_not_in_force(invalid))
    if policy != plan.policy:
        policy = narrow(plan.policy, policy)
    return replace(plan, backend=backend, policy=policy, problem=None)


def _not_in_force(problem: Invalid) -> Unavailable:
    return Unavailable(
        f"The command was not run: {problem.message}",
        hint="Staff can correct the policy of the environment, the organisation or the agent.",
    )


def policy_of(conversation: Conversation, config: AgentConfig) -> Policy:
    """The policy in force. Raises Invalid for one that cannot be read, and for one that opens more
    than the operator allows by now."""
    return policy_in(conversation.environment, conversation.organisation_id, config.sandbox)


def policy_in(environment: Environment, organisation_id: int | None, own: str = "") -> Policy:
    """The same of an organisation's work in an environment; `own` is that of an agent. Raises as it does."""
    rules = None
    if organisation_id is not None:
        rules = _RULES.first(organisation=organisation_id)
    policy = narrow_where_said(
        _within_quota(read_policy(environment.policy)),
        read_policy(rules.policy) if rules is not None else None,
        read_policy(own) if own.strip() else None,
    )
    check_reach(policy)
    return policy


def session_root(conversation: Conversation) -> str:
    """The folder under which commands of this conversation find its workspace. Of several sandboxes
    that its environment leaves open it is the one that is tried first, works here and holds its policy."""
    name = conversation.environment.backend or _first_that_holds(conversation)
    if name in OWN_VIEW or conversation.environment.has_workers:
        return PUBLIC_ROOT
    return str(workspace_for(conversation.uid))


def _first_that_holds(conversation: Conversation) -> str:
    described = [each for host in known_sandboxes() for each in host["sandboxes"]]
    working = [each for each in described if each["available"]]
    try:
        required = policy_of(conversation, conversation.config).required
    except Invalid:
        required = frozenset()  # no command runs
    holding = [each for each in working if required <= set(each.get("holds", ()))]
    found = {each["name"] for each in holding or working}
    return next((name for name in settings.AGENTSITE_SANDBOXES if name in found or not found), "")


def _within_quota(policy: Policy) -> Policy:
    """The workspace has one limit, whether files or commands fill it."""
    resources = policy.resources
    size = quota.limit_megabytes(resources.workspace_mb)
    return policy.model_copy(
        update={"resources": resources.model_copy(update={"workspace_mb": size})}
    )


def shell_access(plan: SandboxPlan, live: LiveOutput | None = None) -> ShellAccess:
    """On the loop that runs the commands."""
    here = sandboxes.sandboxes()
    problem = plan.problem
    unconfined = here.unconfined if plan.backend == sandboxes.NONE else None
    try:
        backends = here.preferred(plan.backend)
    except Unavailable as unavailable:
        backends, problem = (), problem or unavailable

    async def look() -> ShellAccess:
        return shell_access(await engine.in_database(plan_by_now, plan), live)

    return ShellAccess(
        key=plan.conversation_uid,
        registry=here.shells,
        backends=backends,
        policy=plan.policy,
        mounts=plan.mounts,
        unconfined=unconfined,
        on_output=live.hear if live is not None else None,
        on_end=live.ended if live is not None else None,
        problem=problem,
        log=TableCommandLog(plan.conversation_id),
        look=look,
    )


async def run_once(
    plan: SandboxPlan, command: str, seconds: float, tainted_by: str = "", most: int = CHECK_OUTPUT
) -> Ran:
    """A command in a sandbox of its own under the conversation's policy, apart from the agent's shell, with
    at most `most` characters of what it printed. On the engine's loop; never raises for a command."""
    try:
        result, foreign = await run_alone(
            command,
            seconds,
            shell=shell_access(plan),
            key=new_id("check"),
            provenance=TableProvenance(plan.conversation_id),
            tainted_by=tainted_by,
        )
    except AgentError as problem:
        return Ran(problem=problem.message)
    output = f"{result.stdout.text}{result.stderr.text}"[:most]
    killed = f"it was ended: {result.killed_by.value}" if result.killed_by else ""
    return Ran(result.exit_code, output, killed, foreign)


def end_shells(conversation_uids: list[str]) -> None:
    """Close the shells and programs of these conversations in this process, from any thread. Other processes
    find out by themselves (`close_ended_shells`)."""
    held = sandboxes.opened()
    if held is None:
        return
    for uid in conversation_uids:
        if uid in _open_in(held):
            engine.submit(partial(_close, uid))


async def _close(uid: str) -> None:
    here = sandboxes.sandboxes()
    shell = here.shells.find(uid)
    if shell is None or not shell.busy:  # what is at work goes on; the next look comes
        await here.shells.close(uid)
    await here.programs.close(uid)


def _open_in(held: sandboxes.Sandboxes) -> tuple[str, ...]:
    return (*held.shells.open_keys(), *held.programs.open_keys())


async def probe_sandboxes() -> None:
    """End what killed processes left, and find out what each sandbox promises here, until it is to be had."""
    here = sandboxes.sandboxes()
    await here.end_left()
    known = sandboxes.found()
    if await here.probe() != known:
        await report(FOUND, _in_words())


def _in_words() -> list[dict[str, Any]]:
    """What was found, for operators."""
    return [
        {
            "name": name,
            "available": found.available,
            "problem": found.problem,
            "remedy": found.remedy,
            "holds": sorted(found.guarantees),
            "lacks": [
                f"{MEANING[guarantee]}"
                + (f" ({found.reasons[guarantee]})" if guarantee in found.reasons else "")
                for guarantee in Guarantee
                if guarantee not in found.guarantees
            ]
            if found.available
            else [],
        }
        for name, found in sandboxes.found().items()
    ]


def known_sandboxes() -> list[dict[str, Any]]:
    """What the sandboxes of each host can promise, as its processes found out."""
    return [{"name": name, "sandboxes": described} for name, described in reports(FOUND).items()]


async def close_ended_shells() -> None:
    """Close the shells and programs of conversations that were deleted, put away or ended, and of those who
    left, wherever that was done. Cheap where none is open."""
    held = sandboxes.opened()
    keys = tuple(dict.fromkeys(_open_in(held))) if held is not None else ()
    if held is None or not keys:
        return
    going_on = await engine.in_database(_going_on, keys)
    await asyncio.gather(*(_close(key) for key in keys if key not in going_on))


def _going_on(uids: tuple[str, ...]) -> set[str]:
    open_ones = Conversation.objects.of_members().filter(uid__in=uids, archived_at=None)
    ended = Conversation.Status.TERMINATED
    return set(open_ones.exclude(status=ended).values_list("uid", flat=True))
