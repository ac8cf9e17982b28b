"""The query parameters of an operation: what its description names is what it takes.

One list for both, so that no parameter is promised and passed over, and none that a program relies on
(a filter above all) is silently without effect. What a value means is each operation's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.views import APIView

from harness.errors import Invalid

SHOWN = 60
"""Characters of an unknown name that are repeated in the answer."""


@lru_cache(maxsize=500)
def taken_by(view: type[APIView], method: str) -> frozenset[str] | None:
    """The names of the query that `method` of the view is described with; None where it is not
    described at all (an address for what is not there)."""
    handler = getattr(view, "get" if method == "HEAD" else method.lower(), None)
    described = getattr(handler, "kwargs", {}).get("schema")
    if described is None:
        return None
    schema = described()
    schema.view = view()
    schema.view.request, schema.view.kwargs = None, {}
    given: Iterable[Any] = schema.get_override_parameters()
    return frozenset(
        each.name
        for each in given
        if isinstance(each, OpenApiParameter) and each.location == OpenApiParameter.QUERY
    )


def refuse_unknown(
    view: type[APIView], method: str, query: Mapping[str, Any], always: Iterable[str] = ()
) -> None:
    """Raise Invalid for a name in `query` that neither the operation nor `always` has.

    A list's brackets may be left out (`statuses=` for `statuses[]=`), and a range's may be an
    underscore (`created_at_gte=`), as older clients write them.
    """
    taken = taken_by(view, method)  # type: ignore[arg-type]  # a class has a hash
    if taken is None:
        return
    for name in query:
        if name not in always and not taken & set(_spellings(name)) and name not in _plain(taken):
            raise Invalid(
                _("This operation has no parameter “%(name)s”.") % {"name": name[:SHOWN]},
                field=name[:SHOWN],
                hint=_remedy(name, taken),
            )


def _spellings(name: str) -> tuple[str, str]:
    return name, f"{name}[]"


@lru_cache(maxsize=500)
def _plain(taken: frozenset[str]) -> frozenset[str]:
    """The names with an underscore for the brackets of a range."""
    return frozenset(
        name.replace("[", "_").rstrip("]") for name in taken if not name.endswith("[]")
    )


def _remedy(name: str, taken: frozenset[str]) -> str:
    if not taken:
        return _("Leave it out: there are none.")
    near = get_close_matches(name[:SHOWN], taken, n=1)
    if near:
        return _("Did you mean “%(name)s”?") % {"name": near[0]}
    return _("Leave it out, or choose from: %(names)s.") % {"names": ", ".join(sorted(taken))}
