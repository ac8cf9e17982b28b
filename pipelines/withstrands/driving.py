"""Has Strands say what is due of a run: its loop goes through everything from the beginning, is answered with
what stands in our rows, and is left at the first thing that does not."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pipelines.graph.following import Done, Ends, Go
from pipelines.graph.spec import PipelineSpec
from pipelines.models import PipelineRun

from .process import Broken, orchestrated
from .replaying import Replay, Strange, ended, way_to

logger = logging.getLogger(__name__)


def following(run: PipelineRun, steps: Sequence[Done]) -> Go | Ends:
    """What is due once all of these have ended. It waits for another process, so no transaction may be open
    that others wait for. Raises Broken."""
    spec = run.version.spec
    over = ended(spec, steps)
    if over is not None:
        return over
    try:
        return _asked(spec, steps)
    except Broken as problem:
        # Perhaps it had ended for want of questions, or was killed. It keeps nothing that could be lost.
        logger.info("the loop of Strands is begun anew: %s", problem)
        return _asked(spec, steps)


def _asked(spec: PipelineSpec, steps: Sequence[Done]) -> Go | Ends:
    replay = Replay(spec, steps)
    specialists = [each.name for each in spec.steps[1:]]
    try:
        last = orchestrated(specialists, replay.answer)
    except Strange as problem:
        raise Broken(str(problem)) from problem
    if replay.due is not None:
        return way_to(spec, steps, replay.due)
    if last.get("end") != "end_turn":
        raise Broken("it came to an end that is none")
    return Ends()
