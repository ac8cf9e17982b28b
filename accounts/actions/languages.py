"""What language a person wants pages and mails in."""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Invalid


def set_language(*, actor: User, language: str) -> None:
    """Her own. Empty: what the browser asks for. Raises Invalid for one that the product does not speak."""
    known = [code for code, _name in settings.LANGUAGES]
    if language and language not in known:
        raise Invalid(
            _("There is no such language."),
            field="language",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(known)},
        )
    User.objects.filter(pk=actor.pk).update(language=language)
    actor.language = language
