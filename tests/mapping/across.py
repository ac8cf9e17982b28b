"""What goes across packages, as tables of the map: settings, events, tools, jobs, scopes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from jobs import registry
from tests.architecture.sources import MODULES, ROOT, nodes_of, parsed
from tests.mapping.code import DOCUMENTS, SHOWN, TESTS, fewer, naming, ticked
from tests.mapping.screens import screens

SETTING = re.compile(r"\b([A-Z]+_[A-Z_0-9]+)\b")
_WORD = re.compile(r"""["']([a-z_]+)["']""")


def settings_lines() -> Iterator[str]:
    """The setting, where it is read, and which documents tell of it."""
    own = Path("agentsite/settings.py")
    ends = [
        node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        for node in parsed(own).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    ]
    made = {end.id for end in ends if isinstance(end, ast.Name)}
    read = naming(SETTING, [path for path in MODULES if path != own])
    told = naming(SETTING, DOCUMENTS)
    for name in sorted(
        one for one in made if one.startswith("AGENTSITE_") and hasattr(settings, one)
    ):
        yield f"- `{name}`: {_with(ticked(fewer(read.get(name, []))), ticked(told.get(name, [])))}"


def event_lines() -> Iterator[str]:
    """The event's type, its class, its golden files, and the modules that name the class."""
    named = naming(re.compile(r"\b([A-Z][a-z]\w+)\b"), SHOWN)
    golden: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "tests/golden/events").rglob("*.json")):
        golden.setdefault(path.stem, []).append(path.relative_to(ROOT))
    for path in SHOWN:
        for node in parsed(path).body:
            kind = _type_of(node) if isinstance(node, ast.ClassDef) else ""
            if kind and isinstance(node, ast.ClassDef) and path.stem == "events":
                others = [each for each in named.get(node.name, []) if each != path]
                parts = (ticked(golden.get(kind, [])), ticked(fewer(others)))
                yield f"- `{kind}`: `{path}` (`{node.name}`); {_with(*parts)}"


def _type_of(node: ast.ClassDef) -> str:
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "type":
            value = each.value
            return str(value.value) if isinstance(value, ast.Constant) else ""
    return ""


def tool_lines() -> Iterator[str]:
    """The tool, the module that makes it, others that name it, and tests."""
    named, tried = naming(_WORD, SHOWN), naming(_WORD, TESTS)
    for path in SHOWN:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Tool"):
                for word in node.keywords:
                    if word.arg == "name" and isinstance(word.value, ast.Constant):
                        name = str(word.value.value)
                        others = [each for each in named.get(name, []) if each != path]
                        tests = sorted(
                            tried.get(name, []), key=lambda each: path.stem not in each.stem
                        )
                        yield f"- `{name}`: `{path}`; {_with(ticked(others), ticked(tests[:4]))}"


def job_lines() -> Iterator[str]:
    """The job, its doorway, and the setting that says how often it comes by itself."""
    autodiscover_modules("jobs")
    for name, job in sorted(registry._jobs.items()):
        place = job.function.__module__.replace(".", "/") + ".py"
        every = f"; every `{job.every}`" if job.every else ""
        yield f"- `{name}`: `{place}` (`{job.function.__name__}`){every}"


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


def _with(*parts: str) -> str:
    return "; ".join(part for part in parts if part) or "nothing else"
