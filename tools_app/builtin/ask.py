"""The tool `ask_user`: up to four questions to the person, in one form.

Its calls are answered by a person and never run (`harness.external`); what an answer may be is said in
`tools_app.questions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.external import never_runs
from harness.tools import Effect, Tool
from tools_app.questions import MOST_OPTIONS, MOST_QUESTIONS, TOOL

OPTION = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "minLength": 1, "maxLength": 120},
        "description": {
            "type": "string",
            "maxLength": 300,
            "description": "What choosing it means.",
        },
    },
    "required": ["label"],
    "additionalProperties": False,
}
QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "maxLength": 500},
        "header": {
            "type": "string",
            "maxLength": 30,
            "description": "One or two words that name the subject.",
        },
        "options": {
            "type": "array",
            "items": OPTION,
            "minItems": 2,
            "maxItems": MOST_OPTIONS,
            "uniqueItems": True,
            "description": "Left out: the person answers in their own words.",
        },
        "multi_select": {"type": "boolean", "description": "Whether several may be chosen."},
        "free_text": {
            "type": "boolean",
            "description": "Whether the person may also use their own words. Default: true.",
        },
    },
    "required": ["question"],
    "additionalProperties": False,
}


def _subject(arguments: Mapping[str, Any]) -> str:
    first = arguments["questions"][0]
    return str(first.get("header") or first["question"])


TOOLS = (
    Tool(
        name=TOOL,
        description=(
            "Ask the person up to four questions in one form and wait for the answers. Use it when "
            "a decision is theirs and you cannot find it out yourself; put related questions into "
            "one call. Offer options where you can, each with what it means. The person may leave a "
            "question open, skip all of them, or send a message instead."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "items": QUESTION,
                    "minItems": 1,
                    "maxItems": MOST_QUESTIONS,
                }
            },
            "required": ["questions"],
            "additionalProperties": False,
        },
        handler=never_runs,
        effect=Effect.READ,
        intent=_subject,
        external=True,
    ),
)
