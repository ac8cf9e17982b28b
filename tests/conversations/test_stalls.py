"""Nothing that anybody writes makes the others wait: the event loop goes on while it is rendered."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from html import escape
from typing import Any

import pytest

from agentsite import pages
from conversations import search
from conversations.search import Phrase
from harness.content import Base64Source, Image
from harness.errors import Busy
from harness.redaction import redacted_text
from net import lookups
from net.lookups import UnknownHost, judged_in_time
from reading.commandwords import LONGEST, all_words, read, simple_command
from reading.foreignjson import Unreadable, read_json
from rendering.code import highlighted
from rendering.markdown import to_html
from rendering.math import to_mathml
from tests.heartbeat import is_bearable, longest_stall
from tests.hostile import CODE, COMMANDS, JSON, LOOKS_LIKE_SECRETS, MARKDOWN, SLOW_TO_COLOUR
from tests.patience import PATIENCE
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
    "the place of a search": (
        search._place,
        ("a " * 49_000, [Phrase("a " * 98 + "b"), *("ab", "cd", "ef")]),
    ),
    "a formula": (partial(to_mathml, display=True), ("{" * 900 + "x" + "}" * 900,)),
    "secrets": (redacted_text, (LOOKS_LIKE_SECRETS["a-a-a"],)),
}


@pytest.mark.parametrize("name", IN_THREADS)
async def test_the_loop_goes_on_while_it_is_done_in_threads(name: str) -> None:
    function, given = IN_THREADS[name]
    await asyncio.to_thread(to_html, "a" * 4_000)  # the process is there

    async def run() -> None:
        await asyncio.gather(*(asyncio.to_thread(function, *given) for _turn in range(AT_ONCE)))

    assert await is_bearable(await longest_stall(run))


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

    assert await is_bearable(await longest_stall(run))


def test_a_text_too_dear_to_read_is_shown_plain_whenever_it_is_shown() -> None:
    for name in ("lines behind many quotes", "a few lines behind many quotes",
                 "one long address used often", "displayed formulas without an end"):  # fmt: skip
        text = MARKDOWN[name]
        assert to_html(text) == to_html(text) == f'<div class="plain">{escape(text)}</div>', name


# --- request threads ------------------------------------------------------------------------------


def dear(side: int) -> Image:
    return Image(source=Base64Source(media_type="image/png", data=coded(picture(side=side))))


@asynccontextmanager
async def asked_meanwhile(
    work: Callable[[int], object], times: int, hanging: int
) -> AsyncIterator[list[asyncio.Future[object]]]:
    """`times` requests do `work`, of which all but `hanging` come to an end: these. Another request was
    answered meanwhile."""
    loop = asyncio.get_running_loop()
    at_work = [loop.run_in_executor(pages._threads, work, number) for number in range(times)]
    async with asyncio.timeout(PATIENCE):
        await loop.run_in_executor(pages._threads, lambda: None)
        while len(ended := [each for each in at_work if each.done()]) < times - hanging:
            await asyncio.wait(set(at_work) - set(ended), return_when=asyncio.FIRST_COMPLETED)
    yield ended
    await asyncio.gather(*at_work, return_exceptions=True)


async def test_pictures_that_hang_their_reader_keep_no_other_request_waiting(
    tmp_path, monkeypatch, settings
):
    """More requests than there are threads; the readers work for as long as the test lets them."""
    over = tmp_path / "over"
    (tmp_path / "media.py").write_text(f"import os\nwhile not os.path.exists({str(over)!r}): pass")
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    settings.AGENTSITE_MEDIA_SECONDS = 10 * PATIENCE
    sent = [dear(50 + number) for number in range(40)]
    try:
        async with asked_meanwhile(
            lambda number: first_fault([sent[number]], who=number % 7), len(sent), media.AT_ONCE
        ) as ended:
            refused = [each.exception() for each in ended]
            over.touch()
    finally:
        over.touch()
    assert len(refused) == len(sent) - media.AT_ONCE
    for refusal in refused:
        assert isinstance(refusal, Busy)
        assert (refusal.code, bool(refusal.hint)) == ("busy", True)
        assert refusal.retry_after > 0


def test_one_person_takes_one_place_and_leaves_it_when_her_files_were_looked_at():
    with media._for_requests.place("alice"):
        with pytest.raises(Busy, match="of yours"):
            first_fault([dear(43)], who="alice")
        assert first_fault([dear(43)], who="bob") is None
        assert first_fault([dear(43)], who="alice") is None  # known by now: nothing is opened
    assert first_fault([dear(44)], who="alice") is None


@pytest.fixture
def silence(monkeypatch) -> Iterator[threading.Event]:
    """Name servers say nothing until this is set."""
    answered = threading.Event()

    def look_up(*_args: object, **_named: object) -> list[object]:
        answered.wait(10 * PATIENCE)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield answered
    answered.set()
    # What the system was asked for is over, and so is its place.
    for _place in range(lookups.AT_ONCE):
        assert lookups._looking.acquire(timeout=PATIENCE)
    lookups._looking.release(lookups.AT_ONCE)


def looked_up(number: int, seconds: float = 10 * PATIENCE) -> None:
    with pytest.raises(UnknownHost):
        judged_in_time(f"slow{number}.example", 443, lambda *_asked: None, seconds=seconds)


async def test_names_of_which_nobody_says_anything_keep_no_other_request_waiting(silence):
    async with asked_meanwhile(looked_up, 40, lookups.AT_ONCE) as ended:
        assert [each.exception() for each in ended] == [None] * 36
        silence.set()


def test_a_name_of_which_nobody_says_anything_is_given_up(silence):
    looked_up(1, seconds=0.01)
    assert not silence.is_set()
