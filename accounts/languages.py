"""In which language somebody is written to. Pages are drawn in what `middleware.LanguageMiddleware` chose."""

from __future__ import annotations

from django.conf import settings

from accounts.models import User


def language_of(user: User) -> str:
    """Hers, or the site's own: nobody is at a browser that could ask for another."""
    site: str = settings.AGENTSITE_LANGUAGE
    return user.language or site
