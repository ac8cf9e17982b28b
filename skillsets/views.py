"""What skills a conversation has, and giving it one more: small pages, or what goes into the dialog; and a
page on which people look at skills of its workspace and trust them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.requests import SignedInRequest
from chat.views.answers import done
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from harness.errors import Conflict, LimitReached, NotFound
from reading.unseen import visible
from skills_app.choosing import find_skill
from skills_app.comparing import FileChange, changes_between
from skills_app.models import Skill
from skills_app.names import SKILL
from skills_app.packages import Packages, missing_of
from skills_app.scanning import scan
from tools_app.workspace import workspace_for

from .actions.adding import add_skill
from .actions.trusting import distrust_skill, trust_skill
from .models import SkillSet, TrustedSkill, UsedSkill
from .reading import why_not
from .using import addable
from .workspace import Found, look


@login_required
@require_safe
def show_skills(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    fixed = SkillSet.objects.filter(pk=conversation.pk).first()
    owns = conversation.owner_id == request.user.pk
    context = {
        "conversation": conversation,
        "addable": addable(conversation) if owns else [],
        "used": _used_rows(conversation),
        "problems": fixed.problems if fixed else [],
        "workspace": _rows(conversation, look(conversation, workspace_for(uid))),
    }
    template = "skillsets/_skills.html" if request.htmx else "skillsets/skills.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _used_rows(conversation: Conversation) -> list[tuple[UsedSkill, str]]:
    """Each with what keeps it, or its Python files, from being used."""
    rows = list(UsedSkill.objects.of(conversation))
    lacking = dict(missing_of(each.version for each in rows))
    return [(each, why_not(each) or _lacking_words(lacking.get(each.version))) for each in rows]


def _lacking_words(packages: Packages | None) -> str:
    if packages is None:
        return ""
    return _("The Python packages that it needs are not installed. %(why)s") % {
        "why": packages.problem
    }


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


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_workspace(request: SignedInRequest, uid: str) -> HttpResponse:
    """Skills that folders of the workspace hold, the one that the query's `place` names with all it says;
    posted, it is trusted or no more."""
    conversation = find_conversation(request.user, uid)
    problem: Conflict | LimitReached | None = None
    place = request.GET.get("place", "")
    if request.method == "POST":
        place = request.POST.get("place", "")
        try:
            if request.POST.get("trust") == "no":
                distrust_skill(actor=request.user, conversation=conversation, place=place)
            else:
                trust_skill(
                    actor=request.user,
                    conversation=conversation,
                    place=place,
                    digest=request.POST.get("digest", ""),
                )
            return redirect("skillsets:workspace", uid=uid)
        except (Conflict, LimitReached) as refused:
            problem = refused
    found = look(conversation, workspace_for(uid))
    rows = _rows(conversation, found)
    chosen = next((row for row in rows if row.place == place), None)
    writable = Conversation.objects.writable_by(request.user).filter(pk=conversation.pk)
    context = {
        "conversation": conversation,
        "rows": rows,
        "chosen": chosen,
        "files": chosen.files() if chosen else [],
        "changes": chosen.changes() if chosen else [],
        "scan": scan(chosen.found.folder)
        if chosen and chosen.found and chosen.found.folder
        else None,
        "may_trust": writable.exists() and not request.user.is_service,
        "problem": problem,
    }
    return render(
        request, "skillsets/workspace.html", context, status=422 if problem is not None else 200
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A skill of the workspace, one that was trusted there, or both."""

    place: str
    found: Found | None
    """None: its folder is gone."""
    trusted: TrustedSkill | None

    @property
    def name(self) -> str:
        return self.found.name if self.found else self.trusted.name if self.trusted else ""

    @property
    def state(self) -> Literal["gone", "broken", "new", "changed", "trusted"]:
        if self.found is None:
            return "gone"
        if self.found.folder is None:
            return "broken"
        if self.trusted is None:
            return "new"
        return "trusted" if self.trusted.digest == self.found.digest else "changed"

    def changes(self) -> list[FileChange]:
        """Against what was trusted."""
        if self.state != "changed" or self.trusted is None or self.found is None:
            return []
        folder = self.found.folder
        return changes_between(self.trusted.files(), folder.files if folder else {})

    def files(self) -> list[tuple[str, int, str | None]]:
        """Path, bytes, and the text with whatever cannot be seen as an escape; None: it is no text."""
        if self.found is None or self.found.folder is None:
            return []
        named = sorted(
            self.found.folder.files.items(), key=lambda file: (file[0] != SKILL, file[0])
        )
        return [(visible(path), len(data), _text_of(data)) for path, data in named]


def _rows(conversation: Conversation, found: list[Found]) -> list[Row]:
    known = {row.place: row for row in TrustedSkill.objects.filter(conversation=conversation)}
    rows = [Row(each.place, each, known.pop(each.place, None)) for each in found]
    return rows + [Row(place, None, gone) for place, gone in known.items()]


def _text_of(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return visible(data.decode().replace("\r\n", "\n"))
    except UnicodeDecodeError:
        return None
