"""Who reviews an organisation: sees what waits and what was decided in all of it."""

from __future__ import annotations

from django.db.models import QuerySet

from .models import Organisation, Role, User

REVIEWING = (Role.OWNER, Role.ADMIN, Role.REVIEWER)
"""Roles that see and decide what waits in their whole organisation."""


def reviewed_organisations(user: User) -> QuerySet[Organisation]:
    return Organisation.objects.filter(
        memberships__user=user, memberships__role__in=list(REVIEWING)
    )
