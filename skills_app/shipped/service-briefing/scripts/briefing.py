"""The tool of service-briefing: two other skills count and reckon, this one writes down what they say."""

from __future__ import annotations

from typing import Any

HEAD = (
    "| Service | State | Available | Slow end | Longest outage | Budget used | Burn rate |\n"
    "|---|---|---|---|---|---|---|\n"
)


def as_tool(
    path: str,
    objective: float,
    window_days: float = 30,
    slow_ms: float = 1000.0,
    to: str = "briefing.md",
) -> dict[str, Any]:
    # There only where the server runs it as a tool.
    from agentsite_skill import (  # type: ignore[import-not-found]  # noqa: PLC0415
        call_skill,
        call_tool,
    )

    health = call_skill("service-health", "check", path=path, slow_ms=slow_ms)
    if health["days"] > window_days:
        raise ValueError(
            f"The probes go over {health['days']} days, the objective over {window_days}: "
            "leave out what is older."
        )
    # Probes of one moment say nothing of a rate; an hour is the least that is taken for it.
    elapsed = min(window_days, max(health["days"], 1 / 24))
    budgets = {
        each["service"]: call_skill(
            "error-budget",
            "budget",
            objective=objective,
            window_days=window_days,
            elapsed_days=elapsed,
            total=each["probes"],
            bad=each["failed"],
        )
        for each in health["services"]
    }
    call_tool("write_file", path=to, content=text_of(health, budgets, objective, window_days))
    return {
        "file": to,
        "down": [each["service"] for each in health["services"] if each["state"] == "down"],
        "services": [
            {**each, "error_budget": budgets[each["service"]]} for each in health["services"]
        ],
    }


def text_of(
    health: dict[str, Any], budgets: dict[str, Any], objective: float, window_days: float
) -> str:
    rows = [row_of(each, budgets[each["service"]]) for each in health["services"]]
    down = [
        f"- **{cell(each['service'])}** is down since {each['down_since']}."
        for each in health["services"]
        if each["state"] == "down"
    ]
    return (
        "# Services\n\n"
        f"From {health['from']} to {health['to']}. Objective: {objective} % over {window_days:g} days.\n\n"
        + ("\n".join(down) or "By its last probe no service is down.")
        + f"\n\n{HEAD}"
        + "\n".join(rows)
        + "\n"
    )


def row_of(each: dict[str, Any], budget: dict[str, Any]) -> str:
    slow = "not timed" if each["p95_ms"] is None else f"{each['p95_ms']:g} ms"
    cells = (
        cell(each["service"]),
        each["state"],
        f"{each['availability']} %",
        slow,
        f"{each['longest_outage_minutes']:g} min",
        f"{100 * budget['used_share']:.1f} %",
        str(budget["burn_rate"]),
    )
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
