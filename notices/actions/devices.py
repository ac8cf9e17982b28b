"""A person has a browser of hers take pushes, tries it, and has it take none any more."""

from __future__ import annotations

import hashlib
from binascii import Error as NoBase64
from datetime import timedelta

from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from py_vapid.utils import b64urldecode, b64urlencode

from accounts.models import User
from harness.errors import Forbidden, Invalid, LimitReached, NotFound
from jobs.dispatch import dispatch
from notices.models import Device, Kind, Push
from notices.pushaddresses import check_endpoint
from notices.pushing import SEND
from notices.pushkeys import public_text, server_key

TEST_LIFE = timedelta(minutes=5)
NAME_LENGTH = 100


def add_device(
    *, actor: User, session_key: str, name: str, endpoint: str, p256dh: str, auth: str
) -> Device:
    """Push to this browser as long as the session lasts. It is known by its endpoint: again changes what is
    kept of it, and it is whose person did so last.

    Raises Invalid naming the field, LimitReached past AGENTSITE_PUSH_DEVICES, Forbidden without a session
    or where nothing is pushed, and NotConfigured where the server can make no key.
    """
    if actor.is_service or not session_key:
        raise Forbidden(_("A browser takes pushes for the person who is signed in with it."))
    if settings.AGENTSITE_PUSH_SECONDS <= 0:
        raise Forbidden(_("This server pushes nothing; its operator can change that."))
    server = public_text(server_key())
    endpoint = check_endpoint(endpoint)
    digest = hashlib.sha256(endpoint.encode()).hexdigest()
    kept = {
        "session_key": session_key,
        "name": name[:NAME_LENGTH],
        "p256dh": _point(p256dh),
        "auth": _secret(auth),
        "server_key": server,
    }
    with transaction.atomic():
        # Two at once would both fit.
        list(User.objects.select_for_update(no_key=True).filter(pk=actor.pk))
        Device.objects.filter(endpoint_sha256=digest).exclude(user=actor).delete()
        mine = Device.objects.filter(user=actor)
        others = mine.exclude(endpoint_sha256=digest)
        if others.count() >= settings.AGENTSITE_PUSH_DEVICES:
            raise LimitReached(
                _("You have %(most)d browsers that take pushes.")
                % {"most": settings.AGENTSITE_PUSH_DEVICES},
                hint=_("Remove one of them first."),
            )
        device, _made = mine.update_or_create(
            endpoint_sha256=digest, defaults={**kept, "user": actor, "endpoint": endpoint}
        )
    return device


def remove_device(*, actor: User, uid: str) -> None:
    """Raises NotFound for what is not hers."""
    _mine(actor, uid).delete()


def send_test(*, actor: User, uid: str) -> None:
    """Soon. Raises NotFound for what is not hers, LimitReached while one is under way."""
    device = _mine(actor, uid)
    with transaction.atomic():
        list(Device.objects.select_for_update(no_key=True).filter(pk=device.pk))
        if Push.objects.filter(device=device, kind=Kind.TEST).exists():
            raise LimitReached(
                _("A test is on its way to this browser."), hint=_("Wait until it arrives.")
            )
        now = timezone.now()
        Push.objects.create(
            device=device,
            kind=Kind.TEST,
            path=reverse("notices:settings"),
            next_at=now,
            expires_at=now + TEST_LIFE,
        )
        dispatch(SEND)


def remove_devices_of_session(session_key: str) -> int:
    """It is over: its browser takes no pushes any more; how many did."""
    return Device.objects.filter(session_key=session_key).delete()[0] if session_key else 0


def _mine(actor: User, uid: str) -> Device:
    device = Device.objects.visible_to(actor).filter(uid=uid).first()
    if device is None:
        raise NotFound(_("There is no such browser of yours."))
    return device


def _point(written: str) -> str:
    raw = _bytes(written, 65, "p256dh")
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    except ValueError:
        raise _none("p256dh") from None
    return str(b64urlencode(raw))


def _secret(written: str) -> str:
    return str(b64urlencode(_bytes(written, 16, "auth")))


def _bytes(written: str, length: int, field: str) -> bytes:
    try:
        raw: bytes = b64urldecode(written[:200].encode("ascii"))
    except (ValueError, NoBase64):
        raise _none(field) from None
    if len(raw) != length:
        raise _none(field)
    return raw


def _none(field: str) -> Invalid:
    return Invalid(
        _("This is no key of a browser."), field=field, hint=_("Have the browser sign up again.")
    )
