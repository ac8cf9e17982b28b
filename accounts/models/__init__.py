"""The tables of accounts. A models package re-exports: Django looks for its tables here."""

from accounts.models.api_token import ApiToken, TokenScope
from accounts.models.organisation import Invitation, Membership, Organisation, ReviewersSee, Role
from accounts.models.provider_key import ProviderKey, Scope
from accounts.models.setup_link import SetupLink
from accounts.models.user import User

__all__ = [
    "ApiToken",
    "Invitation",
    "Membership",
    "Organisation",
    "ProviderKey",
    "ReviewersSee",
    "Role",
    "Scope",
    "SetupLink",
    "TokenScope",
    "User",
]
