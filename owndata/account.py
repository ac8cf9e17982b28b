"""What the floors below keep of a person: her account, and what she did. No secret, nor a part of one."""

from __future__ import annotations

from collections.abc import Iterator

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount

from accounts.models import ApiToken, Membership, ProviderKey, User
from audit.models import AuditEntry

from .parts import File, as_json, as_lines, in_pages


def files(user: User) -> Iterator[File]:
    yield File("account.json", iter([as_json(_account(user))]))


def audited(user: User) -> Iterator[File]:
    rows = AuditEntry.objects.filter(actor=user).select_related("organisation")
    told = (
        {
            "at": row.at,
            "action": row.action,
            "organisation": row.organisation.uid if row.organisation else None,
            "conversation": row.conversation_uid or None,
            "tool": row.tool or None,
            "reason": row.reason or None,
            "details": row.details,
        }
        for row in in_pages(rows)
    )
    yield File("audit.jsonl", as_lines(told))


def _account(user: User) -> dict[str, object]:
    memberships = Membership.objects.filter(user=user).select_related("organisation")
    tokens = ApiToken.objects.filter(user=user).select_related("organisation")
    return {
        "id": user.uid,
        "username": user.username,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "language": user.language or None,
        "joined_at": user.date_joined,
        "signed_in_at": user.last_login,
        "addresses": [
            {"email": each.email, "verified": each.verified, "primary": each.primary}
            for each in EmailAddress.objects.filter(user=user).order_by("pk")
        ],
        "second_factors": [
            {"kind": each.type, "made_at": each.created_at}
            for each in Authenticator.objects.filter(user=user).order_by("pk")
        ],
        "signs_in_with": [
            {"provider": each.provider, "id": each.uid}
            for each in SocialAccount.objects.filter(user=user).order_by("pk")
        ],
        "organisations": [
            {"id": each.organisation.uid, "name": each.organisation.name, "role": each.role}
            for each in memberships.order_by("pk")
        ],
        "tokens": [
            {
                "id": each.uid,
                "name": each.name,
                "organisation": each.organisation.uid,
                "scopes": each.scopes,
                "only_for": each.audience or None,
                "made_at": each.created,
                "expires_at": each.expiry,
                "revoked_at": each.revoked_at,
            }
            for each in tokens.order_by("created")
        ],
        "provider_keys": [
            {"id": each.uid, "provider": each.provider}
            for each in ProviderKey.objects.filter(user=user).order_by("pk")
        ],
    }
