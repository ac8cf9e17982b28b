"""What every view of `/v1` shares: tokens and scopes, bodies by pydantic, one error shape.

Clients of this wire ask for JSON whatever they want, so nothing is negotiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel, ConfigDict
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.authentication import Caller, caller_of
from accounts.api.request_ids import current_request_id
from accounts.models import TokenScope
from harness.errors import Invalid, NotFound, TooLarge
from harness.modelfaults import read_as
from reading.digits import is_digits, number_of
from reading.foreignjson import NESTING
from wire.jsonbodies import BODY_BYTES, GivenJsonParser
from wire.parameters import check_query

from .problems import V1ErrorEnvelope, handle

READ = TokenScope.CONVERSATIONS_READ
WRITE = TokenScope.CONVERSATIONS_WRITE
MANAGE = TokenScope.AGENTS_MANAGE

ALWAYS = ("beta",)
"""Parameters that older clients send to every address; they say nothing to this door."""

Model = TypeVar("Model", bound=BaseModel)
View = TypeVar("View", bound=Callable[..., Any])


class Body(BaseModel):
    """Base of what clients send: a field nobody knows is refused, so that no wish is overlooked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the fields that the client sent, null included."""
        return {name: getattr(self, name) for name in names if name in self.model_fields_set}


class Shape(BaseModel):
    """Base of what clients are sent: nullable fields are always there."""

    model_config = ConfigDict(frozen=True)

    def wire(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


class AnyAccept(BaseContentNegotiation):
    def select_parser(self, request: Any, parsers: Any) -> Any:
        return next(
            (one for one in parsers if request.content_type.startswith(one.media_type)), parsers[0]
        )

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class Door(APIView):
    scopes: Mapping[str, TokenScope | None] = {}
    renderer_classes = [JSONRenderer]
    parser_classes = [GivenJsonParser]
    content_negotiation_class = AnyAccept

    def get_exception_handler(self) -> Any:
        return handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        refuse_nul(request)
        check_query(type(self), str(request.method), request.query_params, ALWAYS)
        length = request.META.get("CONTENT_LENGTH") or ""
        if (
            self.body_limit
            and is_digits(length)
            and number_of(length, most=self.body_limit) is None
        ):
            raise TooLarge(
                _("The request has more than %(limit)d bytes.") % {"limit": self.body_limit},
                hint=_("Send less, or upload it as a file."),
            )

    body_limit = BODY_BYTES

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        answer["request-id"] = current_request_id()
        return answer

    @property
    def caller(self) -> Caller:
        return caller_of(self.request)


def hold(row: QuerySet[Any]) -> None:
    """Until the transaction ends nobody else changes it: what is merged into it is read after."""
    row.select_for_update(of=("self",), no_key=True).first()


def refuse_nul(request: Any) -> None:
    """No id and no filter has such a character, and not every database may be asked for one."""
    if "\0" in request.path:
        raise NotFound(_("There is nothing at this address."))
    for name, given in request.GET.lists():
        if any("\0" in text for text in (name, *given)):
            raise Invalid(
                _("A parameter holds a NUL character."),
                field=name.replace("\0", ""),
                hint=_("Leave it out."),
            )


def body_of(request: Request, model: type[Model]) -> Model:
    """The request's body as `model`; Invalid names each field that breaks a rule."""
    data = data_of(request)
    if not isinstance(data, Mapping):
        raise Invalid(_("The body is not a JSON object."), hint=_("Send one, e.g. {}."))
    return parse(clean(data), model)


def data_of(request: Request) -> Any:
    """What the body holds, as it was sent."""
    return request.data


def parse(data: Any, model: type[Model]) -> Model:
    """`data` as `model`. Raises Invalid, which names each field that breaks a rule."""
    return read_as(data, model)


def clean(value: Any, depth: int = 0) -> Any:
    """Plain values without what no database holds: NUL goes, half a surrogate pair is refused."""
    if depth > NESTING:
        raise _too_deep()
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Invalid(
                    _("A text holds half of a surrogate pair."), hint=_("Send valid Unicode.")
                ) from None
        return value.replace("\0", "")
    if isinstance(value, Mapping):
        return {clean(key, depth + 1): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, depth + 1) for item in value]
    return value


def _too_deep() -> Invalid:
    return Invalid(
        _("The body is nested more than %(limit)d levels deep.") % {"limit": NESTING},
        hint=_("Send a flatter one."),
    )


def operation(
    name: str,
    *,
    tag: str,
    response: Any,
    request: Any = None,
    query: tuple[OpenApiParameter, ...] = (),
    summary: str = "",
    **more: Any,
) -> Callable[[View], View]:
    """What OpenAPI says of a method: a stable id, its body, its answer and the one error shape."""
    responses = response if isinstance(response, dict) else {200: response}
    return extend_schema(
        operation_id=f"v1_{name}",
        tags=[tag],
        summary=summary or None,
        request=request,
        parameters=list(query),
        responses={
            **responses,
            "4XX": V1ErrorEnvelope,
            "5XX": V1ErrorEnvelope,
        },
        **more,
    )
