"""Who signs out gets no pushes in that browser any more. It only translates Django's signal; a session that
ends in another way is found when a push is due (`pushing`)."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from .actions.devices import remove_devices_of_session


@receiver(user_logged_out, dispatch_uid="pushes_end_with_session")
def _signed_out(request: HttpRequest | None, **_signal: Any) -> None:
    session = getattr(request, "session", None)
    if session is not None and session.session_key:
        remove_devices_of_session(session.session_key)
