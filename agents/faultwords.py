"""What pydantic finds wrong with a value of a configuration, in words that say what to do."""

from __future__ import annotations

from django.utils.translation import gettext as _
from pydantic_core import ErrorDetails


def words_of(error: ErrorDetails) -> str:
    context = error.get("ctx") or {}
    match error["type"]:
        case "greater_than_equal":
            return _("Give %(bound)s or more.") % {"bound": f"{context['ge']:g}"}
        case "greater_than":
            return _("Give more than %(bound)s.") % {"bound": f"{context['gt']:g}"}
        case "less_than_equal":
            return _("Give %(bound)s or less.") % {"bound": f"{context['le']:g}"}
        case "string_too_long":
            return _("Shorten it to %(most)s characters.") % {"most": context["max_length"]}
        case "string_too_short":
            return _("Type at least %(least)s characters.") % {"least": context["min_length"]}
        case "literal_error":
            return _("Choose one of: %(choices)s.") % {"choices": context["expected"]}
        case "value_error":
            said = str(context["error"]).rstrip(".")
            return f"{said[:1].upper()}{said[1:]}."
        case "missing":
            return _("Type something here.")
        case "dict_type" | "model_type":
            return _("Give a JSON object: names and values in braces.")
    return _("This has not the form that is needed. Correct it, or put back what stood here.")
