"""Who may sign in: people. A service account is spoken for by its tokens alone.

How a name and a password are compared is allauth's.
"""

from __future__ import annotations

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend

from accounts.lockout import people_at
from accounts.models import User
from jobs.prepared import Prepared

_PERSON = Prepared(lambda given: User.objects.filter(pk=given.pk))


class PeopleBackend(AuthenticationBackend):
    def _authenticate_by_username(self, username: str, password: str) -> Any:
        """An address is whose it is: nobody signs in with one that is her user name and another's
        address, since failures are counted for the other (`accounts.lockout`)."""
        if people_at(username):
            return None
        return super()._authenticate_by_username(username, password)

    def get_user(self, user_id: Any) -> User | None:
        """Of a session, for each of its requests."""
        user = _PERSON.first(pk=user_id)
        return user if user is not None and self.user_can_authenticate(user) else None

    def user_can_authenticate(self, user: Any) -> bool:
        """Asked at sign-in and again for each request of a session."""
        return bool(super().user_can_authenticate(user)) and not user.is_service
