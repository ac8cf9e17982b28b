"""Two Agentsites, each a process with a database of its own: one offers a skill and changes its mind of it,
the other decides by itself what becomes of that."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentsite.local_services import free_port
from tests.attack_web.visitors import Visitor
from tests.journeys.site import ROOT, Site

SKILL = "---\nname: tidy\ndescription: How we tidy up.\n---\n\n{words}\n"


class Manager:
    """Whoever set a site up, at its pages."""

    def __init__(self, site: Site, organisation: str) -> None:
        self.site = site
        self._visitor = Visitor(site.address)
        self.posted(
            site.setup_link.removeprefix(site.address),
            organisation_name=organisation,
            username="alice",
            email="alice@example.org",
            password="correct horse battery staple",
        )
        self._organisation = self.found(
            r'name="shown_organisation" value="([^"]+)"', "/skills/new/"
        )

    def page(self, path: str) -> str:
        answer = self._visitor.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.text

    def found(self, pattern: str, path: str) -> str:
        found = re.search(pattern, self.page(path))
        assert found, (path, pattern)
        return found[1]

    def posted(self, path: str, **given: str) -> str:
        """Where it leads."""
        answer = self._visitor.form(path, **given)
        assert answer.status_code == 302, (path, answer.status_code, answer.text[-3000:])
        return str(answer.headers["Location"])

    def shown(self, path: str) -> str:
        """What a form that only shows something answers."""
        answer = self._visitor.form(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.text

    def begun(self, path: str, **given: str) -> str:
        return self.posted(path, shown_organisation=self._organisation, **given)

    def released(self, version: str) -> str:
        """The address of its skill."""
        self.posted(f"{version}decide/", decision="approve")
        return version.partition("versions/")[0]

    def leave(self) -> None:
        self._visitor.close()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    offering = Site(tmp_path_factory.mktemp("offering"), {"AGENTSITE_SKILLS_PUBLIC": "true"})
    listed = {"AGENTSITE_SKILLS_PRIVATE_HOSTS": f"127.0.0.1:{offering.port}"}
    taking = Site(tmp_path_factory.mktemp("taking"), listed)
    while taking.port == offering.port:
        taking.port = free_port()
    with ThreadPoolExecutor(2) as both:
        list(both.map(Site.start, (offering, taking)))
    try:
        yield offering, taking
    finally:
        offering.stop()
        taking.stop()


def key_of(site: Site) -> str:
    words = [sys.executable, "manage.py", "agent", "skills", "key"]
    said = subprocess.run(
        words, cwd=ROOT, env=site.environment, capture_output=True, text=True, check=True
    )
    return said.stdout.strip()


def offered(page: str) -> dict[str, str]:
    """Versions of the skill that a source offers and that are not here, with the address behind each."""
    return {
        label: address
        for address, label in re.findall(
            r'action="(/skills/sources/[^"/]+/offers/\d+/)">(?:(?!</form>).)*> tidy ([^<]+)</span>',
            page,
            re.DOTALL,
        )
    }


def digest_in(plan: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', plan)
    assert found
    return found[1]


def test_one_site_installs_what_another_offers_is_told_what_changed_and_goes_back(sites):
    offering, taking = sites
    maker, taker = Manager(offering, "Makers"), Manager(taking, "Takers")
    version = maker.begun("/skills/new/", scope="server", text=SKILL.format(words="Begin left."))
    maker.posted(f"{version}ask/")
    theirs = maker.released(version)

    source = taker.begun(
        "/skills/sources/",
        scope="organisation",
        kind="server",
        address=offering.address,
        key=key_of(offering),
    )
    offer = offered(taker.page(source))["1"]
    first = taker.posted(offer, digest=digest_in(taker.shown(offer)))
    ours = taker.released(first)

    second = maker.posted(f"{theirs}edit/", text=SKILL.format(words="Begin right."))
    maker.posted(f"{second}ask/")
    maker.released(second)
    maker.posted(f"{theirs}versions/1/deprecate/", replacement="tidy 2")

    taker.posted(f"{source}look/")
    listing = taker.page(source)
    assert "deprecated" in listing
    assert "What would change" in listing
    update = offered(listing)["2"]
    plan = taker.shown(update)
    assert "What changes from 1" in plan
    assert "left" in plan
    assert "right" in plan
    newer = taker.posted(update, digest=digest_in(plan))
    assert "Begin right." not in taker.page(f"{ours}versions/1/"), "nothing changed by itself"
    taker.released(newer)
    assert "Make it stable" in taker.page(f"{ours}versions/1/")

    maker.posted(f"{theirs}versions/2/withdraw/", reason="It breaks the vase.")
    taker.posted(f"{source}look/")
    assert "tidy 2" not in taker.page(source)
    taker.posted(f"{ours}channels/", channel="stable", version="1")
    assert "Make it stable" not in taker.page(f"{ours}versions/1/")
    assert "Make it stable" in taker.page(f"{ours}versions/2/")
    maker.leave()
    taker.leave()
