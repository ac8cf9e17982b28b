"""The door at which mail services post mails as they came (RFC 5322): as the body, or in a form or JSON as
several services have it. The services show the operator's secret as the password of basic authentication, or
as a bearer.

What a mail begins is `mailintake`'s.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDictKeyError
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from harness.errors import Invalid, NotFound, TooLarge
from reading.foreignjson import Unreadable, read_json

from .mailintake import is_secret

FIELDS = ("email", "body-mime")
"""Of a form: the mail itself, as two services name it."""
RECIPIENTS = ("recipient", "to", "envelope")
"""Of a form: whom it was for."""
JSON_MAIL, JSON_RECIPIENTS = "RawEmail", ("OriginalRecipient", "To", "Cc", "Bcc")
MOST_ADDRESSES = 100


@sensitive_variables()
def shows_secret(authorization: str) -> bool:
    """Whether this header is a mail service's."""
    scheme, _space, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return is_secret(value.strip())
    if scheme.lower() != "basic" or len(value) > 2_000:
        return False
    try:
        given = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return is_secret(given.partition(":")[2])


def mail_in(request: HttpRequest, *, most: int) -> tuple[bytes, list[str]]:
    """The mail, and whom it was for as far as the service says. Raises NotFound for who does not show the
    secret, TooLarge, and Invalid where there is no mail in it."""
    if not shows_secret(request.headers.get("Authorization", "")):
        raise NotFound(_("There is nothing at this address, or the secret is not the right one."))
    kind = request.content_type
    if kind in {"multipart/form-data", "application/x-www-form-urlencoded"}:
        raw, told = _of_form(request)
    elif kind == "application/json":
        raw, told = _of_json(request.body, most)
    else:
        raw, told = request.body, []
    if not raw.strip():
        raise Invalid(
            _("There is no mail in this request."),
            hint=_("Post the mail as it came: as the body, or in the field “email”."),
        )
    if len(raw) > most:
        raise TooLarge(_("A mail has at most %(limit)d bytes.") % {"limit": most})
    return raw, [address for text in told for address in _addresses(text)][:MOST_ADDRESSES]


def _of_form(request: HttpRequest) -> tuple[bytes, list[str]]:
    told = [str(request.POST[name]) for name in RECIPIENTS if name in request.POST]
    for name in FIELDS:
        if name in request.POST:
            return str(request.POST[name]).encode("utf-8", "surrogateescape"), told
        try:
            sent: Any = request.FILES[name]
        except MultiValueDictKeyError:
            continue
        return bytes(sent.read()), told
    return b"", told


def _of_json(body: bytes, most: int) -> tuple[bytes, list[str]]:
    try:
        given = read_json(body, limit=2 * most)
    except Unreadable as problem:
        raise Invalid(
            _("The body is no JSON that can be read: %(why)s.") % {"why": problem}
        ) from None
    if not isinstance(given, dict) or not isinstance(given.get(JSON_MAIL), str):
        return b"", []
    told = [given[name] for name in JSON_RECIPIENTS if isinstance(given.get(name), str)]
    return given[JSON_MAIL].encode("utf-8", "replace"), told


def _addresses(text: str) -> list[str]:
    """Whatever of it has an @, between the signs that lists and JSON put around addresses."""
    for sign in '<>,;"[]{}':
        text = text[:4_000].replace(sign, " ")
    return [word for word in text.split() if "@" in word]
