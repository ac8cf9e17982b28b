"""The server's key: made when it is first needed, sealed by the vault, and never shown."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from accounts import vault

from .models import SigningKey
from .verifying import canonical, fingerprint


def current_key() -> SigningKey:
    """The first; made here if there is none. Raises NotConfigured where the server has no vault key."""
    return SigningKey.objects.first() or _make()


@sensitive_variables()
def sign(key: SigningKey, head: dict[str, object]) -> str:
    """The signature over the head in its one spelling, in hexadecimal."""
    private = load_pem_private_key(vault.open_sealed(key.sealed).encode(), password=None)
    assert isinstance(private, Ed25519PrivateKey)  # noqa: S101 - made below
    return private.sign(canonical(head)).hex()


def reseal_keys() -> int:
    """Seal every key under the first vault key; how many. In the caller's transaction."""
    count = 0
    for row in SigningKey.objects.select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count


@sensitive_variables()
def _make() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with transaction.atomic():
        return SigningKey.objects.create(
            fingerprint=fingerprint(public),
            public_pem=public.public_bytes(
                Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
            ).decode(),
            sealed=vault.seal(pem),
        )
