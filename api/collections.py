"""`/api/collections`: documents that agents search and cite, a person's own and her organisation's."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from documents.actions.collections import create_collection, delete_collection
from documents.actions.documents import add_address, add_document, delete_document, read_again
from documents.models import (
    ADDRESS_LIMIT,
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    Collection,
    Document,
)
from documents.searching import search_passages
from harness.errors import Invalid, NotFound
from memory.embedding.asking import look_up
from memory.embedding.paying import Payer
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .schema import LIKENESS, answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "Collections"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
QUERY = OpenApiParameter(
    "q", OpenApiTypes.STR, required=True, description="A question, or words that stand there."
)
QUERY_LIMIT = 500
FOUND = 20


class NewCollection(serializers.Serializer[Any]):
    name = StrictText(max_length=NAME_LIMIT)
    description = StrictText(required=False, allow_blank=True, max_length=DESCRIPTION_LIMIT)
    shared = serializers.BooleanField(
        required=False, help_text="All members of the organisation read it."
    )


class CollectionRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    shared = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class NewDocument(serializers.Serializer[Any]):
    """Either an `address`, or a `name` and its bytes in base64. One of that name is replaced."""

    name = StrictText(required=False, max_length=NAME_LIMIT)
    content_base64 = serializers.CharField(required=False)
    address = StrictText(required=False, max_length=ADDRESS_LIMIT)


class DocumentRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    address = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(choices=Document.State.choices)
    problem = serializers.CharField(allow_null=True)
    problem_code = serializers.CharField(allow_null=True, help_text="Stable; why it failed.")
    passages = serializers.IntegerField(help_text="Made so far.")
    size = serializers.IntegerField()
    truncated = serializers.BooleanField(help_text="Only its beginning was read.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class PassageRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    document_id = serializers.CharField()
    document = serializers.CharField()
    page = serializers.CharField(allow_blank=True)
    heading = serializers.CharField(allow_blank=True)
    text = serializers.CharField()
    words = serializers.ListField(child=serializers.CharField(), help_text="Why it was found.")
    likeness = serializers.FloatField(allow_null=True, help_text=LIKENESS)


class FoundRows(serializers.Serializer[Any]):
    passages = PassageRow(many=True)
    low_confidence = serializers.BooleanField()


def _row(collection: Collection) -> dict[str, Any]:
    return {
        "id": collection.uid,
        "name": collection.name,
        "description": collection.description,
        "shared": collection.owner_id is None,
        "created_at": collection.created_at,
    }


def _document_row(document: Document) -> dict[str, Any]:
    return {
        "id": document.uid,
        "name": document.name,
        "address": document.address or None,
        "state": document.state,
        "problem": document.problem or None,
        "problem_code": document.problem_code or None,
        "passages": document.progress,
        "size": document.size,
        "truncated": document.cut,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
    }


class CollectionView(ApiView):
    def collections(self) -> Any:
        rows = self.narrowed(Collection.objects.visible_to(self.actor))
        return rows.select_related("organisation").order_by("pk")

    def find_collection(self, uid: str) -> Collection:
        found = self.collections().filter(uid=uid).first()
        if not isinstance(found, Collection):
            raise NotFound(
                _("There is no such collection."), hint=_("GET /api/collections lists yours.")
            )
        return found

    def find_document(self, uid: str, document: str) -> Document:
        rows = Document.objects.filter(collection=self.find_collection(uid))
        found = rows.select_related("collection__organisation").filter(uid=document).first()
        if found is None:
            raise NotFound(_("There is no such document."))
        return found


class CollectionsView(CollectionView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="collections_list",
        summary="List one's collections and those of the organisation",
        tags=[TAG],
        responses=listed(CollectionRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.collections()])

    @extend_schema(
        operation_id="collections_create",
        summary="Make a collection",
        tags=[TAG],
        request=NewCollection,
        responses={201: CollectionRow, **errors(401, 403, 409, 413, 422)},
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewCollection, request.data)
        made = create_collection(
            actor=self.actor,
            organisation=self.organisation,
            name=given["name"],
            description=given.get("description", ""),
            shared=given.get("shared", False),
        )
        return Response(_row(made), status=201)


class OneCollectionView(CollectionView):
    scopes = {"GET": READ, "DELETE": WRITE}

    @extend_schema(
        operation_id="collections_retrieve",
        summary="Read a collection",
        tags=[TAG],
        responses=answers(CollectionRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_row(self.find_collection(uid)))

    @extend_schema(
        operation_id="collections_destroy",
        summary="Delete a collection with all that is in it",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_collection(actor=self.actor, collection=self.find_collection(uid))
        return Response({"status": "deleted"})


class DocumentsView(CollectionView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="collections_documents_list",
        summary="List the documents of a collection, and how far they are read",
        tags=[TAG],
        responses=listed(DocumentRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = self.find_collection(uid).documents.order_by("name")
        return Response([_document_row(each) for each in rows])

    @extend_schema(
        operation_id="collections_documents_create",
        summary="Add a document, or replace the one of that name",
        tags=[TAG],
        request=NewDocument,
        responses={201: DocumentRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        collection = self.find_collection(uid)
        given = read_body(NewDocument, request.data)
        if address := given.get("address"):
            made = add_address(actor=self.actor, collection=collection, address=address)
        else:
            with written({"data": "content_base64"}):
                made = add_document(
                    actor=self.actor,
                    collection=collection,
                    name=given.get("name", ""),
                    data=_bytes(given.get("content_base64", "")),
                )
        return Response(_document_row(made), status=201)


class OneDocumentView(CollectionView):
    scopes = {"GET": READ, "DELETE": WRITE}

    @extend_schema(
        operation_id="collections_documents_retrieve",
        summary="Read how a document stands",
        tags=[TAG],
        responses=answers(DocumentRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, document: str) -> Response:
        return Response(_document_row(self.find_document(uid, document)))

    @extend_schema(
        operation_id="collections_documents_destroy",
        summary="Delete a document; it is found no more",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str, document: str) -> Response:
        delete_document(actor=self.actor, document=self.find_document(uid, document))
        return Response({"status": "deleted"})


class AgainView(CollectionView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="collections_documents_read_again",
        summary="Fetch a document anew, or read once more what was uploaded and could not be read",
        tags=[TAG],
        request=None,
        responses=answers(DocumentRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str, document: str) -> Response:
        found = self.find_document(uid, document)
        return Response(_document_row(read_again(actor=self.actor, document=found)))


class SearchView(CollectionView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="collections_search",
        summary="Find passages of a collection that answer a question, best first",
        tags=[TAG],
        parameters=[QUERY],
        responses=answers(FoundRows, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        query = request.query_params.get("q", "").strip()
        collection = self.find_collection(uid)
        if not query or len(query) > QUERY_LIMIT or "\0" in query:
            raise Invalid(
                _("q: 1 to %(most)d characters are looked for.") % {"most": QUERY_LIMIT},
                field="q",
                hint=_("Add ?q=… to the address."),
            )
        one = Collection.objects.filter(pk=collection.pk)
        look_up(Payer(collection.organisation_id, self.actor.pk), self.actor.pk, query)
        found = search_passages(self.actor, query, one, limit=FOUND)
        rows = [
            {
                "id": hit.passage.uid,
                "document_id": hit.passage.document.uid,
                "document": hit.passage.document.name,
                "page": hit.passage.page,
                "heading": hit.passage.heading,
                "text": hit.passage.text,
                "words": list(hit.why),
                "likeness": hit.likeness,
            }
            for hit in found.hits
        ]
        return Response({"passages": rows, "low_confidence": found.low})


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(
            _("content_base64: this is not base64."),
            field="content_base64",
            hint=_("Encode the bytes of the file."),
        ) from None
