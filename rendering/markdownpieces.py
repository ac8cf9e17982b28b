"""Markdown read into pieces of HTML: CommonMark with tables, strikethrough, task lists, formulas
and footnotes.

What is dear in it is counted, so that the same text is refused on every machine and on every day. Code
is left to `code`; what comes out is put together and cleaned by `markdown`, which also says where this runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt, helpers
from markdown_it.renderer import RendererHTML, RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from .effort import TooTangled, granted, look_at_line, look_for_bracket
from .links import links_rule
from .math import math_plugin
from .notes import notes_plugin, tokens_of_notes

DEEPEST = 100
"""Nesting of lists and quotes; what is nested deeper is shown plain, because the parser drops it."""
ADDRESSES = 1_000_000
"""Characters of all addresses and titles of links together; one that is defined may be used often."""

Piece = str | tuple[str, str]
"""HTML, or a block of code with its label as its author wrote it."""


def pieces_of(text: str, first_heading: int) -> list[Piece]:
    """What the text becomes, in order, HTML not cleaned yet. Raises `TooTangled`."""
    env: EnvType = {"first_heading": first_heading, **granted(text)}
    tokens = _parser().parse(text, env)
    notes = list(tokens_of_notes(_parser(), env))
    addresses = _addresses(tokens) + sum(_addresses_in(note) for note in notes)
    if any(token.level >= DEEPEST - 1 for token in tokens) or addresses > ADDRESSES:
        raise TooTangled
    return list(_joined(chain(_pieces(tokens, env), _notes(notes, env))))


def _addresses(tokens: Sequence[Token]) -> int:
    return sum(_addresses_in(token.children or ()) for token in tokens)


def _addresses_in(children: Iterable[Token]) -> int:
    return sum(len(str(value)) for child in children for value in child.attrs.values())


def _notes(notes: Sequence[list[Token]], env: EnvType) -> Iterator[Piece]:
    if not notes:
        return
    renderer, options = cast(RendererHTML, _parser().renderer), _parser().options
    said = (renderer.renderInline(note, options, env) for note in notes)
    items = "".join(f'<li class="note">{one}</li>' for one in said)
    yield f'<ol class="notes">{items}</ol>'


def _pieces(tokens: Sequence[Token], env: EnvType) -> Iterator[Piece]:
    renderer, options = cast(RendererHTML, _parser().renderer), _parser().options
    for index, token in enumerate(tokens):
        if token.type in {"fence", "code_block"}:
            yield token.content, (token.info.split() or [""])[0]
        elif token.type == "inline":
            yield renderer.renderInline(token.children or [], options, env)
        elif token.type in renderer.rules:
            yield renderer.rules[token.type](tokens, index, options, env)
        else:
            yield renderer.renderToken(tokens, index, options, env)


def _joined(pieces: Iterator[Piece]) -> Iterator[Piece]:
    html: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            html.append(piece)
        else:
            yield "".join(html)
            yield piece
            html = []
    yield "".join(html)


@cache
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST, "tasklists": True})
    md.enable(["table", "strikethrough"]).use(math_plugin).use(notes_plugin)
    md.helpers = cast(Any, SimpleNamespace)(
        **{**vars(helpers), "parseLinkLabel": _parse_link_label}
    )
    md.block.ruler.before(
        "fence", "looks", _look, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    md.core.ruler.after("inline", "links", links_rule)
    for name, rule in _RENDER_RULES.items():
        md.add_render_rule(name, rule)
    return md


def _parse_link_label(state: StateInline, start: int, disableNested: bool = False) -> int:  # noqa: N803 - the library's name
    end = helpers.parseLinkLabel(state, start, disableNested)
    look_for_bracket(state.env, (end if end >= 0 else state.posMax) - start)
    return end


def _look(state: StateBlock, _first: int, _last: int, _silent: bool) -> bool:
    """A rule that never fits: it is asked wherever a line is looked at, and counts."""
    look_at_line(state.env)
    return False


# --- where our HTML differs from the library's ----------------------------------------------------


def _heading(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    level = min(6, int(token.tag[1]) + env["first_heading"] - 1)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


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
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _cell,
    "td_open": _cell,
    "list_item_open": _list_item,
}
