"""Markdown of agents as safe HTML: CommonMark with tables, strikethrough, task lists and formulas.

Raw HTML is text, nothing is loaded from elsewhere (an image is shown as a link), and no input makes
it raise or run long: what is too long or too tangled is shown as plain text. People's own messages
are never rendered, they are shown as typed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape
from types import SimpleNamespace
from typing import Any, cast

from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt, helpers
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from .cleaning import clean, plain
from .code import code_block
from .links import links_rule
from .math import math_plugin

LONGEST = 100_000
"""Characters; a longer text is shown plain. A reply has at most about 64,000."""
DEEPEST = 100
"""Nesting of lists and quotes; what is nested deeper is shown plain, because the parser drops it."""
BRACKET_BUDGET = 5_000_000
"""Characters that may be looked at in search of closing brackets, which is the parser's one quadratic
search. Ordinary texts need a few thousand."""
FIRST_HEADING = 4
"""Level of a `#`: above it stand the page (1), the message (2) and the reply (3)."""
REMEMBERED = 512
"""Texts kept rendered, of at most `REMEMBERED_LENGTH` characters each."""
REMEMBERED_LENGTH = 20_000


logger = logging.getLogger(__name__)


class _TooTangled(Exception):
    pass


def to_html(text: str, *, first_heading: int = FIRST_HEADING) -> SafeString:
    """`text` as HTML that may be put on a page. The same text always gives the same HTML."""
    if len(text) <= REMEMBERED_LENGTH:
        return _remembered(text, first_heading, get_language())
    return _to_html(text, first_heading)


@lru_cache(maxsize=REMEMBERED)
def _remembered(text: str, first_heading: int, language: str | None) -> SafeString:
    return _to_html(text, first_heading)


def _to_html(text: str, first_heading: int) -> SafeString:
    if len(text) > LONGEST:
        return plain(text)
    try:
        env = {"first_heading": first_heading, "bracket_budget": BRACKET_BUDGET}
        tokens = _parser().parse(text, env)
        if any(token.level >= DEEPEST - 1 for token in tokens):
            return plain(text)
        html = clean(_parser().renderer.render(tokens, _parser().options, env))
    except _TooTangled:
        return plain(text)
    except Exception:  # a parser's fault must not cost the text
        logger.exception("A text of %d characters could not be rendered.", len(text))
        return plain(text)
    # Definitions of links leave nothing behind; a text of nothing else is shown as it is.
    return html if html.strip() or not text.strip() else plain(text)


@cache
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST, "tasklists": True})
    md.enable(["table", "strikethrough"]).use(math_plugin)
    md.helpers = cast(Any, SimpleNamespace)(
        **{**vars(helpers), "parseLinkLabel": _parse_link_label}
    )
    md.core.ruler.after("inline", "links", links_rule)
    for name, rule in _RENDER_RULES.items():
        md.add_render_rule(name, rule)
    return md


def _parse_link_label(state: StateInline, start: int, disableNested: bool = False) -> int:  # noqa: N803 - the library's name
    end = helpers.parseLinkLabel(state, start, disableNested)
    state.env["bracket_budget"] -= (end if end >= 0 else state.posMax) - start
    if state.env["bracket_budget"] < 0:
        raise _TooTangled
    return end


# --- where our HTML differs from the library's ----------------------------------------------------


def _heading(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    level = min(6, int(token.tag[1]) + env["first_heading"] - 1)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


def _code(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    return code_block(token.content, (token.info.split() or [""])[0])


def _table_open(*_args: Any) -> str:
    return '<div class="table-scroll" tabindex="0"><table>\n'


def _table_close(*_args: Any) -> str:
    return "</table></div>\n"


def _cell(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    style = str(token.attrGet("style") or "")
    aligned = f' class="align-{style.removeprefix("text-align:")}"' if style else ""
    scope = ' scope="col"' if token.tag == "th" else ""
    return f"<{token.tag}{scope}{aligned}>"


def _list_item(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    meta = tokens[index].meta
    if not meta or "checked" not in meta:
        return "<li>"
    done = bool(meta["checked"])
    label = escape(_("done") if done else _("to do"))
    mark = "☑" if done else "☐"
    return (
        f'<li class="task"><span class="task-mark" role="img" aria-label="{label}">{mark}</span> '
    )


_RENDER_RULES = {
    "heading_open": _heading,
    "heading_close": _heading,
    "fence": _code,
    "code_block": _code,
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _cell,
    "td_open": _cell,
    "list_item_open": _list_item,
}
