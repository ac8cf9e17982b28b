"""What a browser is called, by what it says of itself: enough for a person to tell hers apart."""

from __future__ import annotations

from django.utils.translation import gettext as _

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrom", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
"""Those first that also say what others do."""
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def name_of(user_agent: str) -> str:
    browser = next((name for sign, name in _BROWSERS if sign in user_agent), _("Browser"))
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    return f"{browser} · {system}" if system else browser
