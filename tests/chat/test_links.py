"""Links show a conversation as it stood, without secrets, for as long as they are to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actions.members import remove_member
from accounts.models import Membership, Organisation, Role, User
from audit.models import AuditEntry
from chat.views import links as views
from conversations.log import append
from conversations.models import Conversation, Link
from harness.content import Text
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    InputTaken,
    MessageEdited,
    Rewound,
    UserMessage,
)
from harness.history import Entry
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db
KEY = "sk-abcdefghijklmnopqrstuvwx"


def said(conversation: Conversation, text: str, answer: str, actor: User | None = None) -> int:
    """A turn as a run leaves it; the number before it."""
    before = Conversation.objects.get(pk=conversation.pk).last_seq
    message = Entry.of(UserMessage(content=(Text(text=text),)))
    append(conversation.pk, [message], actor=actor or conversation.owner)
    use = Entry.of(AgentToolUse(name="bash", input={"command": f"echo {KEY} one-argument"}))
    result = AgentToolResult(tool_use_id=use.uid, content=(Text(text="one-result"),))
    append(
        conversation.pk,
        [
            Entry.of(InputTaken(event_ids=(message.uid,))),
            use,
            Entry.of(result),
            Entry.of(AgentMessage(content=(Text(text=answer),))),
        ],
    )
    return before


@pytest.fixture
def conversation(converse: Converse) -> Conversation:
    conversation, _script = converse()
    Conversation.objects.filter(pk=conversation.pk).update(title=f"About {KEY}")
    said(conversation, f"My key is {KEY}, mind it", "**Understood**")
    return Conversation.objects.get(pk=conversation.pk)


def made(client: Client, conversation: Conversation, **form: str) -> str:
    """The path of a new link, as its form makes it."""
    page = client.post(
        f"/c/{conversation.uid}/link/", {"days": "30", "readers": "everybody", **form}
    )
    content = page.content.decode()
    assert page.status_code == 200, content
    return "/" + content.split('value="http://testserver/')[1].split('"')[0]


def test_a_link_shows_what_was_said_up_to_then_to_anybody_and_nothing_else(
    alice: User, conversation: Conversation, client_of: ClientOf
) -> None:
    path = made(client_of(alice), conversation)
    secret = path.split("/")[2]
    assert not Link.objects.filter(token_hash=secret).exists()
    before = said(conversation, "Later words", "Later answer")
    append(conversation.pk, [Entry.of(Rewound(behind=before))], actor=alice)
    row = conversation.events.get(type="user.message", seq__lt=before)
    edited = MessageEdited(event_id=row.uid, content=(Text(text="Changed later"),))
    append(conversation.pk, [Entry.of(edited)], actor=alice)

    answer = Client().get(path)

    shown = answer.content.decode()
    assert answer.status_code == 200
    assert "mind it" in shown
    assert "<strong>Understood</strong>" in shown
    assert "bash" in shown
    for hidden in (
        KEY, "Later", "Changed", "one-argument", "one-result", "alice", conversation.uid, "Scripted",
        "<script", "Agentsite",
    ):  # fmt: skip
        assert hidden not in shown, hidden
    assert not answer.cookies
    assert "Cookie" not in answer.headers.get("Vary", "")
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "noindex" in answer["X-Robots-Tag"]
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]

    with_details = Client().get(made(client_of(alice), conversation, details="1"))
    shown = with_details.content.decode()
    assert "one-argument" in shown
    assert "one-result" in shown
    assert KEY not in shown


def test_a_link_ends_when_it_is_revoked_when_its_time_is_over_and_when_its_owner_leaves(
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    conversation: Conversation,
    client_of: ClientOf,
    settings,
) -> None:
    path = made(client_of(alice), conversation)
    link = Link.objects.get()
    revoke = f"/settings/links/{link.uid}/revoke/"
    for who in (bob, mallory):
        assert client_of(who).post(revoke).status_code == 404
        assert link.uid not in client_of(who).get("/settings/links/").content.decode()
        assert client_of(who).post(f"/c/{conversation.uid}/link/").status_code == 404
    assert Client().get(path).status_code == 200

    settings.AGENTSITE_PUBLIC_LINKS = False
    assert Client().get(path).status_code == 404
    refused = client_of(alice).post(
        f"/c/{conversation.uid}/link/", {"days": "1", "readers": "everybody"}
    )
    assert refused.status_code == 422
    settings.AGENTSITE_PUBLIC_LINKS = True

    # Her organisation's owners see and end it.
    ada = make_user("ada")
    join(ada, acme, Role.OWNER)
    assert link.uid in client_of(ada).get("/settings/links/").content.decode()
    assert client_of(ada).post(revoke).status_code == 302
    assert Client().get(path).status_code == 404
    assert {"link_made", "link_revoked"} <= set(AuditEntry.objects.values_list("action", flat=True))

    second = made(client_of(alice), conversation)
    Link.objects.filter(revoked_at=None).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(second).status_code == 404
    third = made(client_of(alice), conversation)
    assert Client().get(third).status_code == 200
    remove_member(actor=ada, membership=Membership.objects.get(user=alice, organisation=acme))
    assert Client().get(third).status_code == 404
    assert Client().get("/shared/nobody-was-given-this/").status_code == 404


def test_the_dialog_of_sharing_tells_of_links_that_open_and_leads_to_where_they_are_revoked(
    alice: User, client_of: ClientOf, conversation: Conversation
):
    client = client_of(alice)
    place = f"/c/{conversation.uid}/share/"
    assert "/settings/links/" not in client.get(place).content.decode()
    made(client, conversation)
    html = client.get(place).content.decode()
    assert "1 link opens it" in html
    assert 'href="/settings/links/"' in html
    client.post(f"/settings/links/{Link.objects.get().uid}/revoke/")
    assert "1 link opens it" not in client.get(place).content.decode()


def test_a_link_for_members_opens_for_them_alone_and_asks_strangers_to_sign_in(
    alice: User, bob: User, mallory: User, conversation: Conversation, client_of: ClientOf
) -> None:
    path = made(client_of(alice), conversation, readers="members")
    assert Client().get(path)["Location"].startswith("/accounts/login/")
    assert client_of(mallory).get(path).status_code == 404
    assert "mind it" in client_of(bob).get(path).content.decode()
    assert client_of(bob).get(f"/c/{conversation.uid}/").status_code == 404


def test_no_link_opens_for_longer_than_a_year_and_no_address_opens_many_a_minute(
    alice: User, conversation: Conversation, client_of: ClientOf, monkeypatch
) -> None:
    for days in ("366", "0", "x", "", "-1"):
        form = {"days": days, "readers": "members"}
        refused = client_of(alice).post(f"/c/{conversation.uid}/link/", form)
        assert refused.status_code == 422
    assert not Link.objects.exists()

    monkeypatch.setattr(views, "A_MINUTE", 3)
    # Not across the end of a minute.
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    statuses = [Client().get("/shared/guessed-token-of-some-length/").status_code for _ in range(5)]
    assert statuses == [404, 404, 404, 429, 429]


def test_a_link_shows_the_title_that_the_conversation_had_then(
    alice: User, conversation: Conversation, client: Client, client_of: ClientOf
) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(title="Plans")
    path = made(client_of(alice), Conversation.objects.get(pk=conversation.pk))
    Conversation.objects.filter(pk=conversation.pk).update(title="We let bob go")
    page = client.get(path).content.decode()
    assert "Plans" in page
    assert "bob" not in page
