"""The image and the composition of containers give away no more than they must."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from agentsite.environment import BASE_DIR

COMPOSE: dict[str, Any] = yaml.safe_load((BASE_DIR / "compose.yaml").read_text())
DOCKERFILE = (BASE_DIR / "Dockerfile").read_text()
EXACT = re.compile(r"[a-z]+:(\d+\.\d+(\.\d+)?-\w+(-\w+)?|\S+@sha256:[0-9a-f]{64})")


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_service_is_bounded_and_may_gain_nothing(name):
    service = COMPOSE["services"][name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    for limit in ("mem_limit", "cpus", "pids_limit"):
        assert service[limit], limit
    assert service.get("read_only") or name == "postgresql"


def test_images_of_others_are_named_by_exact_versions():
    named = [service["image"] for service in COMPOSE["services"].values()]
    theirs = {image.partition(":-")[2].rstrip("}") for image in named if image != "agentsite"}
    theirs |= set(re.findall(r"^ARG BASE=(\S+)", DOCKERFILE, re.M))
    assert len(theirs) == 3
    assert all(EXACT.fullmatch(image) for image in theirs), theirs
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"${BASE}"}


def test_redis_asks_for_a_password_and_nobody_reads_it_from_a_command_line():
    redis = COMPOSE["services"]["redis"]
    assert "requirepass" in redis["command"][-1]
    assert "${" not in "".join(redis["command"]).replace("$$", "")
    for url in ("AGENTSITE_REDIS_URL", "AGENTSITE_BROKER_URL"):
        given = COMPOSE["services"]["web"]["environment"][url]
        assert given.startswith("redis://:${REDIS_PASSWORD")


def test_the_image_brings_a_sandbox_and_an_ordinary_user():
    assert "install --yes --no-install-recommends bubblewrap" in DOCKERFILE
    assert re.search(r"^USER agentsite$", DOCKERFILE, re.M)
