"""`/api/skills/sources`: where skills come from, what each source offers, and having one of it reviewed."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from harness.errors import Conflict, NotFound
from skills_app.actions.sources import (
    add_source,
    look_at_source,
    remove_source,
    take_from_source,
)
from skills_app.looking import fetch_offer
from skills_app.models import SkillSource, SourceOffer
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .schema import answers, listed
from .serializers import Deleted, StrictText
from .skills import MANAGE, ORGANISATION, READ, SERVER, TAG, SkillVersionRow, version_row


class NewSkillSource(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=SkillSource.Kind.values)
    address = StrictText(max_length=2_000)
    key = StrictText(
        required=False, allow_blank=True, max_length=64, help_text="Of another Agentsite."
    )
    commit = StrictText(
        required=False,
        allow_blank=True,
        max_length=80,
        help_text="Of a repository, 40 digits; of a bundle, the SHA-256 of its archive.",
    )
    scope = serializers.ChoiceField(choices=[ORGANISATION, SERVER], default=ORGANISATION)


class SkillSourceRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=SkillSource.Kind.values)
    address = serializers.CharField()
    commit = serializers.CharField(allow_blank=True)
    scope = serializers.ChoiceField(choices=[ORGANISATION, SERVER])
    looked_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(allow_blank=True, help_text="Why the last look gave nothing.")


class SourceOfferRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    digest = serializers.CharField(help_text="SHA-256 of what is fetched.")
    deprecated = serializers.BooleanField()


class OneSkillSource(SkillSourceRow):
    offers = SourceOfferRow(many=True)


class SkillInstallation(serializers.Serializer[Any]):
    name = StrictText(max_length=64)
    version = StrictText(required=False, allow_blank=True, max_length=50)
    digest = StrictText(max_length=64, help_text="As the source offered it.")


def _row(source: SkillSource) -> dict[str, Any]:
    return {
        "id": source.uid,
        "kind": source.kind,
        "address": source.address,
        "commit": source.commit,
        "scope": ORGANISATION if source.organisation_id else SERVER,
        "looked_at": source.looked_at,
        "problem": source.problem,
    }


def _whole_row(source: SkillSource) -> dict[str, Any]:
    return {
        **_row(source),
        "offers": [_offer_row(each) for each in source.offers.filter(gone=False)],
    }


def _offer_row(offer: SourceOffer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "version": offer.label,
        "description": offer.description,
        "digest": offer.digest,
        "deprecated": offer.deprecated,
    }


class SkillSourceView(ApiView):
    def sources(self) -> Any:
        rows = SkillSource.objects.visible_to(self.actor)
        return rows.filter(organisation=self.organisation) | rows.filter(organisation=None)

    def find_source(self, uid: str) -> SkillSource:
        found = self.sources().filter(uid=uid).select_related("organisation").first()
        if not isinstance(found, SkillSource):
            raise NotFound(
                _("There is no such source."),
                hint=_("GET /api/skills/sources lists those there are."),
            )
        return found


class SkillSourcesView(SkillSourceView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="skills_sources_list",
        summary="List the sources from which skills are installed",
        tags=[TAG],
        responses=listed(SkillSourceRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.sources().order_by("address")])

    @extend_schema(
        operation_id="skills_sources_create",
        summary="Add a source; nothing is asked of it yet",
        tags=[TAG],
        request=NewSkillSource,
        responses=answers(SkillSourceRow, 401, 403, 409, 422),
    )
    def post(self, request: Any) -> Response:
        given = dict(read_body(NewSkillSource, request.data))
        whole = given.pop("scope") == SERVER
        with written({"source": "address"}):
            made = add_source(
                actor=self.actor, organisation=None if whole else self.organisation, **given
            )
        return Response(_row(made))


class OneSkillSourceView(SkillSourceView):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @extend_schema(
        operation_id="skills_sources_retrieve",
        summary="Read a source, and what it offered when it was looked at",
        tags=[TAG],
        responses=answers(OneSkillSource, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_whole_row(self.find_source(uid)))

    @extend_schema(
        operation_id="skills_sources_destroy",
        summary="Take a source away; what was installed from it stays",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        remove_source(actor=self.actor, source=self.find_source(uid))
        return Response({"status": "deleted"})


class SkillSourceLookView(SkillSourceView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="skills_sources_look",
        summary="Ask a source what it offers now",
        tags=[TAG],
        request=None,
        responses=answers(OneSkillSource, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        source = self.find_source(uid)
        return Response(_whole_row(look_at_source(actor=self.actor, source=source)))


class SkillInstallationView(SkillSourceView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="skills_sources_install",
        summary="Fetch what a source offers, verify it whole, and have it reviewed",
        tags=[TAG],
        request=SkillInstallation,
        responses=answers(SkillVersionRow, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        source = self.find_source(uid)
        given = read_body(SkillInstallation, request.data)
        offer = source.offers.of(given["name"], given.get("version", ""))
        if offer.digest != given["digest"]:
            raise Conflict(_("This is not what you looked at."), hint=_("Look at it again."))
        folder = fetch_offer(source, offer)
        version = take_from_source(actor=self.actor, source=source, offer=offer, folder=folder)
        return Response(version_row(version))
