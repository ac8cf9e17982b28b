"""Tells what the library for signing in did to somebody's password, addresses, second factors and accounts
elsewhere.

It only translates the library's signals; what follows from them is decided in `actions.people`.
"""

from __future__ import annotations

from typing import Any

from allauth.account.signals import (
    email_added,
    email_changed,
    email_removed,
    password_changed,
    password_reset,
    password_set,
)
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.socialaccount.signals import social_account_added, social_account_removed
from django.contrib import messages
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.translation import ngettext

from accounts.actions.people import end_after_reset
from accounts.devices import remember_reset
from accounts.happenings import Happening, emit
from accounts.models import User

_ELSEWHERE = "socialaccount"
"""An account at another service, with which somebody signs in here."""


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


@receiver(email_added, dispatch_uid="told_email_added")
def _email_added(user: User, email_address: Any, **_signal: Any) -> None:
    """Once it is confirmed, a password is reset through it like through the first one."""
    emit(Happening.ADDRESS_CHANGED, actor=user, added=email_address.email)


@receiver(email_removed, dispatch_uid="told_email_removed")
def _email_removed(user: User, email_address: Any, **_signal: Any) -> None:
    emit(Happening.ADDRESS_CHANGED, actor=user, removed=email_address.email)


@receiver(social_account_added, dispatch_uid="told_account_elsewhere_added")
def _account_elsewhere_added(sociallogin: Any, **_signal: Any) -> None:
    found = sociallogin.account
    emit(Happening.FACTOR_ADDED, actor=found.user, kind=_ELSEWHERE, provider=found.provider)


@receiver(social_account_removed, dispatch_uid="told_account_elsewhere_removed")
def _account_elsewhere_removed(socialaccount: Any, **_signal: Any) -> None:
    found = socialaccount
    emit(Happening.FACTOR_REMOVED, actor=found.user, kind=_ELSEWHERE, provider=found.provider)


@receiver([authenticator_added, authenticator_reset], dispatch_uid="told_factor_added")
def _factor_added(user: User, authenticator: Any, **_signal: Any) -> None:
    emit(Happening.FACTOR_ADDED, actor=user, kind=authenticator.type)


@receiver(authenticator_removed, dispatch_uid="told_factor_removed")
def _factor_removed(user: User, authenticator: Any, **_signal: Any) -> None:
    emit(Happening.FACTOR_REMOVED, actor=user, kind=authenticator.type)
