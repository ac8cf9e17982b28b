"""The query parameters of an operation: what its description names is what it takes.

One list for both, so that no parameter is promised and passed over, and none that a program relies on
(a filter above all) is silently without effect: neither an empty one nor one of two that contradict
each other. What a value means is each operation's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from django.http import QueryDict
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


def check_query(
    view: type[APIView], method: str, query: QueryDict, always: Collection[str] = ()
) -> None:
    """`check_parameters` with what the operation is described with; `always` is passed over. The
    view says in `may_be_empty` for which parameters an empty value means something."""
    taken = taken_by(view, method)  # type: ignore[arg-type]  # a class has a hash
    if taken is not None:
        given = {name: values for name, values in query.lists() if name not in always}
        check_parameters(given, taken, getattr(view, "may_be_empty", ()))


def check_parameters(
    given: Mapping[str, Sequence[str]], taken: frozenset[str], may_be_empty: Collection[str] = ()
) -> None:
    """Raise Invalid for a name that is not among `taken`, for an empty value, and for a parameter
    that is given twice and is no list (its name ends with `[]`).

    A list's brackets may be left out (`statuses=` for `statuses[]=`), and a range's may be an
    underscore (`created_at_gte=`), as older clients write them.
    """
    meanings, seen = _meanings(taken), set()
    for name, values in given.items():
        shown = name[:SHOWN]
        meant = meanings.get(name)
        if meant is None:
            raise Invalid(
                _("This operation has no parameter “%(name)s”.") % {"name": shown},
                field=shown,
                hint=_remedy(name, taken),
            )
        if "" in values and name not in may_be_empty:
            raise Invalid(
                _("The parameter “%(name)s” is empty.") % {"name": shown},
                field=shown,
                hint=_("Give a value, or leave it out."),
            )
        if not meant.endswith("[]") and (len(values) > 1 or meant in seen):
            raise Invalid(
                _("The parameter “%(name)s” is given more than once.") % {"name": shown},
                field=shown,
                hint=_("It takes one value: give the one that you mean."),
            )
        seen.add(meant)


@lru_cache(maxsize=500)
def _meanings(taken: frozenset[str]) -> dict[str, str]:
    """Each spelling that is taken, and the name that is meant."""
    return {plain(name): name for name in taken} | {name: name for name in taken}


def plain(name: str) -> str:
    """A parameter's name without brackets, the same for each of its spellings."""
    return name.removesuffix("[]").replace("[", "_").rstrip("]")


def _remedy(name: str, taken: frozenset[str]) -> str:
    if not taken:
        return _("Leave it out: there are none.")
    near = get_close_matches(name[:SHOWN], taken, n=1)
    if near:
        return _("Did you mean “%(name)s”?") % {"name": near[0]}
    return _("Leave it out, or choose from: %(names)s.") % {"names": ", ".join(sorted(taken))}
