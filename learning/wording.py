"""What a model is asked when it reads a conversation, and what of its answer is a learning. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.content import Text
from harness.messages import Message, ModelRequest
from harness.texts import Texts
from memory.actions.remembering import LEARNABLE
from memory.models import Memory
from reading.foreignjson import Unreadable, read_json

from .models import Analysis
from .stretches import Said, Stretch

OUTPUT_TOKENS = 800
MOST = 3
"""Learnings of one stretch."""
TEXT = 400
"""Characters of one."""
KEY = 120
KNOWN = 200
"""Characters of a memory that the model is told to be known."""
ANSWER = 20_000
"""Characters of an answer that are read."""
FORM = (
    'Answer with JSON alone: {"learnings": [{"kind": "fact", "text": "…", "key": "…", "message": 1}]}. '
    "`kind` is fact, preference, lesson or correction. `text` is one sentence in the person's language that "
    "is understood without the conversation. `key` says in a few words what it is about (office-city); it "
    "replaces what is known under the same kind and key. `message` is the number of the message that it is "
    'from. Nothing to learn: {"learnings": []}.'
)
"""What `learnings_in` reads. Not among the texts that staff may replace."""
_KINDS = frozenset(str(kind) for kind in LEARNABLE)


@dataclass(frozen=True, slots=True)
class Learning:
    kind: str
    text: str
    key: str
    message: int
    """The number under which the model saw where it is from, counted from 1."""


def learning_request(
    stretch: Stretch, known: Iterable[Memory], *, texts: Texts, model: str
) -> ModelRequest:
    parts = [_listed("known", [_line(each) for each in known])]
    if stretch.before:
        parts.append(_listed("before", [stretch.before]))
    parts.append(_listed("conversation", _numbered(stretch.said)))
    return ModelRequest(
        model=model,
        system=f"{texts.learning_request}\n\n{FORM}",
        messages=(Message("user", (Text(text="\n".join(filter(None, parts))),)),),
        max_output_tokens=OUTPUT_TOKENS,
        purpose=Analysis.PURPOSE,
    )


def _listed(name: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    inner = "\n".join(lines).replace("</", "‹/")  # which ends no section
    return f"<{name}>\n{inner}\n</{name}>"


def _line(memory: Memory) -> str:
    return f"- {memory.kind} {memory.key or '–'}: {' '.join(memory.content.split())[:KNOWN]}"


def _numbered(said: Sequence[Said]) -> list[str]:
    return [
        f"[{number}] {'person' if each.by_person else 'agent'}: {each.text}"
        for number, each in enumerate(said, 1)
    ]


def learnings_in(answer: str) -> list[Learning]:
    """Those that are whole, as many as count. Raises `Unreadable` for what is no such JSON at all."""
    value = read_json(_bare(answer), limit=ANSWER, nesting=4, parts=100, once=True)
    if not isinstance(value, dict) or not isinstance(value.get("learnings"), list):
        raise Unreadable("it has no list of learnings")
    found = [_learning(each) for each in value["learnings"][:MOST]]
    return [each for each in found if each is not None]


def _bare(answer: str) -> str:
    """Without the fence that models like to put around JSON."""
    text = answer[: ANSWER + 1].strip()
    if text.startswith("```") and text.endswith("```") and len(text) > 6:
        return text[3:-3].removeprefix("json").strip()
    return text


def _learning(value: Any) -> Learning | None:
    if not isinstance(value, dict) or set(value) - {"kind", "text", "key", "message"}:
        return None
    kind, text, key = value.get("kind"), value.get("text"), value.get("key", "")
    number = value.get("message")
    if not isinstance(kind, str) or not isinstance(text, str) or not isinstance(key, str):
        return None
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    text = " ".join(text.split())
    if kind not in _KINDS or not text or len(text) > TEXT or len(key) > KEY:
        return None
    return Learning(kind, text, key, number)
