"""Making, rotating and revoking API tokens. The secret leaves here once and is kept as a hash.

For oneself, or for a service account of an organisation one manages (`service_accounts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.crypto import create_token_string, hash_token
from knox.settings import CONSTANTS

from accounts.happenings import Happening, emit
from accounts.models import ApiToken, Membership, Organisation, TokenScope, User
from accounts.models.api_token import SECRET_PREFIX
from accounts.permissions import may_manage, require_manager, require_member
from accounts.persons import hold_place
from accounts.tokencounts import take_counts_over
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge

NAME_LENGTH = 80
LONGEST_OVERLAP = timedelta(days=7)
"""For how long an old secret may go on working beside the one that replaces it."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: ApiToken
    secret: str = field(repr=False)
    """Known only now; only its hash is stored."""


@transaction.atomic
def create_token(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    user: User | None = None,
    audience: str = "",
) -> IssuedToken:
    """A token of the actor's, or of a service account `user` whose organisation the actor manages.

    Invalid names the field; LimitReached at AGENTSITE_TOKENS_PER_PERSON valid ones of all who
    share the holder's place. The scope `admin` takes somebody who manages the organisation. With an
    `audience` the secret opens nothing: what does is that door's business.
    """
    holder = user or actor
    _hold_roles_in(organisation.pk)
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
    _require_room(holder, organisation)
    issued = _issue(
        holder=holder,
        organisation=organisation,
        name=name,
        scopes=[scope.value for scope in wanted],
        expires_at=expires_at,
        created_by=actor,
        audience=audience,
    )
    _emit(Happening.TOKEN_MADE, issued.token, actor)
    return issued


def rotate_token(*, actor: User, token: ApiToken, overlap: timedelta = timedelta(0)) -> IssuedToken:
    """A new secret with the same name, scopes and expiry; the old one works for `overlap` more.

    NotFound for whoever may not see the token, Conflict if it is not valid any more, LimitReached where
    there is no room for both. What was used of rates and quota stays used.
    """
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise Invalid(
            _("The old secret may go on working for %(days)d days at most.")
            % {"days": LONGEST_OVERLAP.days},
            field="overlap",
            hint=_("Choose a shorter time."),
        )
    with transaction.atomic():
        _hold_roles_in(token.organisation_id)
        old = _held(actor, token)
        _require_holder(actor, old.user, old.organisation)
        now = timezone.now()
        if old.audience:
            raise Conflict(
                _("Its client renews its secrets itself."),
                hint=_("Revoke it, and let the client in anew."),
            )
        if not old.is_valid:
            raise Conflict(
                _("This token is revoked or has expired."), hint=_("Make a new one instead.")
            )
        expires_at = old.expiry
        if overlap:
            _require_room(old.user, old.organisation)
            ends = now + overlap
            old.expiry = min(ends, expires_at) if expires_at else ends
            old.save(update_fields=["expiry"])
        else:
            old.revoked_at = now
            old.save(update_fields=["revoked_at"])
        issued = _issue(
            holder=old.user,
            organisation=old.organisation,
            name=old.name,
            scopes=old.scopes,
            expires_at=expires_at,
            created_by=actor,
            replaced=old,
        )
        _emit(Happening.TOKEN_REPLACED, issued.token, actor, replaces=old.uid)
    return issued


def revoke_token(*, actor: User, token: ApiToken) -> None:
    """End a token for good; a second time changes nothing. NotFound for whoever may not see it."""
    with transaction.atomic():
        held = _held(actor, token)
        if held.revoked_at is None:
            _revoke(held, actor)


def revoke_tokens_of(*, user: User, organisation: Organisation) -> None:
    """What an action does with the tokens of a service account that it removes."""
    held = ApiToken.objects.filter(user=user, organisation=organisation, revoked_at=None)
    held.update(revoked_at=timezone.now())


def revoke_tokens_shown_to(
    *, actor: User, maker: User, organisation: Organisation | None = None, all_of_them: bool = False
) -> int:
    """End the tokens of service accounts that `maker` made, and whose secrets she therefore knows,
    where she does not manage any more, or all of them; there or everywhere. How many that were."""
    held = (
        ApiToken.objects.filter(created_by=maker, user__kind=User.Kind.SERVICE)
        .valid_at(timezone.now())
        .select_related("user", "organisation")
        .order_by("created", "pk")
    )
    if organisation is not None:
        held = held.filter(organisation=organisation)
    lost = [one for one in held if all_of_them or not may_manage(maker, one.organisation)]
    with transaction.atomic():
        for token in lost:
            _revoke(token, actor)
    return len(lost)


def revoke_all_tokens(*, actor: User, user: User) -> int:
    """What an action does with every token of a person who has lost her password; how many that were."""
    with transaction.atomic():
        held = list(
            ApiToken.objects.filter(user=user, revoked_at=None)
            .valid_at(timezone.now())
            .select_related("user", "organisation")
        )
        for token in held:
            _revoke(token, actor)
    return len(held)


def revoke_each(*, actor: User, tokens: QuerySet[ApiToken]) -> int:
    """What an action does with tokens that it has chosen; how many of them were not revoked yet."""
    with transaction.atomic():
        held = list(tokens.filter(revoked_at=None).select_related("user", "organisation"))
        for token in held:
            _revoke(token, actor)
    return len(held)


def _revoke(token: ApiToken, actor: User) -> None:
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    _emit(Happening.TOKEN_REVOKED, token, actor)


def _emit(happening: Happening, token: ApiToken, actor: User, **details: str) -> None:
    emit(
        happening,
        actor=actor,
        organisation=token.organisation,
        token=token.uid,
        name=token.name,
        holder=token.user,
        scopes=list(token.scopes),
        **({"only_for": token.audience} if token.audience else {}),
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
    audience: str = "",
    replaced: ApiToken | None = None,
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
        audience=audience,
        **take_counts_over(holder=holder, organisation=organisation, replaced=replaced),
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


def _hold_roles_in(organisation: int) -> None:
    """Whoever takes the actor's role meanwhile waits and finds the token, or was first and is seen."""
    Organisation.objects.select_for_update(no_key=True).filter(pk=organisation).first()


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
    # The lock keeps two at once from being one too many; the organisation is held already.
    hers = hold_place(holder, None)
    limit = settings.AGENTSITE_TOKENS_PER_PERSON
    held = ApiToken.objects.filter(user__in=hers, organisation=organisation)
    if held.valid_at(timezone.now()).count() >= limit:
        raise LimitReached(
            _("A person and her service accounts may have %(limit)d valid tokens here.")
            % {"limit": limit},
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
