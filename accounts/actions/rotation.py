"""After a new vault key: every sealed secret moves to it, so that the old one can go."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts import vault
from accounts.models import ProviderKey
from accounts.sealed import resealers

_SEALED = ("secret", "seed")
"""Where allauth keeps what our adapter sealed: the TOTP secret and the recovery codes' seed."""


def reseal_secrets() -> int:
    """Seal provider keys, second factors and what the floors above sealed under the first vault key;
    how many.

    All or nothing. Raises NotConfigured if one of them opens with none of the vault keys.
    """
    count = 0
    with transaction.atomic():
        for row in ProviderKey.objects.select_for_update().exclude(sealed_key=""):
            row.sealed_key = vault.reseal(row.sealed_key)
            row.save(update_fields=["sealed_key"])
            count += 1
        for factor in Authenticator.objects.select_for_update():
            sealed = {name: factor.data[name] for name in _SEALED if name in factor.data}
            if sealed:
                factor.data |= {name: vault.reseal(value) for name, value in sealed.items()}
                factor.save(update_fields=["data"])
                count += 1
        count += sum(reseal() for reseal in resealers())
    return count
