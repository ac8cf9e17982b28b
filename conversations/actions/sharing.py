"""A conversation's owner lets others in her organisation read it, write in it or decide in it, and ends that.

What a role allows is said by `models.share` and `Conversation.objects`. Links for everybody are `links`'.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import own_even_ended, require_readable
from conversations.ancestry import WithDescendants
from conversations.models import Conversation, Share, ShareRole
from conversations.models.share import WRITING
from conversations.readers import tell_runs
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from jobs.prepared import Prepared
from live.hub import hub

MOST_SHARES = 200
"""Of one conversation; with more people it is shared with the organisation."""

_SHARES = Prepared(
    lambda given: Share.objects.filter(conversation=given.conversation).select_related("user")
)


def share_conversation(
    *, actor: User, conversation: Conversation, user_uid: str, role: str
) -> Share:
    """Let a member of the conversation's organisation, or with an empty id all of them, do what the role
    allows; who was let in before has this role from now on.

    Raises NotFound and Forbidden for a conversation that is not the actor's, Invalid for an unknown role,
    for herself and for whom is no such member, Conflict for one that an agent began and where vaults of
    hers would be used by what others write, LimitReached.
    """
    chosen = _role(role)
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        if held.parent_id is not None:
            raise Conflict(
                _("An agent began this conversation."), hint=_("Share the one it works for.")
            )
        _require_no_vaults(held, chosen)
        person = _member(held, user_uid) if user_uid else None
        share = Share.objects.filter(conversation=held, user=person).first()
        joins = share is None
        if share is None:
            if Share.objects.filter(conversation=held).count() >= MOST_SHARES:
                raise LimitReached(
                    _("A conversation is shared with at most %(limit)d people.")
                    % {"limit": MOST_SHARES},
                    hint=_("Share it with your organisation."),
                )
            share = Share(conversation=held, user=person)
        if share.role == chosen:
            return share
        share.role = chosen
        share.save()
        if joins:
            tell_runs(held)
        _tell(AuditEntry.Action.CONVERSATION_SHARED, actor, held, share)
    return share


def unshare_conversation(*, actor: User, conversation: Conversation, share_uid: str) -> None:
    """End it at once: what is open of it there is closed. Raises NotFound and Forbidden."""
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        share = Share.objects.filter(conversation=held, uid=share_uid.replace("\0", "")).first()
        if share is None:
            raise NotFound(_("There is no such share."))
        share.delete()
        _tell(AuditEntry.Action.SHARE_ENDED, actor, held, share)


def shares_of(*, actor: User, conversation: Conversation) -> list[Share]:
    """With whom it is shared, for all who may read it. Raises NotFound."""
    require_readable(actor, conversation)
    rows = _SHARES.all(conversation=conversation.pk)
    return [one for one in rows if one.user is None or _belongs(conversation, one.user)]


def people_to_share_with(*, actor: User, conversation: Conversation) -> QuerySet[User]:
    """The members it could be shared with. Raises as `own_even_ended`."""
    held = own_even_ended(actor, conversation)
    return _members(held).exclude(shares__conversation=held).order_by("username")


def end_shares_of(*, user: User, organisation: Organisation) -> None:
    """A membership ends, in this transaction: what others shared with her ends with it, and whoever follows
    what she or others may see no longer is told to look."""
    there = Conversation.objects.filter(organisation=organisation)
    _have_looked(there.filter(Q(owner=user) | Q(pk__in=Share.objects.values("conversation"))))
    Share.objects.filter(conversation__organisation=organisation, user=user).delete()


def role_of(user: User, conversation: Conversation) -> str:
    """`owner`, or the widest role that the user has by a share; empty: none."""
    if conversation.owner_id == user.pk:
        return "owner"
    rows = Conversation.objects.filter(pk=conversation.pk)
    if rows.decidable_by(user).exists():
        return ShareRole.DECIDER
    if rows.writable_by(user).exists():
        return ShareRole.WRITER
    return ShareRole.VIEWER if rows.visible_to(user).exists() else ""


def _role(role: str) -> ShareRole:
    try:
        return ShareRole(role)
    except ValueError:
        raise Invalid(
            _("There is no role “%(name)s”.") % {"name": role[:40]},
            field="role",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(ShareRole.values)},
        ) from None


def _members(held: Conversation) -> QuerySet[User]:
    return User.objects.filter(
        memberships__organisation=held.organisation_id, kind=User.Kind.PERSON, is_active=True
    ).exclude(pk=held.owner_id)


def _member(held: Conversation, uid: str) -> User:
    found = _members(held).filter(uid=uid.replace("\0", "")).first()
    if found is None:
        raise Invalid(
            _("There is no such other member of this conversation's organisation."),
            field="user",
            hint=_("Choose one of its people."),
        )
    return found


def _belongs(conversation: Conversation, user: User) -> bool:
    return user.is_active and conversation.organisation_id in {
        one.organisation_id for one in user.memberships.all()
    }


def _require_no_vaults(held: Conversation, role: ShareRole) -> None:
    if role in WRITING and held.session_vaults.exists():
        raise Conflict(
            _("Vaults of yours are lent to this conversation; what others write would use them."),
            hint=_("Let others only read it."),
        )


def _tell(action: AuditEntry.Action, actor: User, held: Conversation, share: Share) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=held.organisation_id,
        conversation_uid=held.uid,
        role=share.role,
        person=None if share.user is None else {"id": share.user.uid, "name": share.user.username},
    )
    _have_looked(Conversation.objects.filter(pk=held.pk))


def _have_looked(rows: QuerySet[Conversation]) -> None:
    """Whoever follows one of these, or what agents began there, looks after the commit if she still may."""
    tree = Conversation.objects.filter(pk__in=WithDescendants(rows.order_by().values("pk")))
    for uid in tree.values_list("uid", flat=True):
        transaction.on_commit(partial(hub.nudge, uid, 0))
