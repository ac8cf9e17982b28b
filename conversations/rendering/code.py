"""Source code as HTML: coloured by classes (no inline styles), with its language and a copy button.

Colours are in `static/css/log.css`. Only well-known languages are coloured, and only up to a size:
a lexer is a heap of regular expressions, and the text is anybody's.
"""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import PurePosixPath

from django.utils.translation import gettext as _
from pygments import highlight as pygments_highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

COLOURED_CHARACTERS = 30_000
"""Longer blocks are shown uncoloured."""
COLOURED_LINE = 5_000
"""So are those with a longer line: minified code is where lexers are slowest."""

# fmt: off
LANGUAGES = frozenset({
    "bash", "batch", "c", "clojure", "cmake", "console", "cpp", "csharp", "css", "dart", "diff",
    "docker", "elixir", "elm", "erlang", "fish", "fsharp", "go", "graphql", "groovy", "haskell",
    "hcl", "html", "http", "ini", "java", "javascript", "jinja", "json", "json5", "julia", "jsx",
    "kotlin", "less", "lua", "make", "markdown", "nginx", "nix", "objective-c", "ocaml", "perl",
    "php", "postgresql", "powershell", "properties", "protobuf", "python", "pycon", "r",
    "rst", "ruby", "rust", "sass", "scala", "scss", "shell", "sql", "sqlite3", "swift",
    "terraform", "toml", "tsx", "typescript", "vim", "vue", "xml", "yaml", "zig",
})
# fmt: on
"""What is coloured. Pygments knows hundreds more, some of which can be made to run for minutes."""

_ALIASES = {
    "c#": "csharp", "c++": "cpp", "cs": "csharp", "django": "jinja", "dockerfile": "docker",
    "golang": "go", "htm": "html", "js": "javascript", "jsonc": "json", "jsonl": "json",
    "kt": "kotlin", "makefile": "make", "md": "markdown", "mjs": "javascript", "objc": "objective-c",
    "patch": "diff", "plpgsql": "postgresql", "proto": "protobuf", "ps1": "powershell",
    "psql": "postgresql", "py": "python", "python3": "python", "pyi": "python", "rb": "ruby",
    "rs": "rust", "sh": "bash", "shell-session": "console", "sqlite": "sqlite3", "svg": "xml",
    "tf": "terraform", "ts": "typescript", "viml": "vim", "yml": "yaml", "zsh": "bash",
}  # fmt: skip

_SUFFIXES = {
    "bat": "batch", "cc": "cpp", "cfg": "ini", "clj": "clojure", "conf": "ini", "cxx": "cpp",
    "env": "properties", "ex": "elixir", "exs": "elixir", "erl": "erlang", "gql": "graphql",
    "h": "c", "hpp": "cpp", "hs": "haskell", "jl": "julia", "mk": "make", "ml": "ocaml",
    "pl": "perl",
}  # fmt: skip

_NAMES = {
    "dockerfile": "docker",
    "makefile": "make",
    "gnumakefile": "make",
    "cmakelists.txt": "cmake",
}


def language_named(name: str) -> str:
    """The language that people mean by `name` (`py`, `C++`), or an empty string if none of ours."""
    known = name.strip().lower()
    known = _ALIASES.get(known, known)
    return known if known in LANGUAGES else ""


def language_of(path: str) -> str:
    """The language of a file by its name, or an empty string."""
    file = PurePosixPath(path.lower())
    if file.name in _NAMES:
        return _NAMES[file.name]
    suffix = file.suffix.removeprefix(".")
    return language_named(_SUFFIXES.get(suffix, suffix))


@cache
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


def highlighted(text: str, language: str) -> str:
    """`text` as HTML for the inside of a `<code>`: coloured if `language` is one of `LANGUAGES`.

    Everything is escaped; the text of the result is `text` to the character.
    """
    too_much = len(text) > COLOURED_CHARACTERS or any(
        len(line) > COLOURED_LINE for line in text.split("\n")
    )
    lexer = None if too_much or language not in LANGUAGES else _lexer(language)
    if lexer is None:
        return escape(text)
    try:
        return pygments_highlight(text, lexer, _formatter())
    except Exception:  # a lexer's fault must not cost the text
        return escape(text)


def code_block(text: str, label: str = "") -> str:
    """A block of code with its header. `label` is the language as its author wrote it."""
    language = language_named(label)
    copy = escape(_("Copy code"))
    return (
        '<figure class="code">'
        f'<figcaption><span class="language">{escape(label[:40])}</span>'
        f'<button type="button" class="copy" data-action="copy-code" aria-label="{copy}">'
        f"{escape(_('Copy'))}</button></figcaption>"
        f'<pre tabindex="0"><code class="highlight">{highlighted(text, language)}</code></pre>'
        "</figure>\n"
    )
