"""A live site with a model service behind it, and programs of the cast that speak to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.journeys.model_service import ModelService
from tests.journeys.site import ROOT, Site
from tests.seed_protocol.client import Api

Program = Callable[..., Api]


@pytest.fixture(scope="package")
def service() -> Iterator[ModelService]:
    with ModelService() as running:
        yield running


@pytest.fixture(scope="package")
def site(
    service: ModelService, tmp_path_factory: pytest.TempPathFactory, django_db_setup: None
) -> Iterator[Site]:
    settings = {
        "ANTHROPIC_API_KEY": "sk-ant-of-the-black-box-suite",
        "ANTHROPIC_BASE_URL": service.base_url,
        "AGENTSITE_MESSAGES_PER_MINUTE": "0",
        "AGENTSITE_API_READS_PER_MINUTE": "0",
        "AGENTSITE_API_WRITES_PER_MINUTE": "0",
    }
    with Site(tmp_path_factory.mktemp("site"), settings) as running:
        yield running


def make_cast(site: Site) -> dict[str, Any]:
    """The tokens of everybody, by name."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.seed_protocol.people"],
        cwd=ROOT,
        env=site.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-4000:]
    cast: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return cast


@pytest.fixture(scope="package")
def cast(site: Site) -> dict[str, Any]:
    return make_cast(site)


@pytest.fixture(scope="package")
def program(site: Site, cast: dict[str, Any]) -> Program:
    def of(name: str | None, header: str = "bearer") -> Api:
        return Api(site.address, cast[name]["secret"] if name else None, header)

    return of


@pytest.fixture
def alice(program: Program) -> Api:
    return program("alice")


@pytest.fixture
def bob(program: Program) -> Api:
    return program("bob")


@pytest.fixture
def mallory(program: Program) -> Api:
    return program("mallory")
