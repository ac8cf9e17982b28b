"""Which version of a prompt a name and a label mean, and what it says for one conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.models import Organisation
from conversations.models import Conversation
from harness.agentconfig import PromptUse
from harness.errors import Conflict, NotFound
from reading.digits import is_digits, number_of

from .access import names_there
from .filling import filled, missing_values
from .models import Prompt, PromptVersion

LATEST = "latest"
"""Means the newest version; no label can be called so."""


@dataclass(frozen=True, slots=True)
class Chosen:
    use: PromptUse
    version: PromptVersion
    text: str


Trying = Callable[[Conversation], Collection[int]]
"""The versions (`pk`) that a conversation is told although nobody has allowed them."""

_tries: list[Trying] = []


def try_with(trying: Trying) -> None:
    """Whoever has conversations in which texts are only tried says so at start-up; once, however often it is
    said."""
    if trying not in _tries:
        _tries.append(trying)


def choose(uses: Iterable[PromptUse], conversation: Conversation) -> list[Chosen]:
    """In the order of the agent. Raises Conflict, which names what there is, where one cannot be had: an
    agent does not work without a part of what it was told."""
    uses = tuple(uses)
    facts = facts_of(conversation)
    tried = {pk for trying in _tries for pk in trying(conversation)} if uses else set()
    found = []
    for use in uses:
        try:
            version = version_for(conversation.organisation, use, tried=tried)
        except NotFound as problem:
            raise Conflict(
                _("The agent is given the prompt “%(name)s”, and cannot have it: %(problem)s")
                % {"name": use.name, "problem": problem.message},
                hint=problem.hint,
            ) from None
        missing = missing_values(version.variables, use.values)
        if missing:
            raise Conflict(
                _("The prompt “%(name)s” needs values for: %(names)s.")
                % {"name": use.name, "names": ", ".join(missing)},
                hint=_("Who manages the agent gives them where it names the prompt."),
            )
        text = filled(version.text, version.variables, use.values, facts)
        found.append(Chosen(use, version, text))
    return found


def version_for(
    organisation: Organisation | None, use: PromptUse, *, tried: Collection[int] = ()
) -> PromptVersion:
    """None: of the server's own. A prompt of which nobody has allowed anything stands before no other. What
    is `tried` counts as allowed. Raises NotFound that says which names, versions and labels there are."""
    allowed = PromptVersion.objects.filter(prompt=OuterRef("pk")).filter(
        Q(waits=False) | Q(pk__in=tried)
    )
    rows = Prompt.objects.usable_in(organisation).filter(name=use.name)
    prompt = rows.order_by(Exists(allowed).desc(), F("organisation").asc(nulls_last=True)).first()
    if prompt is None:
        raise NotFound(
            _("There is no prompt “%(name)s”.") % {"name": use.name},
            hint=names_there(organisation),
        )
    return version_named(prompt, use.version, tried=tried)


def version_named(prompt: Prompt, wanted: str, *, tried: Collection[int] = ()) -> PromptVersion:
    """By number, by label, or the newest. Raises NotFound that names those there are."""
    versions = prompt.versions.select_related("prompt")
    found: PromptVersion | None
    if wanted == LATEST:
        found = versions.filter(waits=False).order_by("-number").first()
    elif is_digits(wanted):
        found = versions.filter(number=number_of(wanted) or 0).first()
    else:
        found = versions.filter(labels__name=wanted).first()
    if found is None:
        labels = ", ".join(prompt.labels.values_list("name", flat=True)) or _("none")
        newest = prompt.versions.order_by("-number").values_list("number", flat=True).first()
        raise NotFound(
            _("The prompt “%(name)s” has no version or label “%(wanted)s”.")
            % {"name": prompt.name, "wanted": wanted[:50]},
            hint=_("Its labels: %(labels)s. Its versions: 1 to %(newest)s.")
            % {"labels": labels, "newest": newest or 0},
        )
    if found.waits and found.pk not in tried:
        raise NotFound(
            _("Version %(number)d of “%(name)s” was fetched and is not allowed yet.")
            % {"number": found.number, "name": prompt.name},
            hint=_("Allow it on the page of its source."),
        )
    return found


def facts_of(conversation: Conversation) -> Mapping[str, str]:
    owner = conversation.owner
    return {
        "person": owner.get_full_name() or owner.username,
        "organisation": conversation.organisation.name,
        "agent": conversation.agent_version.agent.name,
        "day": date_format(conversation.first_day, "Y-m-d"),
    }
