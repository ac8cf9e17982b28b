"""Nothing that anybody writes makes the others wait: the event loop goes on while it is rendered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import pytest

from conversations.redaction import redacted_text
from conversations.rendering.code import highlighted
from conversations.rendering.markdown import to_html
from conversations.rendering.math import to_mathml
from harness.commandwords import LONGEST, all_words, read, simple_command
from harness.foreignjson import Unreadable, read_json
from tests.heartbeat import MOST_SECONDS, longest_stall
from tests.hostile import CODE, COMMANDS, JSON, LOOKS_LIKE_SECRETS, MARKDOWN, SLOW_TO_COLOUR

AT_ONCE = 2
"""Threads that do the same, as when several people look at one page."""


def readable(text: str) -> Any:
    try:
        return read_json(text)
    except Unreadable:
        return None


IN_THREADS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        f"Markdown: {name}": (to_html, (MARKDOWN[name],))
        for name in (
            "rows of a table",
            "lines behind many quotes",
            "a few lines behind many quotes",
            "one long address used often",
        )
    },
    **{f"code: {name}": (highlighted, (CODE[name][1], CODE[name][0])) for name in SLOW_TO_COLOUR},
    "a formula": (partial(to_mathml, display=True), ("{" * 900 + "x" + "}" * 900,)),
    "secrets": (redacted_text, (LOOKS_LIKE_SECRETS["a-a-a"],)),
}


@pytest.mark.parametrize("name", IN_THREADS)
async def test_the_loop_goes_on_while_it_is_done_in_threads(name: str) -> None:
    function, given = IN_THREADS[name]
    await asyncio.to_thread(to_html, "a" * 4_000)  # the process is there

    async def run() -> None:
        await asyncio.gather(*(asyncio.to_thread(function, *given) for _turn in range(AT_ONCE)))

    assert await longest_stall(run) <= MOST_SECONDS


ON_THE_LOOP: dict[str, tuple[Callable[..., Any], str]] = {
    **{
        f"{function.__name__}: {name}": (function, (text * LONGEST)[:LONGEST])
        for function in (
            read.__wrapped__,
            simple_command,
            all_words.__wrapped__,
        )
        for name, text in COMMANDS.items()
    },
    **{f"JSON: {name}": (readable, text) for name, text in JSON.items()},
}


@pytest.mark.parametrize("name", ON_THE_LOOP)
async def test_what_is_done_on_the_loop_itself_is_soon_over(name: str) -> None:
    function, text = ON_THE_LOOP[name]

    async def run() -> None:
        function(text)

    assert await longest_stall(run) <= MOST_SECONDS


def test_a_text_too_dear_to_read_is_shown_plain_whenever_it_is_shown() -> None:
    for name in ("lines behind many quotes", "a few lines behind many quotes",
                 "one long address used often", "displayed formulas without an end"):  # fmt: skip
        text = MARKDOWN[name]
        assert to_html(text) == to_html(text) == f'<div class="plain">{escape(text)}</div>', name
