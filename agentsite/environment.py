"""Where settings come from before Django exists: the process environment, then `.env`.

A local installation gets its random secrets written here on its first command. A production
installation brings its own; nothing is ever written for it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

LOCAL = "local"
PRODUCTION = "production"

_SECRETS: dict[str, Callable[[], str]] = {
    "AGENTSITE_SECRET_KEY": lambda: secrets.token_urlsafe(50),
    "AGENTSITE_VAULT_KEY": lambda: Fernet.generate_key().decode(),
}

_OPENING = """\
# Written on the first start. Keep it private and keep it: without AGENTSITE_VAULT_KEY the stored
# provider keys cannot be opened any more. All settings are listed in .env.example.
"""


def env_file() -> Path | None:
    """The file AGENTSITE_ENV_FILE names, `.env` beside manage.py, or none if that name is empty."""
    named = os.environ.get("AGENTSITE_ENV_FILE")
    if named is None:
        return BASE_DIR / ".env"
    return Path(named) if named else None


class Reader(environ.Env):
    """Typed values by name. An empty value is an unset one; a wrong one is refused by name."""

    def get_value(
        self,
        var: str,
        cast: Any = None,
        default: Any = environ.Env.NOTSET,
        parse_default: bool = False,
    ) -> Any:
        # The library would also follow a value that begins with $; a password may begin so.
        text = self.ENVIRON.get(var, "")
        if not text:
            if default is self.NOTSET:
                raise ImproperlyConfigured(f"{var} is not set.")
            return default
        if cast is bool and text.lower().strip() not in _TRUE | _FALSE:
            raise ImproperlyConfigured(f"{var} must be true or false.")
        try:
            return self.parse_value(text, cast)
        except ValueError:
            raise ImproperlyConfigured(
                f"{var} must be {_KINDS.get(cast, 'something else')}."
            ) from None


_TRUE = set(environ.Env.BOOLEAN_TRUE_STRINGS)
_FALSE = {"false", "off", "n", "no", "0"}
_KINDS = {int: "a whole number", float: "a number"}


def load() -> Reader:
    """A reader over the environment, filled up from `.env`; a set variable wins over the file.

    What the file holds stays out of `os.environ`, so that no child process inherits it.
    """
    values = dict(os.environ)

    class Filled(Reader):
        ENVIRON = values

    file = env_file()
    if file is not None and file.is_file():
        Filled.read_env(str(file))
    return Filled()


def ensure_secrets() -> bool:
    """Add the secrets a local installation lacks to `.env` (mode 0600); true if it wrote any.

    Idempotent: a value that is already set, in the environment or in the file, is left alone.
    """
    file = env_file()
    reader = load()
    if file is None or reader.str("AGENTSITE_ENV", default=LOCAL) != LOCAL:
        return False
    if file.is_file() and file.stat().st_uid == os.geteuid() and file.stat().st_mode & 0o077:
        file.chmod(0o600)
    missing = {name: make() for name, make in _SECRETS.items() if not reader.str(name, default="")}
    if not missing:
        return False
    before = file.read_text(encoding="utf-8") if file.is_file() else _OPENING
    if not before.endswith("\n"):
        before += "\n"
    lines = "".join(f"{name}={value}\n" for name, value in missing.items())
    _write_privately(file, before + lines)
    return True


def _write_privately(file: Path, text: str) -> None:
    """Replace the file in one step, so that a crash leaves the old one and nobody else reads it."""
    scratch = file.with_name(f"{file.name}.{os.getpid()}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    scratch.replace(file)
