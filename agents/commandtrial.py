"""Can commands run here at all? Tried with a real one, where workspaces really are.

A sandbox that is found may still not get at the workspaces (a data folder closed to its user, say), and
then every command fails though nothing is missing; so it does where the policy opens more than the operator
allows by now. What a single conversation may run is `conversations.sandboxing`'s.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from agents.models import Environment
from harness.errors import AgentError, Invalid
from jobs.engine import engine
from jobs.hostreports import report, reports
from sandbox.choice import choose
from sandbox.contract import KilledBy, Mount, Mounts, Result
from sandbox.policy import Policy, read_policy
from tools_app import sandboxes
from tools_app.reach import check_reach

logger = logging.getLogger(__name__)

FOUND = "commands:found"
"""What hosts report of their trials."""
WORKSPACE = Path("/workspace")
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    problem: str = ""
    """Why no command can run; empty if they can."""
    remedy: str = ""
    """What the operator does about it, in one line."""

    @property
    def works(self) -> bool:
        return not self.problem


Terms = tuple[str, Policy | Trial]
"""The backend and the policy of a trial, or why there can be none."""

_last: Trial | None = None
_terms_of_last: Terms | None = None


def last_trial() -> Trial | None:
    """What this process found; None before it has tried."""
    return _last


async def try_a_command() -> Trial:
    """With the first environment of this server: until one works, and again where that has another policy
    or sandbox by now. Says in the log what is new, and all where pages of other processes find it."""
    global _last, _terms_of_last
    terms = await engine.in_database(_terms)
    if _last is None or not _last.works or terms != _terms_of_last:
        backend, policy = terms
        before = _last
        _last = policy if isinstance(policy, Trial) else await _tried(backend, policy)
        _terms_of_last = terms
        if not _last.works and _last != before:
            logger.warning(
                "no command can run on this server: %s Remedy: %s", _last.problem, _last.remedy
            )
        await report(FOUND, (_last.problem, _last.remedy))
    return _last


def known_trials() -> dict[str, Trial]:
    """By host."""
    return {host: Trial(*words) for host, words in reports(FOUND).items()}


def commands_problem() -> Trial | None:
    """Why no host that works for this server runs commands; None if one does, or none has tried."""
    trials = list(known_trials().values())
    return trials[0] if trials and not any(trial.works for trial in trials) else None


def _terms() -> Terms:
    first = Environment.objects.of_this_server().first()
    if first is None:
        return "", Policy()
    try:
        policy = read_policy(first.policy)
        check_reach(policy)
    except Invalid as problem:
        words = f"the policy of the environment “{first.name}” is refused: {problem.message}"
        return first.backend, Trial(words, problem.hint or "correct it in the administration")
    return first.backend, policy


async def _tried(backend: str, policy: Policy) -> Trial:
    here = sandboxes.sandboxes()
    unconfined = here.unconfined if backend == sandboxes.NONE else None
    try:
        ground = await asyncio.to_thread(trial_ground)
        try:
            mounts = Mounts(Mount(Path(ground.name) / "workspace", WORKSPACE, writable=True))
            chosen = await choose(here.preferred(backend), policy, unconfined=unconfined)
            result = await chosen.run("true", policy, mounts, timeout=SECONDS)
        finally:
            await asyncio.to_thread(ground.cleanup)
        if result.ok:
            return Trial()
        why = result.stderr.text.strip()[-300:] or _end_of(result)
        return Trial(f"a command that does nothing failed in {chosen.name}: {why}", _remedy(""))
    except AgentError as problem:
        return Trial(str(problem.message), _remedy(str(problem.hint)))
    except OSError as problem:
        return Trial(f"no sandbox could be started: {problem}", _remedy(""))


def _end_of(result: Result) -> str:
    if result.killed_by is KilledBy.TIMEOUT:
        return f"it did not end within {SECONDS:g} seconds"
    return f"it ended with {result.exit_code if result.killed_by is None else result.killed_by}"


def trial_ground() -> tempfile.TemporaryDirectory[str]:
    """A folder like a conversation's, beside those there are, with a `workspace` in it."""
    root = Path(settings.AGENTSITE_WORKSPACES_DIR)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = tempfile.TemporaryDirectory(prefix="trial-", dir=root)
    Path(folder.name).chmod(0o711)
    (Path(folder.name) / "workspace").mkdir(mode=0o700)
    return folder


def _remedy(hint: str) -> str:
    if "bubblewrap" in settings.AGENTSITE_SANDBOXES and shutil.which("bwrap") is None:
        return "apt-get install bubblewrap (or: dnf install bubblewrap)"
    return hint or "see docs/sandbox.md, “When no command runs”"
