"""From the log to the prompt: pairing, order, continuations, shortening, compaction."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.agentconfig import Limits, RoleOverride
from harness.content import (
    Base64Source,
    Block,
    Document,
    PlainTextSource,
    Text,
    UploadedFile,
    text_of,
)
from harness.errors import BadRequest, ContextTooLong, Overloaded
from harness.estimates import prompt_tokens_at_most
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    ContentSetAside,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessageWithdrawn,
    ModelUsage,
    RetryRequested,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    UserCustomToolResult,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    WakeDue,
)
from harness.frontends import FrontEnd, Surrounding
from harness.history import Entry, History
from harness.messages import Elsewhere, Message, ModelRequest, Thinking, ToolAnswer, ToolCall, Usage
from harness.texts import Texts
from harness.transcript import SHORTEN_BATCH, Dialogue, Window, build_messages, remembered
from providers.scripted import call, reply
from tests.harness.bench import Bench, make_tool, said, scripted

TEXTS = Texts()


class Log:
    """Writes a log by hand, also one that no loop would write."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.request = ""

    def add(self, event) -> str:
        entry = Entry(f"sevt_{len(self.entries)}", event, len(self.entries) + 1)
        self.entries.append(entry)
        return entry.uid

    def user(self, text: str) -> None:
        self.add(InputTaken(event_ids=(self.add(said(text)),)))

    def begin(self, **fields) -> None:
        self.request = self.add(SpanModelRequestStart(**fields))

    def end(self, end: str = "end_turn", **usage) -> None:
        self.add(
            SpanModelRequestEnd(
                model_request_start_id=self.request, model_usage=ModelUsage(**usage), end=end
            )
        )

    def say(self, text: str) -> None:
        self.add(AgentMessage(content=(Text(text=text),), model_request_id=self.request))

    def ask(self, name: str = "look") -> str:
        return self.add(AgentToolUse(name=name, input={}, model_request_id=self.request))

    def answer(self, call_id: str, text: str = "ok") -> None:
        self.add(AgentToolResult(tool_use_id=call_id, content=(Text(text=text),)))

    def messages(self, **options):
        return build_messages(self.entries, texts=TEXTS, **options)


def assert_acceptable(messages) -> None:
    """What every service demands of a dialogue."""
    assert [message.role for message in messages] == [
        "user" if place % 2 == 0 else "assistant" for place in range(len(messages))
    ]
    if messages:
        assert messages[-1].role == "user"
    for before, message in zip((None, *messages), messages, strict=False):
        assert message.parts
        answered = [part.call_id for part in message.parts if isinstance(part, ToolAnswer)]
        asked = (
            [part.id for part in before.parts if isinstance(part, ToolCall)]
            if before and message.role == "user"
            else []
        )
        assert answered == asked
        kinds = [isinstance(part, ToolAnswer) for part in message.parts]
        assert kinds == sorted(kinds, reverse=True), "answers stand first"
        there = [part.block for part in message.parts if isinstance(part, Elsewhere)]
        open_uses: list[str] = []
        for block in there:
            if block["type"] == "use":
                open_uses.append(block["id"])
            else:
                open_uses.remove(block["id"])
        assert not open_uses, (
            "no use without what came of it, and nothing that came without its use"
        )


def test_a_call_without_a_result_is_answered_in_the_prompt():
    log = Log()
    log.user("Go.")
    log.begin()
    log.ask()
    log.end("tool_use")
    log.user("And?")
    messages = log.messages()
    assert_acceptable(messages)
    assert messages[-1].parts[0].is_error


def test_a_result_without_a_call_is_left_out():
    log = Log()
    log.user("Go.")
    log.answer("sevt_nobody")
    log.begin()
    log.say("Hello.")
    log.end()
    log.user("And?")
    messages = log.messages()
    assert_acceptable(messages)
    assert not any(isinstance(part, ToolAnswer) for m in messages for part in m.parts)


def test_answers_stand_in_call_order_however_they_came():
    log = Log()
    log.user("Go.")
    log.begin()
    first, second = log.ask(), log.ask()
    log.end("tool_use")
    log.answer(second, "two")
    log.answer(first, "one")
    messages = log.messages()
    assert_acceptable(messages)
    assert [text_of(part.content) for part in messages[-1].parts] == ["one", "two"]


def test_only_the_first_of_two_results_counts():
    log = Log()
    log.user("Go.")
    log.begin()
    asked = log.ask()
    log.end("tool_use")
    log.answer(asked, "first")
    log.answer(asked, "second")
    assert text_of(log.messages()[-1].parts[0].content) == "first"


def test_a_queued_message_is_not_in_the_prompt_until_it_is_taken():
    log = Log()
    log.user("Go.")
    waiting = log.add(said("Later."))
    assert len(log.messages()[-1].parts) == 1
    log.begin()
    log.say("Yes.")
    log.end()
    log.add(InputTaken(event_ids=(waiting,)))
    assert log.messages()[-1].parts == (Text(text="Later."),)


def test_an_empty_log_gives_an_empty_dialogue():
    assert build_messages([], texts=TEXTS) == ()


def test_thinking_goes_back_with_its_signature_and_whose_it_is():
    log = Log()
    log.user("Go.")
    log.begin(provider="anthropic", model="m")
    log.add(AgentThinking(thinking="Hm", signature="s", model_request_id=log.request))
    log.say("Yes.")
    log.end()
    log.user("And?")
    part = log.messages()[1].parts[0]
    assert part == Thinking("Hm", "s", "", "anthropic", "m")


def test_the_prompt_of_a_step_begins_with_the_prompt_of_the_step_before():
    """Prompt caching lives from it."""
    bench_requests = _requests_of_a_long_turn()
    for earlier, later in itertools.pairwise(bench_requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.system == earlier.system
        assert later.tools == earlier.tools


def _requests_of_a_long_turn():
    import asyncio  # noqa: PLC0415

    bench = Bench(
        scripted(*(reply(f"{n}", call("look", text=str(n))) for n in range(6)), reply("Done.")),
        [make_tool("look"), make_tool("also")],
    )
    asyncio.run(bench.run(said("Go.")))
    return bench.requests


def _log_with_results(count: int, *, size: int, prompt: int) -> Log:
    log = Log()
    log.user("Go.")
    for number in range(count):
        log.begin()
        asked = log.ask()
        log.end("tool_use", input_tokens=prompt)
        log.answer(asked, f"{number} " + "x" * size)
    log.begin()
    log.end("tool_use", input_tokens=prompt)
    return log


def _answers(log: Log, **options) -> list[str]:
    return [
        text_of(part.content)
        for message in log.messages(**options)
        for part in message.parts
        if isinstance(part, ToolAnswer)
    ]


def test_only_old_and_long_results_are_shortened_and_the_stored_ones_stay_whole():
    small = Window(tokens=1_000)
    count = SHORTEN_BATCH + 3
    log = _log_with_results(count, size=500, prompt=900)
    answers = _answers(log, window=small)
    shortened = [text.startswith("[Result of look shortened") for text in answers]
    assert shortened == [True] * SHORTEN_BATCH + [False] * 3
    assert all("xxx" in str(e.event) for e in log.entries if isinstance(e.event, AgentToolResult))
    short = _log_with_results(count, size=10, prompt=900)
    assert not any("shortened" in text for text in _answers(short, window=small))


def test_nothing_is_shortened_where_the_service_leaves_old_results_out():
    log = _log_with_results(SHORTEN_BATCH + 3, size=500, prompt=900)
    answers = _answers(log, window=Window(tokens=1_000, shortens=False))
    assert not any("shortened" in text for text in answers)


def test_what_a_front_end_says_with_a_result_takes_the_room_that_it_has_and_is_no_image():
    notes = tuple(Surrounding(description=f"Note {n}", value="x" * 300) for n in range(9))
    scan = Document(source=Base64Source(media_type="application/pdf", data="eA=="))

    def answered(*blocks: Block) -> str:
        log = Log()
        log.user("Go.")
        log.begin()
        asked = log.ask()
        log.end("tool_use")
        log.add(
            UserCustomToolResult(
                custom_tool_use_id=asked, content=blocks, front_end=FrontEnd(context=notes)
            )
        )
        messages = log.messages(window=Window(tokens=12_000))
        (found,) = (p for m in messages for p in m.parts if isinstance(p, ToolAnswer))
        return str(found.content)

    told = answered(Text(text="Shown."))
    assert all(f"Note {n}" in told for n in range(9))
    assert "left out" not in told
    assert "[A document is left out here" in answered(scan, scan)


def test_a_document_that_is_text_is_estimated_by_what_it_says():
    def size(words: str) -> int:
        block = Document(source=PlainTextSource(data=words))
        messages = (Message("user", (block,)),)
        return prompt_tokens_at_most(ModelRequest(model="m", system="", messages=messages))

    assert size("x" * 100_000) - size("x" * 200) == 49_900
    assert size("x" * 200) < 1_000


def test_nothing_is_shortened_while_there_is_room():
    log = _log_with_results(30, size=500, prompt=900)
    assert not any("shortened" in text for text in _answers(log, window=Window(tokens=200_000)))


def test_shortening_comes_in_batches_so_that_the_cached_prefix_mostly_stays():
    """Old messages are not rewritten at each step."""
    changes = 0
    before: list[str] = []
    for count in range(1, 40):
        answers = _answers(_log_with_results(count, size=500, prompt=900), window=Window(1_000))
        changes += answers[: len(before)] != before
        before = answers
    assert changes <= 40 // SHORTEN_BATCH


async def test_over_the_threshold_the_next_request_is_shorter_and_valid():
    """And the new turn is stored whole."""
    full = Usage(input_tokens=8_000, output_tokens=10)
    bench = Bench(
        scripted(
            *(reply(call("look", text="x" * 2_000), usage=Usage(1_000, 10)) for _ in range(6)),
            reply(call("look", text="y"), usage=full),
            reply("They asked to go, and we looked."),
            reply("Done."),
        ),
        [make_tool("look")],
        limits=Limits(context_window=10_000, output_tokens=1_000),
    )
    await bench.run(said("Go, please."))
    (compacted,) = bench.events(AgentThreadContextCompacted)
    assert compacted.summary == "They asked to go, and we looked."
    before, summariser, after = bench.requests[-3:]
    assert summariser.purpose == "compaction"
    assert summariser.tools == ()
    assert len(str(after.messages)) < len(str(before.messages))
    assert_acceptable(after.messages)
    assert compacted.summary in str(after.messages[0])
    assert "Go, please." in str(after.messages[0]), "the question is never cut"
    assert [text_of(e.content) for e in bench.events(AgentMessage)] == ["Done."]
    starts = bench.events(SpanModelRequestStart)
    assert [start.purpose for start in starts].count("compaction") == 1


async def test_when_the_summariser_fails_old_messages_are_dropped_with_a_note():
    bench = Bench(
        scripted(
            *(reply(call("look", text="x"), usage=Usage(1_000, 10)) for _ in range(5)),
            reply(call("look", text="y"), usage=Usage(9_000, 10)),
            BadRequest("No."),
            reply("Done."),
        ),
        [make_tool("look")],
        limits=Limits(context_window=10_000),
    )
    await bench.run(said("Go."))
    (compacted,) = bench.events(AgentThreadContextCompacted)
    assert compacted.fallback
    assert "could not be" in compacted.summary
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."


async def test_a_summariser_that_is_busy_is_tried_again_before_anything_is_dropped():
    bench = Bench(
        scripted(
            *(reply(call("look", text="x"), usage=Usage(1_000, 10)) for _ in range(5)),
            reply(call("look", text="y"), usage=Usage(9_000, 10)),
            Overloaded("Busy."),
            reply("A summary."),
            reply("Done."),
        ),
        [make_tool("look")],
        limits=Limits(context_window=10_000),
    )
    await bench.run(said("Go."))
    assert not bench.events(AgentThreadContextCompacted)
    await bench.run()
    assert bench.events(AgentThreadContextCompacted)[0].summary == "A summary."
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."


async def test_a_prompt_the_service_finds_too_long_is_compacted_and_sent_again():
    bench = Bench(
        scripted(
            *(reply(call("look", text="x")) for _ in range(5)),
            ContextTooLong("Too long."),
            reply("A summary."),
            reply("Done."),
        ),
        [make_tool("look")],
    )
    await bench.run(said("Go."))
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."


async def test_compaction_uses_its_own_role_settings():
    bench = Bench(
        scripted(
            *(reply(call("look", text="x"), usage=Usage(1_000, 10)) for _ in range(5)),
            reply(call("look", text="y"), usage=Usage(9_000, 10)),
            reply("A summary."),
            reply("Done."),
        ),
        [make_tool("look")],
        limits=Limits(context_window=10_000),
        config={
            "temperature": 1.0,
            "roles": {"compaction": RoleOverride(model="small", temperature=0.2)},
        },
    )
    await bench.run(said("Go."))
    summariser, main = bench.requests[-2:]
    assert (summariser.model, summariser.settings.temperature) == ("small", 0.2)
    assert (main.model, main.settings.temperature) == ("scripted", 1.0)


CALLS = [f"sevt_{number}" for number in range(12)]
events = st.one_of(
    st.just(said("hi")),
    st.builds(lambda uid: InputTaken(event_ids=(uid,)), st.sampled_from(CALLS)),
    st.builds(
        lambda r, t: AgentMessage(content=(Text(text=t),), model_request_id=r),
        st.sampled_from(["r1", "r2"]),
        st.sampled_from(["", "text", " "]),
    ),
    st.builds(
        lambda r: AgentToolUse(name="look", input={}, model_request_id=r),
        st.sampled_from(["r1", "r2"]),
    ),
    st.builds(lambda uid: AgentToolResult(tool_use_id=uid, content=()), st.sampled_from(CALLS)),
    st.builds(
        lambda r: AgentThinking(thinking="t", model_request_id=r), st.sampled_from(["r1", "r2"])
    ),
    st.builds(
        lambda r, kept: McpElsewhere(
            kind="use",
            server="mail",
            block={"type": "use", "id": "m", "name": "look", "input": {}} if kept else {},
            model_request_id=r,
        ),
        st.sampled_from(["r1", "r2"]),
        st.booleans(),
    ),
    st.builds(
        lambda uid, r: McpElsewhere(
            kind="result",
            server="mail",
            block={"type": "result", "id": "m"},
            tool_use_id=uid,
            model_request_id=r,
        ),
        st.sampled_from(CALLS),
        st.sampled_from(["r1", "r2"]),
    ),
    st.builds(
        lambda uid: AgentThreadContextCompacted(summary="s", through=uid), st.sampled_from(CALLS)
    ),
    st.just(SpanModelRequestStart()),
    st.just(UserInterrupt()),
    st.builds(lambda uid: MessageWithdrawn(event_id=uid), st.sampled_from(CALLS)),
    st.builds(lambda uid: ContentSetAside(event_id=uid), st.sampled_from(CALLS)),
    st.builds(
        lambda uid: UserToolConfirmation(tool_use_id=uid, result="allow"), st.sampled_from(CALLS)
    ),
    st.just(SessionStatusIdle(stop_reason={"type": "end_turn"}, interrupted=True)),
    st.just(SessionStatusIdle(stop_reason={"type": "end_turn"})),
    st.just(SessionStatusIdle(stop_reason={"type": "retries_exhausted"})),
    st.just(RetryRequested()),
    st.just(RetryRequested(from_start=True)),
)


@given(st.lists(events, max_size=30))
def test_whatever_the_log_holds_the_dialogue_is_one_that_services_accept(log_events):
    """A property over logs that no loop would write."""
    log = Log()
    for event in log_events:
        log.add(event)
    assert_acceptable(log.messages())


LARGE = ModelUsage(input_tokens=150_000)
changes = st.one_of(
    events,
    st.builds(
        lambda uid: MessageEdited(event_id=uid, content=(Text(text="edited"),)),
        st.sampled_from(CALLS),
    ),
    st.builds(
        lambda r: AgentThinking(thinking="t", model_request_id=r, signature="s"),
        st.sampled_from(CALLS),
    ),
    st.builds(
        lambda uid: AgentToolResult(tool_use_id=uid, content=(Text(text="long " * 50),)),
        st.sampled_from(CALLS),
    ),
    st.builds(
        lambda r: AgentToolUse(name="look", input={}, model_request_id=r), st.sampled_from(CALLS)
    ),
    st.builds(
        lambda r: SpanModelRequestEnd(model_request_start_id=r, model_usage=LARGE),
        st.sampled_from(CALLS),
    ),
    st.just(WakeDue(reason="time", note="now")),
)


@given(st.lists(changes, max_size=40), st.sets(st.integers(0, 40)))
def test_a_dialogue_that_is_kept_tells_what_one_that_is_built_anew_does(log_events, asked_at):
    kept = Dialogue(TEXTS)
    log = Log()
    for number, event in enumerate(log_events):
        log.add(event)
        if number in asked_at:
            assert kept.messages(log.entries) == log.messages()
    assert kept.messages(log.entries) == log.messages()


def test_the_model_is_told_of_uploaded_files_also_after_an_edit_of_the_words():
    kept, log = Dialogue(TEXTS), Log()
    file = UploadedFile(path="uploads/a.pdf", size=1_234, media_type="application/pdf")
    uid = log.add(UserMessage(content=(Text(text="Lok"),), files=(file,)))
    assert kept.messages(log.entries) == ()
    log.add(MessageEdited(event_id=uid, content=(Text(text="Look"),)))
    log.add(InputTaken(event_ids=(uid,)))
    ((words, told),) = [message.parts for message in kept.messages(log.entries)]
    assert words == Text(text="Look")
    assert "uploads/a.pdf (application/pdf, 1,234 bytes)" in told.text
    assert kept.messages(log.entries) == log.messages()


def test_what_old_calls_got_is_shortened_in_a_dialogue_that_is_kept():
    kept, log = Dialogue(TEXTS), Log()
    log.user("Look.")
    for _ in range(30):
        log.begin()
        call_id = log.ask()
        log.end("tool_use", input_tokens=100_000)
        log.answer(call_id, "long " * 50)
        assert kept.messages(log.entries) == log.messages()
    assert "long" not in str(kept.messages(log.entries)[2])


def test_messages_that_are_complete_are_the_same_ones_in_the_next_prompt():
    kept, log = Dialogue(TEXTS), Log()
    log.user("Look.")
    prompts = []
    for _ in range(5):
        log.begin()
        log.answer(log.ask())
        log.end("tool_use")
        prompts.append(kept.messages(log.entries))
    for earlier, later in itertools.pairwise(prompts):
        assert all(a is b for a, b in zip(earlier[:-2], later, strict=False))


@given(st.lists(events, max_size=30))
def test_forgetting_twice_forgets_no_more_than_once_and_never_what_was_said(log_events):
    log = Log()
    for event in log_events:
        log.add(event)
    once = remembered(log.entries)
    assert list(remembered(once)) == list(once)
    words = [e.uid for e in log.entries if isinstance(e.event, UserMessage | InputTaken)]
    assert [entry.uid for entry in once if entry.uid in words] == words
    aside = {e.event.event_id for e in log.entries if isinstance(e.event, ContentSetAside)}
    taken = {uid for e in once if isinstance(e.event, InputTaken) for uid in e.event.event_ids}
    assert aside.isdisjoint(taken)


# --- done again from the start --------------------------------------------------------------------

FAILED = SessionStatusIdle(stop_reason={"type": "retries_exhausted"})
RESTART = RetryRequested(from_start=True)


def _failed_turn() -> Log:
    """An answered turn, then one that looked around and failed."""
    log = Log()
    log.user("Hello.")
    log.begin()
    log.say("Hi.")
    log.end()
    log.add(SessionStatusIdle(stop_reason={"type": "end_turn"}))
    log.user("Go.")
    log.begin()
    log.say("Looking.")
    asked = log.ask()
    log.end("tool_use")
    log.answer(asked)
    log.add(FAILED)
    return log


def test_from_the_start_only_the_failed_turn_is_forgotten():
    log = _failed_turn()
    log.add(RESTART)
    messages = log.messages()
    assert_acceptable(messages)
    assert [[part.text for part in message.parts] for message in messages] == [
        ["Hello."],
        ["Hi."],
        ["Go.", TEXTS.restarted],
    ]


def test_what_people_said_during_the_forgotten_turn_stays():
    log = Log()
    log.user("Go.")
    log.begin()
    asked = log.ask()
    log.end("tool_use")
    log.answer(asked)
    log.add(InputTaken(event_ids=(log.add(said("And mind the gap.")),), steered=True))
    waiting = log.add(said("Later."))
    log.add(FAILED)
    log.add(RESTART)
    (message,) = log.messages()
    assert [part.text for part in message.parts] == ["Go.", "And mind the gap.", TEXTS.restarted]
    log.begin()
    log.say("Done.")
    log.end()
    log.add(InputTaken(event_ids=(waiting,)))
    assert [part.text for part in log.messages()[-1].parts] == ["Later."]


def test_a_second_restart_forgets_the_first_attempt_of_it_and_says_so_once():
    log = _failed_turn()
    log.add(RESTART)
    log.begin()
    log.say("Again.")
    log.end("tool_use")
    log.add(FAILED)
    log.add(RESTART)
    assert [part.text for part in log.messages()[-1].parts] == ["Go.", TEXTS.restarted]


def test_a_restart_after_a_turn_that_ended_well_forgets_nothing():
    log = Log()
    log.user("Hello.")
    log.begin()
    log.say("Hi.")
    log.end()
    log.add(SessionStatusIdle(stop_reason={"type": "end_turn"}))
    before = log.messages()
    log.add(RESTART)
    assert log.messages() == before


def test_a_summary_made_in_the_forgotten_turn_is_forgotten_and_an_earlier_one_stays():
    log = _failed_turn()
    early = log.entries[3].uid
    log.add(AgentThreadContextCompacted(summary="Early.", through=early))
    log.user("More.")
    log.begin()
    log.say("Hm.")
    log.end("tool_use")
    log.add(AgentThreadContextCompacted(summary="Late.", through=log.entries[-1].uid))
    log.add(FAILED)
    log.add(RESTART)
    messages = log.messages()
    assert_acceptable(messages)
    assert "Early." in str(messages[0])
    assert "Late." not in str(messages)
    assert "More." in str(messages[-1])


async def test_a_turn_done_again_from_the_start_counts_its_context_from_there():
    big = Usage(input_tokens=9_000, output_tokens=10)
    bench = Bench(
        scripted(
            "Hi.",
            reply(call("look", text="x"), usage=big),
            BadRequest("No."),
            "Done.",
        ),
        [make_tool("look")],
        limits=Limits(context_window=20_000),
    )
    await bench.run(said("Hello."))
    await bench.run(said("Go."))
    history = History(bench.journal.entries)
    assert history.context_tokens > 9_000
    assert history.may_retry
    history = History([*bench.journal.entries, Entry("sevt_retry", RESTART)])
    assert history.context_tokens < 100
    await bench.run(RESTART)
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."
    assert len(bench.requests[-1].messages) == 3


async def test_what_a_retry_names_holds_for_its_turn_only():
    bench = Bench(
        scripted(BadRequest("No."), reply(call("look", text="x")), "Done.", "Again."),
        [make_tool("look")],
    )
    await bench.run(said("Go."))
    await bench.run(RetryRequested(model="other", token_budget=5_000))
    await bench.run(said("And?"))
    assert [request.model for request in bench.requests] == [
        "scripted",
        "other",
        "other",
        "scripted",
    ]


async def test_a_budget_given_to_a_turn_stops_it_where_it_says():
    bench = Bench(
        scripted(BadRequest("No."), reply(call("look", text="x"), usage=Usage(600, 500))),
        [make_tool("look")],
    )
    await bench.run(said("Go."))
    await bench.run(RetryRequested(token_budget=1_000))
    rest = bench.events(SessionStatusIdle)[-1]
    assert rest.stop_reason.type == "budget_reached"
    assert "1,000" in rest.stop_details.message
