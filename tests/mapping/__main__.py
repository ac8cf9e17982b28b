"""The map of the code in `docs/map`: drawn from the code (`make map`), or held to it (`--check`).

What each line says is read from docstrings, comments, routes and imports (`code`, `screens`, `across`): to
change the map, change these. Recipes and reasons are written by hand, in `docs/adding.md`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings_test")
os.environ.setdefault("AGENTSITE_ENV_FILE", "")
django.setup()

from tests.architecture.sources import PACKAGES, ROOT  # noqa: E402
from tests.mapping import across, code  # noqa: E402
from tests.mapping.code import about, text_of, ticked  # noqa: E402
from tests.mapping.screens import Screen, screens  # noqa: E402

MAP = ROOT / "docs/map"
ACROSS: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "by-setting": ("Settings: what each is, readers, documents, tests", across.settings_lines),
    "by-event": ("Events: class, golden files, who names the class, tests", across.event_lines),
    "by-tool": ("Tools: where each is made, who names it, tests", across.tool_lines),
    "by-job": ("Jobs: doorway, and how often each comes by itself", across.job_lines),
    "by-metric": ("Metrics: constant, where counted, dashboards, tests", across.metric_lines),
    "by-scope": ("Scopes: which views take each", across.scope_lines),
}
_TEMPLATE = re.compile(r"""["']([\w/.\-]+\.(?:html|txt|xml|json))["']""")
DRAWN = "Drawn from the code by `make map`; not edited by hand.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it would")
    made = dict(files())
    kept = {path.name: path.read_text("utf-8") for path in MAP.glob("*.md")}
    if parser.parse_args().check:
        for name in sorted(name for name in {*made, *kept} if made.get(name) != kept.get(name)):
            print(f"docs/map/{name} is not what the code says. Run `make map`, and commit it.")
        return int(made != kept)
    for name in {*kept} - {*made}:
        (MAP / name).unlink()
    for name, text in made.items():
        (MAP / name).write_text(text, "utf-8")
    return 0


def files() -> Iterator[tuple[str, str]]:
    yield "README.md", index()
    routes: dict[str, list[Screen]] = {}
    for screen in screens():
        routes.setdefault(screen.module.parts[0], []).append(screen)
    for package in PACKAGES:
        yield f"{package}.md", page(package, package_parts(package, routes.get(package, [])))
    for name, (title, lines) in ACROSS.items():
        yield f"{name}.md", page(title, ["\n".join(lines())])
    yield "static.md", page("Scripts and style sheets", [static_lines()])
    yield "tests.md", page("Tests that stand in no package's folder", list(other_tests()))


def page(title: str, parts: Iterable[str]) -> str:
    said = [f"# {title}", DRAWN.strip(), *(part.strip() for part in parts if part.strip())]
    return "\n\n".join(said) + "\n"


def index() -> str:
    rows = [f"- [`{package}`]({package}.md): {purposes().get(package, '')}" for package in PACKAGES]
    ways = [f"- [{title}]({name}.md)" for name, (title, _lines) in ACROSS.items()]
    ways += ["- [Scripts and style sheets](static.md)", "- [Tests of no package](tests.md)"]
    how = (
        "For each package its modules with their first sentence, the names they have for others and who uses "
        "them (packages where modules are many), its tables with fields (`?`: may be null), constraints, "
        "indexes and users, its addresses with view, templates, actions and tests, its templates with who "
        "draws them, its tests, and the documents that name it. How a change goes through them: "
        "[adding.md](../adding.md), whose example is read beside the page of its package."
    )
    return page(
        "Map of the code",
        [how, "## Packages", "\n".join(rows), "## Across packages", "\n".join(ways)],
    )


def purposes() -> dict[str, str]:
    """What the table of floors says of each package."""
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", text_of(Path("docs/architecture.md")), re.M
    )
    linked = [(names, said.replace("](adr/", "](../adr/")) for names, said in rows]
    return {name: said for names, said in linked for name in re.findall(r"`(\w+)`", names)}


def package_parts(package: str, routes: list[Screen]) -> Iterator[str]:
    told = [path for path in code.DOCUMENTS if f"`{package}/" in text_of(path)]
    yield purposes().get(package, "")
    yield f"Documents that name it: {ticked(told)}." if told else ""
    yield "## Modules\n\n" + "\n".join(
        f"- `{path}`: {about(path)}{code.names(path)}{code.used_by(path)}"
        for path in code.SHOWN
        if path.parts[0] == package
    )
    tables = list(code.tables(package))
    yield "## Tables\n\n" + "\n".join(tables) if tables else ""
    yield "## Addresses\n\n" + "\n".join(map(screen_line, routes)) if routes else ""
    drawn = [line for path in code.TEMPLATES if (line := template_line(path, package))]
    yield "## Templates\n\n" + "\n".join(drawn) if drawn else ""
    tests = [f"- `{path}`: {about(path)}" for path in code.TESTS if path.parts[1] == package]
    yield "## Tests\n\n" + "\n".join(tests) if tests else ""


def screen_line(screen: Screen) -> str:
    scopes = ", ".join(f"{method} {scope}" for method, scope in screen.scopes.items())
    parts = [
        f"- `{screen.address}` → `{screen.module}` (`{screen.view.partition('.')[0]}`)",
        scopes and f"scopes {scopes}",
        ticked(screen.templates),
        screen.shapes and f"shapes {', '.join(screen.shapes)}",
        ticked(screen.uses),
        screen.tests and f"tests {ticked(screen.tests)}",
    ]
    return "; ".join(str(part) for part in parts if part)


def template_line(path: Path, package: str) -> str:
    """A template belongs to the packages that draw it, or whose folder it stands in."""
    name = str(path).removeprefix("templates/")
    users = naming_templates().get(name, [])
    homes = {package, package.removesuffix("_app"), {"teams_app": "tasks"}.get(package, package)}
    if path.parts[1] not in homes and not any(user.parts[0] == package for user in users):
        return ""
    said = " ".join(part for part in (code.titled(path), code.comment(path)) if part)
    return f"- `{path}`: {said or 'a part'}; in {ticked(users) or 'what is named elsewhere'}"


@cache
def naming_templates() -> dict[str, list[Path]]:
    return code.naming(_TEMPLATE, [*code.SHOWN, *code.TEMPLATES])


def static_lines() -> str:
    kinds = [*(ROOT / "static").rglob("*.js"), *(ROOT / "static").rglob("*.css")]
    used = code.naming(re.compile(r"""["'](?:\./)?([\w/.\-]+\.(?:js|css))["']"""), code.TEMPLATES)
    lines = []
    for path in sorted(path.relative_to(ROOT) for path in kinds if "vendor" not in path.parts):
        users = ticked(used.get(str(path).removeprefix("static/"), []))
        lines.append(f"- `{path}`: {code.comment(path)}{f' In {users}' if users else ''}")
    return "\n".join(lines)


def other_tests() -> Iterator[str]:
    for folder in sorted({path.parts[1] for path in code.TESTS if path.parts[1] not in PACKAGES}):
        lines = [f"- `{path}`: {about(path)}" for path in code.TESTS if path.parts[1] == folder]
        yield f"## {folder}\n\n" + "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
