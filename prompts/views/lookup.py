"""What the addresses of prompts name, for the person who asks. Somebody else's does not exist."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import NotFound
from prompts.models import Prompt, PromptVersion


def prompt_at(user: User, uid: str) -> Prompt:
    found = Prompt.objects.visible_to(user).select_related("organisation").filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such prompt."))
    return found


def version_at(user: User, uid: str, number: int) -> PromptVersion:
    prompt = prompt_at(user, uid)
    found = prompt.versions.select_related("created_by").filter(number=number).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    found.prompt = prompt
    return found
