r"""Mathematics in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]` become MathML.

The rules are our own because the delimiters must be safe (a price is not mathematics) and the search
for a closing one bounded. What cannot be translated is shown as its source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import Converter
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from .cleaning import MATHML
from .effort import look_at_line

LONGEST = 2_000
"""Characters of one formula; also how far a closing delimiter is looked for."""

MOST = 500
"""Formulas translated in one text; further ones are shown as their source."""

_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
_PARTS = {
    "mfrac": 2,
    "mover": 2,
    "mroot": 2,
    "msub": 2,
    "msubsup": 3,
    "msup": 2,
    "munder": 2,
    "munderover": 3,
}
"""Elements that need a fixed number of children."""
_DISPLAYED = {"$$", "\\["}

_MACROS = re.compile(
    r"\\(?:newcommand|renewcommand|providecommand|newenvironment|def|let|DeclareMathOperator)\b"
)
"""Definitions can double themselves into gigabytes, and nobody needs them in a message."""
_ROW_SPACING = re.compile(r"\\\\\[[\d.]+(?:pt|em|ex|mm|cm)\]")
"""`\\\\[2pt]`, which the converter takes for text in brackets."""
_UNKNOWN_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WORDS_AFTER_AN_AMOUNT = re.compile(
    r"[\d.,]+[kKmMbB]?\b(?=.*(?<![\\a-zA-Z])[a-zA-Z]{2,})", re.DOTALL
)


def math_plugin(md: MarkdownIt) -> None:
    """Teach `md` the four delimiters."""
    md.inline.ruler.before("escape", "math_inline", _inline)
    md.block.ruler.before(
        "fence", "math_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    md.add_render_rule("math_inline", _render)
    md.add_render_rule("math_block", _render)


def to_mathml(latex: str, *, display: bool) -> str | None:
    """`latex` as one `<math>` element, or None when it is not understood."""
    if len(latex) > LONGEST or _MACROS.search(latex):
        return None
    try:
        # `convert` would unescape what it serialises, so that `\text{<img …>}` became an image.
        root = Converter(display="block" if display else "inline").convert_to_element(
            _ROW_SPACING.sub(r"\\\\", latex)
        )
        return tostring(_checked(root), encoding="unicode")
    except Exception:  # whatever the converter trips over, the source is shown
        return None


def _checked(element: Element) -> Element:
    """The tree with its character references resolved and only the attributes we know.

    Raises `ValueError` for an element we do not know, for one that lacks a part (half a fraction)
    and for a command that was not translated.
    """
    for node in element.iter():
        if node.tag not in MATHML:
            raise ValueError(node.tag)
        if len(node) != _PARTS.get(node.tag, len(node)):
            raise ValueError(node.tag)
        node.text = unescape(node.text or "")
        node.tail = unescape(node.tail or "")
        if node.tag != "mtext" and _UNKNOWN_COMMAND.match(node.text):
            raise ValueError(node.text)
        for name in [name for name in node.attrib if name not in MATHML[node.tag]]:
            del node.attrib[name]
    return element


# --- finding it -----------------------------------------------------------------------------------


def _opening(text: str, position: int) -> tuple[str, str] | None:
    return next((pair for pair in _DELIMITERS if text.startswith(pair[0], position)), None)


def closing_of(text: str, delimiter: str, start: int, end: int) -> int:
    """Where the first unescaped `delimiter` behind `start` stands; -1 if none is near."""
    limit = min(end, start + LONGEST + len(delimiter))
    found = text.find(delimiter, start, limit)
    while found != -1 and _is_escaped(text, found):
        found = text.find(delimiter, found + 1, limit)
    return found


def _is_escaped(text: str, position: int) -> bool:
    before = text[max(0, position - 20) : position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _inline(state: StateInline, silent: bool) -> bool:
    pair = _opening(state.src, state.pos)
    if pair is None:
        return False
    opening, closing = pair
    start = state.pos + len(opening)
    end = closing_of(state.src, closing, start, state.posMax)
    if end == -1 or not state.src[start:end].strip():
        return False
    if opening == "$" and not _is_dollar_math(state.src, state.pos, end):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content = state.src[start:end]
        token.markup = opening
    state.pos = end + len(closing)
    return True


def _is_dollar_math(text: str, opening: int, closing: int) -> bool:
    """Whether `$…$` is a formula and not two prices, two variables of a shell or half a code span."""
    inside = text[opening + 1 : closing]
    return not (
        inside[0].isspace()
        or inside[-1].isspace()
        or "`" in inside
        or (opening > 0 and (text[opening - 1].isalnum() or text[opening - 1] == "$"))
        or text[closing + 1 : closing + 2].isalnum()
        or ("\\" not in inside and _WORDS_AFTER_AN_AMOUNT.match(inside))
    )


def _block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """A formula that has its lines for itself; it may span several but no blank one."""
    if state.is_code_block(start_line):
        return False
    first = state.bMarks[start_line] + state.tShift[start_line]
    pair = _opening(state.src, first)
    if pair is None or pair[0] not in _DISPLAYED:
        return False
    opening, closing = pair
    lines: list[str] = []
    length = 0
    for line in range(start_line, end_line):
        look_at_line(state.env)
        begin = state.bMarks[line] + state.tShift[line] + (len(opening) if not lines else 0)
        end = state.eMarks[line]
        if lines and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return False
        found = closing_of(state.src, closing, begin, end)
        if found == -1:
            lines.append(state.src[begin:end])
            length += end - begin
            if length > LONGEST:
                return False
            continue
        if state.src[found + len(closing) : end].strip():
            return False
        lines.append(state.src[begin:found])
        formula = "\n".join(lines)
        if not formula.strip():
            return False
        if not silent:
            token = state.push("math_block", "math", 0)
            token.block = True
            token.content = formula
            token.markup = opening
            token.map = [start_line, line + 1]
            state.line = line + 1
        return True
    return False


# --- showing it -----------------------------------------------------------------------------------


def _render(
    self: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    env["formulas"] = env.get("formulas", 0) + 1
    closing = dict(_DELIMITERS)[token.markup]
    display = token.markup in _DISPLAYED
    shown = None
    if env["formulas"] <= MOST:
        shown = to_mathml(token.content.strip(), display=display)
    if shown is None:
        source = escape(f"{token.markup}{token.content}{closing}")
        shown = f'<code class="formula-source">{source}</code>'
    if token.type == "math_block":
        return f'<div class="formula" tabindex="0">{shown}</div>\n'
    return f'<span class="formula">{shown}</span>'
