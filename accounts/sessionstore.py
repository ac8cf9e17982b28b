"""Browser sessions as Django keeps them in its table, found by a query that is built once.

Every request of a page begins with this look. What a session means later is `accounts.sessions`'.
"""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from jobs.prepared import Prepared

_CURRENT = Prepared(
    lambda given: Session.objects.filter(session_key=given.key, expire_date__gt=given.now)
)


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        """None leaves this store without a key, as Django's own does it."""
        found = current_session(self.session_key)
        if found is None:
            self._session_key = None
        return found


def current_session(key: str | None) -> Session | None:
    """The session of that key, unless its time is over."""
    return _CURRENT.first(key=key, now=timezone.now()) if key else None
