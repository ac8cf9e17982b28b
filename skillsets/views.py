"""What skills a conversation has, and giving it one more: small pages, or what goes into the dialog."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.requests import SignedInRequest
from chat.views.answers import done
from chat.views.lookup import find_conversation
from harness.errors import NotFound
from skills_app.choosing import find_skill
from skills_app.models import Skill

from .actions.adding import add_skill
from .models import SkillSet, UsedSkill
from .reading import why_not


@login_required
@require_safe
def show_skills(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    fixed = SkillSet.objects.filter(pk=conversation.pk).first()
    context = {
        "conversation": conversation,
        "used": [(each, why_not(each)) for each in UsedSkill.objects.of(conversation)],
        "problems": fixed.problems if fixed else [],
    }
    template = "skillsets/_skills.html" if request.htmx else "skillsets/skills.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: SignedInRequest, uid: str, name: str) -> HttpResponseBase:
    conversation = find_conversation(request.user, uid)
    if request.method == "POST":
        used = add_skill(actor=request.user, conversation=conversation, name=name)
        text = _("The agent may use “%(name)s” from its next turn on.") % {"name": used.skill.name}
        return done(request, text, to=conversation.get_absolute_url())
    skill = find_skill(name, conversation.organisation, request.user)
    if not Skill.objects.visible_to(request.user).filter(pk=skill.pk).exists():
        raise NotFound(_("There is no such skill."))
    template = "skillsets/_add.html" if request.htmx else "skillsets/add.html"  # type: ignore[attr-defined]
    return render(request, template, {"conversation": conversation, "skill": skill})
