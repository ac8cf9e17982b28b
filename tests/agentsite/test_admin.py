"""What staff sees of people and organisations, and what nobody sees."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.urls import reverse

from accounts.actions.invitations import invite_member
from accounts.actions.provider_keys import store_provider_key
from accounts.models import Membership, ProviderKey, Role
from accounts.provider_keys import resolve
from agentsite.adminsite import Site
from tests.cast import make_user, retyped

KEY = "sk-test-0123456789-abcd"


@pytest.fixture
def rows(alice, bob, acme, staff):
    return {
        "user": alice,
        "organisation": acme,
        "membership": Membership.objects.get(user=bob),
        "invitation": invite_member(
            actor=alice, organisation=acme, email="c@example.org", role="member"
        ).invitation,
        "providerkey": store_provider_key(
            actor=staff, scope="deployment", provider="anthropic", key=KEY
        ),
    }


def test_every_list_and_form_opens_for_staff(rows, staff, client_of):
    client = retyped(client_of(staff))
    for name, row in rows.items():
        for address in (
            reverse(f"admin:accounts_{name}_changelist"),
            reverse(f"admin:accounts_{name}_change", args=[row.pk]),
        ):
            assert client.get(address).status_code == 200, address
    for name in ("user", "organisation", "membership", "providerkey"):
        assert client.get(reverse(f"admin:accounts_{name}_add")).status_code == 200


def test_the_list_of_all_models_is_made_only_when_it_is_looked_at(rf, staff):
    class Counting(Site):
        made = 0

        def _build_app_dict(self, request, label=None):
            self.made += 1
            return super()._build_app_dict(request, label)

    site = Counting()
    site._registry = admin.site._registry
    request = rf.get("/admin/")
    request.user = staff
    context = site.each_context(request)
    assert site.made == 0
    assert "accounts" in [app["app_label"] for app in context["available_apps"]]
    assert site.made == 1


@pytest.mark.parametrize(
    "lookup", ["pk__regex", "pk__iregex", "uid__Regex", "owner__email__iregex"]
)
def test_no_page_of_any_app_looks_for_an_expression(lookup, rf, staff):
    request = rf.get("/admin/")
    request.user = staff
    assert len(admin.site._registry) > 20
    assert "axes" in {model._meta.app_label for model in admin.site._registry}
    for page in admin.site._registry.values():
        assert not page.lookup_allowed(lookup, "(a+)+$", request), page


@pytest.mark.parametrize("lookup", ["uid__regex", "uid__iregex", "memberships__role__regex"])
def test_an_expression_in_the_address_of_a_list_is_refused(lookup, rows, staff, client_of):
    address = reverse("admin:accounts_user_changelist")
    assert client_of(staff).get(address, {"uid__startswith": "u"}).status_code == 200
    assert client_of(staff).get(address, {lookup: "(a+)+$"}).status_code == 400


@pytest.mark.parametrize(
    ("table", "lookup"),
    [
        ("axes_accessattempt", "post_data__contains"),
        ("brief_brief", "text__startswith"),
        ("brief_brief", "stored_contents__icontains"),
        ("conversations_conversation", "metadata__project__startswith"),
        ("documents_document", "name__startswith"),
        ("evals_trial", "answer__startswith"),
        ("memory_memorystore", "name__startswith"),
        ("pipelines_pipelinerun", "question__startswith"),
        ("schedules_arrival", "subject"),
        ("schedules_queueitem", "text__istartswith"),
        ("schedules_standingorder", "mail_key__startswith"),
        ("schedules_standingorder", "mail_key__gte"),
        ("schedules_standingorder", "messages__0__content__icontains"),
        ("teams_app_task", "subject__startswith"),
        ("accounts_apitoken", "token_key__startswith"),
    ],
)
def test_what_no_page_shows_cannot_be_guessed_by_how_many_rows_begin_so(
    table, lookup, staff, client_of
):
    client, address = client_of(staff), reverse(f"admin:{table}_changelist")
    assert client.get(address, {lookup: "a"}).status_code == 400
    assert client.get(address).status_code == 200


def test_no_page_of_any_app_takes_a_filter_of_what_it_does_not_show(rf, staff):
    request = rf.get("/admin/")
    request.user = staff
    for model, page in admin.site._registry.items():
        listed = {str(each) for each in page.get_list_display(request)}
        given = page.get_list_filter(request)
        filtered = {str(each[0] if isinstance(each, tuple) else each) for each in given}
        known = {*listed, *filtered, *page.get_search_fields(request)}
        known |= set(flatten_fieldsets(page.get_fieldsets(request, model())))
        hidden = {
            field.name
            for field in model._meta.concrete_fields
            if not (field.is_relation or field.primary_key or field.name in known)
        }
        taken = {
            name for name in hidden if page.lookup_allowed(f"{name}__startswith", "a", request)
        }
        assert not taken, model


def test_nobody_else_gets_in(rows, alice, mallory, client_of):
    for person in (alice, mallory):
        for name in rows:
            answer = client_of(person).get(reverse(f"admin:accounts_{name}_changelist"))
            assert answer.status_code in (302, 403)


@pytest.mark.parametrize("page", ["x", "0", "99999", "-1"])
def test_a_page_of_the_search_that_is_none_is_not_found(page, staff, client_of):
    answer = client_of(staff).get("/admin/search/", {"s": "user", "page": page})
    assert answer.status_code == 404


def test_a_visitor_of_the_admin_signs_in_like_everybody(client, db):
    answer = client.get(reverse("admin:index"), follow=True)

    assert answer.redirect_chain[-1][0].startswith(reverse("account_login"))


def test_a_key_is_typed_but_never_shown(rows, staff, client_of):
    client = client_of(staff)
    pages = [
        client.get(reverse("admin:accounts_providerkey_changelist")),
        client.get(reverse("admin:accounts_providerkey_change", args=[rows["providerkey"].pk])),
    ]
    for page in pages:
        text = page.content.decode()
        assert "…abcd" in text
        assert KEY not in text
        assert rows["providerkey"].sealed_key not in text


def test_staff_sets_the_key_for_everybody(alice, acme, staff, client_of, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {}
    values = {"provider": "anthropic", "base_url": "", "key": KEY, "keep": "on"}
    answer = client_of(staff).post(reverse("admin:accounts_providerkey_add"), values)

    assert answer.status_code == 302
    resolved = resolve(alice, acme, "anthropic")
    assert resolved is not None
    assert resolved.key == KEY


def test_staff_replaces_the_key_for_everybody(rows, alice, acme, staff, client_of):
    address = reverse("admin:accounts_providerkey_change", args=[rows["providerkey"].pk])
    values = {
        "base_url": "https://models.example.org/",
        "key": "sk-another-0123456789",
        "keep": "on",
    }
    assert client_of(staff).post(address, values).status_code == 302

    resolved = resolve(alice, acme, "anthropic")
    assert resolved is not None
    assert (resolved.key, resolved.base_url) == (
        "sk-another-0123456789",
        "https://models.example.org",
    )
    assert ProviderKey.objects.count() == 1


def test_a_refused_key_is_explained_beside_its_field(staff, client_of):
    values = {"provider": "anthropic", "base_url": "nonsense", "key": KEY}
    answer = client_of(staff).post(reverse("admin:accounts_providerkey_add"), values)

    text = answer.content.decode()
    assert answer.status_code == 200
    assert "This is not a base URL." in text
    assert KEY not in text


def test_staff_cannot_change_a_persons_own_key(alice, staff, client_of):
    row = store_provider_key(actor=alice, scope="user", provider="anthropic", key=KEY)
    address = reverse("admin:accounts_providerkey_change", args=[row.pk])
    answer = client_of(staff).post(address, {"base_url": "https://evil.example.org", "key": "x"})

    assert answer.status_code == 403
    row.refresh_from_db()
    assert row.base_url == ""


def test_staff_without_the_servers_trust_sets_no_key(db, client_of):
    helper = make_user("helper", is_staff=True)

    answer = client_of(helper).get(reverse("admin:accounts_providerkey_add"))
    assert answer.status_code == 403


def test_the_last_owner_stays_even_in_the_admin(alice, acme, staff, client_of):
    row = Membership.objects.get(user=alice)
    client = client_of(staff)
    change = reverse("admin:accounts_membership_change", args=[row.pk])
    delete = reverse("admin:accounts_membership_delete", args=[row.pk])

    assert client.post(change, {"role": "member"}).status_code == 409
    assert client.post(delete, {"post": "yes"}).status_code == 409
    many = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    assert client.post(reverse("admin:accounts_membership_changelist"), many).status_code == 409
    assert Membership.objects.role_in(acme, alice) is Role.OWNER


def test_staff_changes_a_role(alice, bob, acme, staff, client_of):
    row = Membership.objects.get(user=bob)
    address = reverse("admin:accounts_membership_change", args=[row.pk])
    assert client_of(staff).post(address, {"role": "admin"}).status_code == 302

    assert Membership.objects.role_in(acme, bob) is Role.ADMIN
