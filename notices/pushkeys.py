"""The key by which push services know this server: the operator's, or one made when it is first needed and
sealed by the vault. It signs (RFC 8292) and is never shown.

A browser is bound to the key that it signed up with: with another one every person says so anew.
"""

from __future__ import annotations

import time
from email.utils import parseaddr

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from py_vapid import Vapid02
from py_vapid.utils import b64urldecode, b64urlencode

from accounts import vault
from harness.errors import NotConfigured

from .models import PushKey
from .pushaddresses import audience_of

VALID_SECONDS = 12 * 3600
"""Of one signature; push services take at most 24 hours."""


def server_key() -> ec.EllipticCurvePrivateKey:
    """Raises NotConfigured where the server has no vault key, or the operator's own is malformed."""
    if settings.AGENTSITE_PUSH_KEY:
        return read_key(settings.AGENTSITE_PUSH_KEY)
    row = PushKey.objects.first()
    if row is None:
        PushKey.objects.bulk_create([PushKey(sealed=vault.seal(new_key()))], ignore_conflicts=True)
        row = PushKey.objects.get()  # another process may have been first
    return read_key(vault.open_sealed(row.sealed))


@sensitive_variables()
def new_key() -> str:
    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return str(b64urlencode(number.to_bytes(32, "big")))


@sensitive_variables()
def read_key(written: str) -> ec.EllipticCurvePrivateKey:
    """Of 32 bytes in URL-safe base64. Raises NotConfigured."""
    try:
        raw = b64urldecode(written.encode("ascii"))
        if len(raw) != 32:
            raise ValueError
        return ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1())
    except ValueError:
        # `from None`: the cause would carry the malformed key into the traceback.
        raise NotConfigured(
            _("The push key is malformed."),
            hint=_("AGENTSITE_PUSH_KEY takes 32 bytes in URL-safe base64."),
        ) from None


def public_text(key: ec.EllipticCurvePrivateKey) -> str:
    """As browsers take it (`applicationServerKey`)."""
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return str(b64urlencode(point))


def authorization(key: ec.EllipticCurvePrivateKey, endpoint: str) -> dict[str, str]:
    """The header that says who sends to this endpoint, and whom its operator may write to."""
    claims = {
        "aud": audience_of(endpoint),
        "exp": int(time.time()) + VALID_SECONDS,
        "sub": contact(),
    }
    # Its own check of `sub` refuses addresses that are none in public, such as a test's.
    signed: dict[str, str] = Vapid02(key, conf={"no-strict": True}).sign(claims)
    return signed


def contact() -> str:
    """The operator, for whoever runs the push service."""
    if settings.AGENTSITE_BASE_URL.startswith("https://"):
        return str(settings.AGENTSITE_BASE_URL)
    return f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"


def reseal_keys() -> int:
    """Seal it under the first vault key; how many. In the caller's transaction."""
    count = 0
    for row in PushKey.objects.select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count
