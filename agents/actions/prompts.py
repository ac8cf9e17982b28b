"""Staff's changes of the sentences the harness says, and the way back to ours.

A sentence with names to fill in must keep exactly those names: the harness fills them in while an
agent works, where nobody could repair a mistake.
"""

from __future__ import annotations

from dataclasses import asdict
from string import Formatter
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import require_staff
from agents.models import Prompt
from agents.seeding import digest
from audit import record as audit
from harness.errors import Conflict, Invalid, NotFound, TooLarge
from harness.texts import Texts

TEXT_LIMIT = 20_000
"""Characters of one sentence of ours; each is sent to a model again and again."""

CHANGE = "agents.change_prompt"


def change_prompt(*, actor: User, prompt: Prompt, text: str) -> Prompt:
    """Say it in these words from the next model request on. Raises as `check_prompt`."""
    require_staff(actor, CHANGE)
    text = check_prompt(name=prompt.name, text=text)
    with transaction.atomic():
        current = _lock(prompt)
        if current.text != text:
            current.text = text
            current.save(update_fields=["text", "updated_at"])
            _record(current, actor, characters=len(text))
    return current


def reset_prompt(*, actor: User, prompt: Prompt) -> Prompt:
    """Our words again, which later versions of this software may improve."""
    require_staff(actor, CHANGE)
    original = original_text(prompt.name)
    if original is None:
        raise Conflict(
            _("This version has no text of its own for “%(name)s”.") % {"name": prompt.name},
            hint=_("Nothing uses it any more."),
        )
    with transaction.atomic():
        current = _lock(prompt)
        differs = current.text != original
        current.text, current.seed_digest = original, digest({"text": original})
        current.save(update_fields=["text", "seed_digest", "updated_at"])
        if differs:
            _record(current, actor, reset=True)
    return current


def check_prompt(*, name: str, text: str) -> str:
    """The text with plain line ends; Invalid when it is empty or its names are not the original's."""
    text = text.replace("\r\n", "\n").replace("\0", "")
    if not text.strip():
        raise Invalid(
            _("The text is empty."), field="text", hint=_("Type it, or reset it to ours.")
        )
    if len(text) > TEXT_LIMIT:
        raise TooLarge(
            _("The text is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT},
            field="text",
            hint=_("Shorten it."),
        )
    wanted = filled_names(name)
    if wanted:
        _check_names(text, wanted)
    return text


def original_text(name: str) -> str | None:
    """Our words for the prompt of this name; None for one this version does not know."""
    return asdict(Texts()).get(name.replace("-", "_"))


def filled_names(name: str) -> frozenset[str]:
    """The names in braces that the harness fills in; none: braces mean nothing there."""
    parsed = Formatter().parse(original_text(name) or "")
    return frozenset(field for _text, field, _spec, _conversion in parsed if field)


def _check_names(text: str, wanted: frozenset[str]) -> None:
    names = ", ".join(f"{{{name}}}" for name in sorted(wanted))
    hint = _("Write %(names)s, each as it stands here, and {{ or }} for a brace itself.") % {
        "names": names
    }
    try:
        parts = [part for part in Formatter().parse(text) if part[1] is not None]
    except ValueError:
        raise Invalid(
            _("A brace is opened and not closed, or closed and not opened."),
            field="text",
            hint=hint,
        ) from None
    plain = {field for _text, field, spec, conversion in parts if not spec and not conversion}
    if plain != wanted or any(spec or conversion for _text, _field, spec, conversion in parts):
        raise Invalid(
            _("The names in braces are not those of the original."), field="text", hint=hint
        )


def _record(prompt: Prompt, actor: User, **details: Any) -> None:
    audit.about_setting(
        audit.Action.PROMPT_CHANGED,
        actor=actor,
        organisation_id=None,
        prompt=prompt.name,
        **details,
    )


def _lock(prompt: Prompt) -> Prompt:
    current = Prompt.objects.select_for_update().filter(pk=prompt.pk).first()
    if current is None:
        raise NotFound(_("There is no such prompt."))
    return current
