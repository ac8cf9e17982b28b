"""A process that does things at a board in many threads at once: `python -m tests.teams_app.rush`.

Told on its command line: the database's name, the board's key and the user's name; on its input, a line
each, what to do and how often. It prints a line when it is ready, and one with what came of each.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings_test")

import django
from django.conf import settings

DATABASE, BOARD, USER = sys.argv[1:4]
settings.DATABASES["default"]["NAME"] = DATABASE
django.setup()

from django.db import connection  # noqa: E402

from accounts.models import User  # noqa: E402
from harness.errors import Conflict  # noqa: E402
from teams_app.actions.tasks import claim_task, create_task  # noqa: E402
from teams_app.models import Board  # noqa: E402
from teams_app.owners import Owner  # noqa: E402


def once(what: str, _time: int) -> int:
    """The number of the task that was made or taken; 0 where somebody else has it."""
    try:
        board, user = Board.objects.get(pk=BOARD), User.objects.get(username=USER)
        if what == "create":
            return create_task(actor=user, board=board, subject="One of many").number
        return claim_task(actor=user, board=board, number=1, claimant=Owner(user=user)).number
    except Conflict:
        return 0
    finally:
        connection.close()


print("ready", flush=True)
with ThreadPoolExecutor(10) as pool:
    for line in sys.stdin:
        what, times = line.split()
        print(json.dumps(list(pool.map(partial(once, what), range(int(times))))), flush=True)
