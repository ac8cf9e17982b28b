"""Ends of background commands are told to the agent once, wherever they fall."""

from __future__ import annotations

import asyncio

from harness.events import BackgroundFinished, InputTaken
from harness.history import BACKGROUND_TURNS
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said
from tests.patience import PATIENCE


def ended(number: int = 1, **more) -> BackgroundFinished:
    given = {"state": "completed", "exit_code": 0, "tail": "4 passed", **more}
    return BackgroundFinished(background_id=f"bg_{number}", command="make test", **given)


def scripted(*replies) -> Scripted:
    return Scripted(list(replies))


def told(bench: Bench) -> list[str]:
    return [
        part.text
        for message in bench.requests[-1].messages
        for part in message.parts
        if "background command" in getattr(part, "text", "")
    ]


async def test_an_end_begins_a_turn_when_the_agent_is_at_rest():
    bench = Bench(scripted(reply("Started."), reply("All green.")))
    await bench.run(said("Run the tests."))
    await bench.run(ended())
    (words,) = told(bench)
    assert "bg_1 has ended: completed, exit code 0" in words
    assert "4 passed" in words
    await bench.run()
    assert len(bench.requests) == 2, "it is told once"


async def test_an_end_joins_the_turn_under_way_at_its_next_tool_boundary():
    began, go_on = asyncio.Event(), asyncio.Event()

    async def look(_context, _arguments):
        began.set()
        await go_on.wait()
        return "seen"

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")), [make_tool("look", look)]
    )
    running = bench.start(said("Go."))
    await began.wait()
    bench.journal.post(ended())
    go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    assert len(told(bench)) == 1
    assert [event.steered for event in bench.events(InputTaken)] == [False, True]
    assert len(bench.requests) == 2, "it had no turn of its own"


async def test_commands_that_wake_an_agent_again_and_again_come_to_an_end():
    bench = Bench(Scripted(lambda _request: reply("Again.")))
    await bench.run(said("Go."))
    for number in range(BACKGROUND_TURNS + 3):
        await bench.run(ended(number))
    assert len(bench.requests) == 1 + BACKGROUND_TURNS
    await bench.run(said("And now?"))
    words = "\n".join(told(bench))
    assert f"bg_{BACKGROUND_TURNS + 2}" in words, "what was held back is told with the next turn"


async def test_the_end_of_a_lost_command_says_so():
    bench = Bench(
        scripted(
            reply("Lost."),
        )
    )
    await bench.run(ended(state="lost", exit_code=None, detail="The server was restarted."))
    (words,) = told(bench)
    assert "lost" in words
    assert "The server was restarted." in words
