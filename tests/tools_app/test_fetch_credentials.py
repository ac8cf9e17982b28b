"""A token goes to the service it is bound to and nowhere else, and no answer brings it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.errors import ToolError
from harness.tools import ToolContext, perform
from tests.heartbeat import seconds_of_work
from tests.hostile import marks
from tests.tools_app.web_world import World, http, policy_for
from tools_app.catalogue import find
from tools_app.web import client
from tools_app.web.credentials import EXTRA, HIDDEN, covers, one_spelling

TOKEN = "token-that-nobody-may-read"
SERVICE = "https://site.example/team"


class Bound:
    """Hands out the token for one service."""

    def __init__(self, service: str = SERVICE, token: str = TOKEN) -> None:
        self.service = service
        self.token = token
        self.asked: list[str] = []

    async def bearer_for(self, address: str) -> str:
        self.asked.append(address)
        return self.token if covers(self.service, address) else ""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World()
    await world.start()
    await world.start_tls(tmp_path, "site.example")
    yield world
    await world.close()


async def fetched(world: World, tmp_path: Path, url: str, credentials: object):
    egress = world.egress(policy_for("site.example", "other.example"))
    extras = {client.EXTRA: egress, EXTRA: credentials}
    tool = find("web_fetch")
    assert tool is not None
    outcome = await perform(tool, ToolContext("sevt_1", tmp_path, extras=extras), {"url": url})
    return "".join(block.text for block in outcome.content)


def authorised(world: World) -> list[bool]:
    return [f"Authorization: Bearer {TOKEN}".encode() in head for head in world.requests]


@pytest.mark.parametrize(
    ("address", "is_below"),
    [
        (SERVICE, True),
        (f"{SERVICE}/", True),
        (f"{SERVICE}/issues?state=open", True),
        ("https://site.example:443/team/x", True),
        ("HTTPS://Site.Example./team/x", True),
        ("http://site.example/team/x", False),
        ("https://site.example:8443/team", False),
        ("https://other.example/team", False),
        ("https://site.example.evil.example/team", False),
        ("https://site.example@evil.example/team", False),
        ("https://site.example/teams", False),
        ("https://site.example/", False),
        ("https://site.example/team/../admin", False),
        ("https://site.example/team/%2e%2e/admin", False),
        ("https://site.example/team/%252e%252e/admin", False),
        ("https://site.example/team/..;/admin", False),
        ("https://site.example/team/..%2fadmin", False),
        ("https://site.example/team\\..\\admin", False),
        ("not an address", False),
    ],
)
def test_what_lies_below_a_service(address, is_below):
    assert covers(SERVICE, address) is is_below


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "site.example",
        "ftp://site.example",
        "https://",
        "https://u:p@site.example",
        "https://a#b",
    ],
)
def test_what_is_no_service_has_no_spelling(wrong):
    with pytest.raises(ValueError, match=r"address|control"):
        one_spelling(wrong)


async def test_the_token_goes_to_its_service_alone(world, tmp_path):
    world.answers |= {
        "site.example/team/x": http("Hers", kind="text/plain"),
        "site.example/public": http("All", kind="text/plain"),
    }
    bound = Bound()
    assert "Hers" in await fetched(world, tmp_path, f"{SERVICE}/x", bound)
    assert "All" in await fetched(world, tmp_path, "https://site.example/public", bound)
    await fetched(world, tmp_path, "http://site.example/team/x", bound)
    assert authorised(world) == [True, False, False]


async def test_a_redirect_takes_no_token_along(world, tmp_path):
    world.answers |= {
        "site.example/team/x": http(
            status="302 Found", Location="http://other.example/team/x?after=1"
        ),
        "other.example/team/x?after=1": http("There", kind="text/plain"),
    }
    bound = Bound()
    assert "There" in await fetched(world, tmp_path, f"{SERVICE}/x", bound)
    assert authorised(world) == [True, False]
    assert bound.asked == [f"{SERVICE}/x", "http://other.example/team/x?after=1"]


async def test_nothing_is_asked_for_an_address_that_is_refused(world, tmp_path):
    bound = Bound("https://unlisted.example")
    assert "not listed" in await fetched(world, tmp_path, "https://unlisted.example/", bound)
    assert not bound.asked


async def test_a_server_that_repeats_the_token_tells_the_model_nothing(world, tmp_path):
    world.answers["site.example/team/echo"] = lambda head: http(head, kind="text/plain")
    said = await fetched(world, tmp_path, f"{SERVICE}/echo", Bound())
    assert authorised(world) == [True]
    assert f"Authorization: Bearer {HIDDEN}" in said
    assert TOKEN not in said


async def test_a_redirect_that_repeats_the_token_is_not_followed(world, tmp_path):
    world.answers["site.example/team/x"] = http(
        status="302 Found", Location=f"http://other.example/?t={TOKEN}"
    )
    said = await fetched(world, tmp_path, f"{SERVICE}/x", Bound())
    assert "repeats the token" in said
    assert TOKEN not in said
    assert len(world.requests) == 1


async def test_a_token_that_cannot_be_had_is_said_and_nothing_is_sent(world, tmp_path):
    class Broken:
        async def bearer_for(self, address: str) -> str:
            raise ToolError("It was not fetched: the token is over.")

    assert "the token is over" in await fetched(world, tmp_path, f"{SERVICE}/x", Broken())
    assert not world.requests


LETTERS = "".join(chr(0x4E00 + (place * 7919) % 20_000) for place in range(2_000))


@pytest.mark.parametrize("host", [LETTERS, marks(2_000)], ids=["letters", "marks"])
@pytest.mark.parametrize("read", [client.Address.parse, one_spelling])
def test_a_host_longer_than_any_is_refused_at_once(read, host):
    def parse() -> None:
        with pytest.raises((ToolError, ValueError)):
            read(f"http://{host}/")

    assert seconds_of_work(parse) < 0.005


def test_a_long_address_is_covered_by_no_service_at_once():
    address = f"https://{marks(40_000)}/"

    assert seconds_of_work(lambda: covers(SERVICE, address)) < 0.05
    assert not covers(SERVICE, address)
