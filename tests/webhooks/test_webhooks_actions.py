"""Who may set up webhooks, where they may go, and what is refused, with its field and its remedy."""

from __future__ import annotations

import base64
import socket

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction

from accounts import vault
from accounts.actions.rotation import reseal_secrets
from accounts.models import Role, User
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from tests.cast import join, make_user
from webhooks import outbox
from webhooks.actions import endpoints as actions
from webhooks.addresses import AddressRefused, check_url, judged_addresses
from webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookSecret
from webhooks.types import EVERYTHING, TYPES

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.invalid/agents"


@pytest.fixture
def issued(alice, acme) -> actions.Issued:
    return actions.create_endpoint(
        actor=alice, organisation=acme, url=URL, event_types=["session.created"]
    )


@pytest.fixture
def delivery(issued) -> WebhookDelivery:
    return outbox.announce_test(issued.endpoint)


# --- what is made ---------------------------------------------------------------------------------


def test_a_secret_is_32_random_bytes_shown_once_and_sealed_at_rest(issued):
    assert issued.secret.startswith("whsec_")
    assert len(base64.b64decode(issued.secret.removeprefix("whsec_"))) == 32
    stored = WebhookSecret.objects.get().sealed
    assert issued.secret not in stored
    assert issued.secret.removeprefix("whsec_") not in stored


def test_a_new_vault_key_reaches_webhooks_too(issued, settings):
    before = WebhookSecret.objects.get().sealed
    new = "bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldyE="
    settings.AGENTSITE_VAULT_KEYS = [new, *settings.AGENTSITE_VAULT_KEYS]
    assert reseal_secrets() >= 1
    settings.AGENTSITE_VAULT_KEYS = [new]
    after = WebhookSecret.objects.get().sealed
    assert after != before
    assert vault.open_sealed(after) == issued.secret


def test_types_are_kept_in_their_order_and_everything_swallows_the_rest(alice, issued):
    changed = actions.change_endpoint(
        actor=alice,
        endpoint=issued.endpoint,
        url=URL,
        event_types=[TYPES[3], TYPES[0], TYPES[3]],
        description="  for   the\nbot ",
    )
    assert changed.event_types == [TYPES[0], TYPES[3]]
    assert changed.description == "for the bot"
    changed = actions.change_endpoint(
        actor=alice, endpoint=issued.endpoint, url=URL, event_types=[TYPES[3], EVERYTHING]
    )
    assert changed.event_types == [EVERYTHING]
    assert changed.wants("something.new")


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("event_types", {"event_types": []}),
        ("event_types", {"event_types": ["session.exploded"]}),
        ("description", {"description": "x" * 201}),
        ("url", {"url": "https://example.org/" + "x" * 500}),
        ("url", {"url": ""}),
    ],
)
def test_a_bad_value_is_refused_with_its_field_and_changes_nothing(alice, issued, field, values):
    good = {"url": URL, "event_types": ["session.created"], "description": ""}
    with pytest.raises(Invalid) as refusal:
        actions.change_endpoint(actor=alice, endpoint=issued.endpoint, **{**good, **values})
    assert refusal.value.field == field
    assert refusal.value.hint
    issued.endpoint.refresh_from_db()
    assert (issued.endpoint.url, issued.endpoint.event_types) == (URL, ["session.created"])


def test_one_endpoint_more_than_allowed_is_refused(alice, acme, settings):
    settings.AGENTSITE_WEBHOOK_ENDPOINTS = 2
    for _ in range(2):
        actions.create_endpoint(actor=alice, organisation=acme, url=URL, event_types=["*"])
    with pytest.raises(LimitReached, match="2 webhook endpoints"):
        actions.create_endpoint(actor=alice, organisation=acme, url=URL, event_types=["*"])


def test_so_many_secrets_sign_at_once_and_no_more(alice, issued):
    for _ in range(actions.MOST_SECRETS - 1):
        actions.rotate_secret(actor=alice, endpoint=issued.endpoint)
    with pytest.raises(Conflict):
        actions.rotate_secret(actor=alice, endpoint=issued.endpoint)
    actions.rotate_secret(actor=alice, endpoint=issued.endpoint, grace_hours=0)
    assert issued.endpoint.secrets.count() == 1


@pytest.mark.parametrize("hours", [-1, 169])
def test_a_grace_outside_of_a_week_is_refused(alice, issued, hours):
    with pytest.raises(Invalid) as refusal:
        actions.rotate_secret(actor=alice, endpoint=issued.endpoint, grace_hours=hours)
    assert refusal.value.field == "grace_hours"
    assert issued.endpoint.secrets.count() == 1


# --- where it may go ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "hooks.example.org/agents",
        "https://",
        "https://user:secret@hooks.example.org/",
        "https://hooks.example.org/#part",
        "https://hooks.example.org:99999/",
        "https://hooks exa.org/",
        "https://hooks.example.org\\@evil.example/",
        "https://localhost/",
        "https://intranet/",
        "https://db.internal/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://10.1.2.3/",
        "https://192.168.0.1:8443/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.100.100.200/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1]/",
        "https://[fd00::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
    ],
)
def test_an_address_that_is_none_or_lies_inside_is_refused(url):
    with pytest.raises(Invalid) as refusal:
        check_url(url)
    assert refusal.value.field == "url"
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://hooks.example.invalid", "https://hooks.example.invalid/"),
        (" https://HOOKS.example.invalid:443/A?b=C ", "https://hooks.example.invalid/A?b=C"),
        ("https://hooks.example.invalid:8443/x", "https://hooks.example.invalid:8443/x"),
        ("https://bücher.example.invalid/", "https://xn--bcher-kva.example.invalid/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ],
)
def test_a_public_address_is_kept_in_one_spelling(url, kept):
    assert check_url(url) == kept


def test_a_listed_host_or_network_inside_is_allowed_at_its_port_but_metadata_never(settings):
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = [
        "n8n:443", "10.1.0.0/16:443", "169.254.0.0/16:443", "[::1]:443", "10.3.0.1"
    ]  # fmt: skip
    assert check_url("https://n8n/hook") == "https://n8n/hook"
    assert check_url("https://10.1.2.3/") == "https://10.1.2.3/"
    assert check_url("https://[::1]/") == "https://[::1]/"
    for refused in ("https://n8n:444/", "https://10.1.2.3:6379/", "https://10.3.0.1/"):
        with pytest.raises(Invalid):
            check_url(refused)
    for refused in ("https://10.2.0.1/", "https://169.254.169.254/", "https://169.254.1.1/"):
        with pytest.raises(Invalid):
            check_url(refused)


@pytest.fixture
def rebound(monkeypatch) -> str:
    """A public name of which the name service says a good address and one inside."""

    def look_up(host, port, *_args, **_kwargs):
        assert host == "hooks.example.org"
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("93.184.215.14", "10.0.0.7")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return "hooks.example.org"


def test_a_name_that_leads_inside_is_refused_when_it_is_stored_and_nobody_is_told_where(rebound):
    with pytest.raises(Invalid, match="leads to a private address") as refusal:
        check_url(f"https://{rebound}/")
    assert "10.0.0.7" not in f"{refusal.value.message} {refusal.value.hint}"


async def test_a_name_that_leads_inside_is_refused_at_an_attempt_and_nobody_is_told_where(rebound):
    with pytest.raises(AddressRefused, match="leads to a private address") as refusal:
        await judged_addresses(rebound, 443)
    assert "10.0.0.7" not in str(refusal.value)


def test_an_endpoint_whose_address_was_forbidden_meanwhile_is_not_switched_on(
    alice, issued, settings
):
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = ["10.0.0.1:443"]
    changed = actions.change_endpoint(
        actor=alice, endpoint=issued.endpoint, url="https://10.0.0.1/", event_types=["*"]
    )
    actions.disable_endpoint(actor=alice, endpoint=changed)
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = []
    with pytest.raises(Invalid):
        actions.enable_endpoint(actor=alice, endpoint=WebhookEndpoint.objects.get())
    assert not WebhookEndpoint.objects.get().is_enabled


# --- who may --------------------------------------------------------------------------------------

CHANGES = {
    "change": lambda actor, endpoint, delivery: actions.change_endpoint(
        actor=actor, endpoint=endpoint, url=URL, event_types=["*"]
    ),
    "disable": lambda actor, endpoint, delivery: actions.disable_endpoint(
        actor=actor, endpoint=endpoint
    ),
    "enable": lambda actor, endpoint, delivery: actions.enable_endpoint(
        actor=actor, endpoint=endpoint
    ),
    "rotate": lambda actor, endpoint, delivery: actions.rotate_secret(
        actor=actor, endpoint=endpoint
    ),
    "test": lambda actor, endpoint, delivery: actions.send_test(actor=actor, endpoint=endpoint),
    "redeliver": lambda actor, endpoint, delivery: actions.redeliver(
        actor=actor, delivery=delivery
    ),
    "redeliver all": lambda actor, endpoint, delivery: actions.redeliver_dead(
        actor=actor, endpoint=endpoint
    ),
    "remove": lambda actor, endpoint, delivery: actions.remove_endpoint(
        actor=actor, endpoint=endpoint
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", ["mallory", "bob", "a reviewer", "somebody inactive"])
def test_who_does_not_manage_finds_no_endpoint(
    request, name, change, acme, alice, bob, issued, delivery
):
    match name:
        case "a reviewer":
            actor = make_user("rita")
            join(actor, acme, Role.REVIEWER)
        case "somebody inactive":
            actor = alice
            alice.is_active = False
            alice.save()
        case _:
            actor = request.getfixturevalue(name)
    before = WebhookEndpoint.objects.values().get()
    with pytest.raises(NotFound):
        change(actor, issued.endpoint, delivery)
    assert WebhookEndpoint.objects.values().get() == before
    assert WebhookSecret.objects.count() == 1
    assert WebhookDelivery.objects.count() == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", ["alice", "an administrator", "staff"])
def test_who_manages_and_staff_may(request, name, change, acme, issued, delivery):
    if name == "an administrator":
        actor = make_user("ada")
        join(actor, acme, Role.ADMIN)
    else:
        actor = request.getfixturevalue(name)
    change(actor, issued.endpoint, delivery)


def test_staff_with_the_permission_switch_an_endpoint_and_take_none_over(acme, issued, delivery):
    helper = make_user("helper", is_staff=True)
    permission = Permission.objects.get(codename="change_webhookendpoint")
    helper.user_permissions.add(permission)
    actor = User.objects.get(pk=helper.pk)
    with pytest.raises(NotFound):
        actions.create_endpoint(actor=actor, organisation=acme, url=URL, event_types=["*"])
    for change in (
        lambda: actions.change_endpoint(
            actor=actor, endpoint=issued.endpoint, url=URL + "/elsewhere", event_types=["*"]
        ),
        lambda: actions.rotate_secret(actor=actor, endpoint=issued.endpoint),
        lambda: actions.remove_endpoint(actor=actor, endpoint=issued.endpoint),
    ):
        with pytest.raises(NotFound):
            change()
    assert WebhookEndpoint.objects.get().url == issued.endpoint.url
    actions.disable_endpoint(actor=actor, endpoint=issued.endpoint)
    actions.enable_endpoint(actor=actor, endpoint=issued.endpoint)


def test_a_stranger_makes_none_and_a_member_is_told_who_may(acme, bob, mallory):
    values = {"organisation": acme, "url": URL, "event_types": ["*"]}
    with pytest.raises(NotFound):
        actions.create_endpoint(actor=mallory, **values)
    with pytest.raises(Forbidden):
        actions.create_endpoint(actor=bob, **values)
    assert not WebhookEndpoint.objects.exists()


def test_what_is_seen_is_what_one_manages(alice, bob, mallory, issued, delivery):
    for person, count in ((alice, 1), (bob, 0), (mallory, 0)):
        assert WebhookEndpoint.objects.visible_to(person).count() == count
        assert WebhookDelivery.objects.visible_to(person).count() == count


def test_a_switched_off_endpoint_is_told_nothing_and_keeps_what_waits(alice, acme, issued):
    actions.disable_endpoint(actor=alice, endpoint=issued.endpoint)
    with transaction.atomic():
        outbox.announce(acme.pk, "session.created", subject="sesn_1")
    assert not WebhookDelivery.objects.exists()
    with pytest.raises(Conflict):
        actions.send_test(actor=alice, endpoint=issued.endpoint)
