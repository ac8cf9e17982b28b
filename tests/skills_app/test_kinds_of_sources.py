"""Sources that are added: an index of the standard, a repository at a commit, a folder, a tar archive. What
comes is what was offered, byte by byte, or nothing."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.errors import AgentError, Conflict, Declined, Forbidden, Invalid, NotFound, TooLarge
from skills_app.actions.releases import decide_release
from skills_app.actions.sources import (
    add_source,
    look_at_source,
    move_source,
    remove_source,
    take_from_source,
)
from skills_app.folder import read_folder, sha256_of
from skills_app.lookalikes import one_slip_from, same_look
from skills_app.looking import fetch_offer
from skills_app.models import Skill, SkillSource, SkillVersion
from skills_app.openindex import read_open_index
from skills_app.packing import pack, unpack
from tests.cast import shown
from tests.properties import examples
from tests.standins.skillsite import SkillSite, skill_site

from .conftest import files_of, text_of

INDEX = "/.well-known/agent-skills/index.json"


# --- tar archives -------------------------------------------------------------------------------------


def entry(path: str, data: bytes = b"x", **fields) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(path)
    info.size = len(data)
    for name, value in fields.items():
        setattr(info, name, value)
    return info, data


def tarred(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def tar_of(files: dict[str, bytes], **how) -> bytes:
    return tarred(*(entry(path, data) for path, data in files.items()), **how)


LONG = f"{'deep/' * 30}more.md"
SKILL = {f"code-review/{path}": data for path, data in files_of().items()}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("press", [bytes, gzip.compress])
def test_a_tar_archive_gives_the_same_files_as_a_zip(form, press):
    files = SKILL | {f"code-review/{LONG}": b"Long."}
    assert unpack(press(tar_of(files, form=form))) == unpack(
        pack("code-review", files_of() | {LONG: b"Long."})
    )


def test_an_archive_that_git_made_is_read():
    notes = tarfile.TarInfo.create_pax_global_header({"comment": "0" * 40})
    assert unpack(notes + tar_of(SKILL))[0] == "code-review"


@pytest.mark.parametrize(
    "bad",
    [
        entry("SKILL.md", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        entry("a", b"", type=tarfile.LNKTYPE, linkname="SKILL.md"),
        entry("a", b"", type=tarfile.FIFOTYPE),
        entry("a", b"", type=tarfile.CHRTYPE),
        entry("a", b"x", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": "9" * 12}),
        entry("a", b"x", pax_headers={"comment": "x" * 70_000}),
        entry("scripts/look.py"),
    ],
    ids=["link", "hard-link", "pipe", "device", "sparse", "long-notes", "twice"],
)
def test_a_tar_archive_with_what_no_skill_holds_is_refused(bad):
    whole = tarred(*(entry(path, data) for path, data in files_of().items()), bad)
    with pytest.raises(Invalid):
        unpack(whole)


@pytest.mark.parametrize("path", ["../a", "/a", "a/../../b", "a\u202eb", "Scripts/look.py"])
def test_a_tar_archive_whose_paths_lead_out_or_collide_is_no_skill(path):
    with pytest.raises(Invalid):
        read_folder(unpack(tar_of(files_of() | {path: b"x"}))[1])


def test_a_bomb_is_refused_before_it_unfolds(settings):
    settings.AGENTSITE_SKILL_BYTES = 100_000
    with pytest.raises(TooLarge):
        unpack(gzip.compress(tar_of(SKILL | {"code-review/a": bytes(5_000_000)})))
    with pytest.raises(TooLarge):
        unpack(tar_of(SKILL | {"code-review/a": bytes(200_000)}))
    with pytest.raises(TooLarge):
        unpack(tar_of({f"code-review/{number}": b"" for number in range(1_000)}))
    with pytest.raises(Invalid):
        unpack(gzip.compress(tar_of(SKILL)) + b"more")


TAR = tar_of(SKILL)


@hypothesis_settings(max_examples=examples(200))
@given(st.integers(0, len(TAR) - 1), st.integers(1, 255))
def test_a_tar_archive_with_any_byte_changed_is_refused_in_our_words_or_read_whole(place, change):
    """Which of both its digest decides; what reads it fails in no other way."""
    spoiled = bytearray(TAR)
    spoiled[place] ^= change
    try:
        unpack(bytes(spoiled))
    except AgentError:
        pass


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "other"),
    [("c0de-review", "code-review"), ("codereview", "code-review"), ("modem", "modern")],
)
def test_a_name_that_looks_like_another_is_known(name, other):
    assert same_look(name, ["pdf-files", other]) == other
    assert same_look(name, [name, "pdf-files"]) == ""


def test_a_name_that_is_one_slip_apart_is_known():
    for name in ("clawhub1", "clawhb", "clwahub", "clawhug"):
        assert one_slip_from(name, ["clawhub"]) == "clawhub"
    assert one_slip_from("clawhubs-2", ["clawhub"]) == ""
    assert one_slip_from("ab", ["ac"]) == ""


# --- an index of the standard ------------------------------------------------------------------------


@pytest.fixture
def site(settings):
    with skill_site() as made:
        settings.AGENTSITE_SKILLS_PRIVATE_HOSTS = [made.url.partition("//")[2]]
        yield made


def publish(site: SkillSite, name: str, data: bytes, kind: str = "archive") -> None:
    """On its index, with nothing else."""
    place = f"/files/{sha256_of(data)}"
    site.pages[place] = data
    row = {
        "name": name,
        "type": kind,
        "description": "How we review code.",
        "url": place,
        "digest": f"sha256:{sha256_of(data)}",
    }
    site.pages[INDEX] = json.dumps({"$schema": "…", "skills": [row]}).encode()


def added(alice, acme, address: str, kind: str = "index", **more) -> SkillSource:
    source = add_source(actor=alice, organisation=acme, kind=kind, address=address, **more)
    return look_at_source(actor=alice, source=source)


def installed(alice, source: SkillSource, name: str) -> SkillVersion:
    offer = source.offers.of(name)
    return take_from_source(
        actor=alice, source=source, offer=offer, folder=fetch_offer(source, offer)
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "kind"),
    [(TAR, "archive"), (pack("code-review", files_of()), "archive"), (text_of(), "skill-md")],
    ids=["tar", "zip", "text"],
)
def test_what_an_index_offers_is_stored_whole_and_waits_for_a_review(site, alice, acme, data, kind):
    publish(site, "code-review", data, kind)
    source = added(alice, acme, site.url)
    version = installed(alice, source, "code-review")
    assert (version.state, version.source) == ("waiting", source)
    assert version.skill.stable is None
    decide_release(actor=alice, version=version, approve=True)
    assert Skill.objects.get(pk=version.skill_id).stable == version
    assert source.offers.get().content == version.digest


@pytest.mark.django_db
@pytest.mark.parametrize("place", [0, 700, len(TAR) // 2, len(TAR) - 1])
def test_one_changed_byte_of_what_an_index_offers_refuses_all_of_it(site, alice, acme, place):
    publish(site, "code-review", TAR)
    source = added(alice, acme, site.url)
    spoiled = bytearray(TAR)
    spoiled[place] ^= 1
    site.pages[f"/files/{sha256_of(TAR)}"] = bytes(spoiled)
    with pytest.raises(Conflict, match="not what its index says"):
        installed(alice, source, "code-review")
    assert not Skill.objects.filter(organisation=acme).exists()


@pytest.mark.django_db
def test_a_skill_under_another_name_than_the_indexs_is_refused(site, alice, acme):
    publish(site, "code-rewiew", TAR)
    source = added(alice, acme, site.url)
    with pytest.raises(Conflict):
        installed(alice, source, "code-rewiew")


@pytest.mark.django_db
def test_a_name_that_looks_like_one_that_is_here_is_refused(site, alice, acme, released):
    released()
    publish(site, "c0de-review", pack("c0de-review", files_of("c0de-review")))
    source = added(alice, acme, site.url)
    with pytest.raises(Conflict, match="looks like “code-review”"):
        installed(alice, source, "c0de-review")


@pytest.mark.django_db
def test_an_index_that_offers_again_what_it_had_replaced_is_refused_and_says_so(site, alice, acme):
    newer = pack("code-review", files_of() | {"more.md": b"More."})
    publish(site, "code-review", TAR)
    source = added(alice, acme, site.url)
    publish(site, "code-review", newer)
    look_at_source(actor=alice, source=source)
    publish(site, "code-review", TAR)
    with pytest.raises(Conflict, match="offers again"):
        look_at_source(actor=alice, source=source)
    source.refresh_from_db()
    assert "offers again" in source.problem
    assert source.offers.of("code-review").digest == sha256_of(newer)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"skills": 1}',
        b'{"skills": [{"name": "../a", "type": "archive", "url": "a", "digest": "sha256:0"}]}',
        json.dumps(
            {
                "skills": [
                    {"name": "a", "type": "skill-md", "url": "a", "digest": f"sha256:{'0' * 64}"}
                ]
                * 2
            }
        ).encode(),
        b"[" * 100_000,
        b'{"skills": [], "more": %s}' % (b"9" * 5_000),
        json.dumps({"skills": [], "more": "\ud800"}).encode(),
    ],
)
def test_what_is_no_index_of_the_standard_is_refused(data):
    with pytest.raises(Invalid):
        read_open_index(data)


@pytest.mark.django_db
def test_what_is_not_signed_comes_by_https_or_from_the_operators_own_hosts(alice, acme):
    for kind in ("index", "git"):
        with pytest.raises(Invalid, match="https"):
            add_source(
                actor=alice,
                organisation=acme,
                kind=kind,
                address="http://a.example",
                commit="0" * 40,
            )


@pytest.mark.django_db
def test_who_does_not_manage_neither_adds_nor_asks_nor_takes_away(site, alice, bob, mallory, acme):
    publish(site, "code-review", TAR)
    source = added(alice, acme, site.url)
    for actor, refusal in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(refusal):
            add_source(actor=actor, organisation=acme, kind="index", address="https://a.example")
    for actor in (bob, mallory):
        for act in (
            lambda actor=actor: look_at_source(actor=actor, source=source),
            lambda actor=actor: remove_source(actor=actor, source=source),
            lambda actor=actor: move_source(actor=actor, source=source, commit="0" * 40),
            lambda actor=actor: installed(actor, source, "code-review"),
        ):
            with pytest.raises(NotFound):
                act()
    with pytest.raises(Forbidden):
        add_source(actor=alice, organisation=None, kind="index", address="https://a.example")


# --- a repository, a folder -----------------------------------------------------------------------------


def commit(place: Path, files: dict[str, bytes], link: str = "") -> str:
    """Its hash; the repository is made if there is none."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words],
            cwd=place,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    place.mkdir(exist_ok=True)
    git("init", "-q")
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    if link:
        (place / link).symlink_to("/etc/passwd")
    git("add", "-A")
    git("commit", "-q", "-m", "More")
    return git("rev-parse", "HEAD")


@pytest.mark.django_db
def test_a_repository_is_read_at_its_commit_and_at_no_other(site, alice, acme, tmp_path):
    place = tmp_path / "skills"
    first = commit(place, {f"skills/{path}": data for path, data in SKILL.items()})
    second = commit(
        place, {"skills/code-review/SKILL.md": text_of(body="Look at the risks first.")}
    )
    site.repositories["/skills.git"] = place
    source = added(alice, acme, f"{site.url}/skills.git", "git", commit=first)
    version = installed(alice, source, "code-review")
    assert (version.state, version.digest) == ("waiting", source.offers.get().digest)
    assert version.files.count() == 2

    moved = move_source(actor=alice, source=source, commit=second)
    look_at_source(actor=alice, source=moved)
    assert installed(alice, moved, "code-review").digest != version.digest
    for name in ("main", "0" * 39, f"{first}^"):
        with pytest.raises(Invalid, match="40 digits"):
            move_source(actor=alice, source=source, commit=name)
    with pytest.raises(Declined, match="cannot be used"):
        look_at_source(actor=alice, source=move_source(actor=alice, source=source, commit="0" * 40))


@pytest.mark.django_db
def test_a_skill_of_a_repository_with_a_link_is_left_out_and_named(site, alice, acme, tmp_path):
    place = tmp_path / "skills"
    good = {f"good/{path}": data for path, data in files_of("good").items()}
    name = commit(place, {**SKILL, **good}, link="code-review/passwords")
    site.repositories["/skills.git"] = place
    source = added(alice, acme, f"{site.url}/skills.git", "git", commit=name)
    assert [offer.name for offer in source.offers.all()] == ["good"]
    assert "code-review" in source.remarks[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "answer", [b"", b"zzzz", b"0010ERR no such", b"000dpackfile\n0009\1PACK0000"]
)
def test_what_is_no_repository_is_refused(site, alice, acme, answer, monkeypatch):
    monkeypatch.setattr("skills_app.repositories.post", lambda *_words: answer)
    with pytest.raises(Declined, match="cannot be used"):
        added(alice, acme, f"{site.url}/skills.git", "git", commit="0" * 40)


@pytest.mark.django_db
def test_a_folder_is_for_staff_where_the_operator_lists_it(staff, alice, acme, tmp_path, settings):
    for path, data in SKILL.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    with pytest.raises(Forbidden, match="No skills are read"):
        add_source(actor=staff, organisation=None, kind="folder", address=str(tmp_path))
    settings.AGENTSITE_SKILLS_FOLDERS = [str(tmp_path)]
    with pytest.raises(Forbidden):
        add_source(actor=alice, organisation=acme, kind="folder", address=str(tmp_path))
    source = added(staff, None, str(tmp_path), "folder")
    with pytest.raises(Forbidden):
        add_source(actor=staff, organisation=None, kind="folder", address=f"{tmp_path}/..")
    offer = source.offers.of("code-review")
    (tmp_path / "code-review/scripts/look.py").write_bytes(b"changed")
    with pytest.raises(Conflict):
        fetch_offer(source, offer)
    look_at_source(actor=staff, source=source)
    assert installed(staff, source, "code-review").skill.organisation is None


# --- pages and programs ------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["server", "index", "git"])
@pytest.mark.parametrize(
    "address",
    ["https://[", "https://a.example]", "https://\u2100.example/", "https://a.example:99999"],
)
def test_what_is_no_address_is_refused_on_the_page(alice, acme, client_of, kind, address):
    given = {"scope": "organisation", "kind": kind, "address": address, "key": "k"}
    commit = "a" * 40 if kind == "git" else ""
    client = client_of(alice)
    answer = client.post("/skills/sources/", shown(acme, **given, commit=commit))
    assert answer.status_code == 422
    assert not SkillSource.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["//[", "//a.example:99999/", "https://\u2100/", "\x01", "//x"])
def test_an_index_that_leads_nowhere_is_refused_where_its_offer_is_opened(
    site, alice, acme, client_of, place
):
    publish(site, "code-review", TAR)
    index = json.loads(site.pages[INDEX])
    index["skills"][0]["url"] = place
    site.pages[INDEX] = json.dumps(index).encode()
    source = added(alice, acme, site.url)
    offer = source.offers.of("code-review")
    page = client_of(alice).post(f"/skills/sources/{source.uid}/offers/{offer.pk}/")
    assert page.status_code == 302
    with pytest.raises(AgentError):
        installed(alice, source, "code-review")


@pytest.mark.django_db
def test_a_manager_adds_a_source_sees_what_would_come_and_has_it_reviewed(
    site, alice, acme, client
):
    publish(site, "code-review", TAR)
    client.force_login(alice)
    given = {"scope": "organisation", "kind": "index", "address": site.url}
    refused = client.post("/skills/sources/", {**given, "shown_organisation": "another"})
    assert refused.status_code == 409
    client.post("/skills/sources/", {**given, "shown_organisation": acme.uid})
    source = SkillSource.objects.get()
    page = client.get(f"/skills/sources/{source.uid}/").content.decode()
    assert "What would come" in page
    place = f"/skills/sources/{source.uid}/offers/{source.offers.get().pk}/"
    plan = client.post(place)
    assert "scripts/look.py" in plan.content.decode()
    assert not Skill.objects.filter(organisation=acme).exists()
    client.post(place, {"digest": plan.context["folder"].digest})
    assert Skill.objects.get(organisation=acme).versions.get().state == "waiting"
    assert "waits for review" in client.get(f"/skills/sources/{source.uid}/").content.decode()


@pytest.mark.django_db
def test_programs_add_a_source_look_and_install(site, alice, acme, client):
    publish(site, "code-review", TAR)
    client.force_login(alice)

    def ask(path: str = "", **body: str):
        place = f"/api/skills/sources{path}"
        return client.post(place, body, content_type="application/json")

    source = ask(kind="index", address=site.url).json()
    assert client.get("/api/skills/sources").json() == [source]
    (offer,) = ask(f"/{source['id']}/look").json()["offers"]
    refused = ask(f"/{source['id']}/install", name=offer["name"], digest="0" * 64)
    assert refused.status_code == 409
    done = ask(f"/{source['id']}/install", name=offer["name"], digest=offer["digest"])
    assert done.json()["state"] == "waiting"
    assert client.delete(f"/api/skills/sources/{source['id']}").json() == {"status": "deleted"}
    assert Skill.objects.filter(organisation=acme).exists()
