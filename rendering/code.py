"""Source code as HTML: coloured by classes (no inline styles), with its language and a copy button.

Colours are in `static/css/log.css`. Only well-known languages are coloured, and only up to a size. A
lexer is a heap of regular expressions and the text is anybody's, so that the colouring itself is done
in a process of its own (`tools_app/isolated/colouring.py`); what takes it too long is shown plain.
"""

from __future__ import annotations

from html import escape
from pathlib import PurePosixPath

from django.utils.translation import gettext as _

from tools_app.warmprocesses import WarmProcesses

from . import diagrams
from .aside import Aside

COLOURED_CHARACTERS = 30_000
"""Longer blocks are shown uncoloured."""
COLOURED_LINE = 5_000
"""So are those with a longer line: minified code is where lexers are slowest."""

SECONDS = 15
"""By the clock, for a machine that stands still. What is too slow is told by the processor's time, the
same on every machine's busy and idle days, and remembered (`aside`)."""

_colouring = Aside("colours", WarmProcesses("colouring", most=2, seconds=SECONDS, libraries=True))

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


def highlighted(text: str, language: str) -> str:
    """`text` as HTML for the inside of a `<code>`: coloured if `language` is one of `LANGUAGES`.

    Everything is escaped; the text of the result is `text` to the character. Waits for another process.
    """
    return _coloured(text, language) or escape(text)


def _coloured(text: str, language: str) -> str | None:
    """The same; None where no process was to be had at this moment."""
    too_much = len(text) > COLOURED_CHARACTERS or any(
        len(line) > COLOURED_LINE for line in text.split("\n")
    )
    if too_much or not text or language not in LANGUAGES:
        return escape(text)
    answer = _colouring.ask(text, language, {"text": text, "language": language})
    return None if answer is None else str(answer.get("html", "")) or escape(text)


class Blocks:
    """The blocks of code of one text. Once one was turned away, the others are shown plain unasked: their
    turns would be waited for one by one."""

    def __init__(self) -> None:
        self.turned_away = False
        self._drawn = 0

    def block(self, text: str, label: str) -> str:
        """A block with its header, `label` being the language as its author wrote it; of a diagram its
        picture, with the code folded below."""
        if label.lower() == diagrams.LANGUAGE and self._drawn < diagrams.MOST:
            self._drawn += 1
            return self._diagram(text, label)
        coloured = None if self.turned_away else _coloured(text, language_named(label))
        self.turned_away = coloured is None
        return _figure(label, escape(text) if coloured is None else coloured)

    def _diagram(self, text: str, label: str) -> str:
        picture = None if self.turned_away else diagrams.picture_of(text)
        self.turned_away = picture is None
        code = _figure(label, escape(text))
        if not picture:
            return code
        summary = escape(_("Source of the diagram"))
        return f'{picture}<details class="source"><summary>{summary}</summary>{code}</details>\n'


def _figure(label: str, code: str) -> str:
    copy = escape(_("Copy code"))
    wrap = (
        f'<span class="wrap-on">{escape(_("Wrap lines"))}</span>'
        f'<span class="wrap-off">{escape(_("Do not wrap lines"))}</span>'
    )
    return (
        '<figure class="code">'
        f'<figcaption><span class="language">{escape(label[:40])}</span>'
        f'<button type="button" class="wrap" data-action="wrap">{wrap}</button>'
        f'<button type="button" class="copy" data-action="copy-code" aria-label="{copy}">'
        f"{escape(_('Copy'))}</button></figcaption>"
        f'<pre tabindex="0"><code class="highlight">{code}</code></pre>'
        "</figure>\n"
    )
