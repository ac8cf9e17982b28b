"""Where allauth asks us: who may sign up, and what a new person belongs to.

Sign-up is by invitation. An identity provider opens it wider only where the operator said so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import MAX_URL_LENGTH
from django.utils.translation import gettext as _

from accounts import vault
from accounts.actions.invitations import accept_invitation
from accounts.current_organisation import choose_organisation
from accounts.devices import remember_device
from accounts.invited_signup import forget_invitation, remembered_invitation
from accounts.lockout import address_of, username_of
from accounts.models import User
from harness.errors import Declined

logger = logging.getLogger(__name__)


def display_name(user: User) -> str:
    return str(user)


def _join_invited(request: HttpRequest, user: User) -> None:
    """Accept the invitation that opened the sign-up; one for another address is left alone."""
    remembered = remembered_invitation(request)
    if remembered is None:
        return
    try:
        membership = accept_invitation(actor=user, token=remembered[1])
    except Declined:
        return
    choose_organisation(user, request.session, membership.organisation.uid)
    forget_invitation(request)


@contextmanager
def _one_of_several(request: HttpRequest) -> Iterator[None]:
    """Of several who sign up with the same name or address at once, one does. The others had their
    form judged before that, so they are told here."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        messages.error(
            request,
            _("Somebody has signed up with this user name or address meanwhile. Sign in instead."),
        )
        raise ImmediateHttpResponse(redirect("account_login")) from None


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return remembered_invitation(request) is not None

    def clean_username(self, username: str, shallow: bool = False) -> str:
        if "@" in username:
            raise ValidationError(
                _("Choose a user name without @: it could be somebody else's address.")
            )
        cleaned: str = super().clean_username(username, shallow)
        return cleaned

    def clean_email(self, email: str) -> str:
        """A visitor who signs up takes the invited address; it cannot be exchanged."""
        email = super().clean_email(email)
        request: HttpRequest | None = self.request
        if request is None or request.user.is_authenticated:
            return email
        remembered = remembered_invitation(request)
        if remembered is not None and email.lower() != remembered[0].email.lower():
            raise ValidationError(
                _("Your invitation is for %(email)s. Sign up with that address.")
                % {"email": remembered[0].email}
            )
        return email

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """With the address: what strangers do elsewhere keeps nobody out of her account."""
        return f"{username_of(request, credentials)}:{address_of(request)}"

    def is_safe_url(self, url: str | None) -> bool:
        """Not where it is longer than Django takes: splitting an address normalizes its host, and that
        takes time that grows with the square of what a stranger sent."""
        if not url or len(url) > MAX_URL_LENGTH:
            return False
        return bool(super().is_safe_url(url))

    def set_password(self, user: Any, password: str) -> None:
        """That alone: the account may have been closed since it was read, and stays so."""
        user.set_password(password)
        user.save(update_fields=["password"])

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember_device(request, response, user.pk)
        return response

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """That a password, an address or a second factor was changed, which holds whatever becomes of it."""
        if not settings.AGENTSITE_EMAIL_CONFIGURED:
            return
        try:
            super().send_notification_mail(*args, **kwargs)
        except OSError as problem:
            logger.warning("a change of an account could not be mailed: %s", problem)

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> User:
        with _one_of_several(request):
            saved: User = super().save_user(request, user, form, commit)
        if commit and saved.pk is not None:
            _join_invited(request, saved)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return bool(settings.AGENTSITE_OIDC_SIGNUP) or remembered_invitation(request) is not None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse a provider whose two answers are about two people (OpenID Connect Core, 5.3.2)."""
        claims = sociallogin.account.extra_data
        of_person, of_token = claims.get("userinfo"), claims.get("id_token")
        if of_person and of_token and of_person.get("sub") != of_token.get("sub"):
            messages.error(
                request, _("The sign-in service gave two different answers about who you are.")
            )
            raise ImmediateHttpResponse(redirect("account_login"))

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        with _one_of_several(request):
            saved: User = super().save_user(request, sociallogin, form)
        _join_invited(request, saved)
        return saved


class MFAAdapter(DefaultMFAAdapter):
    """Seals second factors at rest, like every other secret."""

    def encrypt(self, text: str) -> str:
        return vault.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return vault.open_sealed(encrypted_text)
