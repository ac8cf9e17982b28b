"""This server as a source: what of its own library others may install, as a signed index and archives.

Only where the operator says so, and only skills of the server itself: an organisation's are nobody else's.
The key is made of the server's secret, so that it is the same in every process and after every restart.
"""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AgentError, NotFound

from .files import files_of
from .folder import sha256_of
from .models import Skill, SkillVersion
from .packing import pack
from .signedindex import LIFE_SECONDS, Index, Offered, public_key_of, signed, written


def signing_key() -> Ed25519PrivateKey:
    made = HKDF(SHA256(), 32, salt=None, info=b"agentsite skills index")
    return Ed25519PrivateKey.from_private_bytes(made.derive(settings.SECRET_KEY.encode()))


def public_key() -> str:
    """By which others know this server's index."""
    return public_key_of(signing_key())


def index_text() -> str:
    """Raises NotFound where the library is not offered to others."""
    _require_public()
    now = int(time.time())
    offered = [each for skill in _skills() for each in _offers(skill)]
    index = Index(issued=now, expires=now + LIFE_SECONDS, skills=tuple(offered))
    return written(signed(index, signing_key()))


def archive_of(digest: str) -> bytes:
    """The archive of a released version, by the digest of its files. Raises NotFound, also for one that was
    withdrawn or stopped."""
    _require_public()
    version = (
        SkillVersion.objects.released()
        .filter(skill__in=_skills(), digest=digest)
        .select_related("skill")
        .first()
    )
    if version is None or version.removed:
        raise NotFound(_("There is no such version."))
    return pack(version.skill.name, files_of(version))


def _skills() -> list[Skill]:
    rows = Skill.objects.filter(organisation=None).on_offer()
    return list(rows.select_related("stable").order_by("name"))


def _offers(skill: Skill) -> list[Offered]:
    rows = skill.versions.filter(state=SkillVersion.State.RELEASED).order_by("-number")
    versions = sorted(rows, key=lambda each: each.pk != skill.stable_id)
    found = []
    for version in versions:
        if version.removed:
            continue
        try:
            archive = pack(skill.name, files_of(version))
        except AgentError:  # what is stored is not what was: it is offered to nobody
            continue
        found.append(
            Offered(
                name=skill.name,
                description=version.description,
                url=f"{version.digest}.zip",
                digest=f"sha256:{sha256_of(archive)}",
                version=version.label,
                content=f"sha256:{version.digest}",
                size=len(archive),
                deprecated=version.deprecated_at is not None,
                replacement=version.replacement,
                removal_on=version.removal_on,
            )
        )
    return found


def _require_public() -> None:
    if not settings.AGENTSITE_SKILLS_PUBLIC:
        raise NotFound(_("This server offers its skills to nobody else."))
