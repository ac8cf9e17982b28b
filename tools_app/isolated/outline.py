"""Lists the classes, functions and headings of one text; a script for `tools_app.isolation`.

The request is `{language, text}`, the answer `[{line, depth, text}]` in the order of the text.
Python is parsed; other languages are recognised line by line by how their declarations begin, which
is right for formatted code and may miss or invent a line in unusual code.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

LINE_LIMIT = 400
"""Longer lines are generated code and are not looked at."""
TITLE_LIMIT = 160

Found = dict[str, Any]

_KEYWORDS = frozenset(
    {"if", "else", "for", "foreach", "while", "do", "switch", "case", "return", "catch", "try"}
    | {"finally", "throw", "new", "delete", "sizeof", "typeof", "await", "yield", "with", "using"}
    | {"lock", "synchronized", "not", "and", "or", "in", "is", "elif", "until", "unless"}
)


def python_outline(text: str) -> list[Found]:
    """Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` for what is not."""
    found: list[Found] = []

    def visit(body: list[ast.stmt], depth: int) -> None:
        for node in body:
            match node:
                case ast.ClassDef():
                    bases = ", ".join(ast.unparse(base) for base in node.bases)
                    title = f"class {node.name}({bases})" if bases else f"class {node.name}"
                case ast.FunctionDef():
                    title = f"def {node.name}({ast.unparse(node.args)})"
                case ast.AsyncFunctionDef():
                    title = f"async def {node.name}({ast.unparse(node.args)})"
                case _:
                    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                        visit(getattr(node, part, []), depth)
                    continue
            found.append({"line": node.lineno, "depth": depth, "text": title[:TITLE_LIMIT]})
            visit(node.body, depth + 1)

    visit(ast.parse(text).body, 0)
    return found


def _patterns(*sources: str) -> list[re.Pattern[str]]:
    return [re.compile(source) for source in sources]


_JAVASCRIPT = _patterns(
    r"(?:export )?(?:default )?(?:abstract |declare )*class (?P<name>[\w$]+)",
    r"(?:export )?(?:default )?(?:declare )?(?:async )?function\b ?\*? ?(?P<name>[\w$]+)",
    r"(?:export )?(?:declare )?(?:const )?(?:interface|enum|namespace|module) (?P<name>[\w$]+)",
    r"(?:export )?(?:declare )?type (?P<name>[\w$]+)[^=]{0,200}=",
    r"(?:export )?(?:const|let|var) (?P<name>[\w$]+)(?: ?:[^=]{1,200})? ?= ?(?:async )?"
    r"(?:function\b|\([^()]{0,200}\)[^=]{0,100}=>|[\w$]+ ?=>)",
    r"(?:(?:public|private|protected|static|async|override|readonly|get|set) ){0,4}\*?"
    r"(?P<name>#?[\w$]+)(?:<[^<>]{0,100}>)?\([^()]{0,300}\)(?: ?:[^{]{1,200})? ?\{ ?$",
)
_C_LIKE = _patterns(
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|partial|data|open|"
    r"export|typedef|inline|override) ){0,5}"
    r"(?:class|interface|enum(?: class| struct)?|record|struct|union|trait|object|namespace|"
    r"protocol|extension) (?P<name>[\w:.]+)",
    r"(?:(?:public|private|protected|internal|override|open|suspend|inline|static|final) ){0,5}"
    r"(?:fun|func|function) (?:<[^<>]{0,100}> ?)?(?P<name>[\w.]+) ?\(",
    r"#define (?P<name>\w+)\(",
    r"(?:[A-Za-z_][\w:.,<>\[\]?&*]{0,100}[ *&]{1,3}){1,6}(?P<name>~?[\w:]+) ?\([^;{}]{0,300}\)?"
    r"[^;={}]{0,100}\{?(?:[^;{}]{0,100}\})? ?$",
)

LANGUAGES: dict[str, list[re.Pattern[str]]] = {
    "javascript": _JAVASCRIPT,
    "go": _patterns(
        r"func (?:\([^()]{0,100}\) ?)?(?P<name>\w+)",
        r"type (?P<name>\w+) ",
    ),
    "rust": _patterns(
        r"(?:pub(?:\([^()]{0,60}\))? )?(?:(?:default|const|async|unsafe) ){0,3}"
        r'(?:extern "[^"]{0,20}" )?fn (?P<name>\w+)',
        r"(?:pub(?:\([^()]{0,60}\))? )?(?:unsafe )?(?:struct|enum|union|trait|mod|type) "
        r"(?P<name>\w+)",
        r"(?:unsafe )?(?P<name>impl\b)",
        r"macro_rules! (?P<name>\w+)",
    ),
    "c": _C_LIKE,
    "ruby": _patterns(r"(?:class|module|def) (?P<name>[\w.:?!=\[\]<>+*/%-]+)"),
    "php": _patterns(
        r"(?:(?:abstract|final|readonly|public|private|protected|static) ){0,4}"
        r"(?:class|interface|trait|enum|function) &?(?P<name>\w+)"
    ),
    "shell": _patterns(
        r"function (?P<name>[\w:.-]+)",
        r"(?P<name>[\w:.-]+) ?\( ?\)",
    ),
    "sql": _patterns(
        r"(?i:create (?:or replace )?(?:\w+ ){0,3}?(?:table|view|function|procedure|trigger|"
        r"index|type) (?:if not exists )?)(?P<name>[\w.\"`]+)"
    ),
    "generic": _patterns(
        r"(?:(?:pub|public|private|protected|static|final|abstract|async|export|default|local) )"
        r"{0,4}(?:class|interface|trait|struct|enum|record|object|module|protocol|def|defp|"
        r"defmodule|fn|fun|func|function|sub|proc|procedure|method|type) (?P<name>[\w.:$?!]+)"
    ),
}

_DEEPER_BY = {"javascript", "c", "rust", "ruby", "php", "generic"}


def pattern_outline(text: str, language: str) -> Iterator[Found]:
    patterns = LANGUAGES.get(language, LANGUAGES["generic"])
    in_comment = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = " ".join(raw[:LINE_LIMIT].split())
        if in_comment:
            in_comment = "*/" not in line
            continue
        if line.startswith("/*"):
            in_comment = "*/" not in line
            continue
        if not line or len(raw) > LINE_LIMIT or line.startswith(("//", "--", "*", "'", '"')):
            continue
        if line.startswith("#") and not line.startswith("#define"):
            continue
        if language not in _DEEPER_BY and raw[:1].isspace():
            continue
        if _declares(line, patterns):
            yield {"line": number, "depth": _depth(raw), "text": line.rstrip(" {:")[:TITLE_LIMIT]}


def _declares(line: str, patterns: list[re.Pattern[str]]) -> bool:
    if line.split(" ", 1)[0].split("(", 1)[0] in _KEYWORDS:
        return False
    for pattern in patterns:
        match = pattern.match(line)
        if match is not None:
            return match["name"] not in _KEYWORDS
    return False


def _depth(raw: str) -> int:
    indent = raw[: len(raw) - len(raw.lstrip())]
    return min(8, indent.count("\t") + indent.count(" ") // 2)


def markdown_outline(text: str) -> Iterator[Found]:
    fence = ""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        opening = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if opening is not None and not fence:
            fence = opening[1]
            continue
        if fence:
            if opening is not None and opening[1].startswith(fence) and line.strip() == opening[1]:
                fence = ""
            continue
        heading = re.match(r" {0,3}(#{1,6})(?:[ \t]|$)", line)
        if heading is not None:
            yield {
                "line": number,
                "depth": len(heading[1]) - 1,
                "text": line.strip()[:TITLE_LIMIT],
            }
        elif number < len(lines) and line.strip() and re.match(r"(?:=+|-+)\s*$", lines[number]):
            level = 0 if lines[number].startswith("=") else 1
            if level == 0 or len(lines[number].strip()) > 2:
                yield {"line": number, "depth": level, "text": line.strip()[:TITLE_LIMIT]}


def outline(text: str, language: str) -> list[Found]:
    text = text.replace("\r\n", "\n")
    if language == "markdown":
        return list(markdown_outline(text))
    if language == "python":
        try:
            return python_outline(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return list(pattern_outline(text, "generic"))
    return list(pattern_outline(text, language))


if __name__ == "__main__":
    for given in sys.stdin:
        request = json.loads(given)
        sys.stdout.write(json.dumps(outline(request["text"], request["language"])) + "\n")
        sys.stdout.flush()
