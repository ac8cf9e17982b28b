"""The switches of a conversation in words: what each is called and what it truly does here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from tools_app.catalogue import all_tools

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

LABELS: dict[str, _StrPromise] = {
    "plan_mode": _("Plan first"),
    "approval": _("Ask before acting"),
    "teams": _("Work as a team"),
    "memory": _("Remember and recall"),
    "tracing": _("Keep a trace"),
}
"""By the name of the feature (`harness.agentconfig.Features`), in the order they are shown."""

_HELP: dict[str, _StrPromise] = {
    "plan_mode": _("The agent only reads and plans; it changes nothing until you switch this off."),
    "approval": _("Every call that changes files or reaches outside waits for your answer."),
    "teams": _("The agent may start subagents and teammates."),
    "memory": _("The agent recalls what it learned earlier and remembers what will matter later."),
    "tracing": _("What exactly the model is sent and answers is stored with the conversation."),
}
_NO_TEAM_TOOLS = _(
    "No team tools are installed on this server, so this switch changes nothing yet."
)


def help_text(feature: str) -> _StrPromise:
    return _HELP[feature] if _does_something(feature) else _NO_TEAM_TOOLS


def offered() -> dict[str, _StrPromise]:
    """The labels of those that change anything on this server: no other is shown to people who talk to
    an agent."""
    return {name: label for name, label in LABELS.items() if _does_something(name)}


def stand_behind(feature: str, does_something: Callable[[], object]) -> None:
    """Have an app say whether a switch changes anything here, whose tools come with runs and are not in the
    catalogue."""
    _stood_behind.setdefault(feature, []).append(does_something)


_stood_behind: dict[str, list[Callable[[], object]]] = {}


def _does_something(feature: str) -> bool:
    if feature != "teams" or any(tool.feature == "teams" for tool in all_tools().values()):
        return True
    return any(asked() for asked in _stood_behind.get(feature, ()))
