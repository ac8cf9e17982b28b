"""Seals secrets for the database and opens them again.

The keys come from AGENTSITE_VAULT_KEY and are kept apart from SECRET_KEY: whoever reads a dump of
the database, or forges a session, still opens nothing. Which secret counts is not decided here.
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from harness.errors import NotConfigured


def _fernet() -> MultiFernet:
    keys: list[str] = settings.AGENTSITE_VAULT_KEYS
    if not keys:
        raise NotConfigured(
            _("This server has no vault key, so secrets can be neither stored nor used."),
            hint=_("The operator sets AGENTSITE_VAULT_KEY."),
        )
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        # `from None`: the cause would carry the malformed key into the traceback.
        raise NotConfigured(
            _("A vault key is malformed."),
            hint=_("AGENTSITE_VAULT_KEY takes Fernet keys: 32 bytes in URL-safe base64."),
        ) from None


@sensitive_variables("secret")
def seal(secret: str) -> str:
    """Ciphertext under the first vault key. Raises NotConfigured without one."""
    return _fernet().encrypt(secret.encode()).decode("ascii")


def open_sealed(sealed: str) -> str:
    """What `seal` was given. Raises NotConfigured if none of the vault keys opens it."""
    try:
        return _fernet().decrypt(sealed.encode("ascii")).decode()
    except InvalidToken:
        raise NotConfigured(
            _("A stored secret cannot be opened with this server's vault keys."),
            hint=_("Store it anew, or bring the old key back into AGENTSITE_VAULT_KEY."),
        ) from None


def reseal(sealed: str) -> str:
    """The same secret under the first vault key, so that an older key can be retired."""
    return seal(open_sealed(sealed))
