"""The form of an agent: every part of its configuration as a field, saved by the actions."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.administration.requests import beside_its_field
from accounts.formwords import OurModelForm
from accounts.provider_labels import provider_label
from agents.actions.agents import AUTO, check_agent, require_version
from agents.agentforms import INHERIT, ROLES, ConfigErrors, field_names, to_config, to_fields
from agents.models import Agent
from agents.rosters import pinned
from agents.switches import LABELS as SWITCHES
from agents.switches import help_text
from agents.versiondiff import label_of
from harness.agentconfig import AgentConfig
from harness.modelcards import LADDER
from providers.table import KINDS

from .custom_tools import CustomToolsField
from .tool_rules import ToolRulesField

MODEL_LIST = "agentsite-models"
"""Id of the list of suggestions that the page holds."""

HELP = {
    "provider": _("Which service runs the model. Keys are kept under People → Provider keys."),
    "model": _("Empty: the provider's default model. Suggestions are the models with a price."),
    "temperature": _("0 to 2; empty: the model's own. Left out for models that take none."),
    "top_p": _("Above 0, up to 1; empty: the model's own. Left out for models that take none."),
    "effort": _("How much the model works on an answer, as far as it can be told."),
    "thinking": _("Let the model think before it answers, where it can."),
    "sandbox": _(
        "A sandbox policy, YAML or JSON, that takes away from what the environment allows; what it "
        "does not mention stays. Empty: it takes nothing away."
    ),
    "tools": _(
        "Of several rules that match a tool the strictest counts. A tool that no rule matches is "
        "not offered. In patterns * stands for anything. Empty a rule or remove it to take it away."
    ),
    "custom_tools": _(
        "Tools that a program answers through the API; until then the conversation waits. A rule "
        "above can deny one by its name."
    ),
    "mcp_servers": _(
        "Names of MCP servers, one a line; behind a colon the tools it is confined to. Their tools "
        "ask before each call, unless a rule on mcp:server:tool says otherwise. With @provider directly "
        "behind a name the model’s service calls that server, where its managers let it."
    ),
    "skills": _(
        "Names of skills, one a line; behind a space a version or a channel (stable, canary, latest; "
        "without one, stable). A conversation keeps the versions it began with."
    ),
    "roster_agents": _(
        "Agents that this one may call on where it works as a team, one a line, by name or id; behind @ "
        "the number of a version, in front, with a colon, what it is called here. Which version is "
        "meant is fixed when this is saved; take the number away to have the current one. “self”: this "
        "agent."
    ),
    "roster_only": _("It can call on none of the types that every agent has (general, explore …)."),
    "roster_inline": _(
        "A call may bring instructions of its own, with this agent's tools or fewer."
    ),
    "roster_advisor": _(
        "A stronger model that it may ask for advice, which has no tools: provider/model, or a model "
        "of its own provider. Empty: it has none."
    ),
    "prompts": _(
        "Names of prompts that stand behind the instructions, one a line; behind a space a version or a "
        'label (without one, production), and values of its variables: greeting tone="short and kind". '
        "A conversation keeps the versions it began with."
    ),
    "limits_steps": _("Model requests of one turn; then it must sum up."),
    "limits_token_budget": _("Input and output tokens of one turn, checked before each request."),
    "limits_output_tokens": _("The most one reply may be long."),
    "limits_context_window": _("Tokens of prompt and reply the model can hold."),
    "limits_compact_at": _("Share of the context window past which older messages are summarised."),
    "shortening_by": _(
        "The model’s service leaves out old results and summarises by itself, where it can. What it cannot, "
        "and what would not fit all the same, Agentsite does."
    ),
    "shortening_clear_at": _(
        "Share of the context window past which the model’s service leaves out old results of calls."
    ),
    "shortening_keep_results": _("The newest results that the model’s service leaves in."),
    "shortening_keep_thinking": _(
        "The newest turns whose thinking the model’s service leaves in; 0: it leaves in all."
    ),
    "limits_retries": _("How often a request that failed for a passing reason is tried again."),
    "limits_wall_clock_seconds": _("Seconds one turn may work, not counting the wait for people."),
}
_INSTRUCTIONS = {"rows": 24, "spellcheck": "true"}
_AS_AGENT = _("as the agent")


_label = lazy(label_of, str)
"""Fields are built once, and read in each person's language."""


def _say_what_it_does(feature: str) -> str:
    return str(help_text(feature))


_help_text = lazy(_say_what_it_does, str)
"""Which tools are installed is known only once all apps are."""


def _field(name: str) -> forms.Field:
    label, hint = _label(name), HELP.get(name, "")
    role, _separator, part = name.partition("_")
    own = part if role in ROLES else name
    match own:
        case "provider":
            offered = [(kind.name, provider_label(kind)) for kind in KINDS.values() if kind.offered]
            automatic = _("Automatic: the first service the person has a key for, else the demo")
            return _choice(label, hint, [(AUTO, automatic), *offered])
        case "model" | "roster_advisor":
            return forms.CharField(
                label=label,
                help_text=hint,
                required=False,
                max_length=160 if own == "roster_advisor" else 100,
                empty_value="",
                widget=UnfoldAdminTextInputWidget(
                    {
                        "list": MODEL_LIST,
                        "autocomplete": "off",
                        "placeholder": _AS_AGENT if role in ROLES else "",
                    }
                ),
            )
        case "instructions":
            return forms.CharField(
                label=label,
                required=False,
                strip=False,
                empty_value="",
                widget=UnfoldAdminTextareaWidget(_INSTRUCTIONS),
            )
        case "sandbox":
            return forms.CharField(
                label=label,
                help_text=hint,
                required=False,
                strip=False,
                empty_value="",
                widget=UnfoldAdminTextareaWidget({"rows": 6, "spellcheck": "false"}),
            )
        case "tools":
            return ToolRulesField(label=label, help_text=hint, required=False)
        case "mcp_servers" | "roster_agents":
            return forms.CharField(
                label=label,
                help_text=hint,
                required=False,
                empty_value="",
                widget=UnfoldAdminTextareaWidget({"rows": 3, "spellcheck": "false"}),
            )
        case "skills" | "prompts":
            return forms.CharField(
                label=label,
                help_text=hint,
                required=False,
                empty_value="",
                widget=UnfoldAdminTextareaWidget({"rows": 4, "spellcheck": "false"}),
            )
        case "custom_tools":
            return CustomToolsField(label=label, help_text=hint, required=False)
        case "effort":
            levels = [("", _("the provider's own")), *((level, level) for level in LADDER)]
            return _choice(
                label, hint, [(INHERIT, _AS_AGENT), *levels] if role in ROLES else levels
            )
        case "thinking" if role in ROLES:
            switch = [(INHERIT, _AS_AGENT), ("True", _("on")), ("False", _("off"))]
            return _choice(label, hint, switch)
        case "shortening_by":
            return _choice(
                label, hint, [("agentsite", "Agentsite"), ("service", _("the model’s service"))]
            )
        case "temperature" | "top_p" | "limits_compact_at" | "shortening_clear_at":
            return forms.FloatField(
                label=label,
                help_text=hint,
                required=False,
                widget=UnfoldAdminDecimalFieldWidget({"step": "any"}),
            )
        case _ if role in {"limits", "shortening"} or own == "output_tokens":
            return forms.IntegerField(
                label=label,
                help_text=hint,
                required=role == "limits",
                widget=UnfoldAdminIntegerFieldWidget(),
            )
    return forms.BooleanField(
        label=label,
        help_text=_help_text(part) if part in SWITCHES else hint,
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
    )


def _choice(label: Any, hint: Any, choices: Any) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        help_text=hint,
        choices=choices,
        required=False,
        widget=UnfoldAdminSelectWidget(choices=choices),
    )


def _offer_present(field: forms.Field, value: str) -> None:
    """A provider that is no longer offered stays chosen where it is."""
    assert isinstance(field, forms.ChoiceField)  # noqa: S101 - built above
    choices = list(cast("list[tuple[str, Any]]", field.choices))
    if value not in {choice for choice, _label in choices}:
        field.choices = [*choices, (value, value)]


_ConfigFields: Any = type(
    "_ConfigFields", (OurModelForm,), {name: _field(name) for name in field_names()}
)


class AgentForm(_ConfigFields):
    expected_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    """The number the person began with; a newer one refuses the change."""

    class Meta:
        model = Agent
        fields = ["name", "description", "organisation"]
        widgets = {
            "description": UnfoldAdminTextInputWidget(),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = self.instance.current if self.instance.pk else None
        self._config = current.config if current else AgentConfig()
        self.initial |= to_fields(self._config) | {
            "expected_version": current.number if current else None
        }
        _offer_present(self.fields["provider"], self._config.provider)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        if "tools" not in self.changed_data:
            cleaned["tools"] = self.initial["tools"]  # also where the page holds no table of them
        if "custom_tools" not in self.changed_data:
            cleaned["custom_tools"] = self.initial["custom_tools"]
        try:
            config = to_config(cleaned)
        except ConfigErrors as problem:
            for name, messages in problem.by_field.items():
                self.add_error(name if name in self.fields else None, messages)
            return cleaned
        kept = {"form": self._config.roster.form}
        config = config.model_copy(update={"roster": config.roster.model_copy(update=kept)})
        with beside_its_field(self):
            if self.instance.pk:
                require_version(self.instance, cleaned.get("expected_version"))
            check_agent(name=cleaned["name"], description=cleaned["description"], config=config)
            config = pinned(
                config,
                organisation=cleaned.get("organisation") or self.instance.organisation,
                name=cleaned["name"],
                before=self._config,
            )
        cleaned["config"] = config
        return cleaned
