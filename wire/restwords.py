"""What REST framework refuses by itself, in this product's words: rule and remedy, for every door.

Which status and shape that has is each door's; what is wrong in a body, `api.bodies`'s.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import exceptions


def explained(error: exceptions.APIException, view: Any = None) -> tuple[str, str]:
    """The rule and the remedy. `view`: the one that was asked, if it is known."""
    match error:
        case exceptions.NotAuthenticated():
            return _("Nobody is signed in: no token was sent."), _show_token()
        case exceptions.AuthenticationFailed():
            return str(error.detail), _show_token()
        case exceptions.MethodNotAllowed():
            return _method(view)
        case exceptions.UnsupportedMediaType():
            return _("The body is not of a type that is taken here."), _types(view)
        case exceptions.NotAcceptable():
            return _("Only JSON is answered here."), _("Accept application/json.")
        case exceptions.NotFound():
            return _("There is nothing at this address."), _addresses()
        case exceptions.PermissionDenied():
            return _denied(error)
        case exceptions.ParseError():
            hint = getattr(error, "hint", "")
            if hint:
                return str(error.detail), hint
            # What read it speaks of its own insides.
            return _("The body cannot be read as what its Content-Type says."), _types(view)
    return _("The request cannot be taken as it is."), _addresses()


def _show_token() -> str:
    return _("Send a valid token: `Authorization: Bearer …` or `x-api-key: …`.")


def _addresses() -> str:
    return _("GET /api/schema/ lists the addresses and what they take.")


def _method(view: Any) -> tuple[str, str]:
    rule = _("The address does not take this method.")
    known = [each for each in getattr(view, "allowed_methods", ()) if each != "OPTIONS"]
    if not known:
        return rule, _addresses()
    return rule, _("Use: %(methods)s.") % {"methods": ", ".join(known)}


def _types(view: Any) -> str:
    parsers = getattr(view, "parser_classes", ())
    if any("multipart" in (each.media_type or "") for each in parsers):
        return _("Send a form as multipart/form-data, with its boundary in the Content-Type.")
    return _("Send one JSON object with the Content-Type application/json.")


def _denied(error: exceptions.PermissionDenied) -> tuple[str, str]:
    if "CSRF" in str(error.detail):
        return (
            _("A browser's session changes something only with its CSRF token."),
            _("Load the page again, or send a token of the API."),
        )
    return _("You may not do this."), _("Use a token or an account with the permission.")
