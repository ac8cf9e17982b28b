"""An owner makes links to her conversation as it stands now; she and her organisation's managers end them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, User
from accounts.tokens import hash_token, new_token
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import own_even_ended
from conversations.models import Conversation, Link
from harness.errors import Forbidden, Invalid, LimitReached, NotFound

DAYS = (1, 7, 30, 90, 365)
"""How long a link may open."""
MOST_LINKS = 50
"""Of one conversation that open at the same time."""


@dataclass(frozen=True, slots=True)
class MadeLink:
    link: Link
    secret: str = field(repr=False)
    """Kept nowhere: it is shown once."""


def make_link(
    *, actor: User, conversation: Conversation, days: int, details: bool, members_only: bool
) -> MadeLink:
    """A link that shows what was said up to now; with `details`, what calls were given and brought too.

    Raises NotFound, Forbidden for a conversation that is not the actor's and where the server has no links
    for everybody, Invalid for another time, LimitReached.
    """
    if days not in DAYS:
        raise Invalid(
            _("A link cannot open for so long."),
            field="days",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(map(str, DAYS))},
        )
    if not (members_only or settings.AGENTSITE_PUBLIC_LINKS):
        raise Forbidden(
            _("This server has no links for everybody."),
            hint=_("Make one for the members of your organisation."),
        )
    secret, now = new_token(), timezone.now()
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        if Link.objects.filter(conversation=held).alive().count() >= MOST_LINKS:
            raise LimitReached(
                _("This conversation has %(limit)d links already.") % {"limit": MOST_LINKS},
                hint=_("Revoke one first."),
            )
        link = Link.objects.create(
            conversation=held,
            made_by=actor,
            token_hash=hash_token(secret),
            title=held.title,
            seq=held.last_seq,
            details=details,
            members_only=members_only,
            expires_at=now + timedelta(days=days),
        )
        _tell(AuditEntry.Action.LINK_MADE, actor, link, days=days, details_shown=details)
    return MadeLink(link, secret)


def revoke_link(*, actor: User, link_uid: str) -> None:
    """It opens for nobody from now on. Raises NotFound for one that is neither hers nor of an organisation
    that she manages."""
    with transaction.atomic():
        mine = Link.objects.visible_to(actor).filter(uid=link_uid.replace("\0", "")).values("pk")
        rows = Link.objects.select_for_update(of=("self",)).select_related("conversation")
        link = rows.filter(pk__in=mine).first()
        if link is None:
            raise NotFound(_("There is no such link."))
        if link.revoked_at is None:
            link.revoked_at = timezone.now()
            link.save(update_fields=["revoked_at"])
            _tell(AuditEntry.Action.LINK_REVOKED, actor, link)


def find_link(secret: str) -> Link:
    """The link that opens with this secret. Raises NotFound also for one that opens no more."""
    found = Link.objects.alive().filter(token_hash=hash_token(secret))
    link = found.select_related("conversation__agent_version__agent").first()
    if link is None or not (link.members_only or settings.AGENTSITE_PUBLIC_LINKS):
        raise NotFound(_("This link opens nothing, or nothing any more."))
    return link


def require_reader(*, actor: User, link: Link) -> None:
    """NotFound for a link that is for members alone, unless she is one."""
    here = Membership.objects.filter(
        user=actor, organisation=link.conversation.organisation_id, user__is_active=True
    )
    if link.members_only and not here.exists():
        raise NotFound(_("This link opens nothing, or nothing any more."))


def _tell(action: AuditEntry.Action, actor: User, link: Link, **details: object) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=link.conversation.organisation_id,
        conversation_uid=link.conversation.uid,
        link=link.uid,
        members_only=link.members_only,
        **details,
    )
