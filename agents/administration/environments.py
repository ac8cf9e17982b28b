"""Environments and organisations' sandbox rules in the admin. Environments are archived, not deleted:
conversations hold on to theirs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from accounts.administration.requests import actor_of, beside_its_field
from accounts.adminwrites import DeletesEach
from accounts.formwords import OurModelForm
from agents.actions.environments import (
    archive_environment,
    change_environment,
    check_environment,
    checked_policy,
    create_environment,
    set_sandbox_rules,
    trust_workers,
)
from agents.models import Environment, SandboxRules
from harness.errors import Invalid
from sandbox.policy import Policy

POLICY_HELP = _(
    "YAML or JSON with the keys version, require, filesystem_policy, process, network_policies and "
    "resources; unknown keys are refused. Empty: the defaults, without network. For example: "
    "network_policies: {packages: {endpoints: [{host: packages.example.org}]}}"
)
RULES_HELP = _(
    "YAML or JSON that names only what is to be stricter than in the environments; what it does not "
    "mention stays."
)


def policy_field(hint: Any) -> forms.CharField:
    return forms.CharField(
        label=_("Sandbox policy"),
        help_text=hint,
        required=False,
        strip=False,
        empty_value="",
        widget=UnfoldAdminTextareaWidget({"rows": 14, "spellcheck": "false"}),
    )


def in_words(policy: Policy) -> SafeString:
    """What a policy allows, for eyes: the result of defaults and what was written."""
    network = [
        f"{endpoint.host}:{','.join(map(str, endpoint.ports))}" for endpoint in policy.endpoints
    ]
    files = policy.filesystem_policy
    resources = policy.resources
    rows = [
        (gettext("Network"), ", ".join(network) or gettext("none")),
        (gettext("Requires"), ", ".join(sorted(policy.required)) or gettext("nothing")),
        (
            gettext("Workspace"),
            gettext("read and write") if files.include_workdir else gettext("read only"),
        ),
        (gettext("Writes elsewhere"), ", ".join(files.read_write) or gettext("nothing")),
        (gettext("Reads"), ", ".join(files.read_only) or gettext("nothing")),
        (
            gettext("Limits"),
            ngettext(
                "%(memory)d MB of memory, %(pids)d process, %(wall)d s for a command",
                "%(memory)d MB of memory, %(pids)d processes, %(wall)d s for a command",
                resources.pids,
            )
            % {
                "memory": resources.memory_mb,
                "pids": resources.pids,
                "wall": resources.wall_seconds,
            },
        ),
    ]
    return format_html(
        '<dl class="agentsite-config">{}</dl>',
        format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows),
    )


class EnvironmentForm(OurModelForm):
    archived = forms.BooleanField(
        label=_("Archived"),
        required=False,
        help_text=_("Not offered for new conversations; those that use it go on."),
        widget=UnfoldBooleanSwitchWidget(),
    )
    policy = policy_field(POLICY_HELP)

    class Meta:
        model = Environment
        fields = [
            "name",
            "description",
            "organisation",
            "upload_limit",
            "backend",
            "policy",
            "trusts_workers",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["archived"] = self.instance.archived_at is not None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            with beside_its_field(self):
                check_environment(
                    name=cleaned["name"],
                    description=cleaned["description"],
                    upload_limit=cleaned["upload_limit"],
                    backend=cleaned["backend"],
                    policy=cleaned["policy"],
                )
        return cleaned


class EnvironmentAdmin(ModelAdmin):
    form = EnvironmentForm
    actions = None
    list_display = ["name", "organisation", "sandbox", "version", "offered", "updated_at"]
    list_filter = [("archived_at", admin.EmptyFieldListFilter)]
    list_select_related = ["organisation"]
    search_fields = ["name", "description", "uid", "organisation__name"]
    show_full_result_count = False
    autocomplete_fields = ["organisation"]

    def get_fields(self, request: HttpRequest, obj: Environment | None = None) -> list[str]:
        own = ["name", "description", "organisation", "upload_limit", "backend", "policy"]
        own.append("trusts_workers")
        if obj is None:
            return own
        switch = "archived" if self.has_change_permission(request, obj) else "archived_at"
        facts = ["in_force", "version", "digest", "uid", "created_at", "updated_at"]
        return [*own, switch, *facts]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Environment | None = None
    ) -> list[str]:
        facts = ["uid", "archived_at", "created_at", "updated_at", "version", "digest", "in_force"]
        return ["organisation", *facts] if obj else facts

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("offered"), boolean=True)
    def offered(self, obj: Environment) -> bool:
        return obj.archived_at is None

    @admin.display(description=_("sandbox"))
    def sandbox(self, obj: Environment) -> str:
        return obj.backend or gettext("automatic")

    @admin.display(description=_("policy in force"))
    def in_force(self, obj: Environment) -> SafeString | str:
        return _shown(obj)

    @admin.display(description=_("policy digest (SHA-256)"))
    def digest(self, obj: Environment) -> str:
        return _digest(obj)

    def save_model(self, request: HttpRequest, obj: Environment, form: Any, change: bool) -> None:
        actor, values = actor_of(request), form.cleaned_data
        names = ("name", "description", "upload_limit", "backend", "policy")
        texts = {name: values[name] for name in names}
        if not change:
            stored = create_environment(actor=actor, organisation=values["organisation"], **texts)
            trust_workers(actor=actor, environment=stored, trusted=values["trusts_workers"])
            obj.pk = stored.pk
            return
        change_environment(actor=actor, environment=obj, **texts)
        trust_workers(actor=actor, environment=obj, trusted=values["trusts_workers"])
        archive_environment(actor=actor, environment=obj, archived=values["archived"])


class SandboxRulesForm(OurModelForm):
    policy = policy_field(RULES_HELP)

    class Meta:
        model = SandboxRules
        fields = ["organisation", "policy"]

    def clean_policy(self) -> str:
        text: str = self.cleaned_data["policy"]
        try:
            checked = checked_policy(text)
        except Invalid as problem:
            raise forms.ValidationError(problem.words) from problem
        if not checked:
            raise forms.ValidationError(
                _("Write what is to be stricter; to take nothing away, delete these rules.")
            )
        return checked


class SandboxRulesAdmin(DeletesEach, ModelAdmin):
    form = SandboxRulesForm
    actions = None
    list_display = ["organisation", "version", "updated_by", "updated_at"]
    list_select_related = ["organisation", "updated_by"]
    search_fields = ["organisation__name"]
    show_full_result_count = False
    autocomplete_fields = ["organisation"]

    def get_fields(self, request: HttpRequest, obj: SandboxRules | None = None) -> list[str]:
        own = ["organisation", "policy"]
        facts = ["in_force", "version", "digest", "updated_by", "updated_at"]
        return [*own, *facts] if obj else own

    def get_readonly_fields(
        self, request: HttpRequest, obj: SandboxRules | None = None
    ) -> list[str]:
        facts = ["in_force", "version", "digest", "updated_by", "updated_at"]
        return ["organisation", *facts] if obj else facts

    @admin.display(description=_("in words"))
    def in_force(self, obj: SandboxRules) -> SafeString | str:
        return _shown(obj)

    @admin.display(description=_("policy digest (SHA-256)"))
    def digest(self, obj: SandboxRules) -> str:
        return _digest(obj)

    def save_model(self, request: HttpRequest, obj: SandboxRules, form: Any, change: bool) -> None:
        organisation = obj.organisation if change else form.cleaned_data["organisation"]
        stored = set_sandbox_rules(
            actor=actor_of(request),
            organisation=organisation,
            policy=form.cleaned_data["policy"],
        )
        obj.pk = stored.pk if stored is not None else obj.pk

    def delete_model(self, request: HttpRequest, obj: SandboxRules) -> None:
        set_sandbox_rules(actor=actor_of(request), organisation=obj.organisation, policy="")


def _shown(row: Environment | SandboxRules) -> SafeString | str:
    try:
        return in_words(row.sandbox_policy)
    except Invalid as problem:  # a policy of an older version
        return problem.words


def _digest(row: Environment | SandboxRules) -> str:
    try:
        return row.sandbox_policy.digest
    except Invalid:
        return "–"
