"""Tells what the library for signing in did to somebody's password, addresses and second factors.

It only translates the library's signals; what follows from them is decided in `actions.people`.
"""

from __future__ import annotations

from typing import Any

from allauth.account.signals import email_changed, password_changed, password_reset, password_set
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from django.contrib import messages
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.translation import ngettext

from accounts.actions.people import end_after_reset
from accounts.devices import remember_reset
from accounts.happenings import Happening, emit
from accounts.models import User


@receiver([password_changed, password_set], dispatch_uid="told_password_changed")
def _password_changed(user: User, **_signal: Any) -> None:
    emit(Happening.PASSWORD_CHANGED, actor=user)


@receiver(password_reset, dispatch_uid="told_password_reset")
def _password_reset(request: HttpRequest, user: User, **_signal: Any) -> None:
    remember_reset(request, user.pk)
    ended = end_after_reset(actor=user, user=user)
    if ended:
        message = ngettext(
            "%(count)d token of yours was revoked, since the password was reset.",
            "%(count)d tokens of yours were revoked, since the password was reset.",
            ended,
        )
        messages.info(request, message % {"count": ended})


@receiver(email_changed, dispatch_uid="told_email_changed")
def _email_changed(user: User, to_email_address: Any, **_signal: Any) -> None:
    emit(Happening.ADDRESS_CHANGED, actor=user, to=to_email_address.email)


@receiver([authenticator_added, authenticator_reset], dispatch_uid="told_factor_added")
def _factor_added(user: User, authenticator: Any, **_signal: Any) -> None:
    emit(Happening.FACTOR_ADDED, actor=user, kind=authenticator.type)


@receiver(authenticator_removed, dispatch_uid="told_factor_removed")
def _factor_removed(user: User, authenticator: Any, **_signal: Any) -> None:
    emit(Happening.FACTOR_REMOVED, actor=user, kind=authenticator.type)
