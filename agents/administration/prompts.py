"""The sentences the harness says, in the admin: changed in place, or reset to ours."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.administration.requests import actor_of, beside_its_field
from accounts.formwords import OurModelForm
from agents.actions.prompts import (
    change_prompt,
    check_prompt,
    filled_names,
    original_text,
    reset_prompt,
)
from agents.models import Prompt


class PromptForm(OurModelForm):
    text = forms.CharField(
        label=_("Text"), strip=False, widget=UnfoldAdminTextareaWidget({"rows": 12})
    )

    class Meta:
        model = Prompt
        fields = ["text"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "text" not in self.fields:
            return  # shown to somebody who may only look
        names = sorted(filled_names(self.instance.name))
        self.fields["text"].help_text = (
            gettext("Filled in while an agent works, so they must stay: %(names)s.")
            % {"names": ", ".join(f"{{{name}}}" for name in names)}
            if names
            else gettext("Nothing is filled in here; braces stand for themselves.")
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "text" in cleaned:
            with beside_its_field(self):
                cleaned["text"] = check_prompt(name=self.instance.name, text=cleaned["text"])
        return cleaned


class PromptAdmin(ModelAdmin):
    form = PromptForm
    actions = None
    list_display = ["name", "description", "is_ours", "updated_at"]
    search_fields = ["name", "description", "text"]
    show_full_result_count = False
    readonly_fields = ["name", "description", "ours", "updated_at"]
    fields = ["name", "description", "text", "ours", "updated_at"]
    actions_detail = ["reset"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("as delivered"), boolean=True)
    def is_ours(self, obj: Prompt) -> bool:
        return obj.text == original_text(obj.name)

    @admin.display(description=_("as delivered"))
    def ours(self, obj: Prompt) -> SafeString:
        return format_html(
            '<pre class="agentsite-text">{}</pre>',
            original_text(obj.name) or gettext("This version has no such text."),
        )

    def save_model(self, request: HttpRequest, obj: Prompt, form: Any, change: bool) -> None:
        change_prompt(actor=actor_of(request), prompt=obj, text=form.cleaned_data["text"])

    @action(description=_("Reset to ours"), icon="restart_alt", permissions=["change"])  # type: ignore[untyped-decorator]
    def reset(self, request: HttpRequest, object_id: str) -> HttpResponse:
        prompt: Prompt | None = self.get_object(request, unquote(object_id))
        if prompt is None:
            raise Http404(gettext("There is no such prompt."))
        if request.method == "POST":
            reset_prompt(actor=actor_of(request), prompt=prompt)
            text = gettext("“%(name)s” is as it was delivered.")
            messages.success(request, text % {"name": prompt.name})
            return HttpResponseRedirect(reverse("admin:agents_prompt_change", args=[prompt.pk]))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Reset this prompt?"),
            "subtitle": prompt.name,
            "opts": self.opts,
            "original": prompt,
            "has_view_permission": True,
            "ours": original_text(prompt.name),
        }
        return TemplateResponse(request, "admin/agents/prompt_reset.html", context)
