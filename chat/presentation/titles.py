"""The title of a card in words: what a call is to do, is doing, did, or could not do.

For the built-in tools, by name; a call of any other is called by its tool's name. What the call is about
is its `intent`, which each tool tells by itself. Whole sentences, because languages order words differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from .paths import as_path

Tense = Literal["to_do", "doing", "done", "failed"]

THING_CHARACTERS = 120
"""Of what a call is about that a title shows; the card's body has all of it."""


@dataclass(frozen=True, slots=True)
class Words:
    """With a place for `what` the call is about; each is also said without, as `alone`."""

    to_do: Promise
    doing: Promise
    done: Promise
    failed: Promise
    alone: Promise | None = None
    """What stands for what it is about where it names nothing; None: the title's own words do."""


_WORKSPACE = _("the workspace")

_WORDS: dict[str, Words] = {
    "subagent": Words(
        _("Ask a subagent: %(what)s"),
        _("A subagent works: %(what)s"),
        _("A subagent worked: %(what)s"),
        _("A subagent could not: %(what)s"),
        _("a task"),
    ),
    "find_tools": Words(
        _("Look for tools: %(what)s"),
        _("Looking for tools: %(what)s"),
        _("Looked for tools: %(what)s"),
        _("Found no tools: %(what)s"),
        _("of MCP servers"),
    ),
    "use_tool": Words(
        _("Use %(what)s"),
        _("Using %(what)s"),
        _("Used %(what)s"),
        _("Could not use %(what)s"),
        _("a found tool"),
    ),
    "mcp_question": Words(
        _("Ask a person for %(what)s"),
        _("Waiting for a person's answer for %(what)s"),
        _("A person answered %(what)s"),
        _("Nobody answered %(what)s"),
        _("an MCP server"),
    ),
    "read_file": Words(
        _("Read %(what)s"),
        _("Reading %(what)s"),
        _("Read %(what)s"),
        _("Could not read %(what)s"),
        _("a file"),
    ),
    "write_file": Words(
        _("Write %(what)s"),
        _("Writing %(what)s"),
        _("Wrote %(what)s"),
        _("Could not write %(what)s"),
        _("a file"),
    ),
    "edit_file": Words(
        _("Edit %(what)s"),
        _("Editing %(what)s"),
        _("Edited %(what)s"),
        _("Could not edit %(what)s"),
        _("a file"),
    ),
    "list_files": Words(
        _("List %(what)s"),
        _("Listing %(what)s"),
        _("Listed %(what)s"),
        _("Could not list %(what)s"),
        _WORKSPACE,
    ),
    "glob": Words(
        _("Find files like %(what)s"),
        _("Finding files like %(what)s"),
        _("Looked for files like %(what)s"),
        _("Could not look for files like %(what)s"),
        _("any"),
    ),
    "grep": Words(
        _("Search for %(what)s"),
        _("Searching for %(what)s"),
        _("Searched for %(what)s"),
        _("Could not search for %(what)s"),
        _("a text"),
    ),
    "outline": Words(
        _("Outline %(what)s"),
        _("Outlining %(what)s"),
        _("Outlined %(what)s"),
        _("Could not outline %(what)s"),
        _("a file"),
    ),
    "find_references": Words(
        _("Find uses of %(what)s"),
        _("Finding uses of %(what)s"),
        _("Looked for uses of %(what)s"),
        _("Could not look for uses of %(what)s"),
        _("a name"),
    ),
    "bash": Words(
        _("Run %(what)s"),
        _("Running %(what)s"),
        _("Ran %(what)s"),
        _("Could not run %(what)s"),
        _("a command"),
    ),
    "background_run": Words(
        _("Run in the background: %(what)s"),
        _("Starting in the background: %(what)s"),
        _("Started in the background: %(what)s"),
        _("Could not start in the background: %(what)s"),
        _("a command"),
    ),
    "web_fetch": Words(
        _("Read %(what)s"),
        _("Reading %(what)s"),
        _("Read %(what)s"),
        _("Could not read %(what)s"),
        _("a page"),
    ),
    "web_search": Words(
        _("Search the web for %(what)s"),
        _("Searching the web for %(what)s"),
        _("Searched the web for %(what)s"),
        _("Could not search the web for %(what)s"),
        _("a text"),
    ),
    "remember": Words(
        _("Remember: %(what)s"),
        _("Remembering: %(what)s"),
        _("Remembered: %(what)s"),
        _("Could not remember: %(what)s"),
        _("something that was said"),
    ),
    "search_memory": Words(
        _("Look in memory for %(what)s"),
        _("Looking in memory for %(what)s"),
        _("Looked in memory for %(what)s"),
        _("Could not look in memory for %(what)s"),
        _("a text"),
    ),
    "forget_memory": Words(
        _("Forget something remembered"),
        _("Forgetting something remembered"),
        _("Forgot something remembered"),
        _("Could not forget something remembered"),
    ),
    "calculator": Words(
        _("Calculate %(what)s"),
        _("Calculating %(what)s"),
        _("Calculated %(what)s"),
        _("Could not calculate %(what)s"),
        _("a number"),
    ),
    "think": Words(
        _("Think"),
        _("Thinking"),
        _("Thought"),
        _("Could not think"),
    ),
    "todo_write": Words(
        _("Update the tasks"),
        _("Updating the tasks"),
        _("Updated the tasks"),
        _("Could not update the tasks"),
    ),
    "todo_add": Words(
        _("Add the task %(what)s"),
        _("Adding the task %(what)s"),
        _("Added the task %(what)s"),
        _("Could not add the task %(what)s"),
        _("asked for"),
    ),
    "todo_complete": Words(
        _("Complete the task %(what)s"),
        _("Completing the task %(what)s"),
        _("Completed the task %(what)s"),
        _("Could not complete the task %(what)s"),
        _("asked for"),
    ),
    "todo_list": Words(
        _("Look at the tasks"),
        _("Looking at the tasks"),
        _("Looked at the tasks"),
        _("Could not look at the tasks"),
    ),
}

_CREATED = _("Created %(what)s")
_OF_FILES = {"read_file", "write_file", "edit_file", "list_files", "outline"}
"""What these are about is a path."""


def in_words(name: str, tense: Tense, about: str, *, created: bool = False) -> SafeString | None:
    """The title of a call of the built-in tool `name`; None: there are no words for it. `about` is
    shown as it is, escaped. `created`: what it wrote was not there before."""
    words = _WORDS.get(name)
    if words is None:
        return None
    sentence = _CREATED if created and tense == "done" else getattr(words, tense)
    if words.alone is None:
        return conditional_escape(str(sentence))
    thing = " ".join(about.split())
    is_path = name in _OF_FILES and "/" in thing
    if len(thing) > THING_CHARACTERS:
        cut = thing[-THING_CHARACTERS:] if is_path else thing[:THING_CHARACTERS]
        thing = f"…{cut}" if is_path else f"{cut}…"
    if not thing:
        shown = conditional_escape(str(words.alone))
    elif is_path:
        shown = as_path(thing, "code")
    else:
        shown = format_html("<code>{}</code>", thing)
    before, placed, behind = str(sentence).partition("%(what)s")
    return format_html("{}{}{}", before, shown if placed else "", behind)
