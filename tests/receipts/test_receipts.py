"""A receipt of a real run verifies; whatever differs from what was signed is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.actions.messages import post_message
from harness.errors import Conflict, NotFound
from providers.scripted import call, reply
from receipts.actions.receipts import make_receipt, without_words
from receipts.signing import current_key
from receipts.verifying import (
    Refused,
    canonical,
    commitment_of,
    fingerprint,
    link,
    main,
    public_key,
    redacted,
    root_of,
    start_of,
    verify,
    verify_files,
)
from tests.conversations.conftest import converse, environment, make_agent, rested
from tests.properties import examples

__all__ = ["converse", "environment", "make_agent"]


# --- of a real run --------------------------------------------------------------------------------


@pytest.fixture
def worked(alice, converse):
    conversation, _script = converse(
        [
            reply(call("write_file", path="plan.txt", content="secret plan")),
            "It is written.",
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Write my plan")
    return rested(conversation)


@pytest.mark.django_db(transaction=True)
def test_a_receipt_of_a_real_run_verifies_and_tells_what_happened(alice, worked, tmp_path):
    data = make_receipt(actor=alice, conversation=worked)

    verified = verify(data, public_key(current_key().public_pem.encode()))

    said = verified.statements
    assert (verified.conversation, verified.events) == (worked.uid, worked.last_seq)
    assert verified.redacted == 0
    (effect,) = said["effects"]
    assert (effect["tool"], effect["outcome"]) == ("write_file", "ok")
    assert [file["path"] for file in said["files"]] == ["plan.txt"]
    assert len(said["usage"]) == 2
    assert said["inputs"][0]["by"]["name"] == "alice"
    assert "write_file" in {tool["name"] for tool in said["tools"]}
    verify_files(verified, {"plan.txt": b"secret plan"})
    for swapped in ({"plan.txt": b"another plan"}, {"other.txt": b"secret plan"}):
        with pytest.raises(Refused):
            verify_files(verified, swapped)

    hidden = without_words(data)
    assert b"secret plan" in data
    assert b"secret plan" not in hidden
    assert b"Write my plan" not in hidden
    assert verify(hidden, public_key(current_key().public_pem.encode())).redacted > 0

    # Nothing but the receipt and the key: another process without settings.
    (tmp_path / "receipt.json").write_bytes(hidden)
    (tmp_path / "key.pem").write_text(current_key().public_pem)
    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "receipts.verifying",
            tmp_path / "receipt.json",
            tmp_path / "key.pem",
        ],
        capture_output=True,
        text=True,
        env={},
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (told.returncode, told.stdout.split(":")[0]) == (0, "verified")


@pytest.mark.django_db(transaction=True)
def test_only_its_owner_has_a_receipt_made(alice, bob, mallory, worked, client_of):
    for person in (bob, mallory):
        with pytest.raises(NotFound):
            make_receipt(actor=person, conversation=worked)
        assert client_of(person).get(f"/c/{worked.uid}/receipt/").status_code == 404
        assert client_of(person).get(f"/c/{worked.uid}/receipt/file/").status_code == 404
    page = client_of(alice).get(f"/c/{worked.uid}/receipt/").content.decode()
    assert current_key().fingerprint in page
    answer = client_of(alice).get(f"/c/{worked.uid}/receipt/file/?words=0")
    key = client_of(alice).get("/receipts/key/").content
    assert verify(answer.content, public_key(key)).conversation == worked.uid


@pytest.mark.django_db(transaction=True)
def test_none_is_made_while_it_works(alice, worked):
    type(worked).objects.filter(pk=worked.pk).update(status="running")

    with pytest.raises(Conflict):
        make_receipt(actor=alice, conversation=worked)


@pytest.mark.django_db(transaction=True)
def test_it_is_made_and_checked_from_the_command_line(alice, worked, tmp_path, capsys):
    def agent(*words: str) -> str:
        call_command("agent", "receipt", *words)
        return str(capsys.readouterr().out)

    receipt, key = tmp_path / "r.json", tmp_path / "k.pem"
    receipt.write_text(agent("make", worked.uid, "--user", "alice"))
    key.write_text(agent("key"))

    assert agent("verify", str(receipt), str(key)).startswith("verified: ")
    receipt.write_text(agent("redact", str(receipt)))
    assert agent("verify", str(receipt), str(key)).startswith("verified: ")
    receipt.write_text(receipt.read_text().replace('"events":', '"eventz":', 1))
    with pytest.raises(SystemExit) as ended:
        agent("verify", str(receipt), str(key))
    assert ended.value.code == 1
    with pytest.raises(CommandError):
        agent("redact", str(receipt))


# --- whatever differs -----------------------------------------------------------------------------

PRIVATE = Ed25519PrivateKey.generate()
PUBLIC = PRIVATE.public_key()


def made(events: list[Any], statements: dict[str, Any], key: Ed25519PrivateKey = PRIVATE) -> bytes:
    """A receipt as the server signs it, without a server."""
    leaves = [{"salt": f"{n:032x}", "value": event} for n, event in enumerate(events)]
    said = {name: {"salt": name, "value": value} for name, value in statements.items()}
    chain = start_of("sesn_1")
    for number, leaf in enumerate(leaves, start=1):
        chain = link(chain, number, commitment_of(leaf["salt"], leaf["value"]))
    head = {
        "format": "agentsite-receipt/1",
        "conversation": "sesn_1",
        "made_at": "2026-01-02",
        "key": fingerprint(key.public_key()),
        "events": len(leaves),
        "chain": chain,
        "statements": root_of(
            {name: commitment_of(leaf["salt"], leaf["value"]) for name, leaf in said.items()}
        ),
    }
    whole = {"head": head, "events": leaves, "statements": said}
    return canonical({**whole, "signature": key.sign(canonical(head)).hex()})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
receipts = st.builds(
    made,
    st.lists(
        st.fixed_dictionaries({"type": st.sampled_from(["a", "b"]), "is": values}),
        min_size=2,
        max_size=6,
    ),
    st.dictionaries(st.sampled_from(["files", "usage", "agent"]), values, min_size=1),
)


def refused(data: bytes, key: Ed25519PublicKey = PUBLIC) -> bool:
    try:
        verify(data, key)
    except Refused:
        return True
    return False


@given(data=receipts)
def test_what_was_signed_verifies_whole_and_redacted(data):
    assert verify(data, PUBLIC).redacted == 0
    less = redacted(data, events=lambda event: event["type"] == "a", statements=["files", "none"])
    whole = json.loads(data)
    hidden = sum(leaf["value"]["type"] == "a" for leaf in whole["events"])

    assert verify(less, PUBLIC).redacted == hidden + ("files" in whole["statements"])
    assert redacted(less, events=lambda _event: False) == less


@settings(max_examples=examples(200))
@given(data=receipts, place=st.integers(min_value=0), bit=st.integers(0, 7), less=st.booleans())
def test_a_flipped_bit_anywhere_is_refused(data, place, bit, less):
    if less:
        data = redacted(data, events=lambda event: event["type"] == "a")
    flipped = bytearray(data)
    flipped[place % len(data)] ^= 1 << bit

    assert refused(bytes(flipped))


def changed(data: bytes, change: Callable[[Any], None]) -> bytes:
    receipt = json.loads(data)
    change(receipt)
    return canonical(receipt)


@given(data=receipts, choose=st.randoms(use_true_random=False))
def test_a_dropped_reordered_repeated_or_added_event_is_refused(data, choose):
    count = len(json.loads(data)["events"])
    one, other = choose.sample(range(count), 2)

    def swap(receipt: Any) -> None:
        events = receipt["events"]
        events[one], events[other] = events[other], events[one]

    def repeat(receipt: Any) -> None:
        receipt["events"][one] = receipt["events"][other]

    def drop(receipt: Any) -> None:
        del receipt["events"][one]

    def drop_and_count(receipt: Any) -> None:
        del receipt["events"][one]
        receipt["head"]["events"] -= 1

    def add(receipt: Any) -> None:
        receipt["events"].append({"salt": "", "value": {}})

    for change in (swap, repeat, drop, drop_and_count, add):
        assert refused(changed(data, change))


@given(data=receipts, value=values)
def test_a_swapped_value_statement_or_salt_is_refused(data, value):
    whole = json.loads(data)
    name = next(iter(whole["statements"]))

    def swap_event(receipt: Any) -> None:
        receipt["events"][0]["value"] = {"is": value, "was": 1}

    def swap_statement(receipt: Any) -> None:
        receipt["statements"][name]["value"] = [whole["statements"][name]["value"]]

    def swap_salt(receipt: Any) -> None:
        receipt["events"][0]["salt"] = "ff" * 16

    def drop_statement(receipt: Any) -> None:
        del receipt["statements"][name]

    for change in (swap_event, swap_statement, swap_salt, drop_statement):
        assert refused(changed(data, change))


@given(data=receipts)
def test_another_servers_key_is_refused_also_where_it_signed_anew(data):
    other = Ed25519PrivateKey.generate()
    whole = json.loads(data)
    head = {**whole["head"], "key": fingerprint(other.public_key())}
    forged = canonical({**whole, "head": head, "signature": other.sign(canonical(head)).hex()})
    posing = canonical({**whole, "signature": other.sign(canonical(whole["head"])).hex()})

    assert refused(data, other.public_key())
    assert refused(forged)
    assert refused(posing)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"head":1}', b"[" * 990 + b"]" * 990, b"9" * 5_000],
)
def test_what_is_no_receipt_is_refused(data, tmp_path):
    assert refused(data)
    (tmp_path / "r").write_bytes(data)
    (tmp_path / "k").write_bytes(
        PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    assert main([str(tmp_path / "r"), str(tmp_path / "k")]) == 1
    assert main([str(tmp_path / "r"), str(tmp_path / "r")]) == 1
    assert main([]) == 2
