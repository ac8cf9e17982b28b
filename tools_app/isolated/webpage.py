"""Turns HTML into Markdown; a script for `tools_app.isolation`, with libraries.

One request `{body, charset, address}`, the body in base64, is answered `{title, text}`. What a reader
of the page would not see (scripts, comments, hidden parts) is left out: it is where instructions to
machines hide.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

DROPPED = (
    *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed"),
    *("head", "link", "meta", "form", "input", "button", "select", "textarea", "dialog"),
)
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])"
)
MOST_TAGS = 20_000
"""Of a page that is made Markdown; of a larger one only the words are kept, which is quick."""
ENOUGH = 400
"""Characters a part marked as the main one must have to stand for the page."""


def is_hidden(tag: Tag) -> bool:
    style = str(tag.get("style", "")).lower()
    hidden = tag.has_attr("hidden") or str(tag.get("aria-hidden", "")).lower() == "true"
    return hidden or bool(_HIDDEN.search(style))


def main_part(soup: Any) -> Any:
    found = soup.find("main") or soup.find(attrs={"role": "main"}) or soup.find("article")
    if found is not None and len(found.get_text(" ", strip=True)) >= ENOUGH:
        return found
    return soup.body or soup


def converted(body: bytes, charset: str, address: str) -> dict[str, str]:
    soup = BeautifulSoup(body, "lxml", from_encoding=charset or None)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    base = soup.find("base", href=True)
    if isinstance(base, Tag):
        with suppress(ValueError):  # what is no address is no base
            address = urljoin(address, str(base["href"]))
    for tag in list(soup.find_all(True)):
        # Asked as a property, a tag that still stands would search all that is below it.
        gone = "_decomposed" in vars(tag)
        if not gone and (tag.name in DROPPED or is_hidden(tag)):
            tag.decompose()
    part = main_part(soup)
    for tag in list(part.find_all(["img", "a"])):
        if tag.name == "img":
            words = str(tag.get("alt", "")).strip()
            tag.replace_with(f"[image: {words}]" if words else "")
        elif tag.has_attr("href"):
            tag["href"] = absolute(address, str(tag["href"]))
            del tag["title"]
            if not tag["href"]:
                tag.unwrap()
    text = in_markdown(part)
    lines = (line.rstrip() for line in text.replace("\r", "").split("\n"))
    return {"title": title[:300], "text": re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()}


def in_markdown(part: Any) -> str:
    if len(part.find_all(True)) > MOST_TAGS:
        return str(part.get_text("\n"))
    try:
        return str(MarkdownConverter(heading_style="atx", bullets="-").convert_soup(part))
    except RecursionError:
        return str(part.get_text("\n"))


def absolute(address: str, href: str) -> str:
    """Where a link leads; empty for what is no web address."""
    try:
        there = urljoin(address, href.strip())
        return there if urlsplit(there).scheme in {"http", "https"} else ""
    except ValueError:
        return ""


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    body = base64.b64decode(asked["body"])
    sys.stdout.write(json.dumps(converted(body, asked["charset"], asked["address"])) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
