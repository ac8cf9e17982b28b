"""Sources of others: a skill of ClawHub, an Agent Plugins bundle. What comes is every byte that was named, or
nothing."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator

import pytest

from audit.models import AuditEntry
from harness.errors import Conflict, Declined, Invalid
from skills_app.actions.sources import (
    add_source,
    look_at_source,
    move_source,
    take_from_source,
)
from skills_app.bundles import require_manifest
from skills_app.clawhub import address_of_page
from skills_app.folder import sha256_of
from skills_app.looking import fetch_offer
from skills_app.models import Skill, SkillSource
from skills_app.packing import pack
from tests.standins.skillsite import SkillSite, skill_site

from .conftest import files_of, text_of

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
pytestmark = pytest.mark.django_db


@pytest.fixture
def site(settings) -> Iterator[SkillSite]:
    with skill_site() as site:
        settings.AGENTSITE_SKILLS_PRIVATE_HOSTS = [site.url.removeprefix("http://")]
        yield site


# --- ClawHub ----------------------------------------------------------------------------------------


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return packed.getvalue()


def publish(
    site: SkillSite,
    files: dict[str, bytes],
    version: str = "1.2.0",
    *,
    owner: str = "ann",
    sent: bytes = b"",
    listed: dict[str, bytes] | None = None,
    **more,
) -> None:
    """As the registry answers: the skill, its version with the list of files, the archive."""
    said = {
        "skill": {"slug": "reviews", "stats": {"downloads": 7_754}},
        "latestVersion": {"version": version, "createdAt": 0, "changelog": ""},
        "owner": {"handle": owner, "displayName": "Ann"},
    }
    entries = [
        {"path": path, "size": len(data), "sha256": sha256_of(data), "contentType": "text/plain"}
        for path, data in (files if listed is None else listed).items()
    ]
    one = {"version": {"version": version, "createdAt": 0, "changelog": "", "files": entries}}
    base = "/api/v1/skills/reviews"
    packed = zipped(files | {"_meta.json": b"{}"})
    site.pages |= {
        f"{base}?ownerHandle=ann": json.dumps(said | more).encode(),
        f"{base}/versions/{version}?ownerHandle=ann": json.dumps(one).encode(),
        f"/api/v1/download?slug=reviews&version={version}&ownerHandle=ann": sent or packed,
    }


def registry(alice, acme, site: SkillSite) -> SkillSource:
    return add_source(
        actor=alice, organisation=acme, kind="clawhub", address=f"{site.url}/ann/reviews"
    )


def test_a_skill_of_a_registry_is_taken_whole_in_the_version_that_was_shown(site, alice, acme):
    publish(site, files_of())
    source = look_at_source(actor=alice, source=registry(alice, acme, site))
    offer = source.offers.get()
    assert (offer.name, offer.label) == ("code-review", "1.2.0")
    newer = files_of() | {"more.md": b"More."}
    publish(site, newer, "1.3.0")
    version = take_from_source(
        actor=alice, source=source, offer=offer, folder=fetch_offer(source, offer)
    )
    assert (version.state, version.source) == ("waiting", source)
    assert version.digest == offer.content
    assert not version.files.filter(path="_meta.json").exists()
    look_at_source(actor=alice, source=source)
    assert [each.label for each in source.offers.filter(gone=False)] == ["1.3.0"]
    publish(site, files_of())
    with pytest.raises(Conflict, match="offers again"):
        look_at_source(actor=alice, source=source)


def test_a_version_that_says_something_else_than_before_is_refused(site, alice, acme):
    publish(site, files_of())
    source = look_at_source(actor=alice, source=registry(alice, acme, site))
    publish(site, files_of() | {"more.md": b"More."})
    with pytest.raises(Conflict, match="another content"):
        look_at_source(actor=alice, source=source)
    with pytest.raises(Conflict):
        fetch_offer(source, source.offers.get())
    assert not Skill.objects.filter(organisation=acme).exists()


def test_what_was_blocked_there_after_it_was_looked_at_is_not_taken(site, alice, acme):
    publish(site, files_of())
    source = look_at_source(actor=alice, source=registry(alice, acme, site))
    offer = source.offers.get()
    assert fetch_offer(source, offer).digest == offer.content
    publish(site, files_of(), moderation={"isMalwareBlocked": True})
    with pytest.raises(Declined, match="blocked"):
        fetch_offer(source, offer)


def test_the_audit_log_is_told_no_more_of_an_address_than_where_it_is(alice, acme):
    """What signs a link to a bundle stands behind its question mark."""
    address = "https://bundles.example/tools.zip?signature=hunter2"
    source = add_source(
        actor=alice, organisation=acme, kind="plugin", address=address, commit="0" * 64
    )
    told = AuditEntry.objects.get(action="skill_source_added")
    assert source.address == address
    assert told.details["address"] == "https://bundles.example/tools.zip"
    assert "hunter2" not in str(told.details)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"listed": files_of() | {"scripts/look.py": b"print('other')\n"}},
        {"listed": files_of() | {"missing.md": b""}},
        {"listed": {"SKILL.md": text_of("code-review")}},
    ],
    ids=["a byte", "one is missing", "one is not listed"],
)
def test_files_that_are_not_those_of_the_list_refuse_all_of_them(site, alice, acme, spoiled):
    publish(site, files_of(), **spoiled)
    with pytest.raises(Conflict, match="not what its index says"):
        look_at_source(actor=alice, source=registry(alice, acme, site))


def test_what_a_registry_has_blocked_or_keeps_elsewhere_or_another_publishers_is_not_taken(
    site, alice, acme
):
    source = registry(alice, acme, site)
    publish(site, files_of(), owner="mal")
    with pytest.raises(Conflict, match="not ann’s"):
        look_at_source(actor=alice, source=source)
    publish(site, files_of(), moderation={"isMalwareBlocked": True})
    with pytest.raises(Declined, match="blocked"):
        look_at_source(actor=alice, source=source)
    away = {"repo": "https://git.example.org/ann/skills", "commit": "0" * 40, "path": "reviews"}
    publish(site, files_of(), sent=json.dumps(away).encode())
    with pytest.raises(Declined, match=r"git\.example\.org"):
        look_at_source(actor=alice, source=source)
    site.pages = {"/api/v1/skills/reviews?ownerHandle=ann": b"<html>"}
    with pytest.raises(Invalid, match="does not answer"):
        look_at_source(actor=alice, source=source)
    source.refresh_from_db()
    assert "does not answer" in source.problem


@pytest.mark.parametrize(
    "address",
    [
        *("https://hub.example", "https://hub.example/a", "https://hub.example/a/b/c"),
        *("https://hub.example/a/..%2fb", "https://hub.example/a/b?x=1", "ftp://hub.example/a/b"),
    ],
)
def test_what_is_no_page_of_a_skill_is_no_source(address):
    with pytest.raises(Invalid):
        address_of_page(address)


def test_the_address_of_a_page_is_kept_in_one_way_of_writing():
    for address in ("https://hub.example/@ann/reviews/", "https://hub.example/ann/skills/reviews"):
        assert address_of_page(address) == "https://hub.example/ann/reviews"


# --- bundles ----------------------------------------------------------------------------------------


def bundle(**more: bytes) -> bytes:
    manifest = json.dumps({"$schema": SCHEMA, "name": "tools", "version": "1.0.0"}).encode()
    files = {"plugin.json": manifest, "mcp.json": b"{}", "skills/broken/SKILL.md": b"nothing"}
    for path, data in files_of().items():
        files[f"skills/code-review/{path}"] = data
    files["skills/tidy/SKILL.md"] = text_of("tidy")
    files["skills/tidy/deep/SKILL.md"] = text_of("deep")
    return pack("tools", files | more)


def bundled(alice, acme, site: SkillSite, data: bytes) -> SkillSource:
    site.pages["/tools.zip"] = data
    return add_source(
        actor=alice,
        organisation=acme,
        kind="plugin",
        address=f"{site.url}/tools.zip",
        commit=f"sha256:{sha256_of(data)}",
    )


def test_the_skills_of_a_bundle_are_offered_each_by_itself(site, alice, acme):
    source = look_at_source(actor=alice, source=bundled(alice, acme, site, bundle()))
    assert [each.name for each in source.offers.all()] == ["code-review", "tidy"]
    servers, broken = source.remarks
    assert "MCP servers" in servers
    assert broken.startswith("broken:")
    offer = source.offers.of("code-review")
    folder = fetch_offer(source, offer)
    version = take_from_source(actor=alice, source=source, offer=offer, folder=folder)
    assert version.files.count() == len(files_of())


def test_a_bundle_with_one_other_byte_is_refused_until_its_digest_is_named(site, alice, acme):
    source = look_at_source(actor=alice, source=bundled(alice, acme, site, bundle()))
    other = bundle(**{"readme.md": b"x"})
    site.pages["/tools.zip"] = other
    with pytest.raises(Conflict, match=sha256_of(other)):
        look_at_source(actor=alice, source=source)
    with pytest.raises(Conflict):
        fetch_offer(source, source.offers.of("tidy"))
    with pytest.raises(Invalid, match="SHA-256"):
        move_source(actor=alice, source=source, commit="0" * 40)
    moved = move_source(actor=alice, source=source, commit=sha256_of(other).upper())
    assert look_at_source(actor=alice, source=moved).problem == ""


def test_a_folder_that_is_a_bundle_offers_its_skills(settings, tmp_path, staff):
    settings.AGENTSITE_SKILLS_FOLDERS = [str(tmp_path)]
    (tmp_path / "skills/tidy").mkdir(parents=True)
    (tmp_path / "skills/tidy/SKILL.md").write_bytes(text_of("tidy"))
    (tmp_path / "plugin.json").write_text(json.dumps({"$schema": SCHEMA, "name": "tools"}))
    source = add_source(actor=staff, organisation=None, kind="folder", address=str(tmp_path))
    look_at_source(actor=staff, source=source)
    assert fetch_offer(source, source.offers.of("tidy")).digest == source.offers.get().digest
    (tmp_path / "plugin.json").write_text("{}")
    with pytest.raises(Invalid, match=r"plugin\.json"):
        look_at_source(actor=staff, source=source)


@pytest.mark.parametrize(
    "manifest",
    [
        *(b"", b"[]", b"{}", b'{"name": "tools"}', b"[" * 90_000),
        json.dumps({"$schema": "https://elsewhere.example/plugin.json", "name": "tools"}).encode(),
        json.dumps({"$schema": SCHEMA, "name": "../tools"}).encode(),
    ],
)
def test_a_manifest_that_is_not_as_the_specification_has_it_refuses_the_bundle(manifest):
    with pytest.raises(Invalid):
        require_manifest(manifest)
