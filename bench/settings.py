"""The product's settings, and one address more: `bench.urls`."""

from agentsite.settings import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
