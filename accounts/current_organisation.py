"""Which organisation a person works in now: the chosen one, else the first, else a personal one.

A page whose forms act on it includes `accounts/_shown_organisation.html` in each of them, and their
views call `require_shown_organisation` before they change anything: another tab may have switched.
"""

from __future__ import annotations

from django.contrib.sessions.backends.base import SessionBase
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.actions.organisations import ensure_personal_organisation
from accounts.models import Membership, Organisation, User
from accounts.requests import SignedInRequest
from harness.errors import Conflict, Invalid, NotFound
from jobs.prepared import Given, Prepared

SHOWN = "shown_organisation"
"""The hidden field with the uid of the organisation that a page was about."""

_SESSION_KEY = "organisation"


def _memberships(given: Given) -> QuerySet[Membership]:
    return Membership.objects.filter(user=given.user).select_related("organisation")


_CHOSEN = Prepared(lambda given: _memberships(given).filter(organisation__uid=given.uid))
_FIRST = Prepared(lambda given: _memberships(given).order_by("created_at", "pk")[:1])


def organisation_for(user: User, session: SessionBase) -> Organisation:
    """The organisation `user` works in. A choice that is no longer theirs is passed over.

    Sockets call it with `scope["user"]` and `scope["session"]`; views read `request.organisation`.
    """
    chosen = session.get(_SESSION_KEY)
    membership = _CHOSEN.first(user=user.pk, uid=chosen) if chosen else None
    membership = membership or _FIRST.first(user=user.pk)
    return membership.organisation if membership else ensure_personal_organisation(user=user)


def choose_organisation(user: User, session: SessionBase, uid: str) -> Organisation:
    """Remember the choice for this session; NotFound if `user` does not belong to it."""
    organisation = Organisation.objects.visible_to(user).filter(uid=uid).first()
    if organisation is None:
        raise NotFound("There is no such organisation.")
    session[_SESSION_KEY] = organisation.uid
    return organisation


def require_shown_organisation(request: SignedInRequest) -> None:
    """Conflict if the posted form was shown for another organisation than the current one.

    Invalid if it does not say for which: a form of an older release, or no form of ours.
    """
    shown = request.POST.get(SHOWN)
    if not shown:
        raise Invalid(
            _("The form does not say which organisation it is for."),
            field=SHOWN,
            hint=_("Load the page again and repeat what you did."),
        )
    if shown != request.organisation.uid:
        raise Conflict(
            _("You switched the organisation in another tab: you work in “%(name)s” now.")
            % {"name": request.organisation.name},
            hint=_("Nothing was done. Switch back, or repeat it if you mean this organisation."),
        )


def current_organisation(request: HttpRequest) -> Organisation | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    return organisation_for(user, request.session)
