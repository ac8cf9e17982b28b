"""`/v1/models`: the models this server knows the limits of, by the names agents take.

Any other name a service has may be given to an agent as well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from agents.models import AgentVersion
from harness.errors import Invalid, NotFound
from harness.modelcards import card_for
from providers.table import KINDS
from spending.models import ModelPrice

from . import modelnames
from .agents import visible_agents
from .door import READ, Door, Shape, operation
from .paging import parameter, values, whole_number

MOST = 1000
LIFECYCLES = ("active", "deprecated", "retired")
UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""The public API's own word for a date of release that nobody knows."""


class ModelInfo(Shape):
    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: datetime = UNKNOWN
    lifecycle: Literal["active"] = "active"
    capabilities: None = None
    max_input_tokens: int | None
    max_tokens: int | None


class ModelPage(BaseModel):
    data: list[ModelInfo]
    has_more: bool
    first_id: str | None
    last_id: str | None


def models_for(caller: Caller) -> list[ModelInfo]:
    """Defaults of the providers, models with a price, and those that agents use, each once."""
    named: dict[str, tuple[str, str]] = {}
    pairs = [
        *((kind.name, kind.default_model) for kind in KINDS.values() if kind.offered),
        *ModelPrice.objects.order_by("provider", "model").values_list("provider", "model"),
        *((config.provider, config.model) for config in _configs(caller)),
    ]
    for provider, model in pairs:
        if model and (provider == modelnames.AUTO or provider in KINDS):
            named.setdefault(modelnames.to_wire(provider, model), (provider, model))
    return [_info(name, model) for name, (_provider, model) in named.items()]


def _configs(caller: Caller) -> list[Any]:
    current = visible_agents(caller).filter(archived_at=None).values("current")
    return [version.config for version in AgentVersion.objects.filter(pk__in=current)]


def _info(name: str, model: str) -> ModelInfo:
    card = card_for(model)
    return ModelInfo(
        id=name,
        display_name=model,
        max_input_tokens=card.context_window if card.prefix else None,
        max_tokens=card.max_output,
    )


class Models(Door):
    scopes = {"GET": READ}

    @operation(
        "models_list",
        tag="models",
        response=ModelPage,
        query=(
            parameter("limit", OpenApiTypes.INT, f"1 to {MOST}; all if left out."),
            parameter("after_id", text="List what comes behind this model."),
            parameter("before_id", text="List what comes before this model."),
            parameter("lifecycle[]", many=True, enum=list(LIFECYCLES)),
        ),
        summary="List known models",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        models = [model.wire() for model in models_for(self.caller)]
        if wanted := values(query, "lifecycle", LIFECYCLES):
            models = [model for model in models if model["lifecycle"] in wanted]
        if after := query.get("after_id"):
            models = models[_place(models, "after_id", after) + 1 :]
        before = query.get("before_id")
        if before:
            models = models[: _place(models, "before_id", before)]
        most = whole_number(query, "limit", MOST, least=1, most=MOST)
        more = len(models) > most
        # What stands right before a model is at the end of what comes before it.
        models = models[-most:] if before else models[:most]
        return Response(
            {
                "data": models,
                "has_more": more,
                "first_id": models[0]["id"] if models else None,
                "last_id": models[-1]["id"] if models else None,
            }
        )


def _place(models: list[dict[str, Any]], field: str, name: str) -> int:
    for place, model in enumerate(models):
        if model["id"] == name:
            return place
    raise Invalid(
        _("There is no such model in this list."),
        field=field,
        hint=_("Give the first_id or last_id of an earlier answer, or leave it out."),
    )


class OneModel(Door):
    scopes = {"GET": READ}

    @operation("models_retrieve", tag="models", response=ModelInfo, summary="Read about a model")
    def get(self, request: Request, name: str) -> Response:
        for model in models_for(self.caller):
            if model.id == name:
                return Response(model.wire())
        raise NotFound(_("There is no such model."))
