"""What is too long for a prompt is kept, and what a stopped call had done is told."""

from __future__ import annotations

import asyncio

from harness.content import Text, as_blocks
from harness.events import AgentToolResult, UserInterrupt
from harness.overflow import HEAD, LIMIT, TAIL, bounded, previewed
from harness.tools import Effect, Outcome, ToolOutput
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said
from tests.patience import PATIENCE


async def test_a_result_at_the_limit_stays_and_one_past_it_is_kept_elsewhere():
    kept: dict[str, tuple[str, bool]] = {}

    async def keep(call_id: str, text: str, untrusted: bool) -> str:
        kept[call_id] = text, untrusted
        return "outputs/x.txt"

    whole = Outcome(as_blocks("x" * 100), is_error=False)
    assert await bounded(whole, "sevt_1", 100, keep) is whole
    assert not kept
    long = "a" * HEAD + "b" * 100 + "c" * TAIL
    foreign = Outcome(as_blocks(long), is_error=True, untrusted=True)
    outcome = await bounded(foreign, "sevt_1", 100, keep)
    (block,) = outcome.content
    assert isinstance(block, Text)
    assert kept == {"sevt_1": (long, True)}
    assert block.text.startswith("a" * HEAD)
    assert block.text.endswith("c" * TAIL)
    assert "100 characters left out; the whole text is in the file outputs/x.txt" in block.text
    assert outcome.is_error


async def test_without_a_place_the_preview_says_that_nothing_was_kept():
    outcome = await bounded(Outcome(as_blocks("x" * (LIMIT + 1)), is_error=False), "s", 0, None)
    assert "could not be kept" in outcome.content[0].text
    assert previewed("x" * 9_000, "").count("x") >= HEAD + TAIL


async def test_every_tool_is_held_to_it_by_the_loop():
    def talk(_context, _arguments):
        return "x" * (LIMIT + 10)

    bench = Bench(
        Scripted([reply(call("talk", text="a")), reply("Done.")]), [make_tool("talk", talk)]
    )
    await bench.run(said("Go."))
    (result,) = bench.events(AgentToolResult)
    assert len(result.content[0].text) < HEAD + TAIL + 200


async def test_a_call_that_is_stopped_tells_what_it_had_done_until_then():
    began = asyncio.Event()

    async def work(context, _arguments):
        began.set()
        await context.stopped()
        return ToolOutput("half of it", is_error=True, stopped=True)

    bench = Bench(
        Scripted([reply(call("work", text="a"))]),
        [make_tool("work", work, effect=Effect.OUTSIDE, in_order=True)],
    )
    running = bench.start(said("Go."))
    await began.wait()
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    (result,) = bench.events(AgentToolResult)
    assert (result.outcome, result.content[0].text) == ("stopped", "half of it")
