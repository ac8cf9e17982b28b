"""No limit of each person is multiplied through service accounts: they take their maker's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from accounts.actions.service_accounts import create_service_account, remove_service_account
from accounts.models import Organisation, User
from agents.models import Environment
from audit.models import AuditEntry
from conversations import claims, seats
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.actions.stored_files import remove_expired, store_file
from conversations.models import Conversation, SeatWait, StoredFile
from harness.errors import LimitReached, NotFound, TooMany
from tests.conversations.conftest import MakeAgent
from vaults.actions.credentials import create_credential
from vaults.actions.vaults import archive_vault, create_vault
from vaults.auth import NewAuth, Secrets
from vaults.models import Vault, VaultCredential

pytestmark = pytest.mark.django_db

Robot = Callable[..., User]
Begin = Callable[[User], Conversation]


@pytest.fixture
def robot(alice: User, acme: Organisation) -> Robot:
    def make(name: str, maker: User = alice) -> User:
        return create_service_account(actor=maker, organisation=acme, name=name)

    return make


@pytest.fixture
def begin(acme: Organisation, make_agent: MakeAgent, environment: Environment) -> Begin:
    agent = make_agent()

    def make(owner: User) -> Conversation:
        return create_conversation(
            actor=owner, organisation=acme, agent=agent, environment=environment
        )

    return make


# --- uploads --------------------------------------------------------------------------------------


def upload(who: User, organisation: Organisation, size: int) -> StoredFile:
    return store_file(
        actor=who,
        organisation=organisation,
        filename="a.bin",
        mime_type="application/octet-stream",
        chunks=[b"x" * size],
    )


def test_uploads_of_a_persons_service_accounts_count_with_hers(
    alice: User, bob: User, acme: Organisation, robot: Robot, settings
):
    settings.AGENTSITE_FILES_BYTES = 100
    one, two = robot("One"), robot("Two")
    upload(one, acme, 40)
    upload(two, acme, 40)
    upload(alice, acme, 20)
    for who in (alice, one, two):
        with pytest.raises(LimitReached):
            upload(who, acme, 1)
    upload(bob, acme, 100)
    assert StoredFile.objects.count() == 4


def test_uploads_of_a_removed_service_account_are_gone_and_hers_and_others_are_not(
    alice: User, acme: Organisation, robot: Robot, settings
):
    settings.AGENTSITE_FILES_BYTES = 100
    one, two = robot("One"), robot("Two")
    for who in (one, two, alice):
        upload(who, acme, 30)
    remove_service_account(actor=alice, organisation=acme, account=one)
    upload(alice, acme, 30)
    with pytest.raises(LimitReached):
        upload(alice, acme, 30)
    remove_expired()
    assert set(StoredFile.objects.values_list("owner", flat=True)) == {alice.pk, two.pk}
    held = [path for path in settings.AGENTSITE_FILES_DIR.rglob("file_*") if path.is_file()]
    assert {path.name for path in held} >= set(StoredFile.objects.values_list("uid", flat=True))


def test_an_upload_that_ends_after_its_account_was_removed_is_not_kept(
    alice: User, acme: Organisation, robot: Robot
):
    one = robot("One")

    def chunks() -> Iterator[bytes]:
        yield b"x"
        remove_service_account(actor=alice, organisation=acme, account=one)
        yield b"y"

    with pytest.raises(NotFound):
        store_file(
            actor=one,
            organisation=acme,
            filename="a.bin",
            mime_type="application/octet-stream",
            chunks=chunks(),
        )
    assert not StoredFile.objects.exists()


# --- vaults ---------------------------------------------------------------------------------------


def test_vaults_of_a_persons_service_accounts_count_with_hers(
    alice: User, bob: User, acme: Organisation, robot: Robot, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("vaults.actions.vaults.MOST_VAULTS", 2)
    mine = [alice, robot("One"), robot("Two")]
    vaults = [create_vault(actor=who, organisation=acme, display_name="Keys") for who in mine[:2]]
    for who in mine:
        with pytest.raises(LimitReached):
            create_vault(actor=who, organisation=acme, display_name="One more")
    create_vault(actor=bob, organisation=acme, display_name="His")
    archive_vault(actor=mine[1], vault=vaults[1])
    create_vault(actor=alice, organisation=acme, display_name="In its place")


def test_vaults_of_a_removed_service_account_are_archived_and_hers_and_others_are_not(
    alice: User, acme: Organisation, robot: Robot
):
    one, two = robot("One"), robot("Two")
    for who in (one, two, alice):
        vault = create_vault(actor=who, organisation=acme, display_name="Keys")
        auth = NewAuth(
            VaultCredential.Kind.STATIC_BEARER,
            "https://mcp.example.org/",
            Secrets(token="a-token-that-nobody-guesses"),
        )
        create_credential(actor=who, vault=vault, auth=auth)
    remove_service_account(actor=alice, organisation=acme, account=one)
    assert set(Vault.objects.in_force().values_list("owner", flat=True)) == {alice.pk, two.pk}
    (gone,) = VaultCredential.objects.exclude(archived_at=None)
    assert (gone.vault.owner, gone.sealed) == (one, "")
    told = AuditEntry.objects.filter(action=AuditEntry.Action.VAULT_ARCHIVED).get()
    assert (told.actor, told.details["vault"]) == (alice, gone.vault.uid)


# --- messages -------------------------------------------------------------------------------------


def test_messages_of_a_persons_service_accounts_count_with_hers(
    alice: User, bob: User, robot: Robot, begin: Begin, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 3
    mine = {who: begin(who) for who in (alice, robot("One"), robot("Two"))}
    for who, conversation in mine.items():
        post_message(actor=who, conversation=conversation, text="Go.")
    for who, conversation in mine.items():
        with pytest.raises(TooMany, match="3 messages within a minute"):
            post_message(actor=who, conversation=conversation, text="One too many.")
    post_message(actor=bob, conversation=begin(bob), text="I am not affected.")


def test_messages_of_a_service_account_that_was_removed_count_still(
    alice: User, acme: Organisation, robot: Robot, begin: Begin, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 2
    for name in ("One", "Two"):
        account = robot(name)
        post_message(actor=account, conversation=begin(account), text="Go.")
        remove_service_account(actor=alice, organisation=acme, account=account)
        account.delete()
    with pytest.raises(TooMany, match="2 messages within a minute"):
        post_message(actor=alice, conversation=begin(alice), text="One too many.")


# --- seats ----------------------------------------------------------------------------------------


def test_conversations_of_a_persons_service_accounts_take_her_seats(
    alice: User, bob: User, robot: Robot, begin: Begin, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 2
    one, two = robot("One"), robot("Two")
    runs = [claims.claim(begin(who).pk) for who in (one, two)]
    waiting = [begin(who) for who in (one, alice, two)]
    for conversation in waiting:
        assert claims.claim(conversation.pk) is None
    assert claims.claim(begin(bob).pk) is not None
    assert seats.next_of_all() == []

    assert runs[0] is not None
    claims.release(runs[0])

    assert seats.next_of_all() == [waiting[0].pk]
    assert claims.claim(waiting[1].pk) is None, "the oldest in the line is first, whoever asks"
    assert claims.claim(waiting[0].pk) is not None
    assert seats.next_of_all() == []
    assert SeatWait.objects.count() == 2


def test_a_seat_that_is_free_wakes_whoever_shares_the_place(
    alice: User, robot: Robot, begin: Begin, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    run = claims.claim(begin(robot("One")).pk)
    waiting = begin(alice)
    assert claims.claim(waiting.pk) is None

    assert run is not None
    assert seats.next_after(seats.lock_queue(run.conversation)) == []
    claims.release(run)

    assert seats.next_after(seats.lock_queue(run.conversation)) == [waiting.pk]
