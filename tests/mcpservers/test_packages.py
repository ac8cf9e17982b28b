"""Packages with MCP servers: fetched once at one version, from registries on loopback; run in sandboxes."""

from __future__ import annotations

import base64
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from hashlib import sha512
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from harness.errors import AgentError, Conflict, Invalid
from mcpservers import packages
from mcpservers.actions.servers import add_from_json, change_server
from mcpservers.models import McpServer, McpTool
from mcpservers.packages import (
    Installed,
    Wanted,
    install,
    installed_in,
    package_of,
    read_wanted,
)
from tests.cast import ClientOf
from tests.standins.packageindex import PackageIndex, wheel
from tools_app.packagetrees import RECORD, tree_of

from .test_programs import INSIDE, policy_for

Scope = McpServer.Scope


class Registry(PackageIndex):
    """Both kinds at once."""

    def wheel(self, version: str, source: str) -> None:
        """Of a package `noted` with one command."""
        self.add(
            *wheel("noted", version, {"noted.py": source}, scripts={"noted-server": "noted:main"})
        )

    def tarball(self, version: str, **more: Any) -> None:
        """Of a package `@acme/noted` with one command and a script that would run when it is installed."""
        about = {
            "name": "@acme/noted",
            "version": version,
            "bin": {"noted-server": "index.js"},
            "scripts": {"postinstall": "touch ran"},
            **more,
        }
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w:gz") as packed:
            for name, text in {"package.json": json.dumps(about), "index.js": "// noted\n"}.items():
                info = tarfile.TarInfo(f"package/{name}")
                info.size = len(text)
                packed.addfile(info, io.BytesIO(text.encode()))
        body = held.getvalue()
        path = f"/tarballs/noted-{version}.tgz"
        self.held[path] = ("application/octet-stream", body)
        digest = base64.b64encode(sha512(body).digest()).decode()
        dist = {"tarball": f"{self.url}{path}", "integrity": f"sha512-{digest}"}
        whole = {
            "name": "@acme/noted",
            "dist-tags": {"latest": version},
            "versions": {version: {**about, "dist": dist}},
        }
        self.held["/@acme%2fnoted"] = ("application/json", json.dumps(whole).encode())


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    held = Registry()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{held.url}/simple/")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", held.url)
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "npm-cache"))
    with held:
        yield held


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("npm:@acme/noted@1.2.3", Wanted("npm", "@acme/noted", "1.2.3")),
        ("npm:noted", Wanted("npm", "noted")),
        ("pypi:Noted_server==2.0rc1", Wanted("pypi", "noted-server", "2.0rc1")),
    ],
)
def test_a_package_is_named_by_registry_name_and_version(text: str, wanted: Wanted):
    assert read_wanted(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["noted", "npm:noted@latest", "npm:noted@^1.2", "npm:noted@1.x", "pypi:noted>=1", "pypi:noted==1.*",
     "npm:../noted", "npm:--prefix=x", "pypi:noted @ git+https://x", "npm:noted@1.2.3 -g", "npm:@a/b/c"],
)  # fmt: skip
def test_a_range_a_path_or_an_option_is_no_version(text: str):
    with pytest.raises(Invalid) as refused:
        read_wanted(text)
    assert refused.value.field == "package"


def served_as_package() -> str:
    """The raw server, whose command is a function without arguments, as packages have it."""
    source = (
        (INSIDE / "rawserver.py")
        .read_text()
        .replace("def main(manner: str)", "def main(manner: str = '')")
    )
    return source.partition('if __name__ == "__main__":')[0]


@pytest.mark.django_db(transaction=True)
def test_a_wheel_is_fetched_once_runs_in_a_sandbox_and_another_version_is_held(
    registry: Registry, tmp_path: Path, alice: User, acme: Organisation, environment: Any,
    settings: Any, client_of: ClientOf, capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    root = tmp_path / "packages"
    root.mkdir()
    tmp_path.chmod(0o755)
    settings.AGENTSITE_MOUNT_ROOTS = [str(root)]
    registry.wheel("1.0.0", served_as_package())
    call_command("mcp_package", "install", "pypi:noted==1.0.0")
    text = capsys.readouterr().out
    folder = root / "pypi-noted@1.0.0"
    found = installed_in(folder)
    assert found is not None
    assert [(part.name, part.version) for part in found.parts] == [("noted", "1.0.0")]
    assert found.parts[0].digest.startswith("sha256:")
    asked = len(registry.asked)
    assert install(read_wanted("pypi:noted==1.0.0"), root) == folder
    assert len(registry.asked) == asked
    policy = policy_for(root)
    type(environment).objects.update(policy=json.dumps(policy))
    (server,) = add_from_json(actor=alice, organisation=acme, scope=Scope.ORGANISATION, text=text)
    from mcpservers.looking import look_now  # noqa: PLC0415 - as jobs do

    assert look_now(server) == ""
    assert server.tools.get().state == McpTool.State.RELEASED
    client: Client = client_of(alice)
    page = client.get(reverse("mcpservers:server", args=[server.uid])).content.decode()
    assert "pypi:noted 1.0.0" in page
    # Another version lies elsewhere, so it is another program.
    later = [each.replace("1.0.0", "1.1.0") for each in found.arguments]
    change_server(actor=alice, server=server, command=found.command, arguments=later)
    assert server.tools.get().state == McpTool.State.CHANGED
    call_command("mcp_package", "check")
    (folder / "site" / "noted.py").write_text("evil = 1\n")
    with pytest.raises(CommandError, match="1 of them"):
        call_command("mcp_package", "check")


def test_a_folder_that_is_no_package_of_ours_is_left_alone(tmp_path: Path):
    (tmp_path / "pypi-noted@2.0").mkdir()
    with pytest.raises(Conflict):
        install(read_wanted("pypi:noted==2.0"), tmp_path)


def lying(root: Path, name: str, version: str) -> Path:
    """A package of npm as if it had been installed."""
    place = packages._place(root, "npm", name, version)
    place.mkdir()
    record = Installed(
        kind="npm", name=name, version=version, command="node", program="serve",
        arguments=(), parts=(), tree="",
    )  # fmt: skip
    (place / RECORD).write_text(record.model_dump_json())
    return place


def test_another_command_or_interpreter_than_that_of_what_lies_there_is_refused(tmp_path: Path):
    place, wanted = lying(tmp_path, "noted", "1.0.0"), read_wanted("npm:noted@1.0.0")
    assert install(wanted, tmp_path) == place
    assert install(wanted, tmp_path, program="serve", interpreter="node") == place
    for other in ({"program": "tell"}, {"interpreter": "/usr/bin/node22"}):
        with pytest.raises(Conflict, match="starts serve by node"):
            install(wanted, tmp_path, **other)


def test_packages_whose_names_and_versions_run_together_lie_apart(tmp_path: Path):
    place = lying(tmp_path, "noted-1.0.0", "2.0.0")
    assert lying(tmp_path, "noted", "1.0.0-2.0.0") != place


if shutil.which("npm") is not None:  # no test of ours brings it

    def test_a_package_of_npm_runs_nothing_when_it_is_installed(registry: Registry, tmp_path: Path):
        registry.tarball("3.1.0")
        folder = install(read_wanted("npm:@acme/noted"), tmp_path / "packages")
        found = installed_in(folder)
        assert found is not None
        assert (found.version, found.command) == ("3.1.0", "node")
        (script,) = found.arguments
        assert Path(script).read_text() == "// noted\n"
        assert found.parts[0].digest.startswith("sha512-")
        assert not list(folder.rglob("ran"))
        assert found.tree == tree_of(folder)
        assert package_of(("node", script), [str(tmp_path / "packages")]) == found
        assert package_of(("node", script), [str(tmp_path)]) is None


def test_a_folder_that_sandboxes_cannot_read_is_refused(settings: Any, tmp_path: Path):
    settings.AGENTSITE_MOUNT_ROOTS = [str(tmp_path / "a")]
    with pytest.raises(CommandError, match="AGENTSITE_MOUNT_ROOTS"):
        call_command("mcp_package", "install", "npm:noted", "--into", str(tmp_path / "b"))
    with pytest.raises((CommandError, AgentError)):
        call_command("mcp_package", "install", "noted")
