"""Where an invitation's link leads: sign up or sign in, then join."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.actions.invitations import accept_invitation, find_open_invitation
from accounts.current_organisation import choose_organisation
from accounts.invited_signup import remember_invitation
from harness.errors import Forbidden


@require_http_methods(["GET", "POST"])
@never_cache
def show_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows what one is invited to; POST joins. A link that does not count is not found."""
    invitation = find_open_invitation(token)
    user = request.user
    if request.method == "POST" and user.is_authenticated:
        try:
            membership = accept_invitation(actor=user, token=token)
        except Forbidden as error:
            messages.error(request, error.words)
            return redirect("accounts:invitation", token)
        choose_organisation(user, request.session, membership.organisation.uid)
        messages.success(
            request, _("Welcome to %(name)s.") % {"name": membership.organisation.name}
        )
        return redirect("/")
    if not user.is_authenticated:
        remember_invitation(request, token)
    here = reverse("accounts:invitation", args=[token])
    return render(
        request,
        "accounts/invitation.html",
        {
            "invitation": invitation,
            "matches": user.is_authenticated and user.email.lower() == invitation.email.lower(),
            "signup_url": f"{reverse('account_signup')}?{urlencode({'email': invitation.email})}",
            "login_url": f"{reverse('account_login')}?{urlencode({'next': here})}",
        },
    )
