"""Whom a browser session belongs to right now, for connections that outlive a request.

Requests ask `request.user`. A socket stays open for hours, so it asks here again now and then:
signing out, a changed password and a deactivated account end it.
"""

from __future__ import annotations

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.utils.crypto import constant_time_compare

from accounts.models import User
from accounts.sessionstore import current_session
from jobs.prepared import Prepared

_ACTIVE = Prepared(lambda given: User.objects.filter(pk=given.pk, is_active=True))


def user_of_session(session_key: str | None) -> User | None:
    """The active user signed in by this session, or None. Reads only: nothing is rotated."""
    row = current_session(session_key)
    session = row.get_decoded() if row is not None else {}
    if SESSION_KEY not in session:
        return None
    user = _ACTIVE.first(pk=int(session[SESSION_KEY]))
    if user is None:
        return None
    stored = session.get(HASH_SESSION_KEY, "")
    valid = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return user if any(constant_time_compare(stored, known) for known in valid) else None
