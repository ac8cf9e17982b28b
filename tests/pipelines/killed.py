"""Runs of shipped pipelines in processes that are killed one after the other, at every second step.

    python -m tests.pipelines.killed FOLDER EXAMPLE=FIRST...

FIRST is the step at which an example's first process dies at the latest.

One run follows the other. Prints as JSON for each how many were killed, how it ended, and what stands in its
logs. Nothing but the restart helps it along.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import django

PATIENCE = 60
COMMITS = (47, 67, 55, 79)
"""How many commits processes live at most, in turn; some die right before one, some right behind it. Each
dies as soon as its step has begun, too. They live long enough: a conversation whose runs keep dying is
left."""
MOST = 60
"""Processes."""


def main(folder: Path, examples: list[tuple[str, int]]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.killing.settings"
    django.setup()
    # All of it needs the apps that are ready only now.
    from django.conf import settings  # noqa: PLC0415

    from tests.killing import databases  # noqa: PLC0415

    settings.AGENTSITE_WORKSPACES_DIR = folder / "workspaces"
    template = databases.of_this_run(folder)
    template.make()
    _prepare_people()
    found = [_until_it_ends(example, first, databases.release) for example, first in examples]
    print(json.dumps(found))


def _until_it_ends(example: str, first: int, release: Callable[[], None]) -> dict[str, object]:
    from pipelines.models import PipelineRun  # noqa: PLC0415
    from tests.killing.commits import commits  # noqa: PLC0415

    commits.arm(0, "after")
    run = _begin(example)
    killed = 0
    for number in range(MOST):
        release()
        child = os.fork()
        if child == 0:
            _work(COMMITS[number % len(COMMITS)], "before" if number % 2 else "after", first)
        _pid, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not PipelineRun.objects.going_on().exists():
            break
    return {"killed": killed, **_found(run)}


def _prepare_people() -> None:
    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.models import User  # noqa: PLC0415
    from agents.models import Agent, AgentVersion, Environment  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415
    from tests.killing.commits import commits  # noqa: PLC0415

    commits.arm(0, "after")
    alice = User.objects.create_user("alice", "alice@example.org")
    create_organisation(actor=alice, name="Acme")
    config = AgentConfig(provider="demo").model_dump(mode="json")
    agent = Agent.objects.create(name="General work")
    agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=config)
    agent.save()
    Environment.objects.create(name="Here")


def _begin(example: str) -> int:
    from django.db import transaction  # noqa: PLC0415

    from accounts.models import Organisation, User  # noqa: PLC0415
    from pipelines.actions.definitions import save_pipeline  # noqa: PLC0415
    from pipelines.actions.runs import start_run  # noqa: PLC0415
    from pipelines.driving import driver_of  # noqa: PLC0415
    from pipelines.files import read_pipeline  # noqa: PLC0415
    from pipelines.shipped import example_pipelines  # noqa: PLC0415

    alice, acme = User.objects.get(), Organisation.objects.get()
    spec = read_pipeline(example_pipelines()[example])
    driver_of(spec)  # loaded once, before there are processes
    version = save_pipeline(actor=alice, organisation=acme, spec=spec)
    # As if the process had died right behind the commit: the hint is lost.
    with transaction.atomic():
        run = start_run(actor=alice, pipeline=version.pipeline, question="How high?", scripted=True)
        transaction.get_connection().run_on_commit = []
    return run.pk


def _work(commits_to_live: int, when: str, first: int) -> None:
    """Be a process of the site until the run has ended; never returns."""
    try:
        from django.conf import settings  # noqa: PLC0415

        from jobs import here  # noqa: PLC0415
        from pipelines.models import PipelineRun, StepRun  # noqa: PLC0415
        from tests.killing.commits import commits  # noqa: PLC0415

        settings.AGENTSITE_SWEEP_SECONDS = 1
        commits.arm(commits_to_live, when)  # type: ignore[arg-type]
        here.start_recurring()
        end = time.monotonic() + PATIENCE
        due = StepRun.objects.count() + 1
        due += (due - first) % 2
        while PipelineRun.objects.going_on().exists() and time.monotonic() < end:
            if StepRun.objects.count() >= due:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.03)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _found(pk: int) -> dict[str, object]:
    from conversations.models import Conversation, Event  # noqa: PLC0415
    from pipelines.models import PipelineRun  # noqa: PLC0415

    run = PipelineRun.objects.get(pk=pk)
    steps = list(run.steps.order_by("place"))
    log = Event.objects.filter(conversation__parent=run.root)
    asked = Counter(log.filter(type="user.message").values_list("conversation", flat=True))
    rests = Counter(log.filter(type="session.status_idle").values_list("conversation", flat=True))
    return {
        "state": run.state,
        "checkpoints": run.checkpoints.count(),
        "steps": [[step.name, step.state] for step in steps],
        "conversations": Conversation.objects.filter(parent=run.root).count(),
        "asked": sorted(asked.values()),
        "rests": sorted(rests.values()),
    }


if __name__ == "__main__":
    pairs = [each.split("=") for each in sys.argv[2:]]
    main(Path(sys.argv[1]), [(example, int(first)) for example, first in pairs])
