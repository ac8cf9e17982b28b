"""How a request's window is shared out, and what a step of a long conversation sends anew."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agentconfig import Limits
from harness.content import Base64Source, Image, Text, text_of
from harness.contextplan import CHARACTERS, SHARES, Portion, allotted, fit, share_out
from harness.errors import BadRequest
from harness.estimates import prompt_tokens_at_most
from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    Keepsake,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    TodosUpdated,
)
from harness.messages import ToolAnswer, Usage
from harness.tools import ToolOutput
from providers.anthropic_request import request_body
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said, scripted
from tools_app.builtin.rereading import TOOLS as REREADING
from tools_app.builtin.todos import TOOLS as TODO_TOOLS
from tools_app.catalogue import all_tools


def test_each_source_is_cut_to_its_share_keeps_its_beginning_and_says_how_to_read_the_rest():
    window = 1_000
    most = int(window * SHARES["skills"] * CHARACTERS)
    head = fit(
        [
            Portion("system", "Be kind.", 100),
            Portion("skills", "s" * most + "rest", 10_000, reread="search_skills finds the others"),
            Portion("skills", "And one more.", 10_000),
            Portion("recall", "", 100),
        ],
        window,
    )
    assert head.text.startswith(
        "Be kind.\n\n" + "s" * most + "\n[4 characters are left out here; search"
    )
    assert "And one" not in head.text, "all of a source share its room"
    assert set(head.characters) == {"system", "skills"}
    assert head.cut[0] == "skills: 4 characters; search_skills finds the others"


def test_a_plan_tells_sources_apart_and_adds_up():
    plan = share_out(
        window=1_000,
        reserve=250,
        head={"system": 300, "skills": 100},
        at_most={"system": 200, "tools": 100, "history": 0, "question": 20},
        rate=0.5,
    )
    assert plan.tokens == {"system": 75, "skills": 25, "tools": 50, "question": 10}
    assert (plan.total, plan.free) == (160, 590)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.integers(0, 3_000))
def test_what_is_allotted_never_exceeds_the_room_and_small_ones_get_all(sizes, room):
    given_ = allotted(sizes, room)
    assert sum(given_) <= max(room, 0)
    assert all(got <= wanted for got, wanted in zip(given_, sizes, strict=True))
    if sum(sizes) <= room:
        assert given_ == sizes


async def test_the_plan_is_stored_with_its_request_and_follows_what_the_service_counts():
    counted = Usage(input_tokens=600, output_tokens=5)
    bench = Bench(
        scripted(reply(call("look", text="x" * 2_000), usage=counted), "Done."),
        [make_tool("look")],
        limits=Limits(context_window=50_000),
    )
    await bench.run(said("Go."))
    first, second = (start.plan for start in bench.events(SpanModelRequestStart))
    assert (first.window, first.reserve) == (50_000, 12_500)
    assert set(first.tokens) == {"system", "tools", "history", "question"}
    assert second.tokens["results"] > 900
    at_most = bench.events(SpanModelRequestStart)[1].prompt_tokens_at_most
    assert at_most == prompt_tokens_at_most(bench.requests[1])
    assert second.total == pytest.approx(at_most * 1.0, rel=0.01), "it counted more than estimated"


async def test_results_of_one_step_that_no_window_would_hold_lose_their_middle_and_only_there():
    long = make_tool("long", lambda _context, given: given["text"] * 20_000)
    bench = Bench(
        scripted(
            reply(call("long", text="a"), call("long", text="b"), call("look", text="c")), "Done."
        ),
        [long, make_tool("look"), *REREADING],
        limits=Limits(context_window=16_000),
    )
    await bench.run(said("Go."))
    parts = bench.requests[-1].messages[-1].parts
    texts = [text_of(part.content) for part in parts if isinstance(part, ToolAnswer)]
    assert texts[2] == "look: c"
    for text, letter in zip(texts[:2], "ab", strict=True):
        assert text.startswith(letter * 100)
        assert text.endswith(letter * 100)
        assert "read_events with call sevt_" in text
    assert sum(map(len, texts)) < 16_000 * 0.25 * CHARACTERS + 500


async def test_of_images_of_one_step_those_are_left_out_that_the_window_has_no_room_for():
    image = Image(source=Base64Source(media_type="image/png", data="aGk="))
    pictures = make_tool("pictures", lambda _context, _given: ToolOutput((image,) * 3))
    bench = Bench(
        scripted(reply(call("pictures", text="a"), call("look", text="b" * 400)), "Done."),
        [pictures, make_tool("look")],
        limits=Limits(context_window=16_000),
    )
    await bench.run(said("Go."))
    shown, looked = (part.content for part in bench.requests[-1].messages[-1].parts)
    assert [isinstance(block, Image) for block in shown] == [True, True, False]
    assert "left out" in shown[2].text
    assert text_of(looked) == "look: " + "b" * 400


def _at_work(steps: int, *, size: int, window: int) -> Bench:
    """An agent with the built-in tools that looks `steps` times, and is told `size` characters each time; its
    service counts three and a half bytes a token."""

    def answer(request):
        tokens = sum(len(text_of_part(part)) for m in request.messages for part in m.parts)
        usage = Usage(input_tokens=int((tokens + told) / 3.5), output_tokens=60)
        if request.purpose == "compaction":
            return reply("What was found so far. " * 40, usage=usage)
        done = next(counted)
        if done >= steps:
            return reply("Done.", usage=usage)
        return reply(f"Step {done}.", call("look", text=str(done)), usage=usage)

    counted = itertools.count()
    told = sum(len(str(tool.spec)) for tool in all_tools().values())
    look = make_tool("look", lambda _context, given: f"{given['text']} " + "w " * (size // 2))
    return Bench(
        Scripted(answer),
        [look, *all_tools().values()],
        limits=Limits(context_window=window, steps=1_000, token_budget=10**9),
    )


def text_of_part(part) -> str:
    match part:
        case Text():
            return part.text
        case ToolAnswer():
            return text_of(part.content)
        case _:
            return str(getattr(part, "input", ""))


def _sent(request) -> list[bytes]:
    """The request as the service's cache reads it, piece by piece."""
    body = request_body(request, provider="anthropic", caching=False)
    return [orjson.dumps(body.get("tools")), orjson.dumps(body.get("system"))] + [
        orjson.dumps(message) for message in body["messages"]
    ]


def _cached_share(requests) -> float:
    """The share of what was sent from step 3 on that the request before had sent in the same place."""
    cached = whole = 0
    for before, request in itertools.pairwise([_sent(each) for each in requests][1:]):
        same = itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(before, request, strict=False)
        )
        cached += sum(len(piece) for piece, _ in same)
        whole += sum(map(len, request))
    return cached / whole


@pytest.mark.parametrize(("size", "window"), [(3_000, 200_000), (12_000, 200_000), (2_000, 32_000)])
async def test_over_fifty_steps_nine_tenths_of_the_input_are_cached_from_the_third_step_on(
    size, window
):
    bench = _at_work(50, size=size, window=window)
    await bench.run(said("Look at everything."))
    requests = [each for each in bench.requests if each.purpose == "main"]
    assert len(requests) == 51
    share = _cached_share(requests)
    print(f"{size} characters a step, {window:,} tokens: {share:.1%} cached")
    assert share >= 0.9


async def test_a_conversation_of_400_steps_works_to_its_end_in_a_window_of_32k():
    bench = _at_work(400, size=3_000, window=32_000)
    await bench.run(said("Look at everything."))
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."
    starts = [each for each in bench.events(SpanModelRequestStart) if each.purpose == "main"]
    assert len(starts) == 401
    assert all(start.plan.free >= 0 for start in starts), "none was too long"
    ends = bench.events(SpanModelRequestEnd)
    assert all(each.model_usage.input_tokens < 32_000 - 8_000 for each in ends)
    summaries = bench.events(AgentThreadContextCompacted)
    assert summaries
    assert not any(each.fallback for each in summaries)
    main = [each for each in bench.requests if each.purpose == "main"]
    print(f"{len(summaries)} summaries, {_cached_share(main):.1%} cached")


async def test_what_is_kept_survives_every_summary_word_for_word():
    def reads(_context, given):
        name = given["text"]
        return ToolOutput(f"How {name} is done: exactly so.", keeps=Keepsake(name=f"skill {name}"))

    todos = {"content": "Ship it", "active_form": "Shipping it", "status": "in_progress"}
    looks = [call("look", text="z" * 3_000) for _ in range(40)]
    script = [
        reply(call("skill", text="pdf"), call("todo_write", todos=[todos])),
        *(reply(each, usage=Usage(2_000 * (n % 8), 10)) for n, each in enumerate(looks)),
        reply("Done."),
    ]
    replies = iter(script)

    def answer(request):
        return reply("Summed up.") if request.purpose == "compaction" else next(replies)

    bench = Bench(
        Scripted(answer),
        [make_tool("skill", reads), make_tool("look"), *TODO_TOOLS],
        limits=Limits(context_window=12_000, output_tokens=1_000, token_budget=10**9),
    )
    await bench.run(said("Go, and mind the exact words."))
    assert len(bench.events(AgentThreadContextCompacted)) >= 3
    assert bench.events(TodosUpdated)
    for request in bench.requests[-3:]:
        if request.purpose == "main":
            opening = "\n".join(text_of_part(part) for part in request.messages[0].parts)
            assert "How pdf is done: exactly so." in opening
            assert "[>] Ship it" in opening
            assert "Go, and mind the exact words." in opening
            assert "Summed up." in opening


async def test_a_summary_and_the_end_of_its_request_are_one_commit():
    """What was paid for is never asked for again, wherever the process dies."""
    commits: list[list[str]] = []

    def note(_journal, entries):
        commits.append([each.event.type for each in entries])

    bench = Bench(
        scripted(
            *(reply(call("look", text="x"), usage=Usage(1_000, 10)) for _ in range(5)),
            reply(call("look", text="y"), usage=Usage(9_000, 10)),
            reply("A summary.", usage=Usage(700, 30)),
            reply("Done."),
        ),
        [make_tool("look")],
        limits=Limits(context_window=10_000),
    )
    bench.journal.hook = note
    await bench.run(said("Go."))
    assert ["span.model_request_end", "agent.thread_context_compacted"] in commits
    (event,) = bench.events(AgentThreadContextCompacted)
    assert (event.usage.input_tokens, event.usage.output_tokens) == (700, 30)
    assert event.tokens_before == 9_010
    (start,) = [
        entry
        for entry in bench.entries(SpanModelRequestStart)
        if entry.event.purpose == "compaction"
    ]
    assert event.model_request_id == start.uid


async def test_what_a_failed_summary_dropped_is_named_with_the_tool_that_reads_it_again():
    bench = Bench(
        scripted(
            *(reply(call("look", text="x"), usage=Usage(1_000, 10)) for _ in range(5)),
            reply(call("look", text="y"), usage=Usage(9_000, 10)),
            BadRequest("No."),
            reply(call("read_events", types=["agent.tool_result"], limit=2)),
            reply("Done."),
        ),
        [make_tool("look"), *REREADING],
        limits=Limits(context_window=10_000),
    )
    await bench.run(said("Go."))
    (event,) = bench.events(AgentThreadContextCompacted)
    assert event.fallback
    assert "read_events" in event.summary
    last = bench.requests[-1].messages[-1].parts[0]
    assert "look: y" in text_of(last.content)
