"""Named prompts come into being, get versions, and labels that are moved; a version never changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import RestrictedError
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import hold_names
from audit.models import AuditEntry
from audit.record import about_setting
from harness.agentconfig import PROMPT_NAME
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from prompts.access import held_prompt, require_prompts_of
from prompts.choosing import LATEST, version_named
from prompts.filling import FACTS, Variable, digest_of
from prompts.holding import judged
from prompts.models import (
    Prompt,
    PromptLabel,
    PromptSource,
    PromptVersion,
    variables_as_stored,
)
from prompts.spec import HIGHEST, PromptSpec, VersionSpec
from prompts.using import agents_with
from wire.naming import one_line

MOST_PROMPTS = 500
"""Of one organisation."""
MOST_VERSIONS = 1_000
MOST_LABELS = 50
"""Of one prompt."""
TEXT_LIMIT = 50_000
"""Characters of one version: it stands in every request."""
LABEL = re.compile(r"[a-z][a-z0-9_-]{0,49}", re.ASCII)


def create_prompt(
    *,
    actor: User,
    organisation: Organisation | None,
    name: str,
    text: str,
    variables: Iterable[Variable] = (),
    description: str = "",
    note: str = "",
    label: str = "",
    reason: str = "",
) -> Prompt:
    """With its first version, to which `label` points if it is given. None for `organisation`: for agents of
    all of them. `reason`: why agents may have another text although a suite that they need is not green.

    Raises NotFound for a stranger, Forbidden, Invalid, TooLarge, Conflict for a name that is taken and for a
    text that an agent may not have without a reason, LimitReached.
    """
    require_prompts_of(actor, organisation)
    given = tuple(variables)
    with transaction.atomic(), judged(actor, organisation, name.strip(), reason):
        return _make(actor, organisation, name, text, given, description, note=note, label=label)


def _make(
    actor: User,
    organisation: Organisation | None,
    name: str,
    text: str,
    variables: tuple[Variable, ...],
    description: str,
    *,
    note: str = "",
    label: str = "",
    number: int = 1,
    **fetched: Any,
) -> Prompt:
    name = name.strip()
    if not PROMPT_NAME.fullmatch(name) or len(name) > 64:
        raise Invalid(
            _("A prompt’s name has up to 64 small letters, digits and single hyphens inside."),
            field="name",
            hint=_("Such as “support-tone”."),
        )
    with transaction.atomic():
        hold_names(organisation)
        there = Prompt.objects.filter(organisation=organisation)
        if there.filter(name=name).exists():
            raise Conflict(
                _("There is a prompt “%(name)s” already.") % {"name": name},
                hint=_("Add a version to it, or choose another name."),
            )
        if there.count() >= MOST_PROMPTS:
            raise LimitReached(
                _("There are %(limit)d prompts here already.") % {"limit": MOST_PROMPTS},
                hint=_("Delete one first."),
            )
        prompt = Prompt.objects.create(
            organisation=organisation,
            name=name,
            description=one_line(description)[:500],
            created_by=actor,
        )
        _tell(AuditEntry.Action.PROMPT_MADE, actor, prompt)
        version = _add(prompt, actor, text, variables, note, number=number, **fetched)
        if label.strip():
            _move(prompt, actor, label, version)
    return prompt


def add_version(
    *,
    actor: User,
    prompt: Prompt,
    text: str,
    variables: Iterable[Variable] = (),
    note: str = "",
    label: str = "",
    reason: str = "",
) -> PromptVersion:
    """The newest one itself where it says just that already. `label` is moved to it. Raises as
    `create_prompt`."""
    with transaction.atomic():
        held = held_prompt(actor, prompt)
        with judged(actor, held.organisation, held.name, reason):
            version = _add(held, actor, text, tuple(variables), note)
            if label.strip():
                _move(held, actor, label, version)
        held.save(update_fields=["updated_at"])
    return version


def move_label(
    *, actor: User, prompt: Prompt, label: str, version: str, reason: str = ""
) -> PromptLabel:
    """To the version of that number or label; the label is made if there is none. Conversations that began
    keep what they have. Raises NotFound, Forbidden, Invalid, LimitReached, and Conflict where an agent may
    not have that text without a reason."""
    with transaction.atomic():
        held = held_prompt(actor, prompt)
        with judged(actor, held.organisation, held.name, reason):
            return _move(held, actor, label, version_named(held, version))


def remove_label(*, actor: User, prompt: Prompt, label: str) -> None:
    """Raises NotFound, Forbidden, and Conflict while an agent names the prompt by it."""
    with transaction.atomic():
        held = held_prompt(actor, prompt)
        row = held.labels.select_related("version").filter(name=label).first()
        if row is None:
            raise NotFound(_("The prompt has no such label."))
        _require_unnamed(held, label)
        _tell(
            AuditEntry.Action.PROMPT_LABEL_MOVED,
            actor,
            held,
            label=label,
            before=row.version.number,
            version=None,
        )
        row.delete()


def delete_prompt(*, actor: User, prompt: Prompt) -> None:
    """Raises NotFound, Forbidden, and Conflict while an agent names it or a conversation was told it."""
    with transaction.atomic():
        held = held_prompt(actor, prompt)
        _require_unnamed(held)
        _tell(AuditEntry.Action.PROMPT_DELETED, actor, held, versions=held.versions.count())
        try:
            with transaction.atomic():
                held.delete()
        except RestrictedError:
            raise Conflict(
                _("Conversations were told “%(name)s”, and their logs stay explained.")
                % {"name": held.name},
                hint=_("Take its labels away; then no new one can be given it by them."),
            ) from None


def import_prompt(
    *, actor: User, organisation: Organisation | None, spec: PromptSpec, reason: str = ""
) -> tuple[Prompt, int]:
    """The prompt of that name with all that the file says, and how many versions came in. What is there
    stays: Conflict where a version of the same number says something else. Raises as `create_prompt`."""
    require_prompts_of(actor, organisation)
    with transaction.atomic():
        hold_names(organisation)
        prompt = Prompt.objects.filter(organisation=organisation, name=spec.name).first()
        if prompt is not None:
            held_prompt(actor, prompt)
        with judged(actor, organisation, spec.name, reason):
            return _take_in(actor, organisation, prompt, spec)


def _take_in(
    actor: User, organisation: Organisation | None, prompt: Prompt | None, spec: PromptSpec
) -> tuple[Prompt, int]:
    added = 0
    wanted = sorted(spec.versions, key=lambda each: each.number)
    if prompt is None:
        first, *wanted = wanted
        prompt = _make(
            actor,
            organisation,
            spec.name,
            first.text,
            first.variables,
            spec.description,
            note=first.note,
            number=first.number,
        )
        added = 1
    held = held_prompt(actor, prompt)
    there = {each.number: each for each in held.versions.all()}
    for each in wanted:
        known = there.get(each.number)
        if known is None:
            there[each.number] = _add(
                held, actor, each.text, each.variables, each.note, True, number=each.number
            )
            added += 1
        elif known.digest != digest_of(_tidied(each.text), each.variables):
            raise Conflict(
                _("Version %(number)d of “%(name)s” says something else here.")
                % {"number": each.number, "name": held.name},
                hint=_("Versions never change. Import it under another name."),
            )
    if spec.description and spec.description != held.description:
        held.description = one_line(spec.description)[:500]
        held.save(update_fields=["description", "updated_at"])
    for label, number in spec.labels.items():
        _move(held, actor, label, version_named(held, str(number)))
    return held, added


def spec_of(prompt: Prompt) -> PromptSpec:
    """All of it, as a file says it; not what was fetched and nobody has allowed, which a file would let in
    elsewhere. Raises Conflict where that is all there is."""
    versions = prompt.versions.filter(waits=False).order_by("number")
    if not versions:
        raise Conflict(
            _("All that “%(name)s” has waits to be allowed.") % {"name": prompt.name},
            hint=_("Allow it on the page of its source."),
        )
    return PromptSpec(
        name=prompt.name,
        description=prompt.description,
        versions=tuple(
            VersionSpec(
                number=each.number, text=each.text, variables=each.variables, note=each.note
            )
            for each in versions
        ),
        labels={
            label.name: label.version.number
            for label in prompt.labels.select_related("version").order_by("name")
        },
    )


def add_fetched(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    text: str,
    variables: tuple[Variable, ...],
    source: PromptSource,
    origin: str,
) -> PromptVersion:
    """The version of the prompt of that name that says just this; else a new one, which waits until somebody
    allows it. Needs a transaction. Raises as `create_prompt`."""
    hold_names(organisation)
    prompt = Prompt.objects.filter(organisation=organisation, name=name).first()
    fetched: dict[str, Any] = {"source": source, "origin": origin, "waits": True}
    if prompt is None:
        require_prompts_of(actor, organisation)
        return _make(actor, organisation, name, text, variables, "", **fetched).versions.get()
    held = held_prompt(actor, prompt)
    digest = digest_of(_tidied(text), variables)
    there = held.versions.filter(digest=digest).order_by("waits", "-number").first()
    return there or _add(held, actor, text, variables, "", True, **fetched)


def allow_fetched(
    *, actor: User, prompt: Prompt, version: PromptVersion, label: str
) -> PromptLabel:
    """Agents may be given it from now on, and the label points to it; whether their suites let it through is
    the caller's to ask. Raises NotFound, Forbidden, Invalid."""
    with transaction.atomic():
        held = held_prompt(actor, prompt)
        found = held.versions.filter(pk=version.pk).first()
        if found is None:
            raise NotFound(_("There is no such version."))
        if found.waits:
            found.waits = False
            found.save(update_fields=["waits"])
        return _move(held, actor, label, found)


def drop_overtaken(prompt: Prompt) -> int:
    """Delete fetched texts that nobody allowed and no source has any more, since nothing can lead to them;
    how many. Those that were tried stay, as logs are explained by them, and the newest version, or its number
    would be given away again. Needs a transaction that holds the prompt."""
    newest = prompt.versions.order_by("-number").values_list("number", flat=True).first()
    left = prompt.versions.filter(waits=True, pulled=None, labels=None, used=None)
    over = left.exclude(number=newest or 0)
    gone, _rows = over.delete()
    return gone


def _add(
    prompt: Prompt,
    actor: User,
    text: str,
    variables: tuple[Variable, ...],
    note: str,
    always: bool = False,
    *,
    number: int | None = None,
    **fetched: Any,
) -> PromptVersion:
    text = _tidied(text)
    _check(text, variables)
    newest = prompt.versions.order_by("-number").first()
    digest = digest_of(text, variables)
    if newest is not None and newest.digest == digest and not always:
        if newest.waits:  # she wrote just that herself
            newest.waits = False
            newest.save(update_fields=["waits"])
        return newest
    if number is None:
        number = newest.number + 1 if newest else 1
    if number > HIGHEST or prompt.versions.count() >= MOST_VERSIONS:
        raise LimitReached(
            _("A prompt has at most %(limit)d versions.") % {"limit": MOST_VERSIONS},
            hint=_("Make another prompt."),
        )
    made = PromptVersion.objects.create(
        prompt=prompt,
        number=number,
        text=text,
        stored_variables=variables_as_stored(variables),
        digest=digest,
        note=one_line(note)[:500],
        created_by=actor,
        **fetched,
    )
    if newest is not None:
        _tell(AuditEntry.Action.PROMPT_VERSION_ADDED, actor, prompt, version=number, sha256=digest)
    return made


def _move(prompt: Prompt, actor: User, label: str, version: PromptVersion) -> PromptLabel:
    label = label.strip()
    if label == LATEST or not LABEL.fullmatch(label):
        raise Invalid(
            _("A label begins with a small letter and has small letters, digits, “-” and “_”.")
            if label != LATEST
            else _("“latest” always means the newest version."),
            field="label",
            hint=_("Such as “production” or “staging”."),
        )
    row = prompt.labels.select_related("version").filter(name=label).first()
    if row is not None and row.version_id == version.pk:
        return row
    if row is None and prompt.labels.count() >= MOST_LABELS:
        raise LimitReached(
            _("A prompt has at most %(limit)d labels.") % {"limit": MOST_LABELS},
            hint=_("Take one away first."),
        )
    before = row.version.number if row else None
    row = row or PromptLabel(prompt=prompt, name=label)
    row.version, row.moved_by = version, actor
    row.save()
    _tell(
        AuditEntry.Action.PROMPT_LABEL_MOVED,
        actor,
        prompt,
        label=label,
        before=before,
        version=version.number,
    )
    return row


def _tidied(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\0", "")


def _check(text: str, variables: tuple[Variable, ...]) -> None:
    if not text.strip():
        raise Invalid(_("The text is empty."), field="text", hint=_("Type it."))
    if len(text) > TEXT_LIMIT:
        raise TooLarge(
            _("The text is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT},
            field="text",
            hint=_("It stands in every request. Put what is needed now and then into a skill."),
        )
    if len(variables) > 50:
        raise TooLarge(_("A prompt has at most 50 variables."), field="variables")
    seen: set[str] = set()
    for each in variables:
        if each.name in FACTS:
            raise Invalid(
                _("“%(name)s” is filled in by the conversation.") % {"name": each.name},
                field="variables",
                hint=_("Choose another name."),
            )
        if each.name in seen:
            raise Invalid(
                _("The variable “%(name)s” is declared twice.") % {"name": each.name},
                field="variables",
                hint=_("Declare it once."),
            )
        seen.add(each.name)


def _require_unnamed(prompt: Prompt, label: str = "") -> None:
    named = [use.agent for use in agents_with(prompt) if not label or use.wanted == label]
    if named:
        raise Conflict(
            _("Agents name it: %(names)s.") % {"names": ", ".join(sorted(named)[:10])},
            hint=_("Change these first."),
        )


def _tell(action: AuditEntry.Action, actor: User, prompt: Prompt, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=prompt.organisation_id,
        prompt=prompt.uid,
        name=prompt.name,
        **details,
    )
