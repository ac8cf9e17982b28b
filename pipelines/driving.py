"""What says which step of a run is due: our own rules, or LangGraph over the same definition.

Whatever says it, a step is begun, answered, paid and shown in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec

from django.utils.translation import gettext as _

from .graph.following import Done, Ends, Go, following
from .graph.spec import STRANDS, PipelineSpec
from .models import PipelineRun
from .withstrands.process import interpreter

Driver = Callable[[PipelineRun, Sequence[Done]], Go | Ends]

LANGGRAPH = "langgraph"
_MODULES = {
    LANGGRAPH: "pipelines.withlanggraph.driving",
    STRANDS: "pipelines.withstrands.driving",
}
_NAMES = {LANGGRAPH: "LangGraph", STRANDS: "Strands"}


def name_of(engine: str) -> str:
    """For people; empty: ours."""
    return _NAMES.get(engine, "")


Find = Callable[[str], object]
"""Of a package by its name; None: it is not there."""


def missing(spec: PipelineSpec, *, find: Find = find_spec) -> str:
    """What this server lacks to run it, in words; empty: nothing."""
    if not spec.engine:
        return ""
    if _is_there(spec.engine, find):
        return ""
    return _("%(name)s is not installed on this server.") % {"name": name_of(spec.engine)}


def lacking(*, find: Find = find_spec) -> list[str]:
    """Engines that this server has no package for: what runs by them waits."""
    return [engine for engine in _MODULES if not _is_there(engine, find)]


def _is_there(engine: str, find: Find) -> bool:
    return interpreter().is_file() if engine == STRANDS else find(engine) is not None


def driver_of(spec: PipelineSpec, *, find: Find = find_spec) -> Driver | None:
    """None: it is not installed, and the run waits for it. Loaded when it is first needed."""
    if not spec.engine:
        return _by_rules
    if missing(spec, find=find):
        return None
    driver: Driver = import_module(_MODULES[spec.engine]).following
    return driver


def takes_a_while(spec: PipelineSpec) -> bool:
    """Whether its driver waits for another process: nobody may have to wait for whoever asks it."""
    return spec.engine == STRANDS


def _by_rules(run: PipelineRun, steps: Sequence[Done]) -> Go | Ends:
    return following(run.version.spec, steps)
