"""`manage.py mcp_package install|check`: packages with MCP servers, at exact versions, for sandboxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from harness.errors import AgentError
from mcpservers.packages import install, installed_in, read_wanted
from tools_app.packagetrees import tree_of


class Command(BaseCommand):
    help = "Install a package with an MCP server once, at one version, and say what starts it; or check them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["install", "check"])
        parser.add_argument(
            "package", nargs="?", default="", help="npm:NAME@VERSION or pypi:NAME==VERSION"
        )
        parser.add_argument(
            "--into",
            default="",
            help="a folder of AGENTSITE_MOUNT_ROOTS; left out: the first of them",
        )
        parser.add_argument("--program", default="", help="which of the package's commands")
        parser.add_argument(
            "--with", dest="interpreter", default="", help="what runs it in sandboxes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        root = _root(options["into"])
        if options["what"] == "check":
            self._check(root)
            return
        try:
            wanted = read_wanted(options["package"])
            place = install(
                wanted, root, program=options["program"], interpreter=options["interpreter"]
            )
        except AgentError as problem:
            raise CommandError(problem.words) from problem
        found = installed_in(place)
        assert found is not None  # noqa: S101 - it was written just now
        self.stderr.write(f"{found.label}, {len(found.parts)} packages in all, lies in {place}.")
        self.stderr.write(
            "Open that folder in the policy of an environment (filesystem_policy, read_only), then paste "
            "this under Settings, MCP servers. A server that had another version is changed on its page: its "
            "tools are held until somebody has looked at them."
        )
        name = "".join(
            sign if sign.isalnum() else "-" for sign in found.name.rpartition("/")[2].lower()
        )
        held = {"command": found.command, "args": list(found.arguments)}
        self.stdout.write(json.dumps({"mcpServers": {name.strip("-")[:32]: held}}, indent=2))

    def _check(self, root: Path) -> None:
        changed = 0
        for place in sorted(root.glob("*")):
            found = installed_in(place)
            if found is None:
                continue
            same = tree_of(place) == found.tree
            changed += not same
            self.stdout.write(
                f"{found.label}: {'as it was installed' if same else 'CHANGED since'}"
            )
        if changed:
            raise CommandError(f"{changed} of them hold other files than were installed.")


def _root(into: str) -> Path:
    roots = [Path(each) for each in settings.AGENTSITE_MOUNT_ROOTS]
    root = Path(into).resolve() if into else next(iter(roots), None)
    if root is None or not any(root == each or root.is_relative_to(each) for each in roots):
        raise CommandError(
            "Sandboxes can read no such folder. Name one in AGENTSITE_MOUNT_ROOTS, and give it by --into."
        )
    return root
