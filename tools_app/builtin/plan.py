"""Leaving plan mode: a plan is shown to a person, whose consent lets this call run.

That it always asks is declared here and judged in `harness.policy`, as for every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.events import Keepsake, SessionUpdated
from harness.tools import Effect, Tool, ToolContext, ToolOutput


def present_plan(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    if not context.plan_mode:
        return ToolOutput("Plan mode is already off. Go on with the work.")
    return ToolOutput(
        "The plan was approved and plan mode is off. Carry the plan out now.",
        events=(SessionUpdated(features={"plan_mode": False}),),
        keeps=Keepsake(name="plan", text=arguments["plan"]),
    )


def _headline(arguments: Mapping[str, Any]) -> str:
    lines = str(arguments.get("plan", "")).strip().splitlines()
    return lines[0].lstrip("# ").strip()[:120] if lines else ""


TOOLS = (
    Tool(
        name="present_plan",
        description=(
            "Show your plan to the person and wait for consent. Call it once you know enough to "
            "act: name the steps, the files that change and how the result will be checked. If it "
            "is approved, plan mode ends and you carry it out; if not, revise it by what was said."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "plan": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 50_000,
                    "description": "The whole plan, as Markdown.",
                }
            },
            "required": ["plan"],
            "additionalProperties": False,
        },
        handler=present_plan,
        effect=Effect.READ,
        apart=True,
        intent=_headline,
        feature="plan_mode",
        always_asks=True,
    ),
)
