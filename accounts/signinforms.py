"""The forms of signing in and up, passwords and second factors: allauth's, with words of ours.

Settings name them; each is allauth's own but for what it says, and that a code counts once.
"""

from __future__ import annotations

from typing import Any

from allauth.account import forms as account
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.forms import GenerateRecoveryCodesForm as GenerateCodes
from allauth.mfa.totp.forms import ActivateTOTPForm as ActivateTOTP
from allauth.mfa.totp.forms import DeactivateTOTPForm as DeactivateTOTP
from allauth.socialaccount import forms as social
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _

from accounts.formwords import InOurWords
from accounts.lockout import LONGEST_LOGIN
from accounts.secondfactors import take_code


class LoginForm(InOurWords, account.LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login = self.fields["login"]
        login.label = _("E-mail address or user name")
        login.validators.append(MaxLengthValidator(LONGEST_LOGIN))
        login.widget.attrs.update({"autocomplete": "username", "placeholder": ""})
        self.fields["password"].widget.attrs["placeholder"] = ""


class SignupForm(InOurWords, account.SignupForm):
    pass


class AddEmailForm(InOurWords, account.AddEmailForm):
    pass


class ChangePasswordForm(InOurWords, account.ChangePasswordForm):
    pass


class SetPasswordForm(InOurWords, account.SetPasswordForm):
    pass


class ResetPasswordForm(InOurWords, account.ResetPasswordForm):
    pass


class ResetPasswordKeyForm(InOurWords, account.ResetPasswordKeyForm):
    pass


class ReauthenticateForm(InOurWords, account.ReauthenticateForm):
    pass


class _CountsOnce(InOurWords, mfa.BaseAuthenticateForm):
    def clean_code(self) -> str:
        code: str = super().clean_code()
        factor = self.authenticator
        if factor.type == Authenticator.Type.TOTP and not take_code(factor, code):
            self._emit_authentication_failed(factor)
            raise get_adapter().validation_error("incorrect_code")
        return code


class SecondFactorForm(_CountsOnce, mfa.AuthenticateForm):
    pass


class SecondFactorAgainForm(_CountsOnce, mfa.ReauthenticateForm):
    pass


class ActivateTOTPForm(InOurWords, ActivateTOTP):
    pass


class DeactivateTOTPForm(InOurWords, DeactivateTOTP):
    pass


class GenerateRecoveryCodesForm(InOurWords, GenerateCodes):
    pass


class SocialSignupForm(InOurWords, social.SignupForm):
    pass


class DisconnectForm(InOurWords, social.DisconnectForm):
    pass
