"""`/api/agents`, `/api/agent-reviews`: a member's own agents, those she is offered, and what waits to be
shared. Every rule is the actions'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import TypeAdapter
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.actions.agents import archive_agent
from agents.actions.own import (
    change_own_agent,
    duplicate_agent,
    make_own_agent,
    restore_own_version,
    wishes_of,
)
from agents.actions.reviews import ask_for_review, decide_review, withdraw_review
from agents.listing import listed_agents, place_of
from agents.models import Agent, AgentReview, AgentVersion
from agents.narrowing import Wishes
from harness.agentconfig import Features, ToolRule
from harness.errors import Invalid, NotFound
from harness.modelfaults import read_as
from harness.refusals import not_among
from wire.fieldnames import written

from .agentbodies import (
    AgentDetail,
    AgentRow,
    AskReview,
    ChangeAgent,
    CopyAgent,
    DecideReview,
    MakeAgent,
    RestoreAgent,
    ReviewRow,
    VersionRow,
)
from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed

TAG = "Agents"
READ, MANAGE = TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE
STATE = OpenApiParameter("state", enum=list(AgentReview.State.values))
REVIEWED = ("agent", "version", "shared_version", "asked_by", "decided_by")
WISHED = ("instructions", "provider", "model", "effort", "thinking")
SENT = {f"features.{name}": f"enable_{name}" for name in Features.model_fields}
"""Fields of a configuration under the names they have here."""
_RULES = TypeAdapter(tuple[ToolRule, ...])


class AgentsOfCaller(ApiView):
    def find(self, uid: str) -> Agent:
        """NotFound for one that the caller is not offered and does not own."""
        seen = Agent.objects.visible_to(self.actor).usable_in(self.organisation)
        found = (
            seen.filter(uid=uid.replace("\0", ""), current__isnull=False)
            .select_related("current__base__agent", "owner", "organisation")
            .first()
        )
        if found is None:
            raise NotFound(_("There is no such agent."), hint=_("GET /api/agents lists them."))
        return found

    def row(self, agent: Agent) -> dict[str, Any]:
        assert agent.current is not None  # noqa: S101 - selected so
        config = agent.current.config
        return {
            "id": agent.uid,
            "name": agent.name,
            "description": agent.description,
            "place": place_of(agent, self.actor),
            "private": agent.private,
            "archived": agent.archived_at is not None,
            "version": agent.current.number,
            "provider": config.provider,
            "model": config.model,
        }

    def detail(self, agent: Agent) -> dict[str, Any]:
        newest = self.shown_version(agent)
        wishes = wishes_of(newest)
        return {
            **self.row(agent),
            "newest_version": newest.number,
            "base": newest.base.agent.uid if newest.base else None,
            "instructions": wishes.instructions,
            "provider": wishes.provider,
            "model": wishes.model,
            "effort": wishes.effort,
            "thinking": wishes.thinking,
            "tools": [
                rule.model_dump(mode="json", exclude_defaults=True)
                | {"permission": rule.permission}
                for rule in wishes.tools
            ],
            "roster": newest.config.roster.model_dump(mode="json", exclude={"form"}),
            **{f"enable_{name}": enabled for name, enabled in wishes.features.model_dump().items()},
        }

    def shown_version(self, agent: Agent) -> AgentVersion:
        """The newest one to its owner; what is offered to others."""
        newest = agent.newest if agent.owner_id == self.actor.pk else agent.current
        assert newest is not None  # noqa: S101 - selected so
        return newest

    def answer(self, uid: str) -> Response:
        return Response(self.detail(self.find(uid)))


class AgentsView(AgentsOfCaller):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="agents_own_list",
        summary="List one's own agents and those one is offered, by name",
        tags=[TAG],
        parameters=[
            OpenApiParameter("q", OpenApiTypes.STR, description="Words of name or description."),
            OpenApiParameter("archived", OpenApiTypes.BOOL, description="Those put away instead."),
            LIMIT,
            CURSOR,
        ],
        responses=listed(AgentRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, str, int)
        query = request.query_params
        given = query.get("archived", "false")
        if given not in {"true", "false"}:
            raise not_among("archived", given, ("true", "false"))
        rows = listed_agents(
            self.actor, self.organisation, search=query.get("q", ""), archived=given == "true"
        ).order_by("name", "pk")
        if cursor:
            name, pk = cursor
            rows = rows.filter(name__gte=name).exclude(name=name, pk__lte=pk)
        found = list(rows[: limit + 1])
        last = found[limit - 1] if len(found) > limit else None
        more = encode_cursor(last.name, last.pk) if last else ""
        return page(request, [self.row(each) for each in found[:limit]], more)

    @extend_schema(
        operation_id="agents_own_create",
        summary="Make an agent of one's own, which may do no more than its base",
        tags=[TAG],
        request=MakeAgent,
        responses=answers(AgentDetail, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any) -> Response:
        given = read_body(MakeAgent, request.data)
        try:
            base = self.find(given["base"])
        except NotFound:
            raise Invalid(
                _("The agent it is to begin from is not on offer."),
                field="base",
                hint=_("GET /api/agents lists those that are."),
            ) from None
        assert base.current is not None  # noqa: S101 - selected so
        before = replace(wishes_of(base.current), tools=())
        with written(SENT):
            made = make_own_agent(
                actor=self.actor,
                organisation=self.organisation,
                base=base,
                name=given["name"],
                description=given.get("description", ""),
                wishes=_wished(given, before),
            )
        return self.answer(made.uid)


class OneAgentView(AgentsOfCaller):
    scopes = {"GET": READ, "PATCH": MANAGE}

    @extend_schema(
        operation_id="agents_own_retrieve",
        summary="Read about an agent; of one's own its newest version",
        tags=[TAG],
        responses=answers(AgentDetail, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return self.answer(uid)

    @extend_schema(
        operation_id="agents_own_update",
        summary="Change an agent of one's own; what is left out stays",
        tags=[TAG],
        request=ChangeAgent,
        responses=answers(AgentDetail, 401, 403, 404, 409, 413, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        agent = self.find(uid)
        given = read_body(ChangeAgent, request.data)
        archived = given.pop("archived", None)
        if given:
            with written(SENT):
                change_own_agent(
                    actor=self.actor,
                    agent=agent,
                    name=given.get("name", agent.name),
                    description=given.get("description", agent.description),
                    wishes=_wished(given, wishes_of(self.shown_version(agent))),
                    expected_version=given.get("expected_version"),
                    released=given.get("released", True),
                )
        if archived is not None:
            archive_agent(actor=self.actor, agent=agent, archived=archived)
        return self.answer(uid)


class CopyView(AgentsOfCaller):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="agents_own_duplicate",
        summary="Make a copy of one's own of an agent",
        tags=[TAG],
        request=CopyAgent,
        responses=answers(AgentDetail, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        agent = self.find(uid)
        given = read_body(CopyAgent, request.data or {})
        made = duplicate_agent(
            actor=self.actor,
            organisation=self.organisation,
            agent=agent,
            name=given.get("name", ""),
        )
        return self.answer(made.uid)


class VersionsView(AgentsOfCaller):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="agents_own_versions_list",
        summary="List the versions of an agent that one may use, newest first",
        tags=[TAG],
        parameters=[LIMIT, CURSOR],
        responses=listed(VersionRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        seen = AgentVersion.objects.visible_to(self.actor).filter(agent=self.find(uid))
        if cursor:
            seen = seen.filter(number__lt=cursor[0])
        found = list(seen.select_related("created_by").order_by("-number")[: limit + 1])
        items = [
            {
                "version": each.number,
                "draft": each.draft,
                "made_by": str(each.created_by or ""),
                "created_at": each.created_at,
            }
            for each in found[:limit]
        ]
        more = encode_cursor(found[limit - 1].number) if len(found) > limit else ""
        return page(request, items, more)


class RestoreView(AgentsOfCaller):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="agents_own_restore",
        summary="Make of an earlier version of one's own agent the newest one",
        tags=[TAG],
        request=RestoreAgent,
        responses=answers(AgentDetail, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        agent = self.find(uid)
        given = read_body(RestoreAgent, request.data)
        restore_own_version(actor=self.actor, agent=agent, number=given["version"])
        return self.answer(uid)


class ReviewOfView(AgentsOfCaller):
    scopes = {"POST": MANAGE, "DELETE": MANAGE}

    @extend_schema(
        operation_id="agents_own_review_ask",
        summary="Ask that the organisation be offered the newest version of one's own agent",
        tags=[TAG],
        request=AskReview,
        responses=answers(ReviewRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        agent = self.find(uid)
        given = read_body(AskReview, request.data or {})
        return Response(
            _review_row(ask_for_review(actor=self.actor, agent=agent, note=given.get("note", "")))
        )

    @extend_schema(
        operation_id="agents_own_review_withdraw",
        summary="Take back what one asked for",
        tags=[TAG],
        responses=answers(ReviewRow, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        waiting = AgentReview.objects.waiting().filter(agent=self.find(uid)).first()
        if waiting is None:
            raise NotFound(_("Nothing is asked for."))
        return Response(_review_row(withdraw_review(actor=self.actor, review=waiting)))


class ReviewsView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="agent_reviews_list",
        summary="List what one asked for and what one may decide, newest first",
        tags=[TAG],
        parameters=[STATE, LIMIT, CURSOR],
        responses=listed(ReviewRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        rows = AgentReview.objects.visible_to(self.actor).filter(
            agent__organisation=self.organisation
        )
        state = request.query_params.get("state")
        if state is not None:
            if state not in AgentReview.State.values:
                raise not_among("state", state, AgentReview.State.values)
            rows = rows.filter(state=state)
        if cursor:
            rows = rows.filter(pk__lt=cursor[0])
        found = list(rows.select_related(*REVIEWED).order_by("-pk")[: limit + 1])
        more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, [_review_row(each) for each in found[:limit]], more)


class OneReviewView(ApiView):
    scopes = {"POST": TokenScope.APPROVALS_DECIDE}

    @extend_schema(
        operation_id="agent_reviews_decide",
        summary="Offer the version to the organisation, or refuse with a reason",
        tags=[TAG],
        request=DecideReview,
        responses=answers(ReviewRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        seen = AgentReview.objects.visible_to(self.actor)
        seen = seen.filter(agent__organisation=self.organisation)
        found = seen.filter(uid=uid.replace("\0", "")).first()
        if found is None:
            raise NotFound(_("There is no such review."))
        given = read_body(DecideReview, request.data)
        decided = decide_review(
            actor=self.actor,
            review=found,
            approve=given["approve"],
            reason=given.get("reason", ""),
        )
        return Response(_review_row(decided))


def _wished(given: Mapping[str, Any], before: Wishes) -> Wishes:
    """What was there before with what is given instead."""
    changes: dict[str, Any] = {name: given[name] for name in WISHED if name in given}
    if "tools" in given:
        changes["tools"] = read_as(given["tools"], _RULES, at="tools")
    switched = {
        name: given[f"enable_{name}"] for name in Features.model_fields if f"enable_{name}" in given
    }
    features = before.features.model_copy(update=switched)
    return replace(before, **changes, features=features)


def _review_row(review: AgentReview) -> dict[str, Any]:
    return {
        "id": review.uid,
        "agent_id": review.agent.uid,
        "name": review.name,
        "version": review.version.number,
        "shared_version": review.shared_version.number if review.shared_version else None,
        "state": review.state,
        "note": review.note,
        "reason": review.reason,
        "asked_by": str(review.asked_by or ""),
        "asked_at": review.asked_at,
        "decided_by": str(review.decided_by or ""),
        "decided_at": review.decided_at,
    }
