"""The forms of the pages of agents. They shape input; the actions judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from accounts.provider_labels import provider_label
from harness.agentconfig import AgentConfig, Features, ToolRule
from harness.errors import AgentError, Invalid
from harness.modelcards import LADDER
from harness.tools import Effect
from providers.table import KINDS

from .modelchoices import AUTO, offers_for, words_for
from .models import AgentVersion
from .narrowing import Wishes, wishes_in
from .switches import help_text, offered
from .toolwords import GROUPS, Offered, offered_by

OTHER = "?"
"""Stands for a model whose name is typed."""
EFFORTS = {
    "low": _("low"),
    "medium": _("medium"),
    "high": _("high"),
    "xhigh": _("very high"),
    "max": _("the most"),
}
_BESIDE = {"provider": "model", "features.approval": "approval", "features.plan_mode": "plan_mode"}
"""Which field of the form says what an action says of a field."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    offered: Offered
    used: bool
    asks: bool


class OwnAgentForm(OurForm):
    """What a member chooses for an agent of her own, within `bound`; `before` is what she chose last."""

    name = forms.CharField(label=_("Name"), max_length=100)
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=500,
        help_text=_("One sentence for the list from which people choose."),
    )
    instructions = forms.CharField(
        label=_("Prompt"),
        required=False,
        strip=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text=_("Who the agent is, how it works and what it leaves alone."),
    )
    model = forms.ChoiceField(label=_("Model"))
    model_name = forms.CharField(
        label=_("Name of the model"),
        required=False,
        max_length=160,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("As its service calls it. It counts where “another model” is chosen above."),
    )
    effort = forms.ChoiceField(
        label=_("Effort"),
        required=False,
        choices=[("", _("the model's own")), *((each, EFFORTS[each]) for each in LADDER)],
        help_text=_("How much the model works on an answer, as far as it can be told."),
    )
    thinking = forms.BooleanField(
        label=_("Think before answering"), required=False, help_text=_("Where the model can.")
    )
    expected_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    """The number the person began with; a newer one refuses the change."""

    def __init__(
        self,
        *args: Any,
        user: User,
        organisation: Organisation,
        bound: AgentVersion,
        before: AgentVersion | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._bound: AgentConfig = bound.config
        self._wishes = self._first(bound, before)
        for name, label in offered().items():
            held = getattr(self._bound.features, name) and name in {"approval", "plan_mode"}
            self.fields[name] = forms.BooleanField(
                label=label, required=False, help_text=help_text(name), disabled=held
            )
        chosen = self._choice_of(self._wishes.provider, self._wishes.model)
        models = self.fields["model"]
        assert isinstance(models, forms.ChoiceField)  # noqa: S101 - declared above
        choices = _model_choices(user, organisation)
        known = {value for _group, group in choices for value, _label in group}
        if chosen not in known:
            kind = KINDS.get(self._wishes.provider)
            service = str(provider_label(kind)) if kind else self._wishes.provider
            words = self._wishes.model or gettext("its default model")
            choices.append((gettext("Chosen now"), [(chosen, f"{service}: {words}")]))
        models.choices = choices
        self.initial = {
            "instructions": self._wishes.instructions,
            "model": chosen,
            "effort": self._wishes.effort,
            "thinking": self._wishes.thinking,
            **{name: getattr(self._wishes.features, name) for name in offered()},
            "expected_version": before.number if before else None,
            **self.initial,
        }

    @staticmethod
    def _first(bound: AgentVersion, before: AgentVersion | None) -> Wishes:
        if before is None:
            return wishes_in(bound.config, bound.config)
        return wishes_in(before.config, (before.base or before).config)

    @staticmethod
    def _choice_of(provider: str, model: str) -> str:
        return f"{provider}|{model}"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        provider, _bar, model = cleaned.get("model", "").partition("|")
        if model == OTHER:
            model = cleaned.get("model_name", "").strip()
            if not model and "model_name" not in self.errors:
                self.add_error("model_name", gettext("Type the name of the model."))
        cleaned["provider"], cleaned["chosen_model"] = provider, model
        return cleaned

    def wishes(self) -> Wishes:
        values = self.cleaned_data
        switches = {name: values[name] for name in offered()}
        return Wishes(
            instructions=values["instructions"],
            provider=values["provider"],
            model=values["chosen_model"],
            effort=values["effort"],
            thinking=values["thinking"],
            tools=self._rules(),
            features=Features(**{**self._wishes.features.model_dump(), **switches}),
        )

    def switches(self) -> list[forms.BoundField]:
        return [self["thinking"], *(self[name] for name in offered())]

    def tool_groups(self) -> list[tuple[str, list[ToolRow]]]:
        """A row for each tool that the bound offers, by what it does to the world."""
        used, asking = self._chosen_tools()
        groups: dict[Effect, list[ToolRow]] = {effect: [] for effect in GROUPS}
        for each in offered_by(self._bound):
            if not each.tool.feature or each.tool.feature in offered():
                row = ToolRow(each, each.name in used, each.asks or each.name in asking)
                groups[each.tool.effect].append(row)
        return [(str(GROUPS[effect]), rows) for effect, rows in groups.items() if rows]

    def kept_rules(self) -> list[ToolRule]:
        """Rules of hers that the form has no box for; they stay."""
        names = {each.name for each in offered_by(self._bound)}
        return [rule for rule in self._wishes.tools if not _is_plain(rule, names)]

    def _chosen_tools(self) -> tuple[set[str], set[str]]:
        """The names of those that may be used, and of those that are to ask first."""
        if self.is_bound:
            data: Any = self.data
            return set(data.getlist("use")), set(data.getlist("ask"))
        names = {each.name for each in offered_by(self._bound)}
        plain = [rule for rule in self._wishes.tools if _is_plain(rule, names)]
        denied = {rule.tool for rule in plain if rule.permission == "always_deny"}
        asking = {rule.tool for rule in plain if rule.permission == "always_ask"}
        return names - denied, asking

    def _rules(self) -> tuple[ToolRule, ...]:
        used, asking = self._chosen_tools()
        made = []
        for each in offered_by(self._bound):
            if each.tool.feature and each.tool.feature not in offered():
                continue
            if each.name not in used:
                made.append(ToolRule(tool=each.name, permission="always_deny"))
            elif each.name in asking and not each.asks:
                made.append(ToolRule(tool=each.name, permission="always_ask"))
        return (*made, *self.kept_rules())


class ReviewForm(OurForm):
    note = forms.CharField(
        label=_("What it is for"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Whoever reviews it reads this."),
    )


class DecisionForm(OurForm):
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Needed for a refusal; the person who asked reads it."),
    )


def show_refusal(form: forms.Form, error: AgentError) -> None:
    """What an action refused, beside the field that it is about."""
    field = error.field if isinstance(error, Invalid) else ""
    name = _BESIDE.get(field, field.partition("[")[0])
    text = error.words
    form.add_error(name if name in form.fields else None, text)


def _is_plain(rule: ToolRule, names: set[str]) -> bool:
    """Whether a box of the form says all that it says."""
    return (
        rule
        in {
            ToolRule(tool=rule.tool, permission="always_deny"),
            ToolRule(tool=rule.tool, permission="always_ask"),
        }
        and rule.tool in names
    )


def _model_choices(
    user: User, organisation: Organisation
) -> list[tuple[str, list[tuple[str, str]]]]:
    automatic = gettext("Automatic: the first service you have a key for, else the demo")
    groups = [(gettext("Let the server choose"), [(f"{AUTO}|", automatic)])]
    for offer in offers_for(user, organisation):
        name, default = offer.kind.name, offer.kind.default_model
        choices = []
        if default:
            words = gettext("Its default model (%(model)s)") % {"model": default}
            choices.append((f"{name}|", words))
        choices += [(f"{name}|{model}", words_for(model)) for model in offer.models]
        if offer.kind.takes_base_url:
            choices.append((f"{name}|{OTHER}", gettext("Another model, named below")))
        groups.append((str(provider_label(offer.kind)), choices))
    return groups
