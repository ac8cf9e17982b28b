"""The pages of boards: the columns of a conversation's and of the organisation's, and how they stand now."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.models import User
from accounts.requests import SignedInRequest
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from harness.errors import AgentError, NotFound
from teams_app.actions.tasks import create_task
from teams_app.boards import board_of
from teams_app.forms import TaskForm
from teams_app.listing import AGENTS, ME, NOBODY, PEOPLE, columns, mine
from teams_app.models import Board, TeamRequest
from teams_app.owners import Owner


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_of_organisation(request: SignedInRequest) -> HttpResponse:
    """The board of the organisation one works in; a POST puts a task on it."""
    if request.method == "POST":
        require_shown_organisation(request)
    return _page(request, board_of(request.organisation), reverse("tasks:tasks"))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_of_conversation(request: SignedInRequest, uid: str) -> HttpResponse:
    """The board of all that began with the same conversation; a POST puts a task on it."""
    return _page(request, _of_conversation(request.user, uid), request.path)


@login_required
@require_safe
def live_of_organisation(request: SignedInRequest) -> HttpResponse:
    return _live(request, board_of(request.organisation))


@login_required
@require_safe
def live_of_conversation(request: SignedInRequest, uid: str) -> HttpResponse:
    return _live(request, _of_conversation(request.user, uid))


@login_required
@require_safe
def show_mine(request: SignedInRequest) -> HttpResponse:
    """What is the person's to do, over all boards that she sees."""
    asked = TeamRequest.objects.waiting_for(request.user).select_related("team__lead")
    context = {"tasks": mine(request.user), "questions": asked[:PEOPLE], "view": "tasks"}
    return render(request, "tasks/mine.html", context)


def draw_columns(request: SignedInRequest, board: Board) -> HttpResponse:
    """The columns alone, for a page that shows them."""
    return render(request, "tasks/_columns.html", _shown(request, board))


def address_of(board: Board) -> str:
    if board.conversation is None:
        return reverse("tasks:tasks")
    return reverse("tasks:of-conversation", args=[board.conversation.uid])


def may_change(user: User, board: Board) -> bool:
    if board.is_stored:
        return Board.objects.changeable_by(user).filter(pk=board.pk).exists()
    if board.conversation_id is None:
        return True
    return Conversation.objects.writable_by(user).filter(pk=board.conversation_id).exists()


def _page(request: SignedInRequest, board: Board, address: str) -> HttpResponse:
    form = TaskForm(request.POST if request.method == "POST" else None, board=board)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                task = create_task(
                    actor=request.user,
                    board=board,
                    subject=form.cleaned_data["subject"],
                    description=form.cleaned_data["description"],
                    owner=form.owner_value() or Owner(),
                    blocked_by=form.numbers(),
                )
                messages.success(request, _("Task #%(number)d is made.") % {"number": task.number})
                return redirect(address)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {**_shown(request, board), "form": form}
    return render(request, "tasks/board.html", context, status=status)


def _live(request: SignedInRequest, board: Board) -> HttpResponse:
    """Nothing, where the board is as the page has it."""
    if request.GET.get("known") == str(board.version):
        return HttpResponse(status=204)
    return draw_columns(request, board)


def _of_conversation(user: User, uid: str) -> Board:
    """NotFound for a conversation that she does not see, and where its board is another's."""
    board = board_of(find_conversation(user, uid))
    root = board.conversation
    if root is None or not Conversation.objects.visible_to(user).contains(root):
        raise NotFound(_("There is no such board."))
    return board


def _shown(request: SignedInRequest, board: Board) -> dict[str, Any]:
    chosen = {name: request.GET.get(name, "") for name in ("q", "whose")}
    kept = {name: value for name, value in chosen.items() if value}
    live = "tasks:live" if board.conversation is None else "tasks:live-of-conversation"
    place = [] if board.conversation is None else [board.conversation.uid]
    asked: dict[str, str] = {**kept, "known": str(board.version)}
    return {
        "board": board,
        "conversation_of_board": board.conversation,
        "columns": columns(board, request.user, chosen),
        "may_change": may_change(request.user, board),
        "address": address_of(board),
        "chosen": chosen,
        "kept": urlencode(kept),
        "live": f"{reverse(live, args=place)}?{urlencode(asked)}",
        "whose": [
            ("", _("everybody’s")),
            (ME, _("mine")),
            (NOBODY, _("nobody’s")),
            (AGENTS, _("agents’")),
        ],
    }
