"""The addresses of the pages of vaults."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "vaults"

of_vault = [
    path("", views.show_vault, name="vault"),
    path("archive/", views.archive_vault, name="vault-archive"),
    path("delete/", views.delete_vault, name="vault-delete"),
    path("credentials/<id:credential_uid>/replace/", views.replace_secret, name="vault-replace"),
    path(
        "credentials/<id:credential_uid>/archive/",
        views.archive_credential,
        name="vault-credential-archive",
    ),
    path(
        "credentials/<id:credential_uid>/delete/",
        views.delete_credential,
        name="vault-credential-delete",
    ),
]

urlpatterns = [
    path("settings/vaults/", views.show_vaults, name="vaults"),
    path("settings/vaults/<id:uid>/", include(of_vault)),
]
