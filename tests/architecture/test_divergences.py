"""docs/api-divergences.md tells of the official SDK's operations and parameters that are not served here.

Found by comparing what the installed SDK can ask for with the addresses of `/v1`, so that a new version
of it, or an address that goes, is told or fails.
"""

from __future__ import annotations

import re
from pathlib import Path

import anthropic

from v1 import (
    agents,
    deployments,
    environments,
    events,
    files,
    modellist,
    resources,
    sessions,
    skills,
    threads,
    urls,
    vaults,
    work,
)
from wire.parameters import taken_by

ROOT = Path(anthropic.__file__).parent
TOLD = (Path(__file__).parents[2] / "docs" / "api-divergences.md").read_text(encoding="utf-8")

NOT_SERVED = {
    "dreams": "dreams",
    "tunnels": "tunnels",
    "user_profiles": "user profiles",
}
"""First part of an address → how the page names it."""
OTHER_APIS = {"messages", "organization", "organizations", "complete", "models"}
"""Of the SDK, and no part of Managed Agents."""

LISTS = {
    "agent_list_params.py": agents.Agents,
    "environment_list_params.py": environments.Environments,
    "environments/work_list_params.py": work.Work,
    "deployment_list_params.py": deployments.Deployments,
    "file_list_params.py": files.Files,
    "model_list_params.py": modellist.Models,
    "session_list_params.py": sessions.Sessions,
    "sessions/event_list_params.py": events.Events,
    "sessions/resource_list_params.py": resources.Resources,
    "sessions/thread_list_params.py": threads.Threads,
    "skill_list_params.py": skills.Skills,
    "skills/version_list_params.py": skills.SkillVersions,
    "vault_list_params.py": vaults.Vaults,
}
HEADERS = {"betas", "workspace_id"}


def addresses() -> set[str]:
    """Of the SDK's resources, each with `*` for what it fills in."""
    found = set()
    for source in (ROOT / "resources").rglob("*.py"):
        for path in re.findall(r'"(/v1/[^"?]+)', source.read_text(encoding="utf-8")):
            found.add(re.sub(r"\{[^}]+\}", "*", path))
    return found


def served() -> set[str]:
    patterns = (str(entry.pattern) for entry in urls.urlpatterns)
    return {"/v1/" + re.sub(r"<[^>]+>", "*", pattern) for pattern in patterns}


def test_every_address_of_the_sdk_is_served_or_told():
    silent = []
    assert len(addresses()) > 60, "the SDK spells its addresses otherwise now"
    for address in addresses() - served():
        kind = address.split("/")[2]
        if kind not in OTHER_APIS and NOT_SERVED.get(kind, "\0") not in TOLD:
            silent.append(address)
    assert not silent, sorted(silent)


def test_nothing_is_told_as_not_served_that_is():
    there = {address.split("/")[2] for address in served() if address.count("/") > 1}
    assert not there & NOT_SERVED.keys()
    assert NOT_SERVED.keys() <= {address.split("/")[2] for address in addresses()}


def test_every_parameter_of_the_sdks_lists_is_taken_or_told():
    silent = []
    for name, view in LISTS.items():
        text = (ROOT / "types" / "beta" / name).read_text(encoding="utf-8")
        taken = taken_by(view, "GET")
        plain = {each.replace("[", "_").rstrip("]_") for each in taken}
        for parameter in re.findall(r"^    (\w+): (?!`)", text, re.MULTILINE):
            if parameter not in HEADERS | plain and f"`{parameter}`" not in TOLD:
                silent.append(f"{name}: {parameter}")
    assert not silent, silent
