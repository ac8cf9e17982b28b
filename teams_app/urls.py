"""The addresses of boards, tasks and teams."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from .views import boards, tasks, teams

app_name = "tasks"

urlpatterns = [
    path("tasks/", boards.show_of_organisation, name="tasks"),
    path("tasks/live/", boards.live_of_organisation, name="live"),
    path("tasks/mine/", boards.show_mine, name="mine"),
    path("tasks/<id:task_uid>/", tasks.show, name="task"),
    path("tasks/<id:task_uid>/move/", tasks.move, name="move"),
    path("tasks/<id:task_uid>/delete/", tasks.delete, name="delete"),
    path("tasks/questions/<id:question_uid>/", teams.answer, name="answer"),
    path("c/<id:uid>/team/", teams.show, name="team"),
    path("c/<id:uid>/team-now/", teams.live, name="team-now"),
    path("c/<id:uid>/team/<id:member>/", teams.change, name="member"),
    path("c/<id:uid>/tasks/", boards.show_of_conversation, name="of-conversation"),
    path("c/<id:uid>/tasks/live/", boards.live_of_conversation, name="live-of-conversation"),
]
