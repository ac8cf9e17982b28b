"""The addresses of collections of documents, and of the passages that answers cite."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "documents"

urlpatterns = [
    path("settings/documents/", views.show_collections, name="collections"),
    path("settings/documents/<id:uid>/", views.show_collection, name="collection"),
    path("settings/documents/<id:uid>/address/", views.add_address, name="add-address"),
    path("settings/documents/<id:uid>/delete/", views.delete_collection, name="delete"),
    path("settings/documents/<id:uid>/forget/", views.forget_held, name="forget"),
    path("documents/<id:uid>/again/", views.read_again, name="again"),
    path("documents/<id:uid>/delete/", views.delete_document, name="delete-document"),
    path("passages/<id:uid>/", views.show_passage, name="passage"),
]
