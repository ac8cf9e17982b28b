"""A code of an authenticator app counts once.

allauth remembers one for half a minute, in the cache; but it takes a code for as long as its tolerance says,
which is longer, and a cache may be lost. So the latest that was taken stands with the factor: it and those
before it are taken no more (RFC 6238, 5.2).
"""

from __future__ import annotations

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django.db import transaction

_LATEST = "latest_counter"
"""In the factor's data: whose code was taken last, in half minutes since 1970."""


def take_code(factor: Authenticator, code: str) -> bool:
    """Whether the code of this authenticator app is later than all that were taken; from now on it is one."""
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update(no_key=True)
        held = rows.filter(pk=factor.pk, type=Authenticator.Type.TOTP).first()
        if held is None:
            return False
        secret = decrypt(held.data["secret"])
        latest = held.data.get(_LATEST, 0)
        for counter in yield_hotp_counters_from_time():
            expected = format_hotp_value(hotp_value(secret, counter))
            if counter > latest and compare_user_code(actual=code, expected=expected):
                held.data[_LATEST] = counter
                held.save(update_fields=["data"])
                return True
    return False
