"""Mails begin schedules: of whom the schedule says, each once, by the webhook of a mail service or out of a
mailbox."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from conversations import removals
from conversations.actions.redacting import redact_content
from conversations.models import Event, Removal, StoredFile
from conversations.provenance import TableProvenance
from harness.errors import Conflict, NotFound
from harness.redacted import REMOVED
from reading.mails import Unreadable, read_mail
from schedules import mailbox, running
from schedules.actions.orders import pause_order, renew_address
from schedules.mailintake import take_in
from schedules.models import Arrival, StandingOrder
from tests.cast import ClientOf
from tools_app.workspace import Workspace, workspace_for

from .conftest import MakeOrder, said
from .mailbox_server import MailboxServer
from .test_running import end

SECRET = "the-services-own"


@pytest.fixture(autouse=True)
def mails(settings: LazySettings) -> LazySettings:
    settings.AGENTSITE_INBOUND_MAIL = "agents@in.example.org"
    settings.AGENTSITE_INBOUND_MAIL_SECRET = SECRET
    return settings


@pytest.fixture
def order(make_order: MakeOrder) -> StandingOrder:
    return make_order(
        cron="",
        mail_from=("Anna@Example.org", "@partner.example"),
        messages=(said("Sort this: {{ payload.subject }}\n\n{{ payload.text }}"),),
    )


def written(
    to: str, *, html: str = "", files: dict[str, bytes] | None = None, **heads: Any
) -> bytes:
    message = EmailMessage()
    usual = {
        "From": "Anna <anna@example.org>",
        "To": to,
        "Subject": "An invoice",
        "Message-ID": "<1@example.org>",
    }
    for name, value in {**usual, **{k.replace("_", "-"): v for k, v in heads.items()}}.items():
        if value:
            message[name] = value
    if html:
        message.set_content(html, subtype="html")
    else:
        message.set_content("Please pay 20 euros.")
    for name, data in (files or {}).items():
        message.add_attachment(data, maintype="application", subtype="pdf", filename=name)
    return message.as_bytes()


def refusals(order: StandingOrder) -> list[str]:
    return list(order.arrivals.order_by("pk").values_list("refusal", flat=True))


def begun(order: StandingOrder) -> Event:
    """The message with which its only run began."""
    running.begin_queued()
    run = order.runs.get()
    assert (run.state, run.trigger) == ("started", "mail"), run.words
    return Event.objects.get(conversation=run.conversation, type="user.message")


# --- what a mail begins ---------------------------------------------------------------------------


def test_a_mail_fills_the_message_and_counts_as_a_strangers_words(order: StandingOrder) -> None:
    take_in(written(order.mail_address))
    message = begun(order)
    text = message.payload["content"][0]["text"]
    assert text.strip() == "Sort this: An invoice\n\nPlease pay 20 euros."
    assert message.payload["untrusted_by"] == "a mail"


def test_the_same_mail_begins_one_run_by_whichever_way_and_however_often(
    order: StandingOrder, settings: LazySettings
) -> None:
    mail = written(order.mail_address)
    take_in(mail)
    posted(mail)
    with MailboxServer(b"Received: by another server\r\n" + mail) as box:
        settings.AGENTSITE_IMAP_URL = box.address
        mailbox.look()
    assert order.runs.count() == 1
    assert order.arrivals.count() == 1
    take_in(written(order.mail_address, Message_ID="<2@example.org>"))
    assert order.runs.count() == 2


def test_files_of_a_mail_are_in_the_workspace_and_mark_the_message(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order(cron="", mail_from=("@example.org",), messages=(said("Look."),))
    files = {"../../etc/bill.pdf": b"%PDF", "bill.pdf": b"two"}
    take_in(written(order.mail_address, files=files))
    message = begun(order)
    conversation = order.runs.get().conversation
    assert conversation is not None
    folder = workspace_for(conversation.uid) / "mail"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "1-bill.pdf": b"%PDF",
        "2-bill.pdf": b"two",
    }
    assert message.payload["untrusted_by"] == "a mail", "what came with it is a stranger's"
    foreign = TableProvenance(conversation.pk).foreign()
    entry = Workspace(workspace_for(conversation.uid)).stat("mail/1-bill.pdf")
    assert foreign.about_name(entry) == "mail/1-bill.pdf: it came with a mail", "and so is its name"
    assert StoredFile.objects.filter(owner=alice, expires_at=None).count() == 0


def test_html_is_read_as_what_is_shown(order: StandingOrder) -> None:
    html = "<style>p{}</style><p>One &amp; two</p><script>three</script><p>Four"
    take_in(written(order.mail_address, html=html))
    text = begun(order).payload["content"][0]["text"]
    assert text.endswith("One & two\nFour")


def test_a_mail_is_for_whom_the_service_says_it_is_for(
    order: StandingOrder, settings: LazySettings, make_order: MakeOrder
) -> None:
    hidden = written("list@example.org")
    assert take_in(hidden) == []
    [arrival] = take_in(hidden, [order.mail_address.upper()])
    assert arrival.run is not None
    settings.AGENTSITE_INBOUND_MAIL = "@in.example.org"
    assert order.mail_address == f"{order.mail_key}@in.example.org"
    other = make_order(cron="", mail_from=("@example.org",))
    both = written(f"{order.mail_address}, {other.mail_address}", Message_ID="<3@example.org>")
    assert len(take_in(both)) == 2


# --- what it does not begin -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "refusal"),
    [
        ({"From": "mallory@example.org"}, "sender"),
        ({"From": "anna@example.org, mallory@example.org"}, "sender"),
        ({"From": "anna@partner.example.evil.org"}, "sender"),
        ({"From": "anna@partner.example"}, ""),
        ({"Auto_Submitted": "auto-replied"}, "automatic"),
        ({"Auto_Submitted": "no"}, ""),
        ({"Precedence": "bulk"}, "automatic"),
        ({"List_Id": "<news.example.org>"}, "automatic"),
        ({"Return_Path": "<>"}, "automatic"),
        ({"From": "Agentsite <agentsite@localhost>"}, "ours"),
    ],
)
def test_only_who_may_begins_it_and_no_program_that_answers_by_itself(
    order: StandingOrder, heads: dict[str, Any], refusal: str
) -> None:
    take_in(written(order.mail_address, **heads))
    assert refusals(order) == [refusal]
    assert order.runs.exists() == (refusal == "")


def test_a_schedules_own_address_begins_none(order: StandingOrder) -> None:
    take_in(written(order.mail_address, From=order.mail_address))
    assert refusals(order) == ["ours"]


def test_senders_are_believed_only_if_the_server_that_takes_mails_in_confirms_them(
    order: StandingOrder, settings: LazySettings
) -> None:
    settings.AGENTSITE_INBOUND_MAIL_SERVER = "mx.in.example.org"
    good = "mx.in.example.org; spf=fail; dmarc=pass (p=REJECT) header.from=example.org"
    forged = [
        "",
        "mx.evil.org; dmarc=pass",
        "mx.in.example.org; spf=pass; dmarc=fail",
        'mx.in.example.org; spf=pass smtp.mailfrom="a; dmarc=pass x"@evil.org; dkim=none',
        "mx.in.example.org; spf=fail (of a; dmarc=pass x); dkim=none",
        "mx.in.example.org; dmarc=fail; x=y z; dmarc=pass",
        "mx.in.example.org; dmarc=pass header.from=evil.org",
    ]
    for number, verdict in enumerate([*forged, good]):
        heads: dict[str, Any] = {
            "Message_ID": f"<{number}@example.org>",
            "Authentication_Results": verdict,
        }
        take_in(written(order.mail_address, **heads))
    assert refusals(order) == [*["forged"] * len(forged), ""]
    below = b"Authentication-Results: mx.in.example.org; dmarc=fail\r\nAuthentication-Results: "
    take_in(below + good.encode() + b"\r\n" + written(order.mail_address, Message_ID="<9@x>"))
    assert refusals(order)[-1] == "forged", "the first of them is the server's own"


@pytest.mark.parametrize(
    "senders",
    [
        b'From: "' + b"a" * 1982 + b'" <ann@example.org.evil.org>',
        b'From: ann@example.org\r\nFrom: "x y"@evil.org',
        b'From: ann@example.org, "x y"@evil.org',
        b"X: y\rFrom: ann@example.org\r\rX: y\r\nFrom: eve@evil.org",
        b'From: ann@example.org, "' + b"a" * 2000 + b'"@evil.org',
    ],
    ids=["cut", "twice", "a list", "half a line's end", "a long list"],
)
def test_a_sender_of_whom_another_program_reads_another_one_is_nobody(senders: bytes) -> None:
    try:
        sender = read_mail(senders + b"\r\nMessage-ID: <1@x>\r\n\r\nPay.").sender
    except Unreadable:
        sender = ""
    assert sender == ""


def test_a_loop_that_shows_no_sign_of_one_ends(
    order: StandingOrder, settings: LazySettings
) -> None:
    settings.AGENTSITE_INBOUND_MAILS = 2
    now = timezone.now()
    for number in range(4):
        take_in(written(order.mail_address, Message_ID=f"<{number}@example.org>"), now=now)
    assert refusals(order) == ["", "", "too_many", "too_many"]
    later = now + timedelta(hours=1, minutes=1)
    take_in(written(order.mail_address, Message_ID="<9@example.org>"), now=later)
    assert refusals(order)[-1] == ""


def test_a_paused_schedule_takes_no_mail_and_leaves_no_file(
    order: StandingOrder, alice: User
) -> None:
    pause_order(actor=alice, order=order)
    take_in(written(order.mail_address, files={"a.pdf": b"x"}))
    assert refusals(order) == ["paused"]
    assert not StoredFile.objects.exists()


def test_a_mail_whose_files_have_no_room_begins_nothing(
    order: StandingOrder, settings: LazySettings
) -> None:
    settings.AGENTSITE_FILES_BYTES = 4
    take_in(written(order.mail_address, files={"a.pdf": b"abc", "b.pdf": b"abc"}))
    assert refusals(order) == ["room"]
    assert not StoredFile.objects.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no mail at all",
        b"\xff\xfe" * 100,
        b"Content-Type: multipart/mixed; boundary=a\r\n" * 200,
        b"From: a@b.c\r\nContent-Type: message/rfc822\r\n\r\n" * 150,
    ],
)
def test_what_is_no_mail_is_refused_and_breaks_nothing(order: StandingOrder, raw: bytes) -> None:
    with pytest.raises(Unreadable):
        take_in(raw, [order.mail_address])


@pytest.mark.parametrize(
    ("parts", "lines", "problem"),
    [
        (99, b"a\n" * 110_000, "too many lines"),
        (99, b"\n" + b"a\r" * 110_000, "too many lines"),
        (0, b"a: b\n" * 300_001, "too many headers"),
        (1, b"a: b\r" * 300_001, "too many headers"),
        (1, (b'\n--0\nContent-Type: text/plain; a="' + b";" * 9_000 + b"\n\na") * 40, "too long"),
        (1, (b'\n--0\nContent-Type: text/plain; a="' + b"a" * 9_000 + b"\n\na") * 40, "too long"),
    ],
)
def test_what_python_takes_apart_slowly_is_no_mail(parts: int, lines: bytes, problem: str) -> None:
    within = "".join(f"Content-Type: multipart/a; boundary={n}\n\n--{n}\n" for n in range(parts))
    with pytest.raises(Unreadable, match=problem):
        read_mail(b"From: ann@example.org\n" + within.encode() + lines)


def test_odd_mails_are_taken_as_far_as_they_can_be_read(order: StandingOrder) -> None:
    head = f"From: anna@example.org\r\nTo: {order.mail_address}\r\nMessage-ID: <odd>\r\n".encode()
    odd = (
        b"Subject: =?utf-8?q?a=00b=ff?= =?nonsense?b?!!?=\r\n"
        b"Content-Type: text/plain; charset=nonsense\r\nContent-Transfer-Encoding: base64\r\n\r\n!!"
    )
    take_in(head + odd)
    assert refusals(order) == [""]


@pytest.mark.parametrize(
    "head",
    [
        b"Return-Path: <\xe9>",
        b"To: " + b"(" * 1_900,
        b"From: " + b"(" * 1_900,
        b"Content-Type: text/plain; charset=punycode",
        b"Content-Type: text/plain\r\nContent-Disposition: inline; filename*=punycode''"
         b"a-" + b"9" * 9_000,
    ],
)  # fmt: skip
def test_no_header_breaks_the_reading_or_holds_it_up(head: bytes) -> None:
    began = process_time()
    mail = read_mail(b"Message-ID: <odd>\r\n" + head + b"\r\n\r\na-" + b"9" * 60_000)
    assert mail.text or mail.files
    assert process_time() - began < 2, "each of these character sets takes many times that"


# --- the doors ------------------------------------------------------------------------------------


def posted(body: Any, secret: str = SECRET, kind: str = "message/rfc822", **more: Any) -> Any:
    basic = base64.b64encode(f"mail:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}"}
    return Client().post(
        reverse("schedules:mail-hook"), body, content_type=kind, headers=headers, **more
    )


def test_a_mail_service_posts_mails_in_its_own_form(order: StandingOrder) -> None:
    def mail(number: int) -> bytes:
        return written("hidden@example.org", Message_ID=f"<{number}@example.org>")

    headers = {"Authorization": f"Bearer {SECRET}"}
    door, to = reverse("schedules:mail-hook"), order.mail_address
    as_form = {"email": mail(1).decode(), "envelope": json.dumps({"to": [to]})}
    as_file = {"body-mime": SimpleUploadedFile("m", mail(2)), "recipient": to}
    as_json = json.dumps({"RawEmail": mail(3).decode(), "OriginalRecipient": to})
    for form in (as_form, as_file):
        assert Client().post(door, form, headers=headers).status_code == 202
    assert posted(as_json, kind="application/json").status_code == 202
    assert refusals(order) == ["", "", ""]


def test_who_does_not_know_the_secret_finds_no_door(
    order: StandingOrder, settings: LazySettings
) -> None:
    mail = written(order.mail_address)
    assert posted(mail, secret="guessed").status_code == 404
    assert Client().post(reverse("schedules:mail-hook"), mail, "message/rfc822").status_code == 404
    settings.AGENTSITE_INBOUND_MAIL_SECRET = ""
    assert posted(mail, secret="").status_code == 404
    assert not Arrival.objects.exists()


def test_the_door_refuses_in_words_what_is_too_long_or_no_mail(settings: LazySettings) -> None:
    settings.AGENTSITE_INBOUND_MAIL_BYTES = 1_000
    assert posted(b"x" * 1_001).status_code == 413
    assert posted(b"nothing").status_code == 400
    assert posted(b"").status_code == 400
    assert posted("{", kind="application/json").status_code == 400
    assert posted("[]", kind="application/json").status_code == 400


def test_a_mailbox_is_read_once_and_what_is_too_long_does_not_stay_new(
    order: StandingOrder, settings: LazySettings
) -> None:
    mail = written(order.mail_address)
    settings.AGENTSITE_INBOUND_MAIL_BYTES = len(mail) + 10
    long = written(order.mail_address, Subject="x" * 200, Message_ID="<2@example.org>")
    with MailboxServer(b"nonsense", long, mail) as box:
        settings.AGENTSITE_IMAP_URL = box.address
        assert (mailbox.look(), mailbox.look()) == (3, 0)
        assert box.read == {1, 2, 3}
    assert order.runs.count() == 1


def test_a_mail_that_cannot_be_read_for_now_stays_new_and_is_taken_in_later(
    order: StandingOrder, settings: LazySettings
) -> None:
    mails = [written(order.mail_address, Message_ID=f"<{n}@example.org>") for n in range(4)]
    with MailboxServer(*mails) as box:
        settings.AGENTSITE_IMAP_URL = box.address
        box.refused = ["UID FETCH 1 (RFC", "UID FETCH 2 (BODY", "UID STORE 3 "]
        box.aside = b"* 9 FETCH (UID 9 FLAGS (work))\r\n"
        assert mailbox.look() == 1
        assert box.read == {4}
        assert mailbox.look() == 3
        assert box.read == {1, 2, 3, 4}
    assert order.runs.count() == 4


def test_a_mail_that_we_cannot_take_in_stays_new_and_keeps_no_other_waiting(
    order: StandingOrder, settings: LazySettings, tmp_path: Path
) -> None:
    mails = [
        written(order.mail_address, files={"a.pdf": b"x"}),
        written(order.mail_address, Message_ID="<2@example.org>"),
    ]
    (tmp_path / "full").write_text("no folder can be made here")
    folder, settings.AGENTSITE_FILES_DIR = settings.AGENTSITE_FILES_DIR, tmp_path / "full"
    with MailboxServer(*mails) as box:
        settings.AGENTSITE_IMAP_URL = box.address
        assert mailbox.look() == 1
        assert box.read == {2}
        settings.AGENTSITE_FILES_DIR = folder
        assert mailbox.look() == 1
    assert order.runs.count() == 2


def test_a_mailbox_that_is_away_or_lets_nobody_in_breaks_nothing(settings: LazySettings) -> None:
    with MailboxServer(b"mail", password="other") as box:
        settings.AGENTSITE_IMAP_URL = box.address
        assert mailbox.look() == 0
        assert not box.read
    assert mailbox.look() == 0
    settings.AGENTSITE_IMAP_URL = "https://example.org"
    assert mailbox.look() == 0


# --- whose it is ----------------------------------------------------------------------------------


def test_the_address_can_be_renewed_by_its_owner_alone(
    order: StandingOrder, alice: User, mallory: User, client_of: ClientOf, make_order: MakeOrder
) -> None:
    before = order.mail_address
    with pytest.raises(NotFound):
        renew_address(actor=mallory, order=order)
    at = reverse("schedules:schedule-address", kwargs={"uid": order.uid})
    assert client_of(mallory).post(at).status_code == 404
    client_of(alice).post(at)
    order.refresh_from_db()
    assert order.mail_address not in {"", before}
    assert take_in(written(before)) == []
    with pytest.raises(Conflict):
        renew_address(actor=alice, order=make_order())


def test_the_page_tells_the_address_and_what_came(
    order: StandingOrder, alice: User, client_of: ClientOf
) -> None:
    take_in(written(order.mail_address, From="<mallory@example.org>", Subject="<b>Win</b>"))
    page = client_of(alice).get(order.get_absolute_url()).content.decode()
    assert order.mail_address in page
    assert "&lt;b&gt;Win&lt;/b&gt;" in page
    assert "its sender is not among those who may" in page


@pytest.mark.parametrize("killed", [False, True])
def test_what_is_taken_out_of_the_conversation_goes_from_what_came(
    order: StandingOrder, alice: User, killed: bool, django_capture_on_commit_callbacks: Any
) -> None:
    take_in(written(order.mail_address, files={"of-anna.pdf": b"x"}))
    message = begun(order)
    run = order.runs.get()
    end(run)
    assert run.conversation is not None
    folder = workspace_for(run.conversation.uid) / "mail"
    assert [each.name for each in folder.iterdir()] == ["1-of-anna.pdf"]
    # A process that is killed right after its transaction leaves the rest to the sweep of another.
    with django_capture_on_commit_callbacks(execute=not killed):
        redact_content(actor=alice, conversation=run.conversation, event_uid=message.uid)
    if killed:
        removals.clear_left()
    assert list(folder.iterdir()) == []
    assert not Removal.objects.exists()
    assert not run.conversation.file_resources.exists()
    assert not run.conversation.foreign_marks.filter(path__contains="anna").exists()
    assert run.conversation.foreign_marks.exists(), "what was made of it is still a stranger's"
    arrival = order.arrivals.get()
    assert (arrival.sender, arrival.subject) == (REMOVED, "")
    run.refresh_from_db()
    assert (run.payload, run.attachments) == (None, [])
    assert not StoredFile.objects.exists()
