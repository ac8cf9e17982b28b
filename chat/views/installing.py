"""What a browser is told so that the site can be put beside a person's other programs.

A public address: browsers fetch it without cookies, so it names nobody and nothing of an organisation.
"""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import get_language, get_language_bidi
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

ICONS = (
    ("icon-192.png", 192, "any"),
    ("icon-512.png", 512, "any"),
    ("icon-maskable-512.png", 512, "maskable"),
)
"""File, pixels of a side, and purpose (W3C Web Application Manifest, 1.8 and 2.6)."""
DAY, ACCENT = "#faf9f7", "#2f5bd0"
"""Of `static/css/tokens.css`, by day: a manifest has one of each."""


@require_safe
@cache_control(max_age=86_400)
@vary_on_headers("Accept-Language")
def manifest(request: HttpRequest) -> JsonResponse:
    told = {
        "id": "/",
        "name": "Agentsite",
        "short_name": "Agentsite",
        "description": _("Work with agents that use tools."),
        "lang": get_language() or "en",
        "dir": "rtl" if get_language_bidi() else "ltr",
        "start_url": reverse("conversations:list"),
        "scope": "/",
        "display": "standalone",
        "background_color": DAY,
        "theme_color": ACCENT,
        "icons": [
            {
                "src": static(f"img/{name}"),
                "sizes": f"{side}x{side}",
                "type": "image/png",
                "purpose": purpose,
            }
            for name, side, purpose in ICONS
        ],
        "shortcuts": [
            {"name": _("New conversation"), "url": reverse("conversations:new")},
            {"name": _("Approvals"), "url": reverse("approvals:approvals")},
        ],
    }
    return JsonResponse(told, content_type="application/manifest+json")
