"""What a start must not load: it would cost every start seconds that few requests need."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from agentsite import environment

HEAVY = ["anthropic", "openai", "mcp", "celery", "playwright"]

PROGRAM = f"""
import json, sys
import agentsite.asgi
from django.urls import get_resolver
get_resolver().url_patterns
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=environment.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "agentsite.settings_test"},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", HEAVY)
def test_a_start_does_not_load_a_heavy_library(loaded, name):
    assert name not in loaded
