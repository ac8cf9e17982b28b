"""What tests change: nothing of this machine counts, all lands in a throw-away directory.

The database is a file, because threads and sockets of a test must share it. TEST_DATABASE_URL and
TEST_REDIS_URL run the same tests on PostgreSQL and with Redis between processes; TEST_DATABASE_TEMPLATE
names a migrated database on that PostgreSQL, which each process of tests copies.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

for _name in [
    name for name in os.environ if name.startswith(("AGENTSITE_", "ANTHROPIC_", "OPENAI_"))
]:
    del os.environ[_name]

_directory = Path(tempfile.mkdtemp(prefix="agentsite-tests-"))
atexit.register(shutil.rmtree, _directory, ignore_errors=True)

os.environ["AGENTSITE_ENV_FILE"] = ""
os.environ["AGENTSITE_DATA_DIR"] = str(_directory)
os.environ["AGENTSITE_SECRET_KEY"] = "only-for-tests-" + "0123456789" * 5
for _name in ("DATABASE_URL", "REDIS_URL"):
    if _value := os.environ.get(f"TEST_{_name}"):
        os.environ[f"AGENTSITE_{_name}"] = _value
os.environ["AGENTSITE_VAULT_KEY"] = "b25seS1mb3ItdGVzdHMtb25seS1mb3ItdGVzdHMtLS0="

from agentsite.settings import *  # noqa: E402, F403
from agentsite.settings import DATABASES, INSTALLED_APPS  # noqa: E402

INSTALLED_APPS = [*INSTALLED_APPS, "tests.emptying"]

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": _directory / "test.sqlite3"}
elif _template := os.environ.get("TEST_DATABASE_TEMPLATE"):
    DATABASES["default"]["TEST"] = {"TEMPLATE": _template}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# Each client of a test would look through all files that are served: a fifth of what its pages take.
WHITENOISE_AUTOREFRESH = True
AXES_ENABLED = False
ACCOUNT_RATE_LIMITS = False  # type: ignore[assignment]
AGENTSITE_SWEEP_SECONDS = 0
AGENTSITE_RETENTION_SECONDS = 0
AGENTSITE_DECAY_SECONDS = 0
AGENTSITE_SCHEDULE_SECONDS = 0
AGENTSITE_TEAM_SECONDS = 0
AGENTSITE_MAIL_SECONDS = 0
AGENTSITE_PUSH_SECONDS = 0
AGENTSITE_BRIEF_SECONDS = 0
AGENTSITE_PROMPT_SOURCE_SECONDS = 0
AGENTSITE_EMBEDDING_SECONDS = 0
AGENTSITE_WATCH_SECONDS = 0
AGENTSITE_IMAP_SECONDS = 0
AGENTSITE_TITLE_MODELS: dict[str, str] = {}  # type: ignore[no-redef]
AGENTSITE_BRIEF_MODELS: dict[str, str] = {}  # type: ignore[no-redef]
AGENTSITE_MESSAGES_PER_MINUTE = 0
