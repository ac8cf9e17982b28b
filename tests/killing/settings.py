"""The product's settings over a database whose commits are counted."""

from __future__ import annotations

import os

from agentsite.settings_test import *  # noqa: F403
from agentsite.settings_test import DATABASES, INSTALLED_APPS

_engine = DATABASES["default"]["ENGINE"].rpartition(".")[2]
DATABASES["default"]["ENGINE"] = f"tests.killing.{_engine}"
INSTALLED_APPS = [*INSTALLED_APPS, "tests.killing"]
AGENTSITE_SWEEP_SECONDS = 0
ALLOWED_HOSTS = ["127.0.0.1"]
KILLING_EFFECTS = ""
# What a form is made of, which the process of each form sets (`tests.killing.__main__`).
KILLING_BRANCHES = KILLING_COMPOSED = KILLING_COMPACTION = KILLING_TREE = KILLING_ANALYSIS = False
KILLING_MCP_URL = ""
AGENTSITE_LEARNING_MODELS: dict[str, str] = {}  # type: ignore[no-redef]
AGENTSITE_LEARNING_CHARACTERS = 1
AGENTSITE_BROKER_URL = os.environ.get("KILLING_BROKER_URL", "")
