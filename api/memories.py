"""`/api/memories`: what agents remember of a person and of what she shares; all that her page of it does.

Stores themselves are made and files in them written at `/v1/memory_stores`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from accounts.streaming import streamed
from harness.errors import Invalid, NotFound
from memory.access import Author, may_write, writable
from memory.actions.remembering import (
    LEARNABLE,
    TEXT_LIMIT,
    confirm_memory,
    correct_memory,
    forget_memories,
    forget_memory,
    mark_memory,
    own_store,
    remember,
    replaced_by,
)
from memory.embedding.asking import look_up
from memory.embedding.paying import Payer
from memory.models import Memory, MemoryStore, MemoryVersion
from memory.searching import matching, search_memories, stores_of
from recall.actions.switching import leave_out, switch_memory
from recall.listing import as_row, exported, recalls_in, still_exported, stores_in
from recall.models import MemoryOff
from v1.memorystores import author
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .moments import moment_given
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIKENESS, LIMIT, answers, errors, listed
from .serializers import StrictSwitch, StrictText

TAG = "Memory"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
QUERY_LIMIT = 500
AT_ONCE = 200
"""Memories that one request forgets by their ids."""
VERSIONS = 50
QUESTION = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "maxLength": QUERY_LIMIT},
    required=True,
    description="A question, or words that stand there.",
)
WORDS = OpenApiParameter(
    "q",
    {"type": "string", "maxLength": QUERY_LIMIT},
    description="Only what has all of these words.",
)
AT = OpenApiParameter(
    "at",
    OpenApiTypes.DATETIME,
    description="What was true then. Left out: all, what is true now first.",
)
STORE = OpenApiParameter("store_id", OpenApiTypes.STR, description="Only what lies in this store.")


class MemoryRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    store = serializers.CharField(help_text="Id of its store.")
    scope = serializers.CharField(help_text="`person`, `agent` or `organization`: who sees it.")
    path = serializers.CharField()
    kind = serializers.CharField(
        help_text="`note`, `fact`, `preference`, `lesson` or `correction`."
    )
    key = serializers.CharField(
        allow_blank=True, help_text="What it is about, where that is named."
    )
    content = serializers.CharField(allow_blank=True)
    version_uid = serializers.CharField(help_text="Id of the version that says this.")
    pinned = serializers.BooleanField()
    untrusted = serializers.BooleanField(help_text="It came from what strangers wrote.")
    waits = serializers.BooleanField(help_text="No agent is told of it before a person says yes.")
    confirmed_at = serializers.DateTimeField(allow_null=True)
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_until = serializers.DateTimeField(allow_null=True)
    source_conversation = serializers.CharField(allow_blank=True)
    source_event = serializers.CharField(allow_blank=True)
    source_agent = serializers.CharField(allow_blank=True)
    uses = serializers.IntegerField(help_text="How often an agent was reminded of it.")
    used_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NewMemory(serializers.Serializer[Any]):
    text = StrictText(max_length=TEXT_LIMIT, help_text="One thing, in a sentence of its own.")
    kind = serializers.ChoiceField(choices=[kind.value for kind in LEARNABLE], required=False)
    key = StrictText(
        required=False,
        allow_blank=True,
        max_length=120,
        help_text="What it is about: another text under it takes the place of the one before.",
    )
    store_id = StrictText(required=False, max_length=40, help_text="Left out: one's own.")


class Remembered(serializers.Serializer[Any]):
    memory = MemoryRow()
    new = serializers.BooleanField(help_text="false: it was known.")
    superseded = serializers.CharField(
        allow_null=True, help_text="Id of what held until now and no longer does."
    )


class MemoryVersionRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    operation = serializers.CharField()
    content = serializers.CharField(allow_null=True, help_text="null: it was taken out.")
    by = serializers.CharField()
    at = serializers.DateTimeField()


class ReplacedMemory(serializers.Serializer[Any]):
    id = serializers.CharField()
    path = serializers.CharField()
    content = serializers.CharField(allow_blank=True)
    version_uid = serializers.CharField()


class OneMemory(MemoryRow):
    may_write = serializers.BooleanField()
    supersedes = serializers.CharField(allow_null=True)
    superseded_by = serializers.CharField(allow_null=True)
    replaces = ReplacedMemory(
        allow_null=True, help_text="What ends, or says this from then on, with a person's yes."
    )
    versions = MemoryVersionRow(many=True, help_text="The newest first.")


class MemoryChange(serializers.Serializer[Any]):
    """`text` puts it right; `pinned` pins it or lets go."""

    text = StrictText(required=False, max_length=TEXT_LIMIT)
    pinned = StrictSwitch(required=False)


class ShownVersion(serializers.Serializer[Any]):
    version_uid = StrictText(
        max_length=40, help_text="Of what was shown to the person; 409 where it is another by now."
    )
    replaced_version_uid = StrictText(
        required=False,
        allow_blank=True,
        max_length=40,
        help_text="Of what that takes the place of, `replaces` of the memory, which was shown as well; 409 "
        "where it is another by now. Empty: of nothing.",
    )


class MemoryStoreRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.CharField()
    agent_id = serializers.CharField(allow_null=True)
    memories = serializers.IntegerField()
    may_write = serializers.BooleanField()
    archived_at = serializers.DateTimeField(allow_null=True)


class MemoryHit(serializers.Serializer[Any]):
    memory = MemoryRow()
    words = serializers.ListField(child=serializers.CharField(), help_text="Why it was found.")
    likeness = serializers.FloatField(allow_null=True, help_text=LIKENESS)


class MemoriesFound(serializers.Serializer[Any]):
    hits = MemoryHit(many=True, help_text="Best first.")
    confidence = serializers.FloatField(
        help_text="How much of the question the best covers, 0 to 1."
    )
    low_confidence = serializers.BooleanField()


class Forgetting(serializers.Serializer[Any]):
    """Either `ids`, or `all`: everything of one's own in the organisation."""

    ids = serializers.ListField(
        child=StrictText(max_length=40), required=False, min_length=1, max_length=AT_ONCE
    )
    all = StrictSwitch(required=False)


class Forgotten(serializers.Serializer[Any]):
    forgotten = serializers.IntegerField()


class MemorySwitch(serializers.Serializer[Any]):
    on = StrictSwitch(help_text="Agents are told of one's own memory, and add to it.")


class RecallHit(serializers.Serializer[Any]):
    memory = MemoryRow(allow_null=True, help_text="As it is now; null: it is forgotten.")
    words = serializers.ListField(child=serializers.CharField())
    likeness = serializers.FloatField(allow_null=True, help_text=LIKENESS)
    changed = serializers.BooleanField(help_text="It says something else by now.")


class RecalledPassage(serializers.Serializer[Any]):
    id = serializers.CharField(allow_null=True, help_text="Null: it is gone.")
    document = serializers.CharField(allow_null=True)
    page = serializers.CharField(allow_null=True)
    words = serializers.ListField(child=serializers.CharField())
    likeness = serializers.FloatField(allow_null=True, help_text=LIKENESS)


class RecalledTurn(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Of the message that began it.")
    text = serializers.CharField(
        allow_null=True, help_text="What that says; null: it counts no more, or was taken out."
    )
    words = serializers.ListField(child=serializers.CharField())


class RecallRow(serializers.Serializer[Any]):
    message_id = serializers.CharField()
    at = serializers.DateTimeField()
    hits = RecallHit(many=True)
    passages = RecalledPassage(many=True, help_text="Of documents, which the agent was named.")
    turns = RecalledTurn(
        many=True, help_text="Of the same conversation, which its summary stands for."
    )


def _row(memory: Memory) -> dict[str, Any]:
    return {**as_row(memory, memory.store), "waits": memory.waits}


def _replaced(memory: Memory) -> dict[str, Any] | None:
    replaced = replaced_by(memory)
    if replaced is None:
        return None
    shown = ("path", "content", "version_uid")
    return {"id": replaced.uid, **{name: getattr(replaced, name) for name in shown}}


class MemoryView(ApiView):
    scopes = {"GET": READ, "POST": WRITE, "PATCH": WRITE, "PUT": WRITE, "DELETE": WRITE}

    @property
    def author(self) -> Author | None:
        """Whom versions name where a program acts; None: the person herself."""
        caller = getattr(self.request, "caller", None)
        return author(caller) if isinstance(caller, Caller) else None

    def memories(self) -> Any:
        rows = Memory.objects.visible_to(self.actor).filter(store__organisation=self.organisation)
        return rows.select_related("store__organisation", "store__agent", "supersedes")

    def find_memory(self, uid: str) -> Memory:
        found = self.memories().filter(uid=uid).first()
        if not isinstance(found, Memory):
            raise NotFound(
                _("There is no such memory."), hint=_("GET /api/memories lists what there is.")
            )
        return found

    def find_store(self, uid: str, field: str) -> MemoryStore:
        rows = MemoryStore.objects.visible_to(self.actor).filter(organisation=self.organisation)
        found = rows.select_related("organisation", "agent").filter(uid=uid).first()
        if found is None:
            raise Invalid(
                _("%(field)s: There is no such memory store.") % {"field": field},
                field=field,
                hint=_("GET /api/memories/stores lists them."),
            )
        return found

    def words_of(self, request: Any, *, needed: bool) -> str:
        given = str(request.query_params.get("q", "")).replace("\0", "")
        if len(given) > QUERY_LIMIT or (needed and not given.strip()):
            raise Invalid(
                _("q: A question of 1 to %(most)d characters is needed.") % {"most": QUERY_LIMIT}
                if needed
                else _("q: It has more than %(most)d characters.") % {"most": QUERY_LIMIT},
                field="q",
                hint=_("Say what is looked for."),
            )
        return given


class MemoriesView(MemoryView):
    @extend_schema(
        operation_id="memories_list",
        summary="List what is remembered, the newest first",
        tags=[TAG],
        parameters=[WORDS, STORE, LIMIT, CURSOR],
        responses=listed(MemoryRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        rows = self.memories()
        stores = list(stores_in(self.actor, self.organisation))
        if wanted := request.query_params.get("store_id"):
            stores = [self.find_store(wanted, "store_id")]
            rows = rows.filter(store=stores[0])
        rows = matching(rows, self.words_of(request, needed=False), stores)
        if cursor is not None:
            rows = rows.filter(pk__lt=cursor[0])
        found = list(rows.order_by("-pk")[: limit + 1])
        after = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, [_row(each) for each in found[:limit]], after)

    @extend_schema(
        operation_id="memories_create",
        summary="Have something remembered",
        description="The same again changes nothing: the answer is 200, with `new` false.",
        tags=[TAG],
        request=NewMemory,
        responses={
            200: Remembered,
            201: Remembered,
            **errors(401, 403, 404, 409, 413, 422),
        },
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewMemory, request.data)
        store = (
            self.find_store(given["store_id"], "store_id")
            if "store_id" in given
            else own_store(actor=self.actor, organisation=self.organisation)
        )
        with written({"content": "text"}):
            made = remember(
                actor=self.actor,
                store=store,
                text=given["text"],
                kind=given.get("kind", LEARNABLE[0]),
                key=given.get("key", ""),
                author=self.author,
            )
        answer = {
            "memory": _row(self.find_memory(made.memory.uid)),
            "new": made.new,
            "superseded": made.superseded.uid if made.superseded else None,
        }
        return Response(answer, status=201 if made.new else 200)


class OneMemoryView(MemoryView):
    @extend_schema(
        operation_id="memories_retrieve",
        summary="Read a memory, and what it said before",
        tags=[TAG],
        responses=answers(OneMemory, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(self._whole(self.find_memory(uid)))

    @extend_schema(
        operation_id="memories_partial_update",
        summary="Put a memory right, or pin it",
        description="What strangers wrote goes on waiting for a person's yes when a program corrects it.",
        tags=[TAG],
        request=MemoryChange,
        responses=answers(OneMemory, 401, 403, 404, 409, 413, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        memory = self.find_memory(uid)
        given = read_body(MemoryChange, request.data)
        if "text" in given:
            text, by = given["text"], self.author
            with written({"content": "text"}):
                memory = correct_memory(actor=self.actor, memory=memory, text=text, author=by)
        if "pinned" in given:
            mark_memory(actor=self.actor, memory=memory, pinned=given["pinned"])
        return Response(self._whole(self.find_memory(memory.uid)))

    @extend_schema(
        operation_id="memories_destroy",
        summary="Forget a memory, with all that it said before",
        tags=[TAG],
        responses=answers(Forgotten, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        forget_memory(actor=self.actor, memory=self.find_memory(uid), author=self.author)
        return Response({"forgotten": 1})

    def _whole(self, memory: Memory) -> dict[str, Any]:
        versions = MemoryVersion.objects.filter(store=memory.store, memory_uid=memory.uid)
        later = memory.superseded_by.first()
        return {
            **_row(memory),
            "may_write": may_write(self.actor, memory.store),
            "supersedes": memory.supersedes.uid if memory.supersedes else None,
            "superseded_by": later.uid if later else None,
            "replaces": _replaced(memory),
            "versions": [
                {
                    "id": version.uid,
                    "operation": version.operation,
                    "content": None if version.redacted_at else version.content,
                    "by": f"{version.author_kind}:{version.author_uid}",
                    "at": version.created_at,
                }
                for version in versions.order_by("-pk")[:VERSIONS]
            ],
        }


class ConfirmMemoryView(MemoryView):
    scopes = {"POST": TokenScope.APPROVALS_DECIDE}

    @extend_schema(
        operation_id="memories_confirm",
        summary="Say yes to a memory that came from what strangers wrote",
        description="A person does; a service account may not.",
        tags=[TAG],
        request=ShownVersion,
        responses=answers(MemoryRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        memory = self.find_memory(uid)
        given = read_body(ShownVersion, request.data)
        said = confirm_memory(actor=self.actor, memory=memory, **given)
        return Response(_row(self.find_memory(said.uid)))


class MemorySearchView(MemoryView):
    @extend_schema(
        operation_id="memories_search",
        summary="Find what answers a question, best first",
        tags=[TAG],
        parameters=[QUESTION, AT, LIMIT],
        responses=answers(MemoriesFound, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        words = self.words_of(request, needed=True)
        at = moment_given(request.query_params.get("at"), field="at")
        stores = stores_of(self.actor).filter(organisation=self.organisation)
        look_up(Payer(self.organisation.pk, self.actor.pk), self.actor.pk, words)
        found = search_memories(self.actor, words, stores, limit=limit_of(request, 10), at=at)
        return Response(
            {
                "hits": [
                    {
                        "memory": _row(hit.memory),
                        "words": list(hit.why),
                        "likeness": hit.likeness,
                    }
                    for hit in found.hits
                ],
                "confidence": found.confidence,
                "low_confidence": found.low,
            }
        )


class MemoryStoresView(MemoryView):
    @extend_schema(
        operation_id="memories_stores",
        summary="List the stores that hold memories, one's own first",
        tags=[TAG],
        responses=listed(MemoryStoreRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        stores = list(stores_in(self.actor, self.organisation))
        may = writable(self.actor, stores)
        return Response(
            [
                {
                    "id": store.uid,
                    "name": store.name,
                    "scope": store.scope,
                    "agent_id": store.agent.uid if store.agent else None,
                    "memories": vars(store)["held"],
                    "may_write": may[store.pk],
                    "archived_at": store.archived_at,
                }
                for store in stores
            ]
        )


class ForgetMemoriesView(MemoryView):
    @extend_schema(
        operation_id="memories_forget",
        summary="Forget several memories, or everything of one's own",
        tags=[TAG],
        request=Forgetting,
        responses=answers(Forgotten, 401, 403, 404, 422),
    )
    def post(self, request: Any) -> Response:
        given = read_body(Forgetting, request.data)
        ids = given.get("ids", [])
        if bool(ids) == given.get("all", False):
            raise Invalid(
                _("Either `ids` or `all` says what is to be forgotten."),
                field="ids",
                hint=_("Send a list of ids, or `all` as true."),
            )
        rows = self.memories()
        rows = rows.filter(uid__in=ids) if ids else rows.filter(store__owner=self.actor)
        found = list(rows)
        if ids and len(found) < len(set(ids)):
            raise NotFound(_("One of these memories is not there."), hint=_("None is forgotten."))
        forgotten = forget_memories(actor=self.actor, memories=found, author=self.author)
        return Response({"forgotten": forgotten})


class MemorySwitchView(MemoryView):
    @extend_schema(
        operation_id="memories_switch_retrieve",
        summary="Whether agents use one's own memory in this organisation",
        tags=[TAG],
        responses=answers(MemorySwitch, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response({"on": self._is_on()})

    @extend_schema(
        operation_id="memories_switch_update",
        summary="Switch one's own memory on or off in this organisation",
        tags=[TAG],
        request=MemorySwitch,
        responses=answers(MemorySwitch, 401, 403, 422),
    )
    def put(self, request: Any) -> Response:
        given = read_body(MemorySwitch, request.data)
        switch_memory(actor=self.actor, organisation=self.organisation, on=given["on"])
        return Response({"on": self._is_on()})

    def _is_on(self) -> bool:
        off = MemoryOff.objects.filter(user=self.actor, organisation=self.organisation)
        return not off.exists()


class MemoryExportView(MemoryView):
    @extend_schema(
        operation_id="memories_export",
        summary="Everything of one's own, with every version, one JSON object a line",
        tags=[TAG],
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.STR),
            **errors(401, 403),
        },
    )
    def get(self, request: Any) -> StreamingHttpResponse:
        rows = exported(self.actor, self.organisation)
        lines = (f"{json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False)}\n" for row in rows)
        pieces = streamed(request, lines, still=still_exported(self.organisation))
        return StreamingHttpResponse(pieces, content_type="application/x-ndjson")


class RecalledView(MemoryView):
    @extend_schema(
        operation_id="conversations_recalled",
        summary="What each message of a conversation of one's own recalled, and by which words",
        tags=[TAG],
        responses=listed(RecallRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        return Response(
            [
                {
                    "message_id": each["recall"].message_uid,
                    "at": each["recall"].created_at,
                    "hits": [_hit(hit) for hit in each["hits"]],
                    "passages": [_passage(hit) for hit in each["passages"]],
                    "turns": [
                        {name: turn[name] for name in ("id", "text", "words")}
                        for turn in each["turns"]
                    ],
                }
                for each in recalls_in(self.actor, conversation)
            ]
        )

    @extend_schema(
        operation_id="conversations_forget_learned",
        summary="Remember nothing of this conversation: forget what was learned, switch its memory off",
        tags=[TAG],
        responses=answers(Forgotten, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        return Response({"forgotten": leave_out(actor=self.actor, conversation=conversation)})


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    memory = hit["memory"]
    return {
        "memory": None if memory is None else _row(memory),
        "words": hit["words"],
        "likeness": hit["likeness"],
        "changed": hit["changed"],
    }


def _passage(hit: Mapping[str, Any]) -> dict[str, Any]:
    passage = hit["passage"]
    return {
        "id": passage and passage.uid,
        "document": passage and passage.document.name,
        "page": passage and passage.page,
        "words": hit["words"],
        "likeness": hit["likeness"],
    }
