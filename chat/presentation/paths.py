"""A path where it may be too long for its place: its folders give way, and the name at its end stays.

The style sheet cuts (`.path` in `app.css`); nothing is left out here.
"""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString


def as_path(path: str, tag: str = "span") -> SafeString:
    """In an element of this name, which holds the text of `path` and nothing else."""
    folders, slash, name = path.rpartition("/")
    if not folders or not name:
        return format_html('<{0} class="path"><span class="name">{1}</span></{0}>', tag, path)
    return format_html(
        '<{0} class="path"><span class="folders">{1}</span><span class="name">{2}</span></{0}>',
        tag,
        folders,
        f"{slash}{name}",
    )
