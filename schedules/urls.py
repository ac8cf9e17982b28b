"""The addresses of the pages of schedules, and of the requests that begin one."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "schedules"

of_schedule = [
    path("", views.show_schedule, name="schedule"),
    path("change/", views.change, name="schedule-change"),
    path("run/", views.run, name="schedule-run"),
    path("switch/", views.switch, name="schedule-switch"),
    path("hook/", views.set_hook, name="schedule-hook"),
    path("queue/", views.add_to_queue, name="queue"),
    path("address/", views.new_address, name="schedule-address"),
    path("results/<id:delivery_uid>/", views.result, name="result"),
    path("queue/<id:item_uid>/", views.change_item, name="queue-item"),
    path("delete/", views.delete, name="schedule-delete"),
]

urlpatterns = [
    path("schedules/", views.show_schedules, name="schedules"),
    path("schedules/new/", views.new, name="new"),
    path("schedules/<id:uid>/", include(of_schedule)),
    path("hooks/mail", views.mail_hook, name="mail-hook"),
    path("hooks/schedules/<id:uid>", views.hook, name="hook"),
]
