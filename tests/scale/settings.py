"""The real settings, with one tool more. Everything else comes from the environment, as it would."""

from agentsite.settings import *  # noqa: F403
from agentsite.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.scale.counter"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AGENTSITE_TITLE_MODELS: dict[str, str] = {}  # type: ignore[no-redef]
"""The service answers in a fixed order, in which no request for a title is meant."""
