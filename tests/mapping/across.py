"""What goes across packages, as tables of the map: settings, events, tools, jobs, metrics, scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from harness import events
from jobs import metrics, registry
from tests.architecture.sources import MODULES, ROOT
from tests.mapping import code
from tests.mapping.screens import screens

_SETTING = re.compile(r'(?ms)^(AGENTSITE_\w+)\b[^\n]*=(?:(?!\n\w|\n""").)*(?:\n"""(.*?)""")?')
_TOOL = re.compile(r'\b\w*Tool\(\s*name="([a-z_]+)"')
_FROM_TABLES = re.compile(r'"(agentsite_\w+)"')
_MOST_TESTS = 8
MONITORING = sorted(path.relative_to(ROOT) for path in (ROOT / "docs/monitoring").glob("*.*"))


def settings_lines() -> Iterator[str]:
    """The setting in a sentence, where it is read, and which documents and tests name it."""
    own = Path("agentsite/settings.py")
    groups = (tuple(MODULES), code.DOCUMENTS, code.TESTS)
    read, told, tried = map(code.holding, groups)
    for name, said in sorted(dict(_SETTING.findall(code.text_of(own))).items()):
        if hasattr(settings, name):
            users = [path for path in read.get(name, []) if path != own]
            named = (code.ticked(code.fewer(users)), code.ticked(told.get(name, [])))
            yield f"- `{name}`: {_with(code.sentence(said), *named, _tests(tried.get(name, [])))}"


def event_lines() -> Iterator[str]:
    """The event's type, its class, its golden files, the modules that name the class, and tests that name
    the class or the type."""
    named, tried = code.holding(code.SHOWN), code.holding(code.TESTS)
    golden: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "tests/golden/events").rglob("*.json")):
        golden.setdefault(path.stem, []).append(path.relative_to(ROOT))
    for kind, one in _events():
        path = code.module_of(one)
        others = [each for each in named.get(one.__name__, []) if each != path]
        tests = list(dict.fromkeys([*tried.get(f'"{kind}"', []), *tried.get(one.__name__, [])]))
        parts = (code.ticked(golden.get(kind, [])), code.ticked(code.fewer(others)), _tests(tests))
        yield f"- `{kind}`: `{path}` (`{one.__name__}`); {_with(*parts)}"


def _events() -> Iterator[tuple[str, type[Any]]]:
    """Those of the union and what stands in them, then those of apps."""
    todo: list[type[Any]] = [each for each in vars(events).values() if isinstance(each, type)]
    for one in todo:
        kind = getattr(one, "model_fields", {}).get("type")
        if kind is not None and isinstance(kind.default, str):
            yield kind.default, one
    below = events.AppEvent.__subclasses__()
    for app in below:
        below += app.__subclasses__()
    ours = [app for app in below if (ROOT / app.__module__.partition(".")[0]).is_dir()]
    for app in sorted(set(ours) - set(todo), key=lambda each: (each.__module__, each.__name__)):
        if isinstance(kind := app.model_fields["type"].default, str):
            yield kind, app


def tool_lines() -> Iterator[str]:
    """The tool, the module that makes it, others that name it, and tests."""
    named, tried = code.holding(code.SHOWN), code.holding(code.TESTS)
    for path in code.SHOWN:
        for name in _TOOL.findall(code.text_of(path)):
            others = [each for each in named.get(f'"{name}"', []) if each != path]
            tests = sorted(tried.get(f'"{name}"', []), key=lambda each: path.stem not in each.stem)
            yield f"- `{name}`: `{path}`; {_with(code.ticked(others), code.ticked(tests[:4]))}"


def job_lines() -> Iterator[str]:
    """The job, its doorway, and the setting that says how often it comes by itself."""
    autodiscover_modules("jobs")
    for name, job in sorted(registry._jobs.items()):
        place = job.function.__module__.replace(".", "/") + ".py"
        every = f"; every `{job.every}`" if job.every else ""
        yield f"- `{name}`: `{place}` (`{job.function.__name__}`){every}"


def metric_lines() -> Iterator[str]:
    """The metric, its constant, its labels, the modules that count it, and what names it."""
    those = code.users_of()[Path("jobs/metrics.py")]
    for constant, metric in vars(metrics).items():
        if name := getattr(metric, "_name", ""):
            users = code.ticked(path for path in those if constant in code.words_of(path))
            labels = ", ".join(getattr(metric, "_labelnames", ()))
            parts = (labels and f"by {labels}", f"counted in {users}", *_about_metric(name))
            yield f"- `{name}`: `jobs/metrics.py` (`{constant}`); {_with(*parts)}"
    tables = Path("agentsite/metrics.py")
    for name in _FROM_TABLES.findall(code.text_of(tables)):
        yield f"- `{name}`: from tables, `{tables}`; {_with(*_about_metric(name))}"


def _about_metric(name: str) -> Iterator[str]:
    word = re.compile(rf"{name}(?:_total|_bucket|_count|_sum)?\b")
    for paths in (MONITORING, [Path("docs/operations.md")], code.TESTS):
        yield code.ticked(path for path in paths if word.search(code.text_of(path)))


def scope_lines() -> Iterator[str]:
    """The scope, and which methods of which views take it."""
    found: dict[str, dict[str, list[str]]] = {}
    for screen in screens():
        for method, scope in screen.scopes.items():
            views = found.setdefault(scope, {}).setdefault(str(screen.module), [])
            views.append(f"{screen.view} {method}")
    for scope, modules in sorted(found.items()):
        yield f"\n## `{scope}`\n"
        for module, views in sorted(modules.items()):
            yield f"- `{module}`: {', '.join(sorted(set(views)))}"


def _tests(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _MOST_TESTS} more" if len(paths) > _MOST_TESTS else ""
    return f"tests {code.ticked(paths[:_MOST_TESTS])}{more}" if paths else ""


def _with(*parts: str) -> str:
    return "; ".join(part for part in parts if part) or "nothing else"
