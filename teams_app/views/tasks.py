"""One task: its page, on which it is changed, and moving it from one column to another."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import refuse
from accounts.models import User
from accounts.requests import SignedInRequest
from chat.views.answers import safe_next
from conversations.models import Conversation
from harness.errors import AgentError, NotFound
from teams_app.actions.tasks import Changes, change_task, delete_task
from teams_app.boards import Standing, standings
from teams_app.forms import ChangedTaskForm
from teams_app.models import Task

from .boards import address_of, draw_columns, may_change


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: SignedInRequest, task_uid: str) -> HttpResponse:
    task = find_task(request.user, task_uid)
    standing = standings([task])[0]
    form = ChangedTaskForm(
        request.POST if request.method == "POST" else None,
        initial=ChangedTaskForm.values_of(standing, task.board),
        board=task.board,
        standing=standing,
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                change_task(actor=request.user, task=task, changes=_changes(form, standing))
                messages.success(request, _("Saved."))
                return redirect(address_of(task.board))
        except AgentError as problem:
            status = refuse(form, problem)
    return render(request, "tasks/task.html", _shown(request, standing, form), status=status)


@login_required
@require_POST
def move(request: SignedInRequest, task_uid: str) -> HttpResponse:
    """Into another column. On a board's page htmx gets its columns as they are then."""
    task = find_task(request.user, task_uid)
    status = request.POST.get("status", "")
    moved = change_task(actor=request.user, task=task, changes=Changes(status=status))
    if request.htmx:  # type: ignore[attr-defined]
        task.board.refresh_from_db()
        return draw_columns(request, task.board)
    messages.success(
        request,
        _("Task #%(number)d is %(status)s now.")
        % {"number": moved.number, "status": moved.get_status_display()},
    )
    return redirect(safe_next(request) or address_of(task.board))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, task_uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    task = find_task(request.user, task_uid)
    if request.method != "POST":
        context = {"task": task, "standing": standings([task])[0]}
        return render(request, "tasks/delete.html", context)
    delete_task(actor=request.user, task=task)
    messages.success(request, _("Task #%(number)d is deleted.") % {"number": task.number})
    return redirect(address_of(task.board))


def find_task(user: User, uid: str) -> Task:
    """NotFound for one that she may not see."""
    mine = Task.objects.visible_to(user).select_related(
        "board__conversation", "owner_user", "creator_user", "creator_conversation"
    )
    found = mine.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such task."))
    return found


def _changes(form: ChangedTaskForm, standing: Standing) -> Changes:
    given = form.cleaned_data
    numbers, before = form.numbers(), standing.blocked_by
    return Changes(
        subject=given["subject"],
        description=given["description"],
        active_form=given["active_form"],
        # What is as it was is not asked for anew: others may have moved it since.
        status=given["status"] if given["status"] != form.initial["status"] else None,
        owner=form.owner_value() if given["owner"] != form.initial["owner"] else None,
        blocked_by=[number for number in numbers if number not in before],
        unblocked_by=[number for number in before if number not in numbers],
    )


def _shown(request: SignedInRequest, standing: Standing, form: Any) -> dict[str, Any]:
    task = standing.task
    seen = Conversation.objects.visible_to(request.user)
    return {
        "task": task,
        "standing": standing,
        "form": form,
        "links": task.links.filter(conversation__in=seen).select_related("conversation"),
        "owner_conversation": seen.filter(owned_tasks=task).first(),
        "may_change": may_change(request.user, task.board),
        "is_hers": task.is_open and task.owner_user_id == request.user.pk,
        "address": address_of(task.board),
    }
