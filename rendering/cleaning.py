"""The last gate for HTML made from other people's text: what is not on the list is not on the page.

The renderers of this package only produce what is listed here, so cleaning normally changes nothing;
it is there for the day one of them, or a library below, is wrong.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape

import nh3
from django.utils.safestring import SafeString, mark_safe

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
CITED = re.compile(r"/passages/psg_[0-9A-Za-z]{1,60}/")
"""The only addresses of our own that a text may lead to."""
CITATION = "citation"
"""The class of such links."""
LINK_RELATION = "noopener noreferrer nofollow"
DRAWING = "drawing"
"""The class of pictures that are drawn here (`diagrams`)."""
DRAWN = "data:image/svg+xml,"
"""How the only addresses of pictures begin."""

MATHML: dict[str, frozenset[str]] = {
    tag: frozenset(attributes.split())
    for tag, attributes in {
        "math": "display xmlns",
        "mfrac": "linethickness",
        "mi": "mathvariant",
        "mn": "mathvariant",
        "mo": (
            "accent fence form largeop lspace mathvariant maxsize minsize movablelimits rspace "
            "separator stretchy symmetric"
        ),
        "mover": "accent",
        "mpadded": "depth height lspace voffset width",
        "mphantom": "",
        "mroot": "",
        "mrow": "",
        "mspace": "depth height linebreak width",
        "msqrt": "",
        "mstyle": "displaystyle mathcolor mathvariant scriptlevel",
        "msub": "",
        "msubsup": "",
        "msup": "",
        "mtable": "columnalign columnlines columnspacing displaystyle rowlines rowspacing",
        "mtd": "columnalign columnspan rowspan",
        "mtext": "mathvariant",
        "mtr": "columnalign",
        "munder": "accentunder",
        "munderover": "accent accentunder",
        "menclose": "notation",
    }.items()
}
"""Elements of MathML and their attributes: none of them can load, link, script or carry markup."""

_HTML: dict[str, frozenset[str]] = {
    tag: frozenset(attributes.split())
    for tag, attributes in {
        "a": "class href target title",
        "blockquote": "",
        "br": "",
        "button": "aria-label class type",
        "code": "class",
        "del": "",
        "details": "class",
        "div": "class tabindex",
        "em": "",
        "figcaption": "",
        "figure": "class",
        "h2": "",
        "h3": "",
        "h4": "",
        "h5": "",
        "h6": "",
        "hr": "",
        "img": "alt class src",
        "li": "class",
        "ol": "class start",
        "p": "",
        "pre": "class tabindex",
        "s": "",
        "span": "aria-label class role title",
        "strong": "",
        "summary": "",
        "sup": "class",
        "table": "",
        "tbody": "",
        "td": "class",
        "th": "class scope",
        "thead": "",
        "tr": "",
        "ul": "",
    }.items()
}


@cache
def _cleaner(*, citing: bool, drawn: bool) -> nh3.Cleaner:
    """`citing`, `drawn`: every attribute is looked at once more, which costs."""
    allowed = {**_HTML, **MATHML}
    if not drawn:
        del allowed["img"]
    return nh3.Cleaner(
        tags=set(allowed),
        attributes={tag: set(attributes) for tag, attributes in allowed.items() if attributes},
        clean_content_tags={"script", "style"},
        url_schemes={*LINK_SCHEMES, "data"} if drawn else set(LINK_SCHEMES),
        url_relative="pass_through" if citing else "deny",
        attribute_filter=_without_other_ways if citing or drawn else None,
        link_rel=LINK_RELATION,
        set_tag_attribute_values={"button": {"type": "button"}},
        tag_attribute_values={"button": {"data-action": {"copy-code", "wrap"}}},
    )


def clean(html: str) -> SafeString:
    """`html` without anything that is not listed above."""
    cleaner = _cleaner(
        citing=f'class="{CITATION}"' in html, drawn=f'<img class="{DRAWING}"' in html
    )
    return mark_safe(cleaner.clean(html))  # noqa: S308 - this is the gate


def _without_other_ways(_tag: str, name: str, value: str) -> str | None:
    """Of addresses those with a scheme, which was judged, citations, and pictures drawn here."""
    if name == "src":
        return value if value.startswith(DRAWN) else None
    if name != "href" or CITED.fullmatch(value):
        return value
    return value if value.partition(":")[0].lower() in LINK_SCHEMES else None


def plain(text: str) -> SafeString:
    """`text` as it is, in an element that keeps its line breaks: what every renderer falls back to."""
    return mark_safe(f'<div class="plain">{escape(text)}</div>')  # noqa: S308 - escaped right here
