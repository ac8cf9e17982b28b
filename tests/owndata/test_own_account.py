"""A person deletes her own account: closed at once, then all that is hers, and nothing of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.db.models.signals import post_delete
from django.test import Client
from django.urls import reverse

from accounts import leaving
from accounts.actions.members import add_member
from accounts.actions.own_account import delete_closed, delete_own_account
from accounts.actions.people import delete_account, save_account
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.adapters import AccountAdapter
from accounts.leaving import Part, clear_with
from accounts.models import ApiToken, Membership, Organisation, Role, TokenScope, User
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from conversations.actions.messages import post_message
from conversations.actions.stored_files import store_file
from conversations.models import Conversation, Removal, StoredFile
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from providers.scripted import Hold, reply, say
from spending.models import Usage
from tests.cast import PASSWORD, ClientOf, join, make_user
from tests.conversations.conftest import Converse, rested, still, types, until
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db
Store = Callable[[User, User], None]
DELETE = "/settings/data/delete/"


@pytest.fixture
def bobs_too(alice: User, bob: User, acme: Organisation) -> Organisation:
    """Acme, which bob owns as well."""
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.OWNER)
    return acme


def gone(user: User) -> bool:
    return not User.objects.filter(pk=user.pk).exists()


def agents_of(user: User, organisation: Organisation) -> list[Agent]:
    """A private one, and one that she shared, with a draft of its next version."""
    made = []
    for name, private in (("Mine", True), ("Ours", False)):
        agent = Agent.objects.create(
            name=name, organisation=organisation, owner=user, private=private
        )
        agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config={})
        agent.save()
        made.append(agent)
    AgentVersion.objects.create(agent=made[1], number=2, stored_config={}, draft=True)
    return made


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Callable[[Part], None]:
    """Registers one of another app, for this test."""
    monkeypatch.setattr(leaving, "_parts", dict(leaving._parts))
    return partial(clear_with, "another")


def pieces_until(happens: Callable[[], object]) -> Iterator[bytes]:
    yield b"be"
    happens()
    yield b"gun"


def sure(client: Client) -> Client:
    """Who has just given her password again."""
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    return client


@pytest.mark.django_db(transaction=True)
def test_an_account_goes_with_all_that_is_hers_and_nothing_of_others(
    alice: User,
    bob: User,
    bobs_too: Organisation,
    converse: Converse,
    settings: LazySettings,
):
    hers, _script = converse([reply(say("Yes."))])
    post_message(actor=alice, conversation=hers, text="Is it so?")
    rested(hers)
    folder = workspace_for(hers.uid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.txt").write_text("mine")
    private, shared = agents_of(alice, bobs_too)
    his = Conversation.objects.create(
        organisation=bobs_too,
        owner=bob,
        agent_version=hers.agent_version,
        environment=hers.environment,
        asked_by=alice,
    )
    own = Organisation.objects.create(name="Alone", slug="alone", personal_of=alice)
    Membership.objects.create(user=alice, organisation=own, role=Role.OWNER)
    robot = create_service_account(actor=alice, organisation=own, name="robot")
    spent = Usage.objects.filter(organisation=bobs_too).count()

    upload = store_file(
        actor=alice,
        organisation=bobs_too,
        filename="a.txt",
        mime_type="text/plain",
        chunks=[b"mine"],
    )
    stored = Path(settings.AGENTSITE_DATA_DIR)
    assert list(stored.rglob(upload.uid))

    delete_own_account(actor=alice, typed=alice.username)
    still()
    delete_closed()

    assert gone(alice)
    assert not Conversation.objects.filter(pk=hers.pk).exists()
    assert not folder.exists()
    assert not list(stored.rglob(upload.uid))
    assert not Removal.objects.exists()
    assert not Organisation.objects.filter(pk=own.pk).exists()
    assert gone(robot)
    assert list(Agent.objects.filter(pk__in=[private.pk, shared.pk])) == [shared]
    assert list(shared.versions.values_list("number", flat=True)) == [1]
    assert Conversation.objects.filter(pk=his.pk).exists()
    assert Usage.objects.filter(organisation=bobs_too, user=None).count() == spent > 0
    (entry,) = AuditEntry.objects.filter(action="account_deleted")
    assert (entry.actor, entry.actor_name, entry.details["username"]) == (None, "alice", "alice")


def test_the_account_opens_nothing_from_the_moment_on(
    alice: User, bobs_too: Organisation, client_of: ClientOf
):
    elsewhere = client_of(alice)
    secret = create_token(
        actor=alice,
        organisation=bobs_too,
        name="script",
        scopes=[TokenScope.CONVERSATIONS_READ],
    ).secret
    bearer: dict[str, Any] = {"headers": {"Authorization": f"Bearer {secret}"}}
    assert Client().get("/api/conversations", **bearer).status_code == 200
    delete_own_account(actor=alice, typed="alice")
    assert not gone(alice)  # what is hers is deleted behind it
    assert elsewhere.get("/").status_code == 302
    assert Client().get("/api/conversations", **bearer).status_code == 401
    assert not ApiToken.objects.filter(user=alice, revoked_at=None).exists()
    assert not Client().login(username="alice", password=PASSWORD)


@pytest.mark.django_db(transaction=True)
def test_what_is_at_work_is_stopped_first_and_its_spending_counted(
    alice: User, bobs_too: Organisation, converse: Converse
):
    hold = Hold()
    hers, _script = converse([reply(hold, say("Yes."))])
    post_message(actor=alice, conversation=hers, text="Is it so?")
    until(hold.reached.is_set)
    delete_own_account(actor=alice, typed="alice")
    until(lambda: "user.interrupt" in types(hers) or not Conversation.objects.filter(pk=hers.pk))
    still()
    delete_closed()
    assert gone(alice)
    assert Usage.objects.get().user is None


def test_a_process_that_dies_in_the_midst_leaves_the_rest_to_the_next(
    alice: User, bobs_too: Organisation, converse: Converse
):
    for _ in range(3):
        converse()
    delete_own_account(actor=alice, typed="alice")
    first = Conversation.objects.filter(owner=alice).first()
    assert first is not None
    first.delete()  # and then it died
    delete_closed()
    assert gone(alice)
    delete_closed()


def test_an_account_that_a_superuser_opens_again_stays(
    alice: User, bobs_too: Organisation, converse: Converse
):
    hers, _script = converse()
    delete_own_account(actor=alice, typed="alice")
    User.objects.filter(pk=alice.pk).update(is_active=True)
    delete_closed()
    assert not gone(alice)
    assert Conversation.objects.filter(pk=hers.pk).exists()


def by_staff(staff: User, account: User) -> None:
    save_account(actor=staff, user=account, changed=["is_active"])


def past_staff(staff: User, account: User) -> None:
    User.objects.filter(pk=account.pk).update(is_active=account.is_active)


@pytest.mark.parametrize("store", [by_staff, past_staff])
def test_an_account_that_was_opened_again_and_is_closed_for_another_reason_stays(
    alice: User, bobs_too: Organisation, staff: User, converse: Converse, store: Store
):
    hers, _script = converse()
    delete_own_account(actor=alice, typed="alice")
    for opened in (True, False):
        alice.refresh_from_db()
        alice.is_active = opened
        store(staff, alice)
        delete_closed()
        assert not gone(alice)
    assert Conversation.objects.filter(pk=hers.pk).exists()


def test_an_upload_that_ends_after_its_account_was_closed_is_not_kept(
    alice: User, bobs_too: Organisation, settings: LazySettings, tmp_path: Path
):
    settings.AGENTSITE_FILES_DIR = tmp_path
    closed = User.objects.get(pk=alice.pk)
    with pytest.raises(NotFound):
        store_file(
            actor=alice,
            organisation=bobs_too,
            filename="a.txt",
            mime_type="text/plain",
            chunks=pieces_until(lambda: delete_own_account(actor=closed, typed="alice")),
        )
    assert not StoredFile.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_upload_that_ends_after_its_account_is_gone_is_not_kept(
    alice: User, bobs_too: Organisation, staff: User, settings: LazySettings, tmp_path: Path
):
    settings.AGENTSITE_FILES_DIR = tmp_path
    deleted = User.objects.get(pk=alice.pk)
    with pytest.raises(NotFound):
        store_file(
            actor=alice,
            organisation=bobs_too,
            filename="a.txt",
            mime_type="text/plain",
            chunks=pieces_until(lambda: delete_account(actor=staff, user=deleted)),
        )
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_comes_in_after_the_clearing_is_cleared_first(
    alice: User,
    bobs_too: Organisation,
    converse: Converse,
    part: Callable[[Part], None],
):
    made: list[Conversation] = []

    def begins_one(user: User) -> bool:
        """The last of the parts to be asked."""
        if not made:
            made.append(converse()[0])
        return False

    part(Part(clear=lambda _user: 0, left=begins_one))
    delete_own_account(actor=alice, typed="alice")
    delete_closed()
    assert made
    assert not gone(alice)
    assert Conversation.objects.filter(pk=made[0].pk).exists()
    delete_closed()
    assert gone(alice)
    assert not Conversation.objects.filter(pk=made[0].pk).exists()


def test_a_superuser_deletes_what_nobody_else_was_shown_as_well(
    alice: User, bobs_too: Organisation, staff: User, converse: Converse
):
    private, shared = agents_of(alice, bobs_too)
    hers, _script = converse()
    Conversation.objects.filter(pk=hers.pk).update(agent_version=private.current)
    delete_account(actor=staff, user=alice)
    assert gone(alice)
    assert not Conversation.objects.filter(pk=hers.pk).exists()
    assert list(Agent.objects.filter(pk__in=[private.pk, shared.pk])) == [shared]
    assert list(shared.versions.values_list("number", flat=True)) == [1]


@pytest.mark.parametrize("typed", ["", "Alice", "bob", "alice2"])
def test_another_name_deletes_nothing(alice: User, bobs_too: Organisation, typed: str):
    with pytest.raises(Invalid):
        delete_own_account(actor=alice, typed=typed)
    alice.refresh_from_db()
    assert alice.is_active
    assert not AuditEntry.objects.filter(action="account_deleted").exists()


def test_nobody_leaves_others_an_organisation_without_an_owner(
    alice: User, bob: User, acme: Organisation, client_of: ClientOf
):
    with pytest.raises(Conflict, match="Acme"):
        delete_own_account(actor=alice, typed="alice")
    page = sure(client_of(alice)).get(DELETE).content.decode()
    assert "Acme" in page
    assert 'name="username"' not in page
    bob.is_active = False
    bob.save()
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.OWNER)
    with pytest.raises(Conflict):  # he is closed, and owns nothing by that
        delete_own_account(actor=alice, typed="alice")


def test_service_accounts_of_an_organisation_that_goes_end_with_her(
    alice: User, bobs_too: Organisation
):
    own = Organisation.objects.create(name="Alone", slug="alone")
    Membership.objects.create(user=alice, organisation=own, role=Role.OWNER)
    robot = create_service_account(actor=alice, organisation=own, name="robot")
    secret = create_token(
        actor=alice,
        organisation=own,
        user=robot,
        name="script",
        scopes=[TokenScope.CONVERSATIONS_READ],
    ).secret
    bearer: dict[str, Any] = {"headers": {"Authorization": f"Bearer {secret}"}}
    assert Client().get("/api/conversations", **bearer).status_code == 200
    delete_own_account(actor=alice, typed="alice")
    assert Client().get("/api/conversations", **bearer).status_code == 401
    robot.refresh_from_db()
    assert not robot.is_active


def test_a_superuser_leaves_where_there_is_another(alice: User, bobs_too: Organisation):
    other = User.objects.create_user("operator", is_superuser=True)
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    alice.refresh_from_db()
    delete_own_account(actor=alice, typed="alice")
    delete_closed()
    assert gone(alice)
    assert not gone(other)


def test_a_member_leaves_at_any_time(bob: User, acme: Organisation):
    delete_own_account(actor=bob, typed="bob")
    delete_closed()
    assert gone(bob)
    assert Organisation.objects.filter(pk=acme.pk).exists()


def test_an_organisation_that_is_not_hers_stays_though_nobody_else_is_there(
    bob: User, acme: Organisation, alice: User
):
    Membership.objects.filter(user=alice, organisation=acme).delete()
    delete_own_account(actor=bob, typed="bob")
    delete_closed()
    assert gone(bob)
    assert Organisation.objects.filter(pk=acme.pk).exists()


def test_somebody_who_joined_meanwhile_keeps_the_organisation(
    alice: User, mallory: User, staff: User, bobs_too: Organisation
):
    own = Organisation.objects.create(name="Alone", slug="alone")
    Membership.objects.create(user=alice, organisation=own, role=Role.OWNER)
    delete_own_account(actor=alice, typed="alice")
    add_member(actor=staff, organisation=own, user=mallory)
    delete_closed()
    assert gone(alice)
    assert Organisation.objects.filter(pk=own.pk).exists()


def test_an_account_that_cannot_be_cleared_blocks_no_other(
    alice: User, bob: User, mallory: User, bobs_too: Organisation, part: Callable[[Part], None]
):
    def fails(user: User) -> int:
        if user == alice:
            raise OSError("the disk is gone")
        return 0

    part(Part(clear=fails, left=lambda _user: False))
    join(mallory, bobs_too, Role.OWNER)
    delete_own_account(actor=alice, typed="alice")
    delete_own_account(actor=bob, typed="bob")
    delete_closed()
    assert gone(bob)
    assert not gone(alice)


def test_accounts_that_are_never_at_rest_keep_no_other_waiting(
    bob: User, acme: Organisation, part: Callable[[Part], None]
):
    part(Part(clear=lambda _user: 0, left=lambda user: user != bob))
    for number in range(30):
        busy = make_user(f"busy{number}")
        delete_own_account(actor=busy, typed=busy.username)
    delete_own_account(actor=bob, typed="bob")
    delete_closed()
    assert gone(bob)


@pytest.fixture
def alone(alice: User) -> Organisation:
    """Nobody but alice belongs to it."""
    made = Organisation.objects.create(name="Alone", slug="alone")
    Membership.objects.create(user=alice, organisation=made, role=Role.OWNER)
    return made


@pytest.fixture
def at_the_first_deletion() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Something happens once the first conversation is deleted."""
    waiting: list[Callable[[], object]] = []

    def happen(**_kwargs: Any) -> None:
        if waiting:
            waiting.pop()()

    post_delete.connect(happen, sender=Conversation)
    yield waiting.append
    post_delete.disconnect(happen, sender=Conversation)


def test_who_joins_while_it_is_cleared_keeps_what_she_makes_there(
    alice: User,
    mallory: User,
    staff: User,
    bobs_too: Organisation,
    alone: Organisation,
    converse: Converse,
    at_the_first_deletion: Callable[[Callable[[], object]], None],
):
    of_alice = [converse()[0] for _ in range(2)]
    Conversation.objects.update(organisation=alone)
    made: list[Conversation] = []

    def joins() -> None:
        add_member(actor=staff, organisation=alone, user=mallory)
        made.append(converse()[0])
        Conversation.objects.filter(pk=made[0].pk).update(owner=mallory, organisation=alone)

    at_the_first_deletion(joins)
    delete_own_account(actor=alice, typed="alice")
    delete_closed()
    assert gone(alice)
    assert not Conversation.objects.filter(pk__in=[each.pk for each in of_alice]).exists()
    assert Organisation.objects.filter(pk=alone.pk).exists()
    assert Conversation.objects.filter(pk=made[0].pk).exists()


def test_who_comes_back_while_it_is_cleared_keeps_what_is_left_of_hers(
    alice: User,
    mallory: User,
    staff: User,
    bobs_too: Organisation,
    alone: Organisation,
    converse: Converse,
    at_the_first_deletion: Callable[[Callable[[], object]], None],
):
    once, again = converse()[0], converse()[0]
    Conversation.objects.update(owner=mallory, organisation=alone)
    file = StoredFile.objects.create(
        owner=mallory, organisation=alone, filename="a.txt", size=4, sha256=""
    )
    at_the_first_deletion(lambda: add_member(actor=staff, organisation=alone, user=mallory))
    delete_own_account(actor=alice, typed="alice")
    delete_closed()
    assert gone(alice)
    assert not Conversation.objects.filter(pk=once.pk).exists()
    assert Conversation.objects.filter(pk=again.pk).exists()
    assert not StoredFile.objects.filter(pk=file.pk).exists()


def test_an_account_that_is_opened_while_it_is_cleared_keeps_what_is_left(
    alice: User,
    staff: User,
    bobs_too: Organisation,
    converse: Converse,
    at_the_first_deletion: Callable[[Callable[[], object]], None],
):
    first, second = converse()[0], converse()[0]

    def opens() -> None:
        alice.refresh_from_db()
        alice.is_active = True
        save_account(actor=staff, user=alice, changed=["is_active"])

    at_the_first_deletion(opens)
    delete_own_account(actor=alice, typed="alice")
    delete_closed()
    assert not gone(alice)
    assert list(Conversation.objects.filter(pk__in=[first.pk, second.pk])) == [second]


def test_the_last_superuser_stays(staff: User):
    User.objects.exclude(pk=staff.pk).update(is_superuser=False)
    User.objects.filter(pk=staff.pk).update(is_superuser=True)
    staff.refresh_from_db()
    with pytest.raises(Conflict, match="last superuser"):
        delete_own_account(actor=staff, typed=staff.username)


def test_a_service_account_and_a_site_that_keeps_accounts_delete_none(
    alice: User, acme: Organisation, settings: LazySettings, client_of: ClientOf
):
    robot = create_service_account(actor=alice, organisation=acme, name="robot")
    with pytest.raises(Forbidden):
        delete_own_account(actor=robot, typed=robot.username)
    settings.AGENTSITE_OWN_ACCOUNT_DELETION = False
    with pytest.raises(Forbidden):
        delete_own_account(actor=alice, typed="alice")
    client = sure(client_of(alice))
    assert DELETE not in client.get("/settings/data/").content.decode()
    assert client.post(DELETE, {"username": "alice"}).status_code == 403


def test_the_page_asks_for_the_password_says_what_goes_and_signs_out(
    alice: User, bobs_too: Organisation, client_of: ClientOf, settings: LazySettings
):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    client = client_of(alice)
    for answer in (client.get(DELETE), client.post(DELETE, {"username": "alice"})):
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_reauthenticate"))
    sure(client)
    assert "What goes" in client.get(DELETE).content.decode()
    wrong = client.post(DELETE, {"username": "bob"})
    assert wrong.status_code == 422
    assert "This is not your user name." in wrong.content.decode()
    assert User.objects.get(pk=alice.pk).is_active
    done = client.post(DELETE, {"username": "alice"})
    assert "Your account is deleted" in done.content.decode()
    assert client.get("/").status_code == 302
    assert not User.objects.get(pk=alice.pk).is_active


def test_it_is_told_by_mail(
    alice: User,
    bobs_too: Organisation,
    settings: LazySettings,
    django_capture_on_commit_callbacks: Any,
):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    with django_capture_on_commit_callbacks(execute=True):
        delete_own_account(actor=alice, typed="alice")
    assert [(each.to, each.subject) for each in mail.outbox] == [
        ([alice.email], "Your account is deleted")
    ]


def test_a_stranger_is_sent_to_sign_in_and_nobody_is_deleted(alice: User, mallory: User):
    answer = Client().post(DELETE, {"username": "alice"})
    assert answer.status_code == 302
    assert "/accounts/login/" in answer["Location"]
    with pytest.raises(Invalid):
        delete_own_account(actor=mallory, typed="alice")
    assert User.objects.filter(pk=alice.pk, is_active=True, deleting_since=None).exists()


def test_who_was_closed_meanwhile_deletes_nothing_any_more(
    alice: User, bobs_too: Organisation, staff: User, converse: Converse
):
    hers, _script = converse()
    read_before = User.objects.get(pk=alice.pk)
    alice.is_active = False
    save_account(actor=staff, user=alice, changed=["is_active"])
    with pytest.raises(Forbidden):
        delete_own_account(actor=read_before, typed="alice")
    delete_closed()
    assert not gone(alice)
    assert Conversation.objects.filter(pk=hers.pk).exists()


def test_of_two_requests_at_once_one_deletes(alice: User, bobs_too: Organisation):
    again = User.objects.get(pk=alice.pk)
    delete_own_account(actor=alice, typed="alice")
    since = User.objects.get(pk=alice.pk).deleting_since
    with pytest.raises(Forbidden):
        delete_own_account(actor=again, typed="alice")
    assert User.objects.get(pk=alice.pk).deleting_since == since
    assert AuditEntry.objects.filter(action="account_deleted").count() == 1


def renames(_staff: User, read_before: User) -> None:
    read_before.first_name = "Alice"
    save_account(actor=_staff, user=read_before, changed=["first_name"])


def changes_her_password(_staff: User, read_before: User) -> None:
    AccountAdapter().set_password(read_before, "another of her passwords")


@pytest.mark.parametrize("writes", [renames, changes_her_password])
def test_what_is_written_of_an_account_as_it_was_before_does_not_open_it_again(
    alice: User,
    bobs_too: Organisation,
    staff: User,
    writes: Callable[[User, User], None],
):
    read_before = User.objects.get(pk=alice.pk)
    delete_own_account(actor=alice, typed="alice")
    writes(staff, read_before)
    alice.refresh_from_db()
    assert not alice.is_active
    assert alice.deleting_since is not None
    delete_closed()
    assert gone(alice)


def test_what_staff_write_of_an_account_that_is_gone_brings_it_not_back(
    alice: User, bobs_too: Organisation, staff: User
):
    read_before = User.objects.get(pk=alice.pk)
    delete_account(actor=staff, user=alice)
    with pytest.raises(NotFound):
        renames(staff, read_before)
    assert gone(read_before)


def test_a_conversation_that_cannot_be_deleted_keeps_none_of_the_others(
    alice: User, bobs_too: Organisation, converse: Converse
):
    stuck, *others = (converse()[0] for _ in range(4))

    def fails(instance: Conversation, **_kwargs: Any) -> None:
        if instance.pk == stuck.pk:
            raise OSError("it cannot be deleted now")

    post_delete.connect(fails, sender=Conversation)
    try:
        delete_own_account(actor=alice, typed="alice")
        delete_closed()
    finally:
        post_delete.disconnect(fails, sender=Conversation)
    assert not gone(alice)
    assert list(Conversation.objects.filter(owner=alice)) == [stuck]
    delete_closed()
    assert gone(alice)
    assert not Conversation.objects.filter(pk__in=[each.pk for each in others]).exists()
