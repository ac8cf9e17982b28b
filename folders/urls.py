"""The addresses of the pages of folders."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "folders"

of_folder = [
    path("", views.show_folder, name="folder"),
    path("change/", views.change, name="folder-change"),
    path("delete/", views.delete, name="folder-delete"),
    path("members/", views.share, name="folder-share"),
    path("members/<id:member_uid>/remove/", views.unshare, name="folder-unshare"),
    path("files/", views.add_file, name="folder-add-file"),
    path("files/<id:file_uid>/", views.download, name="folder-file"),
    path("files/<id:file_uid>/remove/", views.remove_file, name="folder-remove-file"),
]

urlpatterns = [
    path("folders/", views.show_folders, name="folders"),
    path("folders/<id:uid>/", include(of_folder)),
    path("c/<id:uid>/move/", views.move, name="move"),
]
