"""A key is tried when it is saved; one that fails is kept only on its person's word."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from django.urls import reverse

from accounts import keytests
from accounts.keyholders import who_can_mend
from accounts.keytests import AT_ONCE, try_key
from accounts.models import ProviderKey, Role, Scope
from accounts.persons import whose_place
from accounts.provider_keys import resolve
from providers.probing import Outcome
from tests.cast import join, make_user, shown
from tests.standins.modellist import SECRET_WORDS, ModelList, model_list

KEY = "sk-test-0123456789-abcd"


@pytest.fixture
def service(settings):
    """A service in the server's own network that the operator listed."""
    settings.AGENTSITE_PROVIDER_KEYS = {}
    with model_list() as listed:
        settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [listed.address.removeprefix("http://")]
        yield listed


def post(client, acme, service: ModelList, **values):
    given = {"provider": "anthropic", "base_url": service.address, "key": KEY, "scope": "user"}
    return client.post(reverse("accounts:keys"), shown(acme, **given, **values), follow=True)


def test_a_key_that_works_is_stored_and_the_page_says_so(alice, acme, client_of, service):
    answer = post(client_of(alice), acme, service)

    assert service.asked == [("/v1/models?limit=1", KEY)]
    assert "It was tested and works." in answer.content.decode()
    assert ProviderKey.objects.get().user == alice


@pytest.mark.parametrize(("status", "words"), [(401, "refuses this key"), (503, "be reached")])
def test_a_key_that_fails_is_stored_only_on_her_word(
    alice, acme, client_of, service, status, words
):
    service.status = status
    client = client_of(alice)
    answer = post(client, acme, service)
    page = answer.content.decode()
    assert (answer.status_code, words in page) == (422, True)
    assert "Keep it anyway" in page
    assert KEY not in page
    assert SECRET_WORDS not in page
    assert not ProviderKey.objects.exists()

    client.post(reverse("accounts:keys"), shown(acme, keep="1"))

    stored = resolve(alice, acme, "anthropic")
    assert stored is not None
    assert (stored.key, len(service.asked)) == (KEY, 1)


def test_what_waited_is_gone_once_she_looks_at_something_else(alice, acme, client_of, service):
    service.status = 401
    client = client_of(alice)
    post(client, acme, service)
    client.get(reverse("accounts:keys"))

    answer = client.post(reverse("accounts:keys"), shown(acme, keep="1"), follow=True)

    assert "Type it again" in answer.content.decode()
    assert not ProviderKey.objects.exists()


def test_nobody_keeps_anothers_key(alice, bob, acme, client_of, service):
    service.status = 401
    post(client_of(alice), acme, service)

    client_of(bob).post(reverse("accounts:keys"), shown(acme, keep="1"))

    assert not ProviderKey.objects.exists()


def test_where_something_else_answers_it_is_stored_with_a_word(alice, acme, client_of, service):
    service.status = 404
    answer = post(client_of(alice), acme, service)

    assert "does not tell whether the key is right" in answer.content.decode()
    assert ProviderKey.objects.exists()


def test_no_test_leads_inside(db, service, settings):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = []
    for scope in (Scope.USER, Scope.ORGANISATION):
        tested = try_key(
            scope=scope, provider="anthropic", key=KEY, base_url=service.address, who=1
        )
        assert tested.outcome is Outcome.UNREACHED
    base_url = "http://169.254.169.254"
    metadata = try_key(
        scope=Scope.DEPLOYMENT, provider="anthropic", key=KEY, base_url=base_url, who=1
    )
    assert (metadata.outcome, service.asked) == (Outcome.UNREACHED, [])


def test_a_local_server_needs_no_key_and_is_asked_without_one(db, service):
    base_url = f"{service.address}/v1"
    tested = try_key(
        scope=Scope.USER, provider="openai_compatible", key="", base_url=base_url, who=1
    )

    assert tested.outcome is Outcome.WORKS
    assert service.asked == [("/v1/models", "")]


def test_one_person_has_one_place_and_where_all_are_taken_nobody_waits(
    alice, bob, acme, client_of, service
):
    with keytests._places.place(whose_place(alice)):
        answer = post(client_of(alice), acme, service)
        assert (service.asked, "It was not tested" in answer.content.decode()) == ([], True)
        assert ProviderKey.objects.get().user == alice  # hers is stored all the same

        post(client_of(bob), acme, service)
        assert len(service.asked) == 1

    with ExitStack() as held:
        for other in range(AT_ONCE):
            held.enter_context(keytests._places.place(f"other {other}"))
        post(client_of(bob), acme, service)
    assert len(service.asked) == 1


def test_in_the_admin_a_key_that_fails_is_kept_on_a_word(staff, client_of, service):
    service.status = 401
    client, address = client_of(staff), reverse("admin:accounts_providerkey_add")
    values = {"provider": "anthropic", "base_url": service.address, "key": KEY}
    refused = client.post(address, values)
    assert "refuses this key" in refused.content.decode()
    assert not ProviderKey.objects.exists()

    client.post(address, {**values, "keep": "on"})

    assert ProviderKey.objects.get().scope is Scope.DEPLOYMENT


def test_who_cannot_mend_a_key_is_told_who_can(alice, bob, staff, acme, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {}
    carol = make_user("carol", first_name="Carol", last_name="Jones")
    join(carol, acme, role=Role.OWNER)
    assert "alice, Carol Jones can store one" in who_can_mend(bob, acme, "anthropic")
    assert who_can_mend(alice, acme, "anthropic") == ""
    ProviderKey.objects.create(provider="anthropic", sealed_key="x")
    assert "its staff" in who_can_mend(alice, acme, "anthropic")
    assert who_can_mend(staff, acme, "anthropic") == ""
    ProviderKey.objects.create(provider="anthropic", sealed_key="x", organisation=acme)
    assert "alice, Carol Jones can change it" in who_can_mend(bob, acme, "anthropic")
    assert who_can_mend(alice, acme, "anthropic") == ""
    ProviderKey.objects.create(provider="anthropic", sealed_key="x", user=bob)
    assert who_can_mend(bob, acme, "anthropic") == ""
