"""Pages of a person's list of conversations, by keyset: each begins where the last one ended.

Nothing is counted. On the first page stands before all others what she pinned, the newest pin on top; the
others by their last activity. What happens between two pages neither repeats nor hides a conversation that
did not itself move.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from conversations.models.conversation import ConversationQuerySet
from harness.errors import Invalid
from jobs.prepared import Given, Prepared

from .models import Pin
from .unread import is_unread, with_unread

PAGE_SIZE = 30
RECENT_LIMIT = 40

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"([0-9]{1,17})\.([0-9]{1,18})")
"""17 digits of microseconds end in the year 5138, which a datetime can hold."""


@dataclass(frozen=True, slots=True)
class ListPage:
    pinned: list[Conversation]
    others: list[Conversation]
    next_cursor: str = ""
    """Opaque; empty on the last page."""

    @property
    def conversations(self) -> list[Conversation]:
        return [*self.pinned, *self.others]

    @property
    def digest(self) -> str:
        """The same for the same rows in the same order, as far as a list shows them: one that asks again
        names it, and is answered only where it would look different."""
        told = "\n".join(
            f"{each.uid} {each in self.pinned} {each.status} {each.stop_reason} {each.queued_count}"
            f" {each.message_count} {is_unread(each)} {each.title}"
            for each in self.conversations
        )
        return blake2b(told.encode(), digest_size=8).hexdigest()


def list_page(
    queryset: ConversationQuerySet, user: User, cursor: str = "", size: int = PAGE_SIZE
) -> ListPage:
    """The `size` conversations behind `cursor`, or the first ones with those that `user` pinned before them;
    of each is known whether she has it unread.

    Raises `Invalid` for a cursor this function did not make.
    """
    queryset = with_unread(queryset, user)
    pinned = [] if cursor else list(_pinned(queryset, user))
    others = _others(queryset, user)
    if cursor:
        others = others.filter(_behind(cursor))
    found = list(others[: size + 1])
    page = found[:size]
    return ListPage(pinned, page, next_cursor=_cursor(page[-1]) if len(found) > size else "")


def recent(user: User, organisation: Organisation) -> ListPage:
    """The beginning of the list, as it stands beside every page."""
    here = {"user": user.pk, "organisation": organisation.pk}
    pinned = _RECENT_PINNED.all(**here)
    return ListPage(pinned, _RECENT_OTHERS.all(**here)[: max(0, RECENT_LIMIT - len(pinned))])


def _pinned(queryset: ConversationQuerySet, user: User) -> ConversationQuerySet:
    return queryset.filter(pins__user=user).order_by("-pins__pinned_at", "-id")


def _others(queryset: ConversationQuerySet, user: User) -> ConversationQuerySet:
    hers = Pin.objects.filter(user=user).values("conversation")
    return queryset.exclude(pk__in=hers).in_list_order()


def _listed(given: Given) -> ConversationQuerySet:
    mine = Conversation.objects.owned_by(given.user).listed_in(given.organisation)
    return with_unread(mine, given.user)


_RECENT_PINNED = Prepared(lambda given: _pinned(_listed(given), given.user))
_RECENT_OTHERS = Prepared(lambda given: _others(_listed(given), given.user)[:RECENT_LIMIT])


def _cursor(last: Conversation) -> str:
    return f"{_microseconds(last.active_at)}.{last.pk}"


def _behind(cursor: str) -> Q:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise Invalid(
            _("This is not a place in the list."),
            field="after",
            hint=_("Begin again with the first page."),
        )
    active, pk = match.groups()
    active_at = _moment(active)
    return Q(active_at__lt=active_at) | Q(active_at=active_at, pk__lt=int(pk))


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))
