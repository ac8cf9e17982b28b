"""`/api/schedules/{id}/items`: the work queue of a schedule."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from harness.errors import NotFound
from schedules.actions.items import KEY_LIMIT, add_item, drop_item, retry_item
from schedules.models import QueueItem
from schedules.queueing import TEXT_LIMIT

from .bodies import read_body
from .schedules import READ, TAG, WRITE, ScheduleView, newest
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import StrictText


class NewItem(serializers.Serializer[Any]):
    text = StrictText(max_length=TEXT_LIMIT)
    key = StrictText(
        required=False,
        allow_blank=True,
        max_length=KEY_LIMIT,
        help_text="Yours: the same one adds nothing again.",
    )


class ItemRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    text = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    state = serializers.CharField()
    depth = serializers.IntegerField()
    tries = serializers.IntegerField()
    not_before = serializers.DateTimeField()
    error = serializers.CharField(allow_blank=True)
    words = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


ROW = (
    "text",
    "source",
    "state",
    "depth",
    "tries",
    "not_before",
    "error",
    "words",
    "created_at",
    "ended_at",
)


def _item_row(item: QueueItem) -> dict[str, Any]:
    return {"id": item.uid, **{name: getattr(item, name) for name in ROW}}


class ItemView(ScheduleView):
    def find_item(self, uid: str, item_uid: str) -> QueueItem:
        order = self.find_schedule(uid)
        found = QueueItem.objects.visible_to(self.actor).filter(order=order, uid=item_uid).first()
        if found is None:
            raise NotFound(_("There is no such item."))
        return found


class ItemsView(ScheduleView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="schedules_items",
        summary="What is and was in its work queue, newest first",
        tags=[TAG],
        parameters=[LIMIT, CURSOR],
        responses=listed(ItemRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        return newest(request, self.find_schedule(uid).items.all(), _item_row)

    @extend_schema(
        operation_id="schedules_add_item",
        summary="Put an item into its work queue",
        tags=[TAG],
        request=NewItem,
        responses={201: ItemRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        order = self.find_schedule(uid)
        given = read_body(NewItem, request.data)
        item = add_item(
            actor=self.actor,
            order=order,
            text=given["text"],
            key=given.get("key", ""),
            by_program=self.caller is not None,
        )
        return Response(_item_row(item), status=201)


class OneItemView(ItemView):
    scopes = {"GET": READ, "DELETE": WRITE}

    @extend_schema(
        operation_id="schedules_item",
        summary="Read an item",
        tags=[TAG],
        responses=answers(ItemRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, item_uid: str) -> Response:
        return Response(_item_row(self.find_item(uid, item_uid)))

    @extend_schema(
        operation_id="schedules_drop_item",
        summary="Take an item that waits out of the queue",
        tags=[TAG],
        responses=answers(ItemRow, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str, item_uid: str) -> Response:
        dropped = drop_item(actor=self.actor, item=self.find_item(uid, item_uid))
        return Response(_item_row(dropped))


class RetryItemView(ItemView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_retry_item",
        summary="Have an item that failed or was taken out wait again",
        tags=[TAG],
        request=None,
        responses=answers(ItemRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str, item_uid: str) -> Response:
        tried = retry_item(actor=self.actor, item=self.find_item(uid, item_uid))
        return Response(_item_row(tried))
