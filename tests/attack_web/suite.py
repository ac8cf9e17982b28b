"""Runs the attacks one after another against one site and counts what was open."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from jobs.engine import engine
from tests.attack_web import (
    on_addresses,
    on_browsers,
    on_budgets,
    on_connections,
    on_injection,
    on_mcp,
    on_meanwhile,
    on_media,
    on_permissions,
    on_programs,
    on_registries,
    on_sign_in,
    on_single_sign_on,
    on_skills,
    on_staff,
    on_stalls,
    on_strangers,
    on_tenants,
    on_vaults,
)
from tests.attack_web.case import CASES, NotTried
from tests.attack_web.world import World
from tests.parts import chosen_part

SUBJECTS = (
    on_strangers,
    on_sign_in,
    on_staff,
    on_browsers,
    on_addresses,
    on_permissions,
    on_programs,
    on_tenants,
    on_single_sign_on,
    on_vaults,
    on_budgets,
    on_meanwhile,
    on_media,
    on_injection,
    on_stalls,
    on_connections,
    on_skills,
    on_mcp,
    on_registries,
)
"""Imported, they have registered their attacks."""
FEWEST = 560
FEWEST_QUICK = 65
QUICK_STRIDE = 8
"""The quick form tries every so many of the cases that belong to it, and all that must work; the commit says
which (`tests.parts`)."""


def run(world: World, asked: argparse.Namespace) -> int:
    """The exit code. Each attack that got something, control that did not work and case that was not tried
    is a line; the sum is the last."""
    part = chosen_part("ATTACK_PART", QUICK_STRIDE)
    chosen = [
        one
        for place, one in enumerate(CASES)
        if (not asked.quick or one.permitted or (one.quick and place % QUICK_STRIDE == part))
        and (not asked.subject or one.subject in asked.subject)
        and (not asked.case or one.name in asked.case)
    ]
    found: dict[str, str] = {}
    refused: dict[str, str] = {}
    untried: dict[str, str] = {}
    for one in chosen:
        label, began = f"{one.subject}: {one.name}", time.monotonic()
        for service in (world.inside, world.listed):
            service.visits.clear()
            service.answer = service.speak = None
        try:
            got = one.act(world)
            verdict = (
                ("REFUSED" if got else "works") if one.permitted else "OPEN" if got else "held"
            )
            if got:
                (refused if one.permitted else found)[label] = got
        except NotTried as missing:
            verdict, untried[label] = "not tried", str(missing)
        except Exception:
            verdict, untried[label] = "not tried", traceback.format_exc(limit=-4)
        if asked.verbose:
            print(
                f"  {verdict:9} {time.monotonic() - began:5.2f} s  {label}: {one.tries}", flush=True
            )
    world.close()
    engine.stop()  # it shares the work of the site's own
    for label, got in found.items():
        print(f"  open: {label}: {got}")
    for label, why in refused.items():
        print(f"  refused: {label}: {why}")
    for label, why in untried.items():
        print(f"  not tried: {label}: {why}")
    if asked.quick:
        print(f"the quick form tried part {part} of {QUICK_STRIDE}; again: ATTACK_PART={part}")
    print(f"cases: {len(chosen)}, open: {len(found)}")
    sys.stdout.flush()
    whole = not (asked.subject or asked.case)
    too_few = whole and len(chosen) < (FEWEST_QUICK if asked.quick else FEWEST)
    return 1 if found or refused or untried or too_few else 0
