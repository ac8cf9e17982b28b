"""What a model is asked when it is to write the short text of a brief, and what of its answer becomes that
text: plain words. Pure.

The lines of a brief repeat what agents, tools and strangers wrote. So nothing in the answer leads anywhere,
whoever made it say so: addresses go, names of hosts are written so that no mail program makes a link of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import get_language_info

from harness.content import Text
from harness.messages import Message, ModelRequest, ModelSettings
from harness.redaction import redacted_text
from harness.texts import Texts

from .contents import Contents, Line

PURPOSE = "brief"
"""Of the model call, in usage."""
OUTPUT_TOKENS = 600
READ = 16_000
"""Characters of the lines that the model sees."""
READ_LINE = 400
ANSWER = 4_000
"""Characters of an answer that are read."""
LONGEST = 1_200
"""Characters of the text."""
MOST_LINES = 12
LEFT_OUT = "…"

_UNPRINTED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_DOTS = str.maketrans({"\uff0e": ".", "\u2024": ".", "\uff61": ".", "\u2028": "\n", "\u2029": "\n"})
# All of these see at most `ANSWER` characters, and no part of them can match in two ways.
_LINKED = re.compile(r"!?\[([^\[\]\n]{0,300})\](?:\([^()\n]{0,1000}\)|\[[^\[\]\n]{0,100}\])")
_DEFINED = re.compile(r"(?m)^\s{0,3}\[[^\[\]\n]{1,100}\]:.*$")
_TAG = re.compile(r"</?[A-Za-z!][^<>]{0,1000}>")
_ADDRESS = re.compile(
    r"(?i)\b(?:[a-z][a-z0-9+.\-]{0,20}://|www\.|(?:mailto|tel|sms|javascript|data|file|cid):(?=\S))\S*"
)
_MAIL = re.compile(r"[^\s@<>()]{1,32}@[^\s@<>()]+\.[^\s@<>()]+")
_HOST = re.compile(r"(?<![\w\-])(?:[\w\-]++\.){1,10}[^\W\d_]{2,24}\b(?P<more>[:/?#]\S+)?")
_LIST = re.compile(r"^[#>*+\-\s]+")
_EMPHASIS = re.compile(r"\*{1,3}|`{1,3}|~~|(?<!\w)_{1,3}|_{1,3}(?!\w)")
FILES = frozenset(
    "css csv docx html jpg js json log pdf png pptx sql toml txt xlsx xml yaml yml".split()  # noqa: SIM905
)
"""Last parts of names that are those of files, and of no hosts."""


def brief_request(
    contents: Contents,
    *,
    language: str,
    marker: str,
    texts: Texts,
    model: str,
    settings: ModelSettings,
) -> ModelRequest:
    """`marker` is made now, so that no line can close the report and speak in its own name."""
    name = get_language_info(language)["name"]
    facts = redacted_text(facts_of(contents))
    parts = (
        f"<report {marker}>\n{facts}\n</report {marker}>",
        f"Write in {name}. Answer with the text alone: no headings, lists, links or addresses.",
    )
    return ModelRequest(
        model=model,
        system=texts.brief_request,
        messages=(Message("user", (Text(text="\n\n".join(parts)),)),),
        max_output_tokens=OUTPUT_TOKENS,
        settings=settings,
        purpose=PURPOSE,
    )


def facts_of(contents: Contents) -> str:
    """The lines as the model sees them, without a path or an id."""
    parts = (
        ("Waits for the person", contents.waits),
        ("Failed", contents.failed),
        ("Ran and ended well", contents.ran),
        ("Left out or paused", contents.skipped),
        ("Changed", contents.changed),
        ("Budgets, how far used up", contents.budgets),
    )
    spent = contents.spent
    found = [f"{title}:\n" + "\n".join(_told(lines)) for title, lines in parts if lines]
    cost = f"Cost: {spent.cost_text} in {spent.calls} model calls."
    return f"{cost}\n\n" + "\n\n".join(found)[:READ]


def _told(lines: Iterable[Line]) -> Iterable[str]:
    for line in lines:
        many = f" ({line.count} %)" if line.kind == "budget" else ""
        if line.kind != "budget" and line.count > 1:
            many = f" ({line.count} times)"
        said = " · ".join(filter(None, (line.name, line.kind, line.wording, line.words)))
        yield f"- {' '.join(said.split())[:READ_LINE]}{many}"


def text_in(answer: str) -> str:
    """As plain words in a few lines; empty where there are none."""
    text = _UNPRINTED.sub("", answer[:ANSWER].translate(_DOTS))
    for _around in range(2):  # a picture may stand in a link
        text = _LINKED.sub(r"\1", text)
    text = _TAG.sub("", _DEFINED.sub("", text))
    text = _MAIL.sub(LEFT_OUT, _ADDRESS.sub(LEFT_OUT, text))
    text = _HOST.sub(_unlinked, text)
    lines = (_EMPHASIS.sub("", _LIST.sub("", line)) for line in text.splitlines())
    kept = [" ".join(line.split()) for line in lines if any(map(str.isalnum, line))]
    return _short("\n".join(kept[:MOST_LINES]))


def _unlinked(found: re.Match[str]) -> str:
    name = found.group().removesuffix(found["more"] or "")
    if found["more"]:
        return LEFT_OUT
    if name.rpartition(".")[2].lower() in FILES:
        return name
    return name.replace(".", "[.]")


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    cut = text[:LONGEST]
    return cut[: max(cut.rfind(" "), LONGEST // 2)].rstrip() + LEFT_OUT
