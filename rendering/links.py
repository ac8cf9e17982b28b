"""What becomes of links and images in Markdown: nothing is fetched, and nobody is led astray.

Only web and mail addresses are links, each showing its host; bare ones in a text become links too. Of our own
pages passages of documents alone can be linked, as answers cite them; they open for whom may read them.
A picture is a link to it, because loading it would tell its server what was said here. Anything else
(a path of the workspace, a fragment) is shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import gettext as _
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from reading.hostnames import split_address

from .cleaning import CITATION, CITED, LINK_SCHEMES

_BARE = re.compile(r"\bhttps?://[^\s<>\"'`|\\^{}]{1,2000}", re.IGNORECASE)
_TRAILING = ".,:;!?*_~"


def host_of(address: str) -> str:
    """The host (or the mail address) that `address` leads to; empty if it is no link of ours."""
    try:
        parts = split_address(address)
        if parts.scheme.lower() not in LINK_SCHEMES:
            return ""
        return parts.path if parts.scheme.lower() == "mailto" else parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""


def links_rule(state: StateCore) -> None:
    """A core rule of markdown-it: rewrites the tokens of links, images and bare addresses."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_rewritten(token.children))


def _rewritten(tokens: Iterable[Token]) -> Iterable[Token]:
    inside = False
    opened: list[Token] = []
    for token in tokens:
        match token.type:
            case "link_open":
                inside = True
                _mark(token)
                opened.append(token)
                yield token
            case "link_close":
                inside = False
                token.tag = opened.pop().tag
                yield token
            case "image":
                yield from _picture(token, inside_link=inside)
            case "text" if not inside and "://" in token.content:
                yield from _with_links(token)
            case _:
                yield token


def _mark(token: Token) -> None:
    """Complete the opening token of a link, or make it a `<span>` that only shows where it points."""
    address = str(token.attrGet("href") or "")
    given = str(token.attrGet("title") or "")
    if CITED.fullmatch(address):
        token.attrs = {"href": address, "class": CITATION, "target": "_blank"}
        return
    host = host_of(address)
    if not host:
        token.tag = "span"
        token.attrs = {"class": "no-link", "title": address}
        return
    token.attrs = {
        "href": address,
        "title": f"{given} ({host})" if given else host,
        "target": "_blank",
    }


def _link(address: str, words: str, level: int, css_class: str = "") -> list[Token]:
    opening = Token("link_open", "a", 1, attrs={"href": address}, level=level)
    _mark(opening)
    if css_class:
        opening.attrs = {"class": css_class, **opening.attrs}
    text = Token("text", "", 0, content=words, level=level + 1)
    return [opening, text, Token("link_close", opening.tag, -1, level=level)]


def _picture(token: Token, *, inside_link: bool) -> list[Token]:
    address = str(token.attrGet("src") or "")
    described = "".join(child.content for child in token.children or ())
    host = host_of(address)
    words = _("Image: %(description)s") % {"description": described or _("without description")}
    if host:
        words = f"{words} ({host})"
    if inside_link or not host:
        return [Token("text", "", 0, content=words, level=token.level)]
    return _link(address, words, token.level, "picture-link")


def _with_links(token: Token) -> list[Token]:
    found: list[Token] = []
    done = 0
    for match in _BARE.finditer(token.content):
        address = _trimmed(match.group())
        if not host_of(address):
            continue
        if match.start() > done:
            before = token.content[done : match.start()]
            found.append(Token("text", "", 0, content=before, level=token.level))
        found += _link(address, address, token.level)
        done = match.start() + len(address)
    if not found:
        return [token]
    if done < len(token.content):
        found.append(Token("text", "", 0, content=token.content[done:], level=token.level))
    return found


def _trimmed(address: str) -> str:
    """`address` without the punctuation of the sentence around it."""
    surplus = address.count(")") - address.count("(")
    end = len(address)
    while end:
        last = address[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return address[:end]
