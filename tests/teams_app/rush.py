"""A process that does one thing at a board in many threads at once: `python -m tests.teams_app.rush`.

Told on its command line: the database's name, the board's key, the user's name, what to do, how often. It
waits for a line before it begins, and prints one with what came of it.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings_test")

import django
from django.conf import settings

DATABASE, BOARD, USER, WHAT, TIMES = sys.argv[1:6]
settings.DATABASES["default"]["NAME"] = DATABASE
django.setup()

from django.db import close_old_connections, connection  # noqa: E402

from accounts.models import User  # noqa: E402
from harness.errors import Conflict  # noqa: E402
from teams_app.actions.tasks import claim_task, create_task  # noqa: E402
from teams_app.models import Board  # noqa: E402
from teams_app.owners import Owner  # noqa: E402


def once(_number: int) -> int:
    try:
        board, user = Board.objects.get(pk=BOARD), User.objects.get(username=USER)
        if WHAT == "create":
            return create_task(actor=user, board=board, subject="One of many").number
        try:
            return claim_task(actor=user, board=board, number=1, claimant=Owner(user=user)).number
        except Conflict:
            return 0
    finally:
        connection.close()


print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(10) as pool:
    print(json.dumps(list(pool.map(once, range(int(TIMES))))), flush=True)
close_old_connections()
