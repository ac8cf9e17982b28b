"""The product's settings over a database whose commits are counted."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from agentsite.settings_test import *  # noqa: F403
from agentsite.settings_test import DATABASES, INSTALLED_APPS

_engine = DATABASES["default"]["ENGINE"].rpartition(".")[2]
DATABASES["default"]["ENGINE"] = f"tests.killing.{_engine}"
INSTALLED_APPS = [*INSTALLED_APPS, "tests.killing"]
AGENTSITE_SWEEP_SECONDS = 0
ALLOWED_HOSTS = ["127.0.0.1"]
KILLING_EFFECTS = ""
KILLING_BRANCHES = bool(os.environ.get("KILLING_BRANCHES"))
KILLING_COMPOSED = bool(os.environ.get("KILLING_COMPOSED"))
KILLING_COMPACTION = bool(os.environ.get("KILLING_COMPACTION"))
KILLING_TREE = bool(os.environ.get("KILLING_TREE"))
KILLING_ANALYSIS = bool(os.environ.get("KILLING_ANALYSIS"))
AGENTSITE_LEARNING_MODELS = {"scripted": "killed"} if KILLING_ANALYSIS else {}
AGENTSITE_LEARNING_CHARACTERS = 1
KILLING_MCP_URL = os.environ.get("KILLING_MCP_URL", "")
AGENTSITE_MCP_PRIVATE_HOSTS = [urlsplit(KILLING_MCP_URL).netloc] if KILLING_MCP_URL else []
AGENTSITE_BROKER_URL = os.environ.get("KILLING_BROKER_URL", "")
