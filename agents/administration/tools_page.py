"""The page that tells staff of every tool: whose it is, what it does to the world, what it takes.

Read-only: tools come with the software. Which of them an agent may use is said in its form.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from tools_app.catalogue import all_tools, describe

from .tool_rules import EFFECTS

MARKS = (
    ("read_only", _("read-only"), _("changes nothing that lasts")),
    ("destructive", _("destructive"), _("may remove or overwrite what cannot be brought back")),
    ("idempotent", _("idempotent"), _("doing it twice does no more than once")),
    ("untrusted", _("untrusted answers"), _("what it answers was written by strangers")),
    ("always_asks", _("always asks"), _("every call waits for a person")),
    ("general", _("general"), _("does whatever it is told, so it asks where a narrower tool asks")),
    ("external", _("answered from outside"), _("a person or a program answers it")),
    ("direct", _("direct"), _("people and programs may call it without a model")),
)
"""A part of a description, what it is called here, and what that means."""


class ToolsPage:
    """Adds the page to the admin of agents, behind the right to see them."""

    admin_site: Any
    opts: Any

    @action(description=_("All tools"), url_path="tools", icon="construction", permissions=["view"])  # type: ignore[untyped-decorator]
    def tools(self, request: HttpRequest) -> HttpResponse:
        described = []
        for tool in all_tools().values():
            shown = describe(tool)
            shown["effect_words"] = EFFECTS[tool.effect]
            shown["marks"] = [(name, means) for key, name, means in MARKS if shown[key]]
            shown["schema_text"] = json.dumps(shown["input_schema"], indent=2, ensure_ascii=False)
            described.append(shown)
        context = {
            **self.admin_site.each_context(request),
            "title": _("All tools"),
            "opts": self.opts,
            "tools": sorted(described, key=lambda shown: str(shown["name"])),
            "marks": MARKS,
        }
        return TemplateResponse(request, "admin/agents/tools.html", context)
