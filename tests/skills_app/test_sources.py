"""One server installs skills of another: a signed index, archives that are what it says, or nothing."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import AgentError, Conflict, Forbidden, Invalid, NotFound
from skills_app.actions.releases import (
    ask_for_release,
    decide_release,
    deprecate_version,
    yank_version,
)
from skills_app.actions.skills import add_version, create_skill, kill_skill
from skills_app.actions.sources import know_source
from skills_app.fetching import address_of, verified
from skills_app.folder import digest_of, sha256_of
from skills_app.models import Skill, SkillSource, SkillVersion
from skills_app.packing import pack
from skills_app.serving import archive_of, index_text, public_key
from skills_app.signedindex import (
    LIFE_SECONDS,
    Index,
    Offered,
    public_key_of,
    read_index,
    signed,
    written,
)

from .conftest import files_of, text_of

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
NOW = 1_800_000_000
ARCHIVE = pack("code-review", files_of())
OFFERED = Offered(
    name="code-review",
    description="How we review code.",
    url="a.zip",
    digest=f"sha256:{sha256_of(ARCHIVE)}",
    version="1",
    content=f"sha256:{digest_of({path: sha256_of(data) for path, data in files_of().items()})}",
    size=len(ARCHIVE),
)


def document(issued: int = NOW, life: int = LIFE_SECONDS, key: Ed25519PrivateKey = KEY) -> bytes:
    index = Index(issued=issued, expires=issued + life, skills=(OFFERED,))
    return written(signed(index, key)).encode()


def read(data: bytes, now: float = NOW + 60, seen: int = 0) -> Index:
    return read_index(data, key=public_key_of(KEY), now=now, seen=seen)


def test_what_is_signed_with_the_known_key_is_read():
    assert read(document()).skills == (OFFERED,)


SIGNED = document()


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_an_index_with_any_byte_changed_is_refused(place, change):
    spoiled = bytearray(SIGNED)
    spoiled[place] ^= change
    with pytest.raises((Invalid, Conflict)):
        read(bytes(spoiled))


@given(st.integers(0, len(ARCHIVE) - 1), st.integers(1, 255))
def test_an_archive_with_any_byte_changed_is_refused(place, change):
    spoiled = bytearray(ARCHIVE)
    spoiled[place] ^= change
    with pytest.raises(Conflict):
        verified(OFFERED, bytes(spoiled))
    assert verified(OFFERED, ARCHIVE).name == "code-review"


def test_an_archive_of_other_files_is_refused_although_its_own_digest_fits():
    other = pack("code-review", files_of() | {"more.md": b"More."})
    swapped = OFFERED.model_copy(update={"digest": f"sha256:{sha256_of(other)}"})
    with pytest.raises(Conflict):
        verified(swapped, other)
    with pytest.raises(Conflict):
        verified(OFFERED.model_copy(update={"name": "code-revlew"}), ARCHIVE)


def test_an_older_index_than_the_one_seen_before_is_refused():
    read(document(), seen=NOW)
    with pytest.raises(Conflict, match="older index"):
        read(document(), seen=NOW + 1)


def test_an_index_that_is_held_still_expires():
    with pytest.raises(Conflict, match="expired"):
        read(document(), now=NOW + LIFE_SECONDS)
    with pytest.raises(Invalid, match="not of this time"):
        read(document(life=LIFE_SECONDS + 1))
    with pytest.raises(Invalid, match="not of this time"):
        read(document(issued=NOW + 7_200))


@pytest.mark.parametrize("text", ["a\ud800", "\udfff"])
def test_half_a_character_is_read_out_of_no_index_whoever_signed_it(text):
    index = Index(issued=NOW, expires=NOW + LIFE_SECONDS, skills=(OFFERED,))
    told = index.model_dump(mode="json", by_alias=True)
    told["skills"][0]["description"] = text
    value = base64.b64encode(KEY.sign(written(told).encode())).decode()
    data = written({**told, "signature": {"key": public_key_of(KEY), "value": value}}).encode()
    with pytest.raises(Invalid, match="cannot be read"):
        read(data)


def test_the_longest_index_that_may_be_is_read():
    many = Index(issued=NOW, expires=NOW + LIFE_SECONDS, skills=(OFFERED,) * 10_000)
    assert len(read(written(signed(many, KEY)).encode()).skills) == 10_000


def test_another_key_is_not_believed_whatever_it_signed():
    with pytest.raises(Invalid, match="not signed with the key"):
        read(document(key=Ed25519PrivateKey.from_private_bytes(b"m" * 32)))
    forged = json.loads(document(key=Ed25519PrivateKey.from_private_bytes(b"m" * 32)))
    forged["signature"]["key"] = public_key_of(KEY)
    with pytest.raises(Invalid, match="does not fit"):
        read(written(forged).encode())


def test_parts_of_two_indexes_are_not_one():
    one, two = json.loads(document()), json.loads(document(issued=NOW + 1))
    with pytest.raises(Invalid):
        read(written({**one, "issued": two["issued"]}).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000, b'{"signature": {}}'],
)
def test_what_is_no_index_is_refused(data):
    with pytest.raises(AgentError):
        read(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://a",
        "https://",
        "https://u@a.example",
        "example.org",
        "https://[",
        "https://a.example]",
        "https://\u2100.example/",
        "https://a.example:99999",
        "http://a.example:x/",
        "https://a.example/\0",
        "https://" + "\uff9e" * 500 + ".example/",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(Invalid):
        address_of(text)


# --- this server as a source, and as one that installs -----------------------------------------------


@pytest.fixture
def library(staff):
    """A skill of the server's, released by staff."""
    version = create_skill(actor=staff, organisation=None, files=files_of())
    ask_for_release(actor=staff, version=version)
    return decide_release(actor=staff, version=version, approve=True)


def release(staff, skill: Skill, body: str) -> SkillVersion:
    version = add_version(
        actor=staff, skill=skill, files=files_of() | {"SKILL.md": text_of(body=body)}
    )
    ask_for_release(actor=staff, version=version)
    return decide_release(actor=staff, version=version, approve=True)


@pytest.mark.django_db
def test_nothing_is_offered_to_strangers_unless_the_operator_says_so(client, library, settings):
    place = f"/.well-known/agent-skills/{library.digest}.zip"
    assert client.get("/.well-known/agent-skills/index.json").status_code == 404
    assert client.get(place).status_code == 404
    settings.AGENTSITE_SKILLS_PUBLIC = True
    index = client.get("/.well-known/agent-skills/index.json")
    assert index["Content-Type"] == "application/json"
    assert "code-review" in [each["name"] for each in index.json()["skills"]]
    assert client.get(place).content == ARCHIVE


@pytest.mark.django_db
def test_an_organisations_skills_drafts_and_what_was_withdrawn_are_not_in_the_index(
    staff, alice, acme, library, released, settings
):
    settings.AGENTSITE_SKILLS_PUBLIC = True
    own = released(files_of("ours"))
    draft = add_version(actor=staff, skill=library.skill, files=files_of() | {"a.md": b"Draft."})
    named = json.loads(index_text())["skills"]
    assert [(each["name"], each["version"]) for each in named] == [("code-review", "1")]
    for digest in (own.digest, draft.digest):
        with pytest.raises(NotFound):
            archive_of(digest)
    yank_version(actor=staff, version=library, reason="It was wrong.")
    assert json.loads(index_text())["skills"] == []
    with pytest.raises(NotFound):
        archive_of(library.digest)


@pytest.fixture
def elsewhere_url(live_server, settings):
    settings.AGENTSITE_SKILLS_PUBLIC = True
    settings.AGENTSITE_SKILLS_PRIVATE_HOSTS = [live_server.url.partition("//")[2]]
    return live_server.url


@pytest.mark.django_db(transaction=True)
def test_one_server_installs_from_another_and_is_offered_the_update_with_its_changes(
    elsewhere_url, staff, alice, acme, library, capsys
):
    def install(*more: str) -> tuple[str, str]:
        words = ("agent", "skills", "install", "code-review", "--from", elsewhere_url)
        call_command(*words, "--user", "alice", "--yes", *more)
        said = capsys.readouterr()
        return said.out, said.err

    with pytest.raises(CommandError, match="not known yet"):
        install()
    out, _notes = install("--key", public_key())
    assert out.rstrip().endswith("waits for a review")
    ours = Skill.objects.get(organisation=acme, name="code-review")
    (version,) = ours.versions.all()
    assert (version.digest, version.state) == (library.digest, "waiting")
    decide_release(actor=alice, version=version, approve=True)

    newer = release(staff, library.skill, "Look at the risks first.")
    deprecate_version(actor=staff, version=library, replacement="code-review 2")
    _out, notes = install()
    assert "in place of 1" in notes
    assert "changed SKILL.md" in notes
    assert ours.versions.first().digest == newer.digest
    _out, notes = install("--version", "1")
    assert "! deprecated, use code-review 2" in notes
    assert "exactly this is there already" in notes

    kill_skill(actor=staff, skill=library.skill, reason="It fetches scripts.")
    with pytest.raises(CommandError, match="offers no such skill"):
        install()
    source = SkillSource.objects.get()
    source.seen = round(timezone.now().timestamp()) + 60
    source.save()
    with pytest.raises(CommandError, match="older index"):
        install()


@pytest.mark.django_db(transaction=True)
def test_an_address_inside_is_reached_only_where_the_operator_lists_it(
    elsewhere_url, alice, acme, library, settings
):
    settings.AGENTSITE_SKILLS_PRIVATE_HOSTS = []
    words = ("agent", "skills", "install", "code-review", "--from", elsewhere_url)
    with pytest.raises(CommandError, match="private or local address"):
        call_command(*words, "--user", "alice", "--yes", "--key", public_key())
    assert not Skill.objects.filter(organisation=acme).exists()


@pytest.mark.django_db
def test_only_who_manages_makes_a_source_known_and_nobody_changes_its_key(
    alice, bob, mallory, acme
):
    given = {"organisation": acme, "address": "https://skills.example", "key": public_key_of(KEY)}
    with pytest.raises(Forbidden):
        know_source(actor=bob, **given)
    with pytest.raises(NotFound):
        know_source(actor=mallory, **given)
    source = know_source(actor=alice, **given)
    assert know_source(actor=alice, **given) == source
    assert know_source(actor=alice, **{**given, "key": ""}) == source
    with pytest.raises(Conflict, match="another key"):
        know_source(actor=alice, **{**given, "key": "another"})
    assert timezone.now() - source.created_at < timedelta(minutes=1)
