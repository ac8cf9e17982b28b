"""`/api/tasks`: the tasks of a conversation's board and of the organisation's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope, User
from conversations.models import Conversation
from harness.errors import Invalid, NotFound
from harness.refusals import not_among
from teams_app.actions.tasks import (
    Changes,
    change_task,
    claim_task,
    create_task,
    delete_task,
    link_task,
    unlink_task,
)
from teams_app.boards import Standing, board_of, standings
from teams_app.models import Board, Task, TaskLink
from teams_app.owners import NOBODY, Owner, person_named

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "Tasks"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
ASSIGNED = ("me", "nobody")
OWNER = "`me`, `nobody`, `person:` and a name or id, or `agent:` and the id of its conversation."


class Number(serializers.IntegerField):
    """The number of a task on its board."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=1, max_value=2**31 - 1, **kwargs)


class NewTask(serializers.Serializer[Any]):
    conversation_id = StrictText(
        required=False,
        allow_null=True,
        max_length=64,
        help_text="Whose board it is put on; none: the organisation's.",
    )
    subject = StrictText(max_length=200)
    description = StrictText(required=False, allow_blank=True, max_length=10_000)
    active_form = StrictText(required=False, allow_blank=True, max_length=200)
    owner = StrictText(required=False, max_length=200, help_text=OWNER)
    blocked_by = serializers.ListField(
        child=Number(), required=False, max_length=50, help_text="Numbers on the same board."
    )
    blocks = serializers.ListField(child=Number(), required=False, max_length=50)
    metadata = serializers.DictField(required=False)


class ChangedTask(serializers.Serializer[Any]):
    """What is left out stays. Whoever finishes or cancels a task frees those that waited for it."""

    subject = StrictText(required=False, max_length=200)
    description = StrictText(required=False, allow_blank=True, max_length=10_000)
    active_form = StrictText(required=False, allow_blank=True, max_length=200)
    status = serializers.ChoiceField(choices=Task.Status.values, required=False)
    owner = StrictText(required=False, max_length=200, help_text=OWNER)
    add_blocked_by = serializers.ListField(child=Number(), required=False, max_length=50)
    add_blocks = serializers.ListField(child=Number(), required=False, max_length=50)
    remove_blocked_by = serializers.ListField(child=Number(), required=False, max_length=50)
    metadata = serializers.DictField(
        required=False, help_text="Merged with what is there; null takes a name away."
    )


class NewTaskLink(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=TaskLink.Kind.values)
    conversation_id = StrictText(max_length=64)
    target = StrictText(
        required=False,
        allow_blank=True,
        max_length=1_024,
        help_text="Of a file its path in the workspace, of a run its number.",
    )


class TaskOwnerRow(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["person", "agent"])
    id = serializers.CharField(help_text="Of the person, or of the agent's conversation.")
    name = serializers.CharField()


class TaskLinkRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=TaskLink.Kind.values)
    conversation_id = serializers.CharField()
    target = serializers.CharField(allow_blank=True)


class TaskRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    number = serializers.IntegerField()
    conversation_id = serializers.CharField(allow_null=True, help_text="null: the organisation's.")
    subject = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    active_form = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(choices=Task.Status.values)
    owner = TaskOwnerRow(allow_null=True)
    blocked_by = serializers.ListField(child=serializers.IntegerField())
    blocks = serializers.ListField(child=serializers.IntegerField())
    claimable = serializers.BooleanField()
    links = TaskLinkRow(many=True)
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


def task_rows(tasks: Iterable[Task], actor: User) -> list[dict[str, Any]]:
    found = list(tasks)
    seen = Conversation.objects.visible_to(actor)
    links = TaskLink.objects.filter(task__in=found, conversation__in=seen)
    by_task: dict[int, list[TaskLink]] = {}
    for link in links.select_related("conversation"):
        by_task.setdefault(link.task_id, []).append(link)
    return [_row(each, by_task.get(each.task.pk, ())) for each in standings(found)]


def _row(standing: Standing, links: Sequence[TaskLink]) -> dict[str, Any]:
    task = standing.task
    board = task.board
    return {
        "id": task.uid,
        "number": task.number,
        "conversation_id": board.conversation.uid if board.conversation else None,
        "subject": task.subject,
        "description": task.description,
        "active_form": task.active_form,
        "status": task.status,
        "owner": _owner_row(task),
        "blocked_by": list(standing.blocked_by),
        "blocks": list(standing.blocks),
        "claimable": standing.claimable,
        "links": [_link_row(link) for link in links],
        "metadata": task.metadata,
        "created_at": task.created_at,
        "changed_at": task.changed_at,
    }


def _owner_row(task: Task) -> dict[str, str] | None:
    if task.owner_user is not None:
        return {"kind": "person", "id": task.owner_user.uid, "name": task.owner_name}
    if task.owner_conversation is not None:
        return {"kind": "agent", "id": task.owner_conversation.uid, "name": task.owner_name}
    return None


def _link_row(link: TaskLink) -> dict[str, Any]:
    return {
        "id": link.pk,
        "kind": link.kind,
        "conversation_id": link.conversation.uid,
        "target": link.target,
    }


class TaskView(ApiView):
    def tasks(self) -> Any:
        boards = self.narrowed(Board.objects.visible_to(self.actor))
        return Task.objects.filter(board__in=boards).select_related(
            "board__conversation", "board__organisation", "owner_user", "owner_conversation"
        )

    def find_task(self, uid: str) -> Task:
        found = self.tasks().filter(uid=uid).first()
        if not isinstance(found, Task):
            raise NotFound(_("There is no such task."), hint=_("GET /api/tasks lists them."))
        return found

    def board(self, conversation_id: str | None) -> Board:
        if not conversation_id:
            return board_of(self.organisation)
        board = board_of(self.find_conversation(conversation_id))
        if not self.conversations().filter(pk=board.conversation_id).exists():
            raise NotFound(_("There is no such board."))
        return board

    def owner(self, board: Board, wanted: str | None) -> Owner:
        match (wanted or "nobody").partition(":"):
            case ("nobody", "", ""):
                return NOBODY
            case ("me", "", ""):
                return Owner(user=self.actor)
            case ("person", ":", name):
                return Owner(user=person_named(board, name))
            case ("agent", ":", uid):
                return Owner(conversation=self.find_conversation(uid))
        raise Invalid(
            _("This names nobody who could do it."), field="owner", hint=_("Send %s") % OWNER
        )

    def shown(self, task: Task) -> dict[str, Any]:
        return task_rows([self.tasks().get(pk=task.pk)], self.actor)[0]


class TasksView(TaskView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="tasks_list",
        summary="List tasks, by number",
        description="Of one conversation's board, else of all one may see in the organisation.",
        tags=[TAG],
        parameters=[
            OpenApiParameter("conversation_id", OpenApiTypes.STR, description="Whose board."),
            OpenApiParameter("status", OpenApiTypes.STR, enum=list(Task.Status.values)),
            OpenApiParameter("assigned", OpenApiTypes.STR, enum=list(ASSIGNED)),
            LIMIT,
            CURSOR,
        ],
        responses=listed(TaskRow, 401, 403, 404, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        found = self.tasks().filter(board__organisation=self.organisation)
        if wanted := request.query_params.get("conversation_id", ""):
            board = self.board(wanted)
            found = found.filter(board=board) if board.is_stored else found.none()
        if status := request.query_params.get("status", ""):
            if status not in Task.Status.values:
                raise not_among("status", status, tuple(Task.Status.values))
            found = found.filter(status=status)
        match request.query_params.get("assigned", ""):
            case "":
                pass
            case "me":
                found = found.filter(owner_user=self.actor)
            case "nobody":
                found = found.filter(owner_user=None, owner_conversation=None)
            case other:
                raise not_among("assigned", other, ASSIGNED)
        if cursor:
            found = found.filter(pk__gt=cursor[0])
        rows = list(found.order_by("pk")[: limit + 1])
        more = encode_cursor(rows[limit - 1].pk) if len(rows) > limit else ""
        return page(request, task_rows(rows[:limit], self.actor), more)

    @extend_schema(
        operation_id="tasks_create",
        summary="Put a task on a board",
        tags=[TAG],
        request=NewTask,
        responses={201: TaskRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewTask, request.data)
        board = self.board(given.get("conversation_id"))
        made = create_task(
            actor=self.actor,
            board=board,
            subject=given["subject"],
            description=given.get("description", ""),
            active_form=given.get("active_form", ""),
            owner=self.owner(board, given.get("owner")),
            blocked_by=given.get("blocked_by", ()),
            blocks=given.get("blocks", ()),
            metadata=given.get("metadata"),
        )
        return Response(self.shown(made), status=201)


class OneTaskView(TaskView):
    scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(
        operation_id="tasks_retrieve",
        summary="Read a task",
        tags=[TAG],
        responses=answers(TaskRow, 401, 403, 404),
    )
    def get(self, request: Any, task_uid: str) -> Response:
        return Response(self.shown(self.find_task(task_uid)))

    @extend_schema(
        operation_id="tasks_update",
        summary="Change a task",
        tags=[TAG],
        request=ChangedTask,
        responses=answers(TaskRow, 401, 403, 404, 409, 413, 422),
    )
    def patch(self, request: Any, task_uid: str) -> Response:
        task = self.find_task(task_uid)
        given = read_body(ChangedTask, request.data)
        owner = self.owner(task.board, given["owner"]) if "owner" in given else None
        changed = change_task(
            actor=self.actor,
            task=task,
            changes=Changes(
                subject=given.get("subject"),
                description=given.get("description"),
                active_form=given.get("active_form"),
                status=given.get("status"),
                owner=owner,
                blocked_by=given.get("add_blocked_by", ()),
                blocks=given.get("add_blocks", ()),
                unblocked_by=given.get("remove_blocked_by", ()),
                metadata=given.get("metadata", {}),
            ),
        )
        return Response(self.shown(changed))

    @extend_schema(
        operation_id="tasks_destroy",
        summary="Delete a task; its number is not given again",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, task_uid: str) -> Response:
        delete_task(actor=self.actor, task=self.find_task(task_uid))
        return Response({"status": "deleted"})


class TaskClaimView(TaskView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="tasks_claim",
        summary="Take a task that is nobody's and waits for nothing; of many who try one has it",
        tags=[TAG],
        request=None,
        responses=answers(TaskRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, task_uid: str) -> Response:
        task = self.find_task(task_uid)
        claimed = claim_task(
            actor=self.actor,
            board=task.board,
            number=task.number,
            claimant=Owner(user=self.actor),
        )
        return Response(self.shown(claimed))


class TaskLinksView(TaskView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="tasks_link",
        summary="Say what a task is about or came to",
        tags=[TAG],
        request=NewTaskLink,
        responses=answers(TaskRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, task_uid: str) -> Response:
        task = self.find_task(task_uid)
        given = read_body(NewTaskLink, request.data)
        link_task(
            actor=self.actor,
            task=task,
            kind=given["kind"],
            conversation=self.find_conversation(given["conversation_id"]),
            target=given.get("target", ""),
        )
        return Response(self.shown(task))


class OneTaskLinkView(TaskView):
    scopes = {"DELETE": WRITE}

    @extend_schema(
        operation_id="tasks_unlink",
        summary="Take a link away from a task",
        tags=[TAG],
        responses=answers(TaskRow, 401, 403, 404),
    )
    def delete(self, request: Any, task_uid: str, link: int) -> Response:
        task = self.find_task(task_uid)
        unlink_task(actor=self.actor, task=task, link=link)
        return Response(self.shown(task))
