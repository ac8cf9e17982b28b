"""Who may sign in: people. A service account is spoken for by its tokens alone.

How a name and a password are compared is allauth's.
"""

from __future__ import annotations

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend


class PeopleBackend(AuthenticationBackend):
    def user_can_authenticate(self, user: Any) -> bool:
        """Asked at sign-in and again for each request of a session."""
        return bool(super().user_can_authenticate(user)) and not user.is_service
