"""The real settings, with passwords that are compared at once: the usual half second of a processor each time
is for who has stolen them. Everything else comes from the environment, as it would."""

from agentsite.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
