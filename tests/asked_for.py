"""Which jobs a test's transaction has asked for: those that its end would begin, which never comes."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction

from jobs.dispatch import start


def asked_for(name: str) -> list[dict[str, Any]]:
    """The arguments of each, in order."""
    waiting = transaction.get_connection().run_on_commit
    calls = [call for _savepoints, call, *_more in waiting]
    dispatched = [call.args for call in calls if isinstance(call, partial) and call.func is start]
    return [arguments for asked, arguments, _delay in dispatched if asked == name]
