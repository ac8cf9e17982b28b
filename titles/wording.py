"""What a model is asked when it is to name a conversation, and what of its answer becomes the title. Pure."""

from __future__ import annotations

from harness.content import Text
from harness.messages import Message, ModelRequest
from harness.texts import Texts
from wire.naming import one_line

from .models import PURPOSE

SHORT = 40
"""Characters of a message that is its own title."""
READ = 2_000
"""Characters of the message that the model sees."""
LONGEST = 80
"""Characters of a title that a model gave."""
OUTPUT_TOKENS = 100


def title_request(words: str, *, texts: Texts, model: str) -> ModelRequest:
    return ModelRequest(
        model=model,
        system=texts.title_request,
        messages=(Message("user", (Text(text=words[:READ]),)),),
        max_output_tokens=OUTPUT_TOKENS,
        purpose=PURPOSE,
    )


def title_in(answer: str) -> str:
    """Its first line as plain words; empty where there is none that could be a title."""
    for line in answer[: READ * 2].splitlines():
        words = one_line(line).strip("#*_`\"'“”„«» ")
        if words:
            break
    else:
        return ""
    words = words.removesuffix(".").rstrip()
    return words if len(words) <= LONGEST else ""
