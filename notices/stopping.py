"""The link in a mail by which a person stops mails of its kind, without signing in.

The link alone changes nothing: it opens a page with a button, since programs follow links in mails. A mail
program that offers a button of its own posts instead (RFC 8058). What stopping means, each kind says
(`stops`): those of apps above register here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils.functional import Promise

from accounts.models import User

_SALT = "notices.stop"


@dataclass(frozen=True, slots=True)
class Stop:
    words: str | Promise
    """What she does not get any more, for people."""
    stop: Callable[[User, str], None]
    """Again is the same as once. The text is what the link was made for, such as an organisation's id."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a link asks for."""

    user: User
    stop: Stop
    subject: str


_stops: dict[str, Stop] = {}


def stops(kind: str, stop: Stop) -> None:
    """From now on; one for each kind of mail."""
    _stops[kind] = stop


def stop_link(user: User, kind: str, subject: str = "") -> str:
    token = signing.dumps([user.uid, str(kind), subject], salt=_SALT)
    return f"{settings.AGENTSITE_BASE_URL}{reverse('notices:stop', kwargs={'token': token})}"


def headers_of(user: User, kind: str, subject: str = "") -> dict[str, str]:
    """Of a mail that is sent by itself: answering machines do not answer it, mail programs can stop it."""
    return {
        "Auto-Submitted": "auto-generated",
        "List-Unsubscribe": f"<{stop_link(user, kind, subject)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def read_link(token: str) -> Asked | None:
    """None for a link that this server did not make, or whose person is gone."""
    try:
        uid, kind, subject = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        return None
    user = User.objects.filter(uid=uid).first()
    stop = _stops.get(kind)
    return Asked(user, stop, subject) if user is not None and stop is not None else None
