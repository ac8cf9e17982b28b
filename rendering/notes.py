"""Footnotes in Markdown: `[^name]` in a text, and `[^name]: what it says` on a line of its own.

The rules are our own because a label is looked for in a bounded stretch and every line once. Who shows a
text that stands beside others on a page gives it a key, so that the links of two texts do not meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from .effort import look_at_line

MOST = 200
"""Notes of one text; further ones are shown as they are written."""
LABEL = 60
"""Characters of `[^name]`."""

_DEFINED = re.compile(r"\[\^([^\s\[\]]{1,50})\]:[ \t]*")
_MARKED = re.compile(r'<sup class="note( again)?">([0-9]{1,3})</sup>|<li class="note">')


def notes_plugin(md: MarkdownIt) -> None:
    md.block.ruler.before("reference", "note", _definition, {"alt": ["paragraph", "reference"]})
    md.inline.ruler.before("link", "note", _reference)
    md.add_render_rule("note_ref", _marked)


def tokens_of_notes(md: MarkdownIt, env: EnvType) -> Iterator[list[Token]]:
    """What each note says, in the order of their numbers; those that nothing refers to come last."""
    said: dict[str, str] = env.get("notes", {})
    numbers: dict[str, int] = env.setdefault("note numbers", {})
    left = iter(said)
    for done in range(len(said)):
        # A note may be the first to refer to another one, which is then the next.
        if done == len(numbers):
            numbers[next(one for one in left if one not in numbers)] = done + 1
        label = list(numbers)[done]
        yield [
            child for token in md.parseInline(said[label], env) for child in token.children or ()
        ]


def linked(html: SafeString, key: str) -> SafeString:
    """`html` with links between its notes and where they belong. `key` is a name of ours for the text."""
    if 'class="note' not in html:
        return html
    item = 0

    def link(match: re.Match[str]) -> str:
        nonlocal item
        if match[2] is None:
            item += 1
            return f'<li class="note" id="{key}-note-{item}">'
        label = escape(_("Note %(number)s") % {"number": match[2]})
        name = "" if match[1] else f' id="{key}-ref-{match[2]}"'
        return (
            f'<sup class="note"><a{name} href="#{key}-note-{match[2]}" aria-label="{label}">'
            f"{match[2]}</a></sup>"
        )

    return mark_safe(_MARKED.sub(link, html))  # noqa: S308 - numbers and a key of ours


def _definition(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    look_at_line(state.env)
    start = state.bMarks[first] + state.tShift[first]
    if state.level or state.is_code_block(first) or not state.src.startswith("[^", start):
        return False
    found = _DEFINED.match(state.src, start, state.eMarks[first])
    notes: dict[str, str] = state.env.setdefault("notes", {})
    if found is None or found[1] in notes or len(notes) >= MOST:
        return False
    if silent:
        return True
    said = [state.src[found.end() : state.eMarks[first]]]
    line = first + 1
    while line < last and not state.isEmpty(line):
        look_at_line(state.env)
        place = state.bMarks[line] + state.tShift[line]
        if _DEFINED.match(state.src, place, state.eMarks[line]):
            break
        said.append(state.src[place : state.eMarks[line]])
        line += 1
    notes[found[1]] = "\n".join(said)
    state.line = line
    return True


def _reference(state: StateInline, silent: bool) -> bool:
    notes: dict[str, str] = state.env.get("notes", {})
    if not notes or not state.src.startswith("[^", state.pos):
        return False
    end = state.src.find("]", state.pos, min(state.pos + LABEL, state.posMax))
    label = state.src[state.pos + 2 : end] if end > 0 else ""
    if label not in notes:
        return False
    if not silent:
        numbers: dict[str, int] = state.env.setdefault("note numbers", {})
        token = state.push("note_ref", "sup", 0)
        token.meta = {
            "again": label in numbers,
            "number": numbers.setdefault(label, len(numbers) + 1),
        }
    state.pos = end + 1
    return True


def _marked(
    self: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    meta: dict[str, Any] = tokens[index].meta
    again = " again" if meta["again"] else ""
    return f'<sup class="note{again}">{int(meta["number"])}</sup>'
