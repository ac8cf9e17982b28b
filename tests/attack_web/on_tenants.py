"""Attacks on what belongs to another organisation: by its ids, by searching, by cursors and keys."""

from __future__ import annotations

from functools import partial

from tests.architecture.routes import Route, page_routes
from tests.architecture.test_every_door_is_guarded import PUBLIC, STRICT, values_for
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import Visitor
from tests.attack_web.world import MARK, World

SUBJECT = "tenants"
AREAS = {
    "conversation pages": ("c/",),
    "approvals, rules and audit": ("approvals/",),
    "settings, tokens and keys": ("settings/",),
    "organisation pages": ("organisation/",),
    "usage and budgets": ("usage/",),
    "the administration": ("admin/",),
    "api conversations and files": ("api/",),
    "v1 sessions": ("v1/sessions",),
    "v1 agents": ("v1/agents",),
    "v1 environments and work": ("v1/environments",),
    "v1 files": ("v1/files",),
    "v1 vaults": ("v1/vaults",),
    "v1 memory and skills": ("v1/memory_stores", "v1/skills"),
    "v1 deployments": ("v1/deployment",),
    "schedules, timers and briefs": ("schedules/", "timers/", "brief/"),
    "skills, prompts and hooks": ("skills/", "prompts/", "hooks/"),
    "evaluations and comparisons": ("evals/", "comparisons/"),
    "agents, pipelines and tasks": ("agents/", "pipelines/", "tasks/"),
    "folders and documents": ("folders/", "documents/", "passages/"),
}
"""By the beginnings of their addresses; what begins with none of them is of `OTHERS`."""
OTHERS = "all other pages"
VISITORS = ("mallory's browser", "mallory's token", "nobody")


def _routes(area: str) -> list[Route]:
    return [
        one
        for one in page_routes()
        if one.parameters and one.key not in PUBLIC and _area_of(one) == area
    ]


def _area_of(route: Route) -> str:
    for area, beginnings in AREAS.items():
        if route.pattern.startswith(beginnings):
            return area
    return OTHERS


def _visitor(world: World, who: str) -> Visitor:
    if who == "mallory's browser":
        return world.browser(world.mallory)
    return world.program(world.mallorys) if who == "mallory's token" else world.browser()


def _walk(area: str, who: str, world: World) -> Got:
    got, before, routes = [], world.state(), _routes(area)
    tried(routes, f"there is no route of {area}")
    with _visitor(world, who) as visitor:
        for route in routes:
            address = route.address(values_for(route, world.objects))
            if not address.startswith(STRICT):
                address += "?path=secret.txt&before=99"
            programs = address.startswith(STRICT)
            for method in ("GET", "POST", "PATCH", "DELETE") if programs else ("GET", "POST"):
                body = None if method == "GET" else {"title": "stolen", "name": "stolen"}
                answer = visitor.request(method, address, json=body)
                if (
                    MARK in answer.text
                    or MARK in str(answer.headers)
                    or "secret plan" in answer.text
                ):
                    got.append(f"{method} {address} shows what is alice's")
    if changed := world.changed_since(before):
        got.append(f"changed: {changed}")
    return "; ".join(got)


for _area in (*AREAS, OTHERS):
    for _who in VISITORS:
        _first = "mallory's token" if _area.startswith(("v1", "api")) else VISITORS[0]
        attack(
            SUBJECT,
            f"{_area} by {_who}",
            f"every address of {_area} with alice's ids, every method",
            quick=_who == _first and _area != "the administration",
        )(partial(_walk, _area, _who))


@control(SUBJECT, "alice's own", "her addresses show her what is hers")
def _own(world: World) -> Got:
    uid = world.conversation.uid
    with world.browser(world.alice, world.acme) as visitor:
        page = visitor.get(f"/c/{uid}/")
    with world.program(world.token) as program:
        said = program.get(f"/v1/sessions/{uid}")
    shown = MARK in page.text and "secret plan" in page.text and MARK in said.text
    return "" if shown else f"{page.status_code} {said.status_code}"
