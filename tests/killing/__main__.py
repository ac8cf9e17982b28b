"""Starts the services that the chosen form needs, then the matrix; see `tests.killing.matrix`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import django

from agentsite.local_services import LocalPostgreSQL, LocalRedis
from tests.killing import remote

parser = argparse.ArgumentParser(prog="python -m tests.killing")
parser.add_argument("--every", type=int, default=1, help="try only every Nth point")
parser.add_argument("--first", type=int, default=1, help="the point to begin with")
parser.add_argument("--last", type=int, default=None, help="the point to end with")
parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
parser.add_argument("--process", choices=["web", "worker"], default="web")
parser.add_argument("--branches", action="store_true", help="go back and on again at the end")
parser.add_argument(
    "--composed", action="store_true", help="have a composed skill do the work, by nested calls"
)
parser.add_argument("--compaction", action="store_true", help="ask for a summary at the end")
parser.add_argument(
    "--mcp",
    action="store_true",
    help="have a tool of an MCP server do it, which asks a person first",
)
parser.add_argument("--tree", action="store_true", help="have subagents do the work")
parser.add_argument(
    "--analysis",
    action="store_true",
    help="have a document and the conversation itself read in the background",
)
parser.add_argument("--verbose", action="store_true")
options = parser.parse_args()

with ExitStack() as services:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.killing.settings"
    if options.database == "postgresql":
        folder = services.enter_context(tempfile.TemporaryDirectory(prefix="killing-services-"))
        Path(folder).chmod(0o711)
        postgresql = LocalPostgreSQL(Path(folder), durable=False)
        postgresql.start()
        services.callback(postgresql.stop)
        os.environ["TEST_DATABASE_URL"] = postgresql.url
    if options.process == "worker":
        redis = LocalRedis()
        redis.start()
        services.callback(redis.stop)
        os.environ["KILLING_BROKER_URL"] = redis.url
        os.environ["TEST_REDIS_URL"] = f"{redis.url}/1"
    os.environ["KILLING_BRANCHES"] = "1" if options.branches else ""
    os.environ["KILLING_COMPOSED"] = "1" if options.composed else ""
    os.environ["KILLING_COMPACTION"] = "1" if options.compaction else ""
    if options.mcp:
        port = services.enter_context(remote.served())
        os.environ["KILLING_MCP_URL"] = f"http://127.0.0.1:{port}/mcp"
    os.environ["KILLING_TREE"] = "1" if options.tree else ""
    os.environ["KILLING_ANALYSIS"] = "1" if options.analysis else ""
    django.setup()
    from tests.killing.matrix import main

    status = main(options.first, options.last, options.every, options.verbose)

sys.exit(status)
