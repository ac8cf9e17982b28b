"""Nothing that anybody writes makes the others wait: the event loop goes on while it is rendered."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import pytest

from agentsite import pages
from conversations.redaction import redacted_text
from conversations.rendering.code import highlighted
from conversations.rendering.markdown import to_html
from conversations.rendering.math import to_mathml
from harness.commandwords import LONGEST, all_words, read, simple_command
from harness.content import Base64Source, Image
from harness.errors import Busy
from harness.foreignjson import Unreadable, read_json
from net import lookups
from net.lookups import UnknownHost, judged_in_time
from tests.heartbeat import MOST_SECONDS, longest_stall
from tests.hostile import CODE, COMMANDS, JSON, LOOKS_LIKE_SECRETS, MARKDOWN, SLOW_TO_COLOUR
from tests.pictures import coded, picture
from tools_app import isolation, media
from tools_app.media import first_fault

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


# --- request threads ------------------------------------------------------------------------------


def dear(side: int) -> Image:
    return Image(source=Base64Source(media_type="image/png", data=coded(picture(side=side))))


async def asked_meanwhile(work: Callable[[int], object], times: int) -> tuple[list[object], float]:
    """What came of `times` requests that do `work`, and how long another one waited for a thread."""
    loop = asyncio.get_running_loop()
    at_work = [loop.run_in_executor(pages._threads, work, number) for number in range(times)]
    await asyncio.sleep(0.3)
    began = time.perf_counter()
    await loop.run_in_executor(pages._threads, lambda: None)
    waited = time.perf_counter() - began
    return await asyncio.gather(*at_work, return_exceptions=True), waited


async def test_pictures_that_hang_their_reader_keep_no_other_request_waiting(
    tmp_path, monkeypatch, settings
):
    """More requests than there are threads; the readers work for the whole time that they have."""
    (tmp_path / "media.py").write_text("while True: pass")
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    settings.AGENTSITE_MEDIA_SECONDS = 2
    sent = [dear(50 + number) for number in range(40)]
    outcomes, waited = await asked_meanwhile(
        lambda number: first_fault([sent[number]], who=number % 7), len(sent)
    )
    assert waited < 1
    refused = [each for each in outcomes if isinstance(each, Busy)]
    assert len(refused) == len(sent) - media.AT_ONCE
    assert (refused[0].code, bool(refused[0].hint)) == ("busy", True)
    assert refused[0].retry_after > 0


def test_one_person_takes_one_place_and_leaves_it_when_her_files_were_looked_at():
    with media._for_requests.place("alice"):
        with pytest.raises(Busy, match="of yours"):
            first_fault([dear(43)], who="alice")
        assert first_fault([dear(43)], who="bob") is None
        assert first_fault([dear(43)], who="alice") is None  # known by now: nothing is opened
    assert first_fault([dear(44)], who="alice") is None


async def test_names_of_which_nobody_says_anything_keep_no_other_request_waiting(monkeypatch):
    answered = threading.Event()

    def look_up(*_args: object, **_named: object) -> list[object]:
        answered.wait(20)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    def asked(number: int) -> object:
        began = time.perf_counter()
        with contextlib.suppress(UnknownHost):
            judged_in_time(f"slow{number}.example", 443, lambda *_asked: None, seconds=1)
            return "known"
        return time.perf_counter() - began

    try:
        spent, waited = await asked_meanwhile(asked, 40)
    finally:
        answered.set()
    assert waited < 0.5
    assert sorted(round(float(str(each))) for each in spent) == [0] * 36 + [1] * 4
    for _place in range(
        lookups.AT_ONCE
    ):  # what the system was asked for is over, and so is its place
        assert lookups._looking.acquire(timeout=5)
    lookups._looking.release(lookups.AT_ONCE)
