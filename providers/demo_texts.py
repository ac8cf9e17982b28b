"""What the demo provider says. It never pretends to be a language model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from providers.demo_files import DemoFile

_KEY = (
    "To talk to a real model, add a key under **Settings → Provider keys**, or put "
    "`ANTHROPIC_API_KEY` into the file `.env` and start again."
)

_ABILITIES = """\
- **plan and write two files** about something, for example
  “Plan and write two files for a reading list”
- **list files**, **read** `notes.md`, **search for** a word
- **calculate** `2 ** 10 / 3`, exactly
- **ask me** something: then I put questions to you in a form
- **count to 200**, or give a **long answer**: good for trying *stop* and reload
- **help**: this text"""

WELCOME = f"""Hello! I am the **demo agent**. I am not a language model: I follow a handful of rules, \
offline, so that you can look around without a key. The tools I call are real.

You can ask me to

{_ABILITIES}

{_KEY}"""

UNKNOWN = f"""I am only the **demo agent**, not a language model, and have no rule for that. \
You can ask me to

{_ABILITIES}

{_KEY}"""

WRITING = "Now I write the files."
CALCULATING = "The calculator works this out, not I."
ASKING = "I have some questions. They are always these; I only show what asking looks like."
ANSWERED = "Thank you. A real agent would go on from your answers; I can only show what I was told."
QUESTIONS = [
    {
        "header": "Drink",
        "question": "What would you like while you look around?",
        "options": [
            {"label": "Coffee", "description": "Strong and black."},
            {"label": "Tea", "description": "With or without milk."},
            {"label": "Nothing", "description": "You are here to work."},
        ],
    },
    {
        "header": "Interest",
        "question": "What do you want to see here?",
        "options": [{"label": "Tools"}, {"label": "Approvals"}, {"label": "Teams"}],
        "multi_select": True,
    },
    {"question": "Is there anything else you would tell an agent?"},
]
LISTING = "These are the files of this conversation’s workspace."
COMPACTED = "Summary by the demo agent, which can only list what was asked:"


def planning(files: tuple[DemoFile, DemoFile]) -> str:
    return (
        f"I am the demo agent, so this follows a fixed rule. First a plan, then `{files[0].path}` "
        f"and `{files[1].path}`."
    )


def thoughts(files: tuple[DemoFile, DemoFile]) -> str:
    return (
        "The request matches the rule “plan and write two files”.\n"
        f"Names to use: {files[0].path}, {files[1].path}. Steps: plan, write, change, sum up."
    )


def editing(file: DemoFile) -> str:
    return f"One thing in `{file.path}` can be better, so I change it in place."


def reading(path: str) -> str:
    return f"This is `{path}`."


def searching(wanted: str) -> str:
    return f"I searched the workspace for “{wanted}”."


def shown(intro: str, content: str) -> str:
    """`content` in a code block whose fence is longer than any it contains."""
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{intro}\n\n{fence}\n{content}\n{fence}"


def failure(tool: str, said: str) -> str:
    first = said.strip().splitlines()[0] if said.strip() else "no reason was given"
    return (
        f"The call of `{tool}` was not carried out: {first}\n\n"
        "I stop here; what was done before it stays. Ask again when you want me to retry."
    )


def no_tool(name: str) -> str:
    return (
        f"For that I need the tool `{name}`, and it is not among those I may use here. "
        "An agent’s tools are set in its preset."
    )


def number_line(number: int) -> str:
    if number % 10 == 0:
        return f"**{number}** makes {number // 10} tens."
    return f"{number} squared is {number * number}."


_TOPICS = (
    (
        "The log",
        "every event is stored before anything acts on it, and each has a number without gaps",
    ),
    ("The page", "it reads the log after the last number it has seen, so a reload shows the same"),
    ("Deltas", "text that is still being written travels beside the log and may be lost safely"),
    ("Stopping", "a stop keeps what has arrived, and exactly one state ends the turn"),
    ("Tools", "a call is judged where it is executed, bound to its exact arguments"),
    ("Waiting", "when a person must decide, nothing runs and no worker waits"),
    ("Restarts", "a killed process leaves a log from which the next one goes on"),
    ("Money", "each model call is counted, and limits are checked before it is made"),
)


def long_answer() -> str:
    """About nine thousand characters: some ten seconds at the usual pace."""
    parts = [
        "# A long answer",
        "I am the demo agent, and this text is fixed. Watch it stream, reload, or stop it.",
    ]
    for round_number in range(1, 5):
        parts.append(f"## Round {round_number}")
        for title, fact in _TOPICS:
            parts.append(
                f"**{title}.** In this application {fact}. That holds in round {round_number} as in "
                "every other: nothing depends on how often it is said, only on whether it is kept."
            )
    parts.append("That was all.")
    return "\n\n".join(parts)
