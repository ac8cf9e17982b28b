"""Sources of prompts: who may have copies of prompts elsewhere kept here, and who allows what was fetched."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from accounts.models import Organisation, User
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from prompts.access import held_prompt, require_prompts_of
from prompts.actions.prompts import LABEL, allow_fetched
from prompts.choosing import LATEST
from prompts.fetching import address_of
from prompts.holding import judged
from prompts.models import PromptLabel, PromptSource, PulledLabel
from prompts.pulling import pull
from skills_app.repositories import commit_of

Kind = PromptSource.Kind
MOST_SOURCES = 20
"""Of one organisation."""
MOST_LABELS = 10
SECRET_LIMIT = 2_000


@sensitive_variables("secret")
def add_source(
    *,
    actor: User,
    organisation: Organisation,
    kind: str,
    address: str,
    secret: str = "",
    folder: str = "",
    commit: str = "",
    labels: Mapping[str, str],
    moves_labels: bool = False,
) -> PromptSource:
    """A further one, which is asked at the next look. `labels` says which labels there are followed, and what
    each is called here; `moves_labels` has them follow without a person's word.

    Raises NotFound for a stranger, Forbidden, Invalid naming the field, Conflict for one that is there,
    LimitReached.
    """
    require_prompts_of(actor, organisation)
    if kind not in Kind.values:
        raise Invalid(_("There is no such kind."), field="kind", hint=", ".join(Kind.values))
    place = address_of(kind, address)
    folder = folder.strip().strip("/") if kind == Kind.GIT else ""
    if len(folder) > 200 or ".." in folder.split("/"):
        raise Invalid(_("This is no folder of a repository."), field="folder")
    _check_labels(labels)
    if len(secret) > SECRET_LIMIT:
        raise Invalid(_("It is too long."), field="secret")
    if not (secret.isascii() and secret.isprintable()):
        # Who refuses to send it would quote it.
        raise Invalid(_("It has signs that no key has."), field="secret")
    if kind == Kind.LANGFUSE and ":" not in secret:
        raise Invalid(
            _("Langfuse is asked with two keys."),
            field="secret",
            hint=_("Give the public and the secret one with a colon between them."),
        )
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        there = PromptSource.objects.filter(organisation=organisation)
        if there.filter(kind=kind, address=place, folder=folder).exists():
            raise Conflict(_("This source is there already."))
        if there.count() >= MOST_SOURCES:
            raise LimitReached(
                _("There are %(most)d sources already.") % {"most": MOST_SOURCES},
                hint=_("Take one away first."),
            )
        made = PromptSource.objects.create(
            organisation=organisation,
            kind=kind,
            address=place,
            folder=folder,
            commit=commit_of(commit) if kind == Kind.GIT else "",
            labels=dict(labels),
            moves_labels=moves_labels,
            sealed=vault.seal(secret) if secret and kind != Kind.GIT else "",
            created_by=actor,
        )
        _tell(AuditEntry.Action.PROMPT_SOURCE_SET, actor, made)
    return made


def change_source(
    *, actor: User, source: PromptSource, moves_labels: bool | None = None, commit: str = ""
) -> PromptSource:
    """Say anew whether labels follow without a person's word, and of a repository which commit is read; None
    and "" leave what is said now. Raises NotFound, Forbidden, Invalid."""
    with transaction.atomic():
        held = _held(actor, source)
        if moves_labels is not None:
            held.moves_labels = moves_labels
        if held.kind == Kind.GIT and commit:
            held.commit = commit_of(commit)
        held.due_at = timezone.now()
        held.save(update_fields=["moves_labels", "commit", "due_at"])
        _tell(AuditEntry.Action.PROMPT_SOURCE_SET, actor, held)
    return held


def remove_source(*, actor: User, source: PromptSource) -> None:
    """What was fetched from it stays. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = _held(actor, source)
        _tell(AuditEntry.Action.PROMPT_SOURCE_GONE, actor, held)
        held.delete()


def ask_source(*, actor: User, source: PromptSource) -> PromptSource:
    """Ask it now, whenever it is due. Its row says what came of it. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = _held(actor, source)
    return pull(held)


def allow_pulled(*, actor: User, pulled: PulledLabel, number: int, reason: str = "") -> PromptLabel:
    """Have the label here point to what the source's does: the version of that number, which was looked at.
    Raises NotFound, Forbidden, and Conflict where the source has another text by now, or where an agent may
    not have it without a reason."""
    with transaction.atomic():
        held = _held(actor, pulled.source)
        found = PulledLabel.objects.filter(source=held, pk=pulled.pk)
        row = found.select_related("prompt", "version").first()
        if row is None:
            raise NotFound(_("There is no such text."))
        if row.version.number != number:
            raise Conflict(
                _("The source has another text by now."), hint=_("Look at what differs first.")
            )
        prompt = held_prompt(actor, row.prompt)
        with judged(actor, prompt.organisation, prompt.name, reason):
            return allow_fetched(actor=actor, prompt=prompt, version=row.version, label=row.label)


def reseal_secrets() -> int:
    """Seal every secret under the first vault key; how many. In the caller's transaction."""
    count = 0
    for row in PromptSource.objects.exclude(sealed="").select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count


def _check_labels(labels: Mapping[str, str]) -> None:
    here = list(labels.values())
    wrong = not 1 <= len(here) <= MOST_LABELS or len(set(here)) < len(here)
    for there, name in labels.items():
        wrong = wrong or not 1 <= len(there) <= 100 or name == LATEST or not LABEL.fullmatch(name)
    if wrong:
        raise Invalid(
            _("Name 1 to %(most)d labels, each with one of its own here.") % {"most": MOST_LABELS},
            field="labels",
            hint=_("Such as “production = production”, one a line."),
        )


def _held(actor: User, source: PromptSource) -> PromptSource:
    """The row as it is now, locked. Needs a transaction."""
    seen = PromptSource.objects.visible_to(actor).values("pk")
    rows = PromptSource.objects.filter(pk__in=seen, pk=source.pk)
    held = rows.select_for_update(of=("self",)).select_related("organisation", "created_by")
    found = held.first()
    if found is None:
        raise NotFound(_("There is no such source."))
    require_prompts_of(actor, found.organisation)
    return found


def _tell(action: AuditEntry.Action, actor: User, source: PromptSource) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=source.organisation_id,
        source=source.uid,
        kind=source.kind,
        address=source.address,
        commit=source.commit,
        moves_labels=source.moves_labels,
    )
