"""What the tools are called where people choose them. What each does in full says its own description,
which is written for models; one without a word here goes by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from harness.agentconfig import AgentConfig
from harness.tools import Effect, Tool
from tools_app.catalogue import all_tools

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

WORDS: dict[str, _StrPromise] = {
    "read_file": _("Read files"),
    "write_file": _("Write files"),
    "edit_file": _("Edit files"),
    "list_files": _("List files"),
    "grep": _("Search in files"),
    "glob": _("Find files by name"),
    "outline": _("Show the outline of a file"),
    "find_references": _("Find where a name is used"),
    "think": _("Write down thoughts"),
    "todo_write": _("Write the todo list"),
    "todo_add": _("Add to the todo list"),
    "todo_complete": _("Tick off todos"),
    "todo_list": _("Read the todo list"),
    "read_events": _("Read earlier parts of the conversation again"),
    "session_memory_write": _("Keep notes for the conversation"),
    "session_memory_read": _("Read its notes of the conversation"),
    "compact": _("Summarise older messages"),
    "present_plan": _("Present a plan"),
    "continue_later": _("Go on later by itself"),
    "ask_user": _("Ask you questions"),
    "web_fetch": _("Read pages of the web"),
    "web_search": _("Search the web"),
    "calculator": _("Calculate"),
    "workspace_metrics": _("Count files and lines"),
    "bash": _("Run commands"),
    "command_history": _("Look at earlier commands"),
    "background_run": _("Start commands in the background"),
    "check_background": _("Check commands in the background"),
    "cancel_background": _("End commands in the background"),
    "shared_files": _("List shared files"),
    "stage_shared_file": _("Draft a change of a shared file"),
    "stage_shared_removal": _("Draft the removal of a shared file"),
    "compare_shared_file": _("Compare a draft with the shared file"),
    "promote_shared_file": _("Change a shared file for all"),
    "shared_file_versions": _("List versions of a shared file"),
    "restore_shared_file": _("Bring back a shared file"),
}
GROUPS: dict[Effect, _StrPromise] = {
    Effect.READ: _("Looks, and changes nothing"),
    Effect.WORKSPACE: _("Changes files or runs commands in the workspace"),
    Effect.OUTSIDE: _("Reaches outside of the workspace"),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that a configuration offers."""

    tool: Tool
    asks: bool
    """Whether every call of it asks already."""

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def words(self) -> str:
        return words_for(self.tool.name)


def words_for(name: str) -> str:
    known: Any = WORDS.get(name)
    return str(known) if known is not None else name.replace("_", " ")


def offered_by(config: AgentConfig) -> Iterator[Offered]:
    """The tools that a rule of it covers whatever they are called with, and none denies so."""
    for tool in all_tools().values():
        about = [rule for rule in config.tools if fnmatchcase(tool.name, rule.tool)]
        whole = {rule.permission for rule in about if rule.when is None}
        if whole and "always_deny" not in whole:
            yield Offered(tool, tool.always_asks or "always_ask" in whole)
