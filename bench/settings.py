"""The product's settings, and one address more: `bench.urls`."""

from agentsite.settings import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
AGENTSITE_TITLE_MODELS: dict[str, str] = {}  # type: ignore[no-redef]
"""A first turn is measured as one: its title would be a second call of the service."""
