"""Pushes to browsers: for the browser alone, at most once, never lost, never where somebody merely said."""

from __future__ import annotations

import asyncio
import json
import time as clock
from datetime import UTC, datetime, time, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from approvals.actions.approvals import decide_approval
from approvals.models import Approval
from conversations.models import Conversation
from harness.errors import NotConfigured
from jobs.engine import engine
from keeping.actions.seen import mark_as_seen
from notices import courier, pushing
from notices.actions.wishes import set_notices
from notices.browsers import name_of
from notices.models import Device, Kind, Push, PushKey, WaitNotice
from notices.owndata import files
from notices.pushing import claim_pushes, plan_pushes, record_push, tell_of
from notices.pushkeys import new_key, public_text, read_key, reseal_keys, server_key
from notices.pushrequests import Answer, post, push_client
from notices.quiet import quiet_end
from tests.notices.conftest import SITE, ask, end
from tests.notices.pushservice import encoded, signed_by
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db

HERE = "settings/notifications/browsers/"


def send(now: datetime | None = None) -> int:
    """Put down what is to be told and send what is due, as the job does; how many were sent."""
    plan_pushes(now)
    return send_due(now)


def send_due(now: datetime | None = None) -> int:
    _taken, ready = claim_pushes(now)

    async def carry() -> None:
        async with push_client() as client:
            for claimed in ready:
                answers.append(await post(client, claimed.endpoint, claimed.body, claimed.headers))

    answers: list[Answer] = []
    asyncio.run(carry())
    for claimed, answer in zip(ready, answers, strict=True):
        record_push(claimed, answer, now)
    return len(ready)


@pytest.fixture
def browser(client_of, alice):
    return client_of(alice)


def test_a_push_is_for_the_browser_alone_signed_by_the_server_and_says_what_waits(
    service, sign_up, browser, conversation
):
    sign_up(browser)
    approval = ask(conversation)
    assert send() == 1
    (said,) = service.said()
    assert said["title"] == "Quarterly report"
    assert said["body"] == "Waits for your answer: write_file"
    assert said["url"] == approval.get_absolute_url()
    assert said["away"] is True
    assert "secret" not in json.dumps(said)
    (received,) = service.received
    assert b"Quarterly" not in received.body
    key, claims = signed_by(received.headers["authorization"])
    page = browser.get(reverse("notices:settings")).content.decode()
    assert f'data-key="{key}"' in page
    assert claims["aud"] == f"http://127.0.0.1:{service.port}"
    assert claims["sub"] == SITE
    assert clock.time() < claims["exp"] <= clock.time() + 24 * 3600
    assert received.headers["content-encoding"] == "aes128gcm"
    assert int(received.headers["ttl"]) > 0
    assert received.headers["urgency"] == "high"
    assert not Push.objects.exists()
    assert Device.objects.get().last_code == "sent"
    assert "Last push on" in browser.get(reverse("notices:settings")).content.decode()


def test_who_wants_no_contents_is_told_that_something_is_there(
    service, sign_up, browser, conversation, alice
):
    set_notices(actor=alice, tells_contents=False)
    sign_up(browser)
    ask(conversation)
    send()
    (said,) = service.said()
    assert (said["title"], said["body"]) == ("Agentsite", "Something waits for your answer")


def test_several_things_are_one_push_to_each_of_her_browsers(
    service, sign_up, client_of, alice, conversation
):
    for name in ("first", "second"):
        sign_up(client_of(alice), name)
    for _ in range(3):
        ask(conversation)
    Approval.objects.update(state=Approval.State.PENDING)
    assert send() == 2
    for said in service.said():
        assert said["title"] == "3 things wait for your answer"
        assert said["body"] == "Quarterly report"
        assert said["url"] == reverse("approvals:approvals")
    assert {one.path for one in service.received} == {"/push/first", "/push/second"}


def test_nothing_is_pushed_twice_or_before_its_minute_or_of_what_she_has_opened(
    service, sign_up, browser, conversation, converse
):
    sign_up(browser)
    ask(conversation, minutes=0.5)
    assert send() == 0
    Approval.objects.update(asked_at=timezone.now() - timedelta(minutes=2))
    assert send() == 1
    assert send() == 0
    other, _script = converse()
    ask(other)
    browser.get(other.get_absolute_url())
    assert send() == 0
    assert len(service.received) == 1


def test_of_two_processes_one_sends_and_what_a_dead_one_took_up_is_sent_by_another(
    service, sign_up, browser, conversation
):
    sign_up(browser)
    ask(conversation)
    now = timezone.now()
    assert plan_pushes(now) == 1
    assert plan_pushes(now) == 0
    taken, ready = claim_pushes(now)
    assert (taken, len(ready)) == (1, 1)
    assert claim_pushes(now) == (0, [])  # and now it dies
    assert send_due(now + pushing.LEASE) == 1
    (said,) = service.said()
    assert said["title"] == "Quarterly report"
    assert send_due(now + 2 * pushing.LEASE) == 0


def test_what_is_planned_and_taken_up_is_one_transaction(
    service, sign_up, browser, conversation, monkeypatch
):
    """A process that dies between the two has told nobody, and says so."""
    sign_up(browser)
    ask(conversation)

    def die(*_args, **_given):
        raise SystemExit

    with monkeypatch.context() as killing, pytest.raises(SystemExit):
        killing.setattr(pushing, "_put_down", die)
        plan_pushes()
    assert not WaitNotice.objects.exists()
    assert send() == 1


def test_what_was_answered_before_it_was_sent_is_not_sent(
    service, sign_up, browser, conversation, alice
):
    sign_up(browser)
    approval = ask(conversation)
    plan_pushes()
    decide_approval(
        actor=alice,
        approval=approval,
        verdict="deny",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )
    assert send_due() == 0
    assert not Push.objects.exists()
    assert Device.objects.get().last_code == ""
    assert service.received == []


def test_what_she_has_opened_before_it_was_sent_is_not_sent(
    service, sign_up, browser, conversation
):
    sign_up(browser)
    ask(conversation)
    plan_pushes()
    browser.get(conversation.get_absolute_url())
    assert send_due() == 0
    assert not Push.objects.exists()
    assert Device.objects.get().last_code == ""


def test_what_she_may_not_see_any_more_is_not_sent(
    service, sign_up, browser, conversation, alice, acme
):
    sign_up(browser)
    end(conversation)
    plan_pushes()
    Membership.objects.filter(user=alice, organisation=acme).delete()
    assert send_due() == 0
    assert service.received == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_the_push_service_does_not_know_any_more_is_removed(
    service, sign_up, client_of, alice, conversation, status
):
    sign_up(client_of(alice))
    ask(conversation)
    service.status = status
    assert send() == 1
    assert not Device.objects.exists()
    assert not Push.objects.exists()


@pytest.mark.parametrize(("status", "asked"), [(429, "120"), (503, ""), (500, "")])
def test_a_push_that_is_not_taken_now_is_tried_again_later(
    service, sign_up, browser, conversation, status, asked
):
    sign_up(browser)
    ask(conversation)
    service.status = status
    service.headers = {"Retry-After": asked} if asked else {}
    now = timezone.now()
    assert send(now) == 1
    wait = timedelta(seconds=float(asked or pushing.FIRST_RETRY))
    assert send_due(now + wait - timedelta(seconds=1)) == 0
    assert Device.objects.get().last_code == f"http_{status}"
    service.status = 201
    assert send_due(now + wait) == 1
    assert not Push.objects.exists()


def test_a_push_that_is_never_taken_is_dropped_at_last(service, sign_up, browser, conversation):
    sign_up(browser)
    ask(conversation)
    service.status = 503
    now = timezone.now()
    plan_pushes(now)
    for _ in range(pushing.MOST_TRIES):
        assert Push.objects.exists()
        Push.objects.update(next_at=now)
        send_due(now)
    assert not Push.objects.exists()
    assert Device.objects.get().last_code == "http_503"
    assert send(now) == 0


def test_without_a_line_it_is_tried_again_and_after_its_time_dropped(
    service, sign_up, browser, conversation, settings
):
    device = sign_up(browser)
    # Nobody listens there; the operator lists it all the same.
    settings.AGENTSITE_PUSH_PRIVATE_HOSTS = ["127.0.0.1:1"]
    Device.objects.update(endpoint="http://127.0.0.1:1/push/first")
    ask(conversation)
    now = timezone.now()
    assert send(now) == 1
    device.refresh_from_db()
    assert device.last_code == "connection"
    assert Push.objects.count() == 1
    send_due(now + pushing.LONGEST + timedelta(minutes=1))
    assert not Push.objects.exists()
    device.refresh_from_db()
    assert device.last_code == "too_late"


@pytest.mark.parametrize("status", [301, 307, 400, 403, 413])
def test_what_is_refused_or_sent_elsewhere_is_dropped_with_its_code(
    service, sign_up, browser, conversation, status
):
    sign_up(browser)
    ask(conversation)
    service.status = status
    service.headers = {"Location": service.browser("second").endpoint}
    assert send() == 1
    assert len(service.received) == 1
    assert not Push.objects.exists()
    assert Device.objects.get().last_code == f"http_{status}"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example.org/a",
        "https://127.0.0.1/a",
        "https://0x7f.1/a",
        "https://10.0.0.8:8443/a",
        "https://[::1]/a",
        "https://169.254.169.254/latest/meta-data",
        "https://metadata.google.internal/a",
        "https://localhost/a",
        "https://database.internal/a",
        "https://name@push.example.org/a",
        "https://push.example.org/a#b",
        "https://push.example.org/a b",
        "https://pusch.example.örg/a",
        "https:///a",
        "https://push.example.org:99999/a",
        "ftp://push.example.org/a",
        "https://push.example.org/" + "a" * 1_000,
        "",
    ],
)
def test_a_browser_elsewhere_than_at_a_public_service_is_refused(service, browser, endpoint):
    given = service.browser().subscription | {"endpoint": endpoint}
    assert browser.post(f"/{HERE}", given).status_code in {400, 413, 422}
    assert not Device.objects.exists()


@pytest.mark.parametrize("field", ["p256dh", "auth"])
@pytest.mark.parametrize("value", ["", "%", "é", "AAAA", encoded(bytes(65)), "A" * 5_000])
def test_keys_that_are_none_are_refused(service, browser, field, value):
    given = service.browser().subscription | {field: value}
    assert browser.post(f"/{HERE}", given).status_code in {400, 422}
    assert not Device.objects.exists()


def test_a_name_that_leads_inside_by_now_hears_nothing(
    service, sign_up, browser, conversation, settings
):
    sign_up(browser)
    settings.AGENTSITE_PUSH_PRIVATE_HOSTS = []
    Device.objects.update(endpoint=f"http://localhost:{service.port}/push/first")
    ask(conversation)
    assert send() == 1
    assert service.received == []
    assert Device.objects.get().last_code == "address"
    assert not Push.objects.exists()


def test_signing_out_ends_it_for_that_browser_alone(sign_up, client_of, alice):
    here, there = client_of(alice), client_of(alice)
    sign_up(here, "first")
    other = sign_up(there, "second")
    here.post(reverse("account_logout"))
    assert Device.objects.get() == other


def test_a_session_that_ended_in_another_way_gets_none(
    service, sign_up, browser, conversation, alice
):
    sign_up(browser)
    ask(conversation)
    Session.objects.all().delete()
    assert send() == 0
    assert not Device.objects.exists()


def test_a_closed_account_gets_none(service, sign_up, browser, conversation, alice):
    sign_up(browser)
    ask(conversation)
    plan_pushes()
    alice.is_active = False
    alice.save()
    assert send_due() == 0
    assert service.received == []
    assert not Device.objects.exists()


def test_with_another_key_of_the_server_browsers_sign_up_anew(
    service, sign_up, browser, conversation, settings
):
    sign_up(browser)
    ask(conversation)
    settings.AGENTSITE_PUSH_KEY = new_key()
    assert send() == 0
    assert not Device.objects.exists()
    sign_up(browser)
    assert Device.objects.get().server_key == public_text(read_key(settings.AGENTSITE_PUSH_KEY))


def test_the_servers_key_is_made_once_and_sealed(db, settings):
    first = server_key()
    assert public_text(server_key()) == public_text(first)
    number = first.private_numbers().private_value
    assert encoded(number.to_bytes(32, "big")) not in PushKey.objects.get().sealed
    assert reseal_keys() == 1
    assert public_text(server_key()) == public_text(first)
    for wrong in ("short", "é" * 43, encoded(bytes(32))):
        settings.AGENTSITE_PUSH_KEY = wrong
        with pytest.raises(NotConfigured):
            server_key()


def test_a_person_has_so_many_browsers_and_each_is_one_persons(
    service, sign_up, client_of, alice, bob, settings
):
    settings.AGENTSITE_PUSH_DEVICES = 2
    hers = client_of(alice)
    for name in ("first", "second", "second"):
        sign_up(hers, name)
    third = service.browser("third").subscription
    assert hers.post(f"/{HERE}", third).status_code == 409
    assert "Remove one of them first." in hers.get(reverse("notices:settings")).content.decode()
    # Bob signs in where alice did before.
    sign_up(client_of(bob), "first")
    assert Device.objects.visible_to(alice).get().endpoint.endswith("second")
    assert Device.objects.visible_to(bob).count() == 1


def test_mallory_can_neither_remove_nor_try_what_is_alices(sign_up, browser, client_of, mallory):
    device = sign_up(browser)
    hers = client_of(mallory)
    for what in ("remove", "test"):
        assert hers.post(f"/{HERE}{device.uid}/{what}/").status_code == 404
    assert device.name not in hers.get(reverse("notices:settings")).content.decode()
    assert Device.objects.get() == device
    assert not Push.objects.exists()


def test_mallorys_browser_is_told_nothing_of_alices(
    service, sign_up, client_of, mallory, conversation
):
    sign_up(client_of(mallory))
    approval = ask(conversation)
    approval.assignee = mallory
    approval.save()
    end(conversation)
    assert send() == 0
    assert service.received == []


def test_a_test_is_sent_at_once_and_one_at_a_time(service, sign_up, browser, alice):
    device = sign_up(browser)
    set_notices(actor=alice, waits_by_push="never", quiet_from=time(0), quiet_until=time(23, 59))
    path = f"/{HERE}{device.uid}/test/"
    assert browser.post(path).status_code == 302
    assert "A test is on its way." in browser.get(reverse("notices:settings")).content.decode()
    browser.post(path)
    assert "Wait until it arrives." in browser.get(reverse("notices:settings")).content.decode()
    assert send_due() == 1
    (said,) = service.said()
    assert said["away"] is False
    assert said["url"] == reverse("notices:settings")
    browser.post(f"/{HERE}{device.uid}/remove/")
    assert not Device.objects.exists()


def test_in_quiet_hours_nothing_is_pushed_and_behind_them_once_of_all(
    service, sign_up, browser, conversation, alice
):
    sign_up(browser)
    now = timezone.now()
    begin = (now - timedelta(hours=1)).time()
    ends = (now + timedelta(hours=1)).time()
    set_notices(actor=alice, quiet_from=begin, quiet_until=ends, brief_by_push="always")
    tell_of(alice, Kind.BRIEF, "/brief/x/", now)
    for minutes in (0, 59):
        ask(conversation)
        Approval.objects.update(state=Approval.State.PENDING)
        assert send(now + timedelta(minutes=minutes)) == 0
    assert send(now + timedelta(minutes=61)) == 2
    assert {said["title"] for said in service.said()} == {
        "2 things wait for your answer",
        "Agentsite",
    }


def test_what_has_ended_is_pushed_until_she_has_seen_it(
    service, sign_up, browser, conversation, alice
):
    sign_up(browser)
    end(conversation)
    mark_as_seen(actor=alice, conversation=conversation)
    assert send() == 0
    end(conversation)
    assert send() == 1
    assert send() == 0
    (said,) = service.said()
    assert (said["title"], said["body"]) == ("Quarterly report", "The agent is done.")
    assert said["url"] == conversation.get_absolute_url()
    mark_as_seen(actor=alice, conversation=conversation)
    end(conversation)
    set_notices(actor=alice, done_by_push="never")
    assert send() == 0
    set_notices(actor=alice, done_by_push="always")
    mark_as_seen(actor=alice, conversation=conversation)
    assert send() == 1
    assert service.said()[-1]["away"] is False


def test_what_runs_again_or_is_no_conversation_of_a_list_has_not_ended(
    service, sign_up, browser, conversation
):
    sign_up(browser)
    end(conversation)
    for changes in ({"owes_run": True}, {"unlisted": True}, {"archived_at": timezone.now()}):
        Conversation.objects.filter(pk=conversation.pk).update(**changes)
        assert send() == 0
        Conversation.objects.filter(pk=conversation.pk).update(
            owes_run=False, unlisted=False, archived_at=None
        )
    assert send() == 1


@pytest.mark.django_db(transaction=True)
def test_what_is_put_down_is_sent_at_once(service, sign_up, browser, conversation):
    sign_up(browser)
    ask(conversation)
    plan_pushes()
    service.wait()
    (said,) = service.said()
    assert said["title"] == "Quarterly report"


@pytest.mark.django_db(transaction=True)
def test_a_push_that_fails_ends_no_other(
    service, sign_up, client_of, alice, conversation, monkeypatch
):
    for name in ("first", "second"):
        sign_up(client_of(alice), name)
    failed = asyncio.Event()

    async def failing(client, endpoint, body, headers):
        if endpoint.endswith("/first"):
            failed.set()
            raise RuntimeError("Nobody thought of this.")
        await failed.wait()
        for _ in range(20):  # the others are told
            await asyncio.sleep(0)
        return await post(client, endpoint, body, headers)

    monkeypatch.setattr("notices.pushing.dispatch", lambda name, **given: None)
    monkeypatch.setattr(courier, "post", failing)
    ask(conversation)
    plan_pushes()
    engine.submit(courier.send_due).result(PATIENCE)
    assert [one.path for one in service.received] == ["/push/second"]
    assert Push.objects.get().device.endpoint.endswith("/first")


def test_a_browser_that_went_meanwhile_keeps_no_other_from_its_push(
    service, sign_up, browser, conversation, monkeypatch
):
    sign_up(browser)
    ask(conversation)
    plan_pushes()

    def signs_out():
        Device.objects.all().delete()
        raise NotConfigured("There is no key.")

    monkeypatch.setattr(pushing, "server_key", signs_out)
    assert claim_pushes() == (1, [])
    assert not Push.objects.exists()


def test_what_she_takes_along_names_her_browsers_and_no_way_to_write_to_them(
    service, sign_up, browser, alice
):
    device = sign_up(browser)
    set_notices(actor=alice, quiet_from=time(22), quiet_until=time(7))
    (file,) = files(alice)
    told = "".join(str(piece) for piece in file.pieces)
    assert json.loads(told)["browsers"][0]["id"] == device.uid
    assert json.loads(told)["wishes"]["quiet_from"] == "22:00:00"
    for hidden in (device.endpoint, device.p256dh, device.auth, device.session_key):
        assert hidden not in told


def test_without_pushes_on_this_server_none_is_offered(service, browser, settings):
    settings.AGENTSITE_PUSH_SECONDS = 0
    page = browser.get(reverse("notices:settings")).content.decode()
    assert "data-push" not in page
    assert "This server pushes nothing" in page
    assert browser.post(f"/{HERE}", service.browser().subscription).status_code == 403


def test_the_script_that_browsers_run_is_there_for_everybody_and_keeps_nothing(client):
    answer = client.get("/service-worker.js")
    assert answer["Content-Type"].startswith("text/javascript")
    assert b"/static/js/worker" in answer.content
    assert answer["Cache-Control"] == "no-cache"
    assert "default-src 'self'" in answer["Content-Security-Policy"]


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("moment", "hours", "zone", "ends"),
    [
        ("2028-01-10T21:00", (22, 7), BERLIN, "2028-01-11T06:00"),
        ("2028-01-11T05:59", (22, 7), BERLIN, "2028-01-11T06:00"),
        ("2028-01-11T06:00", (22, 7), BERLIN, None),
        ("2028-01-10T20:59", (22, 7), BERLIN, None),
        ("2028-01-10T12:30", (12, 14), "UTC", "2028-01-10T14:00"),
        ("2028-01-10T14:00", (12, 14), "UTC", None),
        ("2028-01-10T14:00", (14, 14), "UTC", None),
        # The night on which clocks go forward is an hour shorter, and that on which they go back longer.
        ("2028-03-25T23:00", (22, 7), BERLIN, "2028-03-26T05:00"),
        ("2028-10-28T23:00", (22, 7), BERLIN, "2028-10-29T06:00"),
        ("2028-01-10T12:30", (12, 14), "Gone/Zone", "2028-01-10T14:00"),
    ],
)
def test_quiet_hours_are_those_of_her_clocks(moment, hours, zone, ends):
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    found = quiet_end(at, time(hours[0]), time(hours[1]), zone=zone)
    assert found == (datetime.fromisoformat(ends).replace(tzinfo=UTC) if ends else None)


def test_quiet_hours_that_end_in_an_hour_that_comes_twice_end_ahead():
    second_time = datetime(2028, 10, 29, 1, 15, tzinfo=UTC)  # a quarter past two, again
    found = quiet_end(second_time, time(22), time(2, 30), zone=BERLIN)
    assert found is not None
    assert found > second_time


@pytest.mark.parametrize(
    ("says", "name"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Firefox · Linux",
        ),
        ("Mozilla/5.0 (Linux; Android 16) … Chrome/140.0 Mobile Safari/537.36", "Chrome · Android"),
        ("Mozilla/5.0 (Windows NT 10.0) … Chrome/140.0 Safari/537.36 Edg/140", "Edge · Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 26 like Mac OS X) … Safari/604", "Safari · iPhone"),
        ("", "Browser"),
    ],
)
def test_a_browser_is_called_by_what_it_is(says, name):
    assert name_of(says) == name
