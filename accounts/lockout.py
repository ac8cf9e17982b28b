"""Who may try to sign in, and how often: counted by account, whatever it is called, and by address.

Three counts. Of one account from one address: axes, which locks that pair for a while. Of one account
from everywhere: past `ACCOUNT_FAILURES` an hour, unknown browsers get one attempt each `SLOW_SECONDS`,
so that many addresses guess no faster than one. Of a browser in which the person has signed in before
(`accounts.devices`): its own, so that nobody else's failures keep her out. allauth counts addresses.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from allauth.account.internal.userkit import filter_users_by_email, filter_users_by_username
from axes.handlers.database import AxesDatabaseHandler
from django.conf import settings
from django.core.cache import cache
from django.core.validators import validate_ipv46_address
from django.forms import ValidationError
from django.http import HttpRequest

from accounts.addresses import neighbourhood
from accounts.devices import device_of
from accounts.models import User

ACCOUNT_FAILURES = 25
HOUR = 3600
SLOW_SECONDS = 30
LONGEST_LOGIN = 320
"""Characters of a name or address that anybody could have."""


def account_of(typed: str) -> str:
    """One word for an account, however it is spelt: the people whom the sign-in would find. For nobody
    the text, folded. At most 150 characters."""
    text = typed.replace("\0", "").strip()[:LONGEST_LOGIN]
    found = {user.pk for user in people_at(text)} if text else set()
    if text and not found:
        found = {user.pk for user in filter_users_by_username(text)}
    if found:
        return "account:" + ",".join(str(pk) for pk in sorted(found))
    folded = unicodedata.normalize("NFKC", text).casefold()
    return f"nobody:{''.join(folded.split())}"[:150]


def people_at(address: str) -> list[User]:
    """Who signs in with this e-mail address: most often one, or nobody."""
    return list(filter_users_by_email(address, prefer_verified=True, for_login=True))


def username_of(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str | None:
    """For axes: the account that is tried, or None if none was named."""
    typed = (credentials or {}).get("username") or (credentials or {}).get("email")
    if not typed and request is not None:
        typed = request.POST.get("login") or request.POST.get("username")
    if not typed:
        return None
    known: dict[str, str] = request.__dict__.setdefault("_accounts", {}) if request else {}
    if str(typed) not in known:
        known[str(typed)] = account_of(str(typed))
    return known[str(typed)]


def address_of(request: HttpRequest) -> str | None:
    """For axes: from where, or None if that cannot be told."""
    address = neighbourhood(request.META.get("REMOTE_ADDR", ""))
    try:
        validate_ipv46_address(address)
    except ValidationError:
        return None
    return address


class AccountHandler(AxesDatabaseHandler):
    """axes' own count of account and address, and ours of account and of known browser."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        account = username_of(request, credentials)
        if account is None:
            return bool(super().is_locked(request, credentials))
        device = device_of(request, account)
        if device:
            failures: int = cache.get(_of_device(device), 0)
            return bool(failures >= settings.AXES_FAILURE_LIMIT)
        return bool(super().is_locked(request, credentials)) or _must_wait(request, account)

    def user_logged_in(self, sender: Any, request: Any, user: Any, **kwargs: Any) -> None:
        """What is forgotten now are the failures of whoever signed in, whoever else her name may mean."""
        request.__dict__.setdefault("_accounts", {})[user.get_username()] = f"account:{user.pk}"
        super().user_logged_in(sender, request, user, **kwargs)

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: Any = None, **kwargs: Any
    ) -> None:
        was_refused = request is None or request.axes_locked_out
        account = username_of(request, credentials)
        device = device_of(request, account) if request is not None and account else ""
        if not was_refused and account:
            if device:
                _count(_of_device(device), settings.AXES_COOLOFF_TIME * HOUR)
            else:
                _count(_of_account(account), HOUR)
        if not device or was_refused:
            super().user_login_failed(sender, credentials, request, **kwargs)


def _must_wait(request: HttpRequest, account: str) -> bool:
    """Decided once for a request, which is asked several times: the first to ask takes the turn."""
    known: dict[str, bool] = request.__dict__.setdefault("_turns", {})
    if account not in known:
        known[account] = cache.get(_of_account(account), 0) >= ACCOUNT_FAILURES and not cache.add(
            f"sign-in:turn:{account}", True, timeout=SLOW_SECONDS
        )
    return known[account]


def _of_account(account: str) -> str:
    return f"sign-in:failures:{account}"


def _of_device(device: str) -> str:
    return f"sign-in:device:{device}"


def _count(key: str, seconds: float) -> None:
    if not cache.add(key, 1, timeout=int(seconds)):
        try:
            cache.incr(key)
        except ValueError:  # it ran out in between
            cache.set(key, 1, timeout=int(seconds))
