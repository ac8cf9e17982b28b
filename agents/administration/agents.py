"""Agents in the admin: their list, their form, and the pages of their versions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action

from accounts.administration.requests import actor_of
from accounts.adminwrites import DeletesEach
from agents.actions import agents
from agents.agentforms import OVERRIDES, PLAIN, ROLES, ROSTER, TEXTS
from agents.modelnames import known_names
from agents.models import Agent, AgentVersion
from agents.versiondiff import ROLE_LABELS, changes_between, description_of
from harness.agentconfig import Features, Limits, Shortening
from harness.errors import Conflict
from reading.digits import number_of

from .agent_form import MODEL_LIST, AgentForm
from .tools_page import ToolsPage

VERSIONS_A_PAGE = 50

CONFIG_FIELDSETS: list[Any] = [
    (_("Model"), {"fields": [name for name in PLAIN if name not in TEXTS]}),
    (_("Instructions"), {"fields": ["instructions", "prompts", "skills"], "classes": ["tab"]}),
    (
        _("Tools"),
        {"fields": ["tools", "mcp_servers", "custom_tools", "sandbox"], "classes": ["tab"]},
    ),
    (
        _("Whom it calls on"),
        {"fields": [f"roster_{name}" for name in ROSTER], "classes": ["tab"]},
    ),
    (
        _("Limits"),
        {
            "fields": [
                *(f"limits_{name}" for name in Limits.model_fields),
                *(f"shortening_{name}" for name in Shortening.model_fields),
            ],
            "classes": ["tab"],
        },
    ),
    *(
        (
            ROLE_LABELS[role],
            {"fields": [f"{role}_{name}" for name in OVERRIDES], "classes": ["tab"]},
        )
        for role in ROLES
    ),
    (
        _("Switches of new conversations"),
        {"fields": [f"feature_{name}" for name in Features.model_fields], "classes": ["tab"]},
    ),
]


class AgentAdmin(DeletesEach, ToolsPage, ModelAdmin):
    form = AgentForm
    actions = None
    list_display = [
        "name",
        "uid",
        "organisation",
        "owner",
        "provider",
        "model_name",
        "version_number",
        "offered",
        "updated_at",
    ]
    list_filter = [("archived_at", admin.EmptyFieldListFilter)]
    list_select_related = ["organisation", "owner", "current"]
    search_fields = ["name", "description", "uid", "organisation__name"]
    show_full_result_count = False
    autocomplete_fields = ["organisation"]
    actions_list = ["tools"]
    actions_detail = ["versions", "put_away", "offer_again"]
    change_form_before_template = "admin/agents/model_list.html"
    warn_unsaved_form = True

    # --- what is shown ----------------------------------------------------------------------------

    @admin.display(description=_("provider"))
    def provider(self, obj: Agent) -> str:
        return obj.current.config.provider if obj.current else "–"

    @admin.display(description=_("model"))
    def model_name(self, obj: Agent) -> str:
        return (obj.current.config.model if obj.current else "") or gettext("the provider's own")

    @admin.display(description=_("version"))
    def version_number(self, obj: Agent) -> str:
        return str(obj.current.number) if obj.current else "–"

    @admin.display(description=_("offered"), boolean=True)
    def offered(self, obj: Agent) -> bool:
        return obj.archived_at is None and obj.current_id is not None

    @admin.display(description=_("configuration"))
    def configuration(self, obj: Agent) -> SafeString | str:
        if obj.current is None:
            return "–"
        rows = description_of(obj.current.config)
        return format_html(
            '<dl class="agentsite-config">{}</dl>',
            format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows),
        )

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        facts = [
            "uid",
            "owner",
            "private",
            "version_number",
            "archived_at",
            "created_by",
            "created_at",
            "updated_at",
        ]
        own = ["name", "description", "organisation"]
        if obj is not None and not self.has_change_permission(request, obj):
            return [(None, {"fields": [*own, "configuration", *facts]})]
        if obj is None:
            return [(None, {"fields": own}), *CONFIG_FIELDSETS]
        about = (_("About"), {"fields": facts, "classes": ["tab"]})
        return [(None, {"fields": [*own, "expected_version"]}), *CONFIG_FIELDSETS, about]

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[str]:
        if obj is None:
            return []
        facts = [
            "uid",
            "owner",
            "private",
            "version_number",
            "archived_at",
            "created_by",
            "created_at",
            "updated_at",
        ]
        return ["organisation", "configuration", *facts]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        rows: QuerySet[Agent] = super().get_queryset(request)
        return rows.select_related("current", "organisation", "owner", "created_by")

    def render_change_form(self, request: HttpRequest, context: Any, **kwargs: Any) -> Any:
        context |= {"model_list_id": MODEL_LIST, "model_names": known_names()}
        return super().render_change_form(request, context, **kwargs)

    # --- what is saved ----------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        values = form.cleaned_data
        if not change:
            stored = agents.create_agent(
                actor=actor_of(request),
                organisation=values["organisation"],
                name=values["name"],
                description=values["description"],
                config=values["config"],
            )
            obj.pk = stored.pk
            return
        before = values["expected_version"]
        stored = agents.change_agent(
            actor=actor_of(request),
            agent=obj,
            name=values["name"],
            description=values["description"],
            config=values["config"],
            expected_version=before,
        )
        if stored.current and stored.current.number != before:
            text = gettext("This is version %(number)d now. Conversations keep the one they have.")
            messages.info(request, text % {"number": stored.current.number})

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = bool(super().has_delete_permission(request, obj))
        return allowed and (not isinstance(obj, Agent) or agents.may_be_deleted(obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The agent and its versions; that a version in use is protected was asked before."""
        return [str(agent) for agent in objs], {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        agents.delete_agent(actor=actor_of(request), agent=obj)

    # --- buttons ----------------------------------------------------------------------------------

    @action(description=_("Versions"), icon="history", permissions=["view"])  # type: ignore[untyped-decorator]
    def versions(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self._agent(request, object_id)
        rows = AgentVersion.objects.filter(agent=agent).select_related("created_by")
        page = Paginator(rows, VERSIONS_A_PAGE).get_page(request.GET.get("page"))
        return self._page(request, agent, "versions", _("Versions"), page=page)

    @action(description=_("Archive"), url_path="archive", icon="archive", permissions=["put_away"])  # type: ignore[untyped-decorator]
    def put_away(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._archive(request, self._agent(request, object_id), archived=True)

    @action(  # type: ignore[untyped-decorator]
        description=_("Offer again"),
        url_path="offer",
        icon="unarchive",
        permissions=["offer_again"],
    )
    def offer_again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._archive(request, self._agent(request, object_id), archived=False)

    def has_put_away_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may_turn(request, object_id, archived=False)

    def has_offer_again_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may_turn(request, object_id, archived=True)

    def _may_turn(self, request: HttpRequest, object_id: Any, *, archived: bool) -> bool:
        if not self.has_change_permission(request):
            return False
        return Agent.objects.filter(pk=object_id, archived_at__isnull=not archived).exists()

    def _archive(self, request: HttpRequest, agent: Agent, *, archived: bool) -> HttpResponse:
        if request.method != "POST":
            title = _("Archive this agent?") if archived else _("Offer this agent again?")
            return self._page(request, agent, "archive", title, archived=archived)
        try:
            agents.archive_agent(actor=actor_of(request), agent=agent, archived=archived)
        except Conflict as refusal:
            messages.error(request, refusal.words)
        else:
            done = (
                gettext("%(agent)s is archived.") if archived else gettext("%(agent)s is offered.")
            )
            messages.success(request, done % {"agent": agent.name})
        return self._back(agent)

    # --- versions ---------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        def page(address: str, view: Any, name: str) -> URLPattern:
            found: URLPattern = path(
                f"<path:object_id>/{address}/",
                self.admin_site.admin_view(view),
                name=f"agents_agent_{name}",
            )
            return found

        own = [
            page("versions/compare", self.compare_view, "compare"),
            page("versions/restore", self.restore_view, "restore"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return [*own, *inherited]

    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What changed from version `from` to version `to`."""
        agent = self._agent(request, object_id)
        old = self._version(agent, request.GET.get("from"))
        new = self._version(agent, request.GET.get("to"))
        return self._page(
            request,
            agent,
            "compare",
            _("Version %(old)d → version %(new)d") % {"old": old.number, "new": new.number},
            old=old,
            new=new,
            changes=changes_between(old.config, new.config),
        )

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows what restoring `number` would change; posted, it is done."""
        agent = self._agent(request, object_id)
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        sent = request.POST if request.method == "POST" else request.GET
        version = self._version(agent, sent.get("number"))
        if request.method == "POST":
            return self._restore(request, agent, version, sent.get("expected_version", ""))
        current = agent.current or version
        return self._page(
            request,
            agent,
            "restore",
            _("Restore version %(number)d?") % {"number": version.number},
            version=version,
            current=current,
            changes=changes_between(current.config, version.config),
        )

    def _restore(
        self, request: HttpRequest, agent: Agent, version: AgentVersion, expected: str
    ) -> HttpResponse:
        try:
            stored = agents.restore_version(
                actor=actor_of(request),
                agent=agent,
                number=version.number,
                # What is no number, or none at all, is no version that anybody saw: it fails the check.
                expected_version=number_of(expected) or 0,
            )
        except Conflict as refusal:
            messages.error(request, refusal.words)
        else:
            number = stored.current.number if stored.current else 0
            text = gettext("Version %(old)d is restored; it is version %(new)d now.")
            messages.success(request, text % {"old": version.number, "new": number})
        return HttpResponseRedirect(reverse("admin:agents_agent_versions", args=[agent.pk]))

    def _version(self, agent: Agent, number: str | None) -> AgentVersion:
        wanted = number_of(number)
        if wanted is None:
            raise Http404(gettext("Name a version by its number."))
        rows = AgentVersion.objects.filter(agent=agent).select_related("created_by")
        version = rows.filter(number=wanted).first()
        if version is None:
            raise Http404(gettext("There is no such version."))
        return version

    def _agent(self, request: HttpRequest, object_id: str) -> Agent:
        agent: Agent | None = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, agent):
            raise PermissionDenied
        if agent is None:
            raise Http404(gettext("There is no such agent."))
        return agent

    def _back(self, agent: Agent) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))

    def _page(
        self, request: HttpRequest, agent: Agent, name: str, title: Any, **context: Any
    ) -> HttpResponse:
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "subtitle": agent.name,
            "opts": self.opts,
            "original": agent,
            "agent": agent,
            "has_view_permission": True,
            "has_change_permission": self.has_change_permission(request, agent),
        }
        return TemplateResponse(request, f"admin/agents/agent_{name}.html", {**shared, **context})
