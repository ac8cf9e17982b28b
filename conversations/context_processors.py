"""What every page may show: that no command can run here."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from agents.commandtrial import Trial, commands_problem


def commands(request: HttpRequest) -> dict[str, Any]:
    """`commands_trial`: a function, why no command can run on this server, or None. What an operator
    does about it is for staff."""

    def commands_trial() -> Trial | None:
        return commands_problem()

    return {"commands_trial": commands_trial}
