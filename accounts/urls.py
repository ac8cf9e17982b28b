"""The addresses of the pages of accounts: setting up, organisations, invitations, keys, tokens."""

from __future__ import annotations

from django.urls import path

from accounts.views import invitations, organisation, provider_keys, setup, tokens

app_name = "accounts"

urlpatterns = [
    path("setup/<str:token>/", setup.set_up, name="setup"),
    path("invitations/<str:token>/", invitations.show_invitation, name="invitation"),
    path("organisation/", organisation.show_organisation, name="organisation"),
    path("organisation/switch/", organisation.switch, name="organisation-switch"),
    path("organisation/create/", organisation.create, name="organisation-create"),
    path("organisation/reviewers/", organisation.show_reviewers, name="organisation-reviewers"),
    path("organisation/rename/", organisation.rename, name="organisation-rename"),
    path("organisation/invite/", organisation.invite, name="organisation-invite"),
    path(
        "organisation/invitations/<str:uid>/withdraw/",
        organisation.withdraw,
        name="invitation-withdraw",
    ),
    path("organisation/members/<int:pk>/role/", organisation.set_role, name="member-role"),
    path("organisation/members/<int:pk>/remove/", organisation.remove, name="member-remove"),
    path("settings/keys/", provider_keys.keys, name="keys"),
    path("settings/keys/<str:uid>/remove/", provider_keys.remove_key, name="key-remove"),
    path("settings/tokens/", tokens.tokens, name="tokens"),
    path("settings/tokens/<str:uid>/rotate/", tokens.rotate, name="token-rotate"),
    path("settings/tokens/<str:uid>/revoke/", tokens.revoke, name="token-revoke"),
    path("settings/service-accounts/", tokens.add_service_account, name="service-add"),
    path(
        "settings/service-accounts/<str:uid>/remove/", tokens.remove_service, name="service-remove"
    ),
]
