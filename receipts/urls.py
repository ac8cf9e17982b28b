"""The addresses of receipts."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "receipts"

urlpatterns = [
    path("c/<id:uid>/receipt/", views.show, name="receipt"),
    path("c/<id:uid>/receipt/file/", views.download, name="receipt-file"),
    path("receipts/key/", views.key, name="key"),
]
