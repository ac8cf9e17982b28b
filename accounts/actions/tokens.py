"""Making, rotating and revoking API tokens. The secret leaves here once and is kept as a hash.

For oneself, or for a service account of an organisation one manages (`service_accounts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.crypto import create_token_string, hash_token
from knox.settings import CONSTANTS

from accounts.happenings import Happening, tell
from accounts.models import ApiToken, Membership, Organisation, TokenScope, User
from accounts.models.api_token import SECRET_PREFIX
from accounts.permissions import require_manager, require_member
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge

NAME_LENGTH = 80
LONGEST_OVERLAP = timedelta(days=7)
"""For how long an old secret may go on working beside the one that replaces it."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: ApiToken
    secret: str = field(repr=False)
    """Known only now; only its hash is stored."""


def create_token(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    user: User | None = None,
) -> IssuedToken:
    """A token of the actor's, or of a service account `user` whose organisation the actor manages.

    Invalid names the field; LimitReached at AGENTSITE_TOKENS_PER_PERSON valid ones. The scope
    `admin` takes somebody who manages the organisation.
    """
    holder = user or actor
    own = require_member(actor, organisation)
    _require_holder(actor, holder, organisation)
    wanted = _parse_scopes(scopes)
    if TokenScope.ADMIN in wanted and not own.manages:
        raise Forbidden(
            _("Only owners and administrators may make a token for administration."),
            hint=_("Leave the scope “admin” out, or ask one of them."),
        )
    name = _clean_name(name)
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid(
            _("The token would be expired at once."),
            field="expires_at",
            hint=_("Choose a later time."),
        )
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=holder.pk).first()
        _require_room(holder, organisation)
        issued = _issue(
            holder=holder,
            organisation=organisation,
            name=name,
            scopes=[scope.value for scope in wanted],
            expires_at=expires_at,
            created_by=actor,
        )
        _tell(Happening.TOKEN_MADE, issued.token, actor)
    return issued


def rotate_token(*, actor: User, token: ApiToken, overlap: timedelta = timedelta(0)) -> IssuedToken:
    """A new secret with the same name, scopes and expiry; the old one works for `overlap` more.

    NotFound for whoever may not see the token, Conflict if it is not valid any more.
    """
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise Invalid(
            _("The old secret may go on working for %(days)d days at most.")
            % {"days": LONGEST_OVERLAP.days},
            field="overlap",
            hint=_("Choose a shorter time."),
        )
    with transaction.atomic():
        old = _held(actor, token)
        _require_holder(actor, old.user, old.organisation)
        now = timezone.now()
        if not old.is_valid:
            raise Conflict(
                _("This token is revoked or has expired."), hint=_("Make a new one instead.")
            )
        issued = _issue(
            holder=old.user,
            organisation=old.organisation,
            name=old.name,
            scopes=old.scopes,
            expires_at=old.expiry,
            created_by=actor,
        )
        if overlap:
            ends = now + overlap
            old.expiry = min(ends, old.expiry) if old.expiry else ends
            old.save(update_fields=["expiry"])
        else:
            old.revoked_at = now
            old.save(update_fields=["revoked_at"])
        _tell(Happening.TOKEN_REPLACED, issued.token, actor, replaces=old.uid)
    return issued


def revoke_token(*, actor: User, token: ApiToken) -> None:
    """End a token for good; a second time changes nothing. NotFound for whoever may not see it."""
    with transaction.atomic():
        held = _held(actor, token)
        if held.revoked_at is None:
            held.revoked_at = timezone.now()
            held.save(update_fields=["revoked_at"])
            _tell(Happening.TOKEN_REVOKED, held, actor)


def revoke_tokens_of(*, user: User, organisation: Organisation) -> None:
    """What an action does with the tokens of a service account that it removes."""
    held = ApiToken.objects.filter(user=user, organisation=organisation, revoked_at=None)
    held.update(revoked_at=timezone.now())


def revoke_all_tokens(*, user: User) -> int:
    """End every token of a person who has lost her password; how many that were."""
    with transaction.atomic():
        held = list(
            ApiToken.objects.filter(user=user, revoked_at=None)
            .valid_at(timezone.now())
            .select_related("user", "organisation")
        )
        for token in held:
            token.revoked_at = timezone.now()
            token.save(update_fields=["revoked_at"])
            _tell(Happening.TOKEN_REVOKED, token, user)
    return len(held)


def _tell(happening: Happening, token: ApiToken, actor: User, **details: str) -> None:
    tell(
        happening,
        actor=actor,
        organisation=token.organisation,
        token=token.uid,
        name=token.name,
        holder=token.user,
        scopes=list(token.scopes),
        **details,
    )


def _issue(
    *,
    holder: User,
    organisation: Organisation,
    name: str,
    scopes: list[str],
    expires_at: datetime | None,
    created_by: User,
) -> IssuedToken:
    secret = SECRET_PREFIX + create_token_string()
    token = ApiToken.objects.create(
        digest=hash_token(secret),
        token_key=secret[: CONSTANTS.TOKEN_KEY_LENGTH],
        user=holder,
        organisation=organisation,
        name=name,
        scopes=scopes,
        expiry=expires_at,
        created_by=created_by,
    )
    return IssuedToken(token=token, secret=secret)


def _held(actor: User, token: ApiToken) -> ApiToken:
    """The row as it is now, locked. A superuser reaches every token, to end it."""
    rows = ApiToken.objects.all() if actor.is_superuser else ApiToken.objects.visible_to(actor)
    found = ApiToken.objects.filter(pk__in=rows.filter(pk=token.pk).values("pk"))
    row = found.select_for_update(of=("self",)).select_related("user", "organisation").first()
    if row is None or not actor.is_active:
        raise NotFound(_("There is no such token."))
    return row


def _require_holder(actor: User, holder: User, organisation: Organisation) -> None:
    """Nobody makes a token that speaks for another person, whatever their role."""
    if holder.pk == actor.pk:
        return
    if not holder.is_service:
        raise Forbidden(
            _("A token speaks for its person: nobody makes one for somebody else."),
            hint=_("Make a service account, or ask the person."),
        )
    require_manager(actor, organisation)
    if not holder.is_active or Membership.objects.role_in(organisation, holder) is None:
        raise NotFound(_("There is no such service account."))


def _require_room(holder: User, organisation: Organisation) -> None:
    limit = settings.AGENTSITE_TOKENS_PER_PERSON
    held = ApiToken.objects.filter(user=holder, organisation=organisation)
    if held.valid_at(timezone.now()).count() >= limit:
        raise LimitReached(
            _("There are already %(limit)d valid tokens.") % {"limit": limit},
            hint=_("Revoke those that are not needed."),
        )


def _parse_scopes(scopes: Iterable[str]) -> list[TokenScope]:
    """In the order of the list of scopes, each once."""
    asked = set(scopes)
    unknown = sorted(asked - set(TokenScope.values))
    if unknown or not asked:
        raise Invalid(
            _("There is no scope “%(scope)s”.") % {"scope": str(unknown[0])[:40]}
            if unknown
            else _("A token needs at least one scope."),
            field="scopes",
            hint=_("Choose from: %(scopes)s.") % {"scopes": ", ".join(TokenScope.values)},
        )
    return [scope for scope in TokenScope if scope in asked]


def _clean_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise Invalid(
            _("A token needs a name."), field="name", hint=_("Say which program will use it.")
        )
    if len(name) > NAME_LENGTH:
        raise TooLarge(
            _("The name is longer than %(limit)d characters.") % {"limit": NAME_LENGTH},
            field="name",
            hint=_("Shorten it."),
        )
    return name
