"""Starts the services that the chosen forms need, then the matrix of each; see `tests.killing.matrix`.

    python -m tests.killing [OPTIONS OF A FORM] [--and OPTIONS OF ANOTHER ONE]…

Forms that are named together have one database server and the same processes, and each is tried in a fork of
one process that has imported everything: what imports cost is most of what a few points do.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import traceback
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

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


def forms_of(arguments: list[str]) -> list[argparse.Namespace]:
    apart = groupby(arguments, lambda one: one == "--and")
    forms = [parser.parse_args(list(of)) for is_between, of in apart if not is_between]
    forms = forms or [parser.parse_args([])]
    if len({(form.database, form.process) for form in forms}) > 1:
        parser.error("forms of one run have the same --database and --process")
    return forms


def settings_of(form: argparse.Namespace, port: int) -> dict[str, Any]:
    """`port`: at which the MCP server listens."""
    return {
        "KILLING_BRANCHES": form.branches,
        "KILLING_COMPOSED": form.composed,
        "KILLING_COMPACTION": form.compaction,
        "KILLING_TREE": form.tree,
        "KILLING_ANALYSIS": form.analysis,
        "AGENTSITE_LEARNING_MODELS": {"scripted": "killed"} if form.analysis else {},
        "KILLING_MCP_URL": f"http://127.0.0.1:{port}/mcp" if form.mcp else "",
        "AGENTSITE_MCP_PRIVATE_HOSTS": [f"127.0.0.1:{port}"] if form.mcp else [],
    }


def tried(form: argparse.Namespace, port: int) -> int:
    """The exit code of its matrix, in a fork."""
    child = os.fork()
    if child:
        _pid, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    code = 1
    try:
        from django.conf import settings  # noqa: PLC0415

        from tests.killing.matrix import main  # noqa: PLC0415

        for name, value in settings_of(form, port).items():
            setattr(settings, name, value)
        code = main(form.first, form.last, form.every, form.verbose)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(forms: list[argparse.Namespace]) -> int:
    port = 0
    with ExitStack() as services:
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.killing.settings"
        if forms[0].database == "postgresql":
            folder = services.enter_context(tempfile.TemporaryDirectory(prefix="killing-services-"))
            Path(folder).chmod(0o711)
            postgresql = LocalPostgreSQL(Path(folder), durable=False)
            postgresql.start()
            services.callback(postgresql.stop)
            os.environ["TEST_DATABASE_URL"] = postgresql.url
        if forms[0].process == "worker":
            redis = LocalRedis()
            redis.start()
            services.callback(redis.stop)
            os.environ["KILLING_BROKER_URL"] = redis.url
            os.environ["TEST_REDIS_URL"] = f"{redis.url}/1"
        if any(form.mcp for form in forms):
            port = services.enter_context(remote.served())
        django.setup()
        from tests.killing.matrix import import_all  # noqa: PLC0415

        import_all()
        gc.collect()
        gc.freeze()
        return max([tried(form, port) for form in forms])


if __name__ == "__main__":
    sys.exit(run(forms_of(sys.argv[1:])))
