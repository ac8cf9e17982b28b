"""Live equals reload: whatever happens, in whatever pieces it arrives, a page that followed shows
what a page loaded anew shows. And both read the log in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.models import Organisation, User
from chat.presentation import frames
from chat.presentation.panels import Drawn
from conversations.models import Conversation
from harness.content import Text
from harness.events import (
    TYPES,
    AgentCustomToolUse,
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    ApprovalRequested,
    ApprovalVoted,
    BackgroundFinished,
    BackgroundStarted,
    BudgetReached,
    CallHandedOut,
    CompactionRequested,
    CompactionSkipped,
    ContentRedacted,
    ContentSetAside,
    CriterionJudged,
    DiffDisplay,
    EndTurn,
    Event,
    FeedbackGiven,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessagePinned,
    MessageSteered,
    MessageWithdrawn,
    ModelUsage,
    OutcomeCheckRan,
    OutcomeUnknown,
    QueueHeld,
    QueueOrdered,
    QueueReleased,
    RequiresAction,
    RetryRequested,
    Rewound,
    SessionError,
    SessionErrorBody,
    SessionMemoryWritten,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionThreadCreated,
    SessionUpdated,
    SessionUsage,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    SpanToolEnd,
    SpanToolStart,
    StopDetails,
    SubagentEnded,
    SubagentStarted,
    Todo,
    TodosUpdated,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    UserToolResult,
    WakeDue,
    WakeRequested,
)
from harness.history import Entry
from harness.rules import AskTerms
from tests.chat.drawing import (
    Browser,
    before_query,
    conversation,
    key_of,
    make_conversation,
    order_of,
    record,
)
from tests.properties import WHOLE, examples

__all__ = ["conversation"]


def words(text: str) -> tuple[Text, ...]:
    return (Text(text=text),)


# --- scripts of everything that can happen --------------------------------------------------------


@dataclass
class Story:
    """Writes a valid log, one happening for each number it is given."""

    entries: list[Entry] = field(default_factory=list)
    queued: list[str] = field(default_factory=list)
    calls: dict[str, Event] = field(default_factory=dict)
    running_calls: list[str] = field(default_factory=list)
    handed_out: set[str] = field(default_factory=set)
    request: str = ""
    last_text: str = ""
    heard: str = ""
    wakes: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Numbers behind which the dialogue may go on: nothing was open there."""

    def tell(self, choice: int) -> None:
        happenings = self._happenings()
        happenings[choice % len(happenings)]()

    def _add(self, event: Event) -> str:
        entry = Entry.of(event)
        self.entries.append(entry)
        return entry.uid

    def _happenings(self) -> list[Callable[[], object]]:
        number = len(self.entries)
        always: list[Callable[[], object]] = [
            self._post,
            lambda: self._add(
                AgentThinking(thinking=f"Thought {number}.", interrupted=number % 2 > 0)
            ),
            self._say,
            lambda: self._call(AgentToolUse(name="read_file", input={"path": f"{number}.py"})),
            lambda: self._call(
                AgentToolUse(
                    name="edit_file", input={}, evaluated_permission="ask", reason="A rule."
                )
            ),
            lambda: self._call(
                AgentToolUse(name="present_plan", input={"plan": "# P"}, evaluated_permission="ask")
            ),
            lambda: self._call(AgentMcpToolUse(name="find", mcp_server_name="m", input={"q": [1]})),
            lambda: self._call(AgentCustomToolUse(name="stock", input={"a": 1})),
            lambda: self._add(UserInterrupt()),
            self._judge,
            lambda: self._compact(number),
            lambda: self._add(SessionStatusRunning()),
            self._rest,
            lambda: self._add(
                SessionStatusIdle(stop_reason=RequiresAction(event_ids=tuple(self.calls)))
            ),
            lambda: self._add(
                SessionStatusIdle(
                    stop_reason=BudgetReached(),
                    stop_details=StopDetails(code="token_budget", message="Used up.", hint="Ask."),
                )
            ),
            lambda: self._add(SessionStatusRescheduled(delay_seconds=2)),
            lambda: self._add(SessionStatusTerminated()),
            lambda: self._add(
                SessionError(
                    error=SessionErrorBody(type="unknown_error", code="x", message=f"E{number}")
                )
            ),
            lambda: self._add(SessionUpdated(title=f"Title {number}")),
            lambda: self._add(SessionUpdated(features={"plan_mode": number % 2 > 0})),
            lambda: self._add(SessionUsage(input_tokens=number)),
            lambda: self._add(SessionThreadCreated(session_thread_id="t", agent_name="Reviewer")),
            self._begin_request,
            lambda: self._add(WakeRequested(delay_seconds=number, reason="r")),
            lambda: self.wakes.append(self._add(WakeDue(reason="r"))),
            lambda: self._add(BackgroundStarted(background_id="bg_1", command="make")),
            lambda: self.wakes.append(
                self._add(
                    BackgroundFinished(background_id="bg_1", command="make", state="completed")
                )
            ),
            lambda: self._add(RetryRequested()),
            lambda: self._add(
                TodosUpdated(
                    todos=(Todo(content=f"T{number}", active_form="Ting", status="in_progress"),)
                )
            ),
        ]
        if self.queued:
            always += [self._take, self._take_two, self._withdraw, self._edit, self._steer] * 2
            always += [self._order, self._hold]
        if self.wakes:
            always.append(self._take_wake)
        if self.calls:
            always += [self._confirm, self._start, self._answer, self._lose] * 3
            always += [self._ask_anew, self._vote, self._hand_out]
        if self.running_calls:
            always += [self._end] * 2
        if self.request:
            always += [self._end_request, self._end_request, self._use_elsewhere]
        if self.last_text:
            always += [self._go_on] * 2
        if self.places:
            always.append(self._rewind)
        if self.heard:
            always.append(lambda: self._add(ContentSetAside(event_id=self.heard, reason="No.")))
            always.append(lambda: self._add(ContentRedacted(event_id=self.heard)))
        return always

    def _compact(self, number: int) -> None:
        self._add(CompactionRequested(focus=f"F{number}"))
        self._add(CompactionSkipped(reason="too_short"))
        self._add(SessionMemoryWritten(part="state", version=number, text="S"))
        self._add(SessionMemoryWritten(part="buffer", version=number, text="B"))
        self._add(AgentThreadContextCompacted(summary="S", through="x", messages=number))

    def _judge(self) -> None:
        self._add(UserDefineOutcome(outcome_id="o", description="d", rubric="r"))
        start = self._add(SpanOutcomeEvaluationStart(outcome_id="o"))
        check = OutcomeCheckRan(
            outcome_evaluation_start_id=start, outcome_id="o", run="make", exit_code=2
        )
        self._add(check)
        unmet = CriterionJudged(criterion="r", met=False, reason="No.")
        self._add(
            SpanOutcomeEvaluationEnd(
                outcome_evaluation_start_id=start,
                outcome_id="o",
                result="needs_revision",
                criteria=(unmet,),
            )
        )

    def _rest(self) -> None:
        idle = SessionStatusIdle(stop_reason=EndTurn(), interrupted=len(self.entries) % 2 > 0)
        self._add(idle)
        if not self.calls and not self.request:
            self.last_text = ""
            self.places.append(len(self.entries))

    def _rewind(self) -> None:
        """To a place on whichever branch."""
        if self.calls or self.request:
            return
        behind = self.places[len(self.entries) % len(self.places)]
        self._add(Rewound(behind=behind, model="other" if behind % 2 else ""))
        if len(self.entries) % 2 == 0:
            self._add(FeedbackGiven(event_id="sevt_none", rating="up"))
            self._add(MessagePinned(event_id=self.heard or "sevt_none"))
        self.last_text = self.heard = ""
        self.queued.clear()
        self.wakes.clear()
        self.running_calls.clear()

    def _use_elsewhere(self) -> None:
        block = {"type": "mcp_tool_use", "id": "m1", "name": "look", "input": {}}
        use = self._add(McpElsewhere(kind="use", server="m", block=block))
        answer = {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "Two."}
        self._add(McpElsewhere(kind="result", server="m", block=answer, tool_use_id=use))

    def _post(self) -> None:
        self.queued.append(self._add(UserMessage(content=words(f"Message {len(self.entries)}"))))

    def _take(self) -> None:
        self.heard = self.queued.pop(0)
        self._add(InputTaken(event_ids=(self.heard,)))

    def _take_two(self) -> None:
        """The later one first, as behind an interrupt."""
        taken, self.queued = tuple(reversed(self.queued[:2])), self.queued[2:]
        self._add(InputTaken(event_ids=taken))

    def _withdraw(self) -> None:
        self._add(MessageWithdrawn(event_id=self.queued.pop()))

    def _edit(self) -> None:
        edit = MessageEdited(event_id=self.queued[0], content=words(f"Edit {len(self.entries)}"))
        self._add(edit)

    def _steer(self) -> None:
        self._add(MessageSteered(event_id=self.queued[-1]))

    def _order(self) -> None:
        """The last one first."""
        self.queued.insert(0, self.queued.pop())
        self._add(QueueOrdered(event_ids=tuple(self.queued)))

    def _hold(self) -> None:
        self._add(QueueHeld())
        self._add(QueueReleased())

    def _take_wake(self) -> None:
        self._add(InputTaken(event_ids=(self.wakes.pop(),)))

    def _lose(self) -> None:
        self._add(OutcomeUnknown(tool_use_id=next(iter(self.calls)), effect="outside"))

    def _ask_anew(self) -> None:
        call = next(iter(self.calls))
        self._add(ApprovalRequested(tool_use_id=call, reason="A new rule.", terms=AskTerms()))

    def _vote(self) -> None:
        self._add(ApprovalVoted(tool_use_id=next(iter(self.calls)), allowed=1, needed=2))

    def _say(self) -> None:
        self.last_text = self._add(AgentMessage(content=words(f"**Text** {len(self.entries)}")))

    def _go_on(self) -> None:
        self._add(AgentMessage(content=words(" and on"), continues=self.last_text))

    def _call(self, use: Event) -> None:
        self.calls[self._add(use)] = use

    def _confirm(self) -> None:
        call = next(iter(self.calls))
        self._add(UserToolConfirmation(tool_use_id=call, result="deny", deny_message="No."))

    def _start(self) -> None:
        call = next(reversed(self.calls))
        self._add(SpanToolStart(tool_use_id=call, effect="read"))
        self.running_calls.append(call)

    def _hand_out(self) -> None:
        call = next(iter(self.calls))
        if isinstance(self.calls[call], AgentToolUse) and call not in self.handed_out:
            self.handed_out.add(call)
            self._add(CallHandedOut(tool_use_id=call, effect="outside", name="bash", input={}))
            child = SubagentStarted(tool_use_id=call, subagent="s", name="explore", description="d")
            self._add(child)
            self._add(SubagentEnded(tool_use_id=call, subagent="s", state="completed"))

    def _end(self) -> None:
        self._add(SpanToolEnd(tool_use_id=self.running_calls.pop(), milliseconds=1_234))

    def _answer(self) -> None:
        call = next(iter(self.calls))
        match self.calls.pop(call):
            case AgentMcpToolUse():
                self._add(AgentMcpToolResult(mcp_tool_use_id=call, content=words("mcp")))
            case AgentCustomToolUse():
                self._add(UserCustomToolResult(custom_tool_use_id=call, content=words("custom")))
            case _ if call in self.handed_out:
                self._add(UserToolResult(tool_use_id=call, content=words("a worker's")))
            case _:
                change = DiffDisplay(path="a", diff="@@ -1 +1 @@\n-a\n+b\n", added=1, removed=1)
                self._add(AgentToolResult(tool_use_id=call, content=words("ok"), display=change))

    def _begin_request(self) -> None:
        if not self.request:
            self.request = self._add(SpanModelRequestStart(provider="p", model="m"))

    def _end_request(self) -> None:
        used = ModelUsage(input_tokens=1_000, output_tokens=50)
        self._add(SpanModelRequestEnd(model_request_start_id=self.request, model_usage=used))
        self.request = ""


def story_of(choices: list[int]) -> list[Entry]:
    story = Story()
    for choice in choices:
        story.tell(choice)
    return story.entries


EVERY_TYPE = [
    12, 29, *range(29), 0, 0, 0, *range(29, 80), 0, 0, 0, *range(29, 80), *range(29, 80), 0, *range(29, 80),
    0, 0, 39, 40,
] if WHOLE else [
    12, 29, *range(7), 8, 9, 10, 11, 15, 16, 17, 18, *range(20, 29), 0, *range(31, 41), *range(43, 48),
    51, 52, 53, 54, 29, 36, 40, 45, 46, 50, 52, 39, 40,
]  # fmt: skip
"""All that happened, the full proof several times over; otherwise hardly anything twice."""


def test_the_script_of_all_types_holds_all_types() -> None:
    told = {entry.event.type for entry in story_of(EVERY_TYPE)}
    assert told ^ set(TYPES) == set(), "give Story a step with it, and EVERY_TYPE its number"


def shown(conversation: Conversation) -> tuple[dict[str, list[str]], dict[str, Drawn]]:
    whole = frames.page(conversation, limit=10_000)
    return {
        "log": [str(u) for u in whole.units],
        "queue": [str(u) for u in whole.queue],
    }, whole.panels


def follow(conversation: Conversation, entries: list[Entry], cuts: list[int]) -> None:
    """Load the page, let `entries` happen in pieces that end at `cuts`, compare with a new page."""
    edges = sorted({0, len(entries), *(cut % (len(entries) + 1) for cut in cuts)})
    record(conversation, *entries[: edges[0]])
    browser = Browser.loaded(frames.page(conversation, limit=10_000))
    for begin, end in pairwise(edges):
        record(conversation, *entries[begin:end])
        news = frames.changes(conversation, browser.seq)
        if news.reload:
            browser = Browser.loaded(frames.page(conversation, limit=10_000))
        else:
            browser.apply(news)
        assert browser.panels == frames.page(conversation, limit=1).panels
    units, panels = shown(conversation)
    drawn = {place: [html for _key, _order, html in home] for place, home in browser.places.items()}
    assert drawn == units
    assert browser.panels == panels
    assert browser.seq == len(entries)


@pytest.mark.parametrize("size", [1, 2, 7, 1_000] if WHOLE else [1, 7, 1_000])
def test_live_equals_reload_for_a_conversation_of_all_types(
    conversation: Conversation, size: int
) -> None:
    entries = story_of(EVERY_TYPE)

    follow(conversation, entries, list(range(0, len(entries), size)))


@given(
    choices=st.lists(st.integers(0, 200), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
@example(choices=[81, 99, 149], cuts=[1])
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_live_equals_reload_whatever_happens_and_however_it_is_cut(
    alice: User, acme: Organisation, choices: list[int], cuts: list[int]
) -> None:
    follow(make_conversation(alice, acme), story_of(choices), cuts)


def test_where_one_went_back_says_so_whatever_is_asked_there(conversation: Conversation) -> None:
    follow(conversation, story_of([0, 30, 2, 12, 0, 29, 29, 0, 0, 29]), [7])


@given(
    choices=st.lists(
        st.sampled_from([0, 0, 2, 12, 12, 29, 30, 31, 35, 40]), min_size=6, max_size=40
    ),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_live_equals_reload_on_every_branch(
    alice: User, acme: Organisation, choices: list[int], cuts: list[int]
) -> None:
    follow(make_conversation(alice, acme), story_of([0, 30, 2, 12, *choices]), cuts)


def as_it_is_now(browser: Browser, conversation: Conversation) -> None:
    """What a browser shows that has heard everything."""
    browser.apply(frames.changes(conversation, browser.seq))
    units, panels = shown(conversation)
    drawn = {place: [html for _key, _order, html in home] for place, home in browser.places.items()}
    assert drawn == units
    assert browser.panels == panels


@pytest.mark.parametrize("query", range(9))
def test_a_turn_that_ends_while_its_page_is_drawn_is_shown_as_ended(
    conversation: Conversation, query: int
) -> None:
    message = Entry.of(UserMessage(content=words("Hello")))
    record(conversation, message, SessionStatusRunning(), InputTaken(event_ids=(message.uid,)))

    def end() -> None:
        rest = SessionStatusIdle(stop_reason=EndTurn())
        title = SessionUpdated(title="A greeting", features={"plan_mode": True})
        record(conversation, AgentMessage(content=words("Hello!")), title, rest)

    with before_query(query, end):
        browser = Browser.loaded(frames.page(conversation))

    as_it_is_now(browser, conversation)


@given(
    choices=st.lists(st.integers(0, 200), min_size=1, max_size=40),
    cut=st.integers(0, 200),
    query=st.integers(0, 9),
    again=st.integers(0, 6),
)
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_live_equals_reload_whatever_happens_while_the_log_is_read(
    alice: User, acme: Organisation, choices: list[int], cut: int, query: int, again: int
) -> None:
    conversation = make_conversation(alice, acme)
    entries = story_of(choices)
    first = cut % (len(entries) + 1)
    second = (first + len(entries)) // 2
    record(conversation, *entries[:first])

    with before_query(query, lambda: record(conversation, *entries[first:second])):
        browser = Browser.loaded(frames.page(conversation, limit=10_000))
    with before_query(again, lambda: record(conversation, *entries[second:])):
        browser.apply(frames.changes(conversation, browser.seq))

    as_it_is_now(browser, conversation)


@given(choices=st.lists(st.integers(0, 200), min_size=1, max_size=40), limit=st.integers(1, 9))
@example(choices=[12, 182, 31], limit=1)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_pages_of_any_size_neither_overlap_nor_leave_anything_out(
    alice: User, acme: Organisation, choices: list[int], limit: int
) -> None:
    conversation = make_conversation(alice, acme)
    record(conversation, *story_of(choices))
    conversation.refresh_from_db()  # as each request reads it: whether anybody went back stands there

    page = frames.page(conversation, limit=limit)
    collected, queue = [str(unit) for unit in page.units], [str(unit) for unit in page.queue]
    while page.has_older:
        page = frames.page(conversation, before=page.first_seq, limit=limit)
        assert page.queue == []
        collected = [*map(str, page.units), *collected]

    assert ({"log": collected, "queue": queue}) == shown(conversation)[0]


def test_a_change_seen_twice_changes_nothing(conversation: Conversation) -> None:
    record(conversation, *story_of(EVERY_TYPE))
    browser = Browser.loaded(frames.page(conversation, limit=10_000))
    before = {place: list(units) for place, units in browser.places.items()}

    for after in (0, 10, browser.seq // 2):
        browser.apply(frames.changes(conversation, after))

    assert browser.places == before


# --- single steps ---------------------------------------------------------------------------------


def test_a_queued_message_moves_to_where_it_is_taken(conversation: Conversation) -> None:
    (message,) = record(conversation, UserMessage(content=words("Hello")))
    queued = frames.changes(conversation, 0)
    record(conversation, AgentMessage(content=words("still busy")))
    (taken,) = record(conversation, InputTaken(event_ids=(message.uid,)))

    moved = frames.changes(conversation, 2)

    assert [(u["key"], u["place"], u["order"]) for u in queued.units] == [(message.uid, "queue", 1)]
    assert [(u["key"], u["place"], u["order"]) for u in moved.units] == [
        (message.uid, "log", taken.seq)
    ]
    assert moved.removed == []


def test_messages_taken_together_stand_in_the_order_they_were_taken(
    conversation: Conversation,
) -> None:
    first, second = record(
        conversation, UserMessage(content=words("first")), UserMessage(content=words("second"))
    )
    record(conversation, InputTaken(event_ids=(second.uid, first.uid)))

    live = [unit["key"] for unit in frames.changes(conversation, 0).units]

    assert live == [second.uid, first.uid]
    assert [key_of(unit) for unit in frames.page(conversation).units] == live


def test_a_withdrawn_message_is_removed_and_stays_away(conversation: Conversation) -> None:
    (message,) = record(conversation, UserMessage(content=words("Oops")))
    record(conversation, MessageWithdrawn(event_id=message.uid))

    assert frames.changes(conversation, 1).removed == [message.uid]
    assert frames.page(conversation).queue == []


def test_nothing_new_is_nothing_to_draw(conversation: Conversation) -> None:
    record(conversation, SessionStatusRunning())

    assert frames.changes(conversation, 1) == frames.Changes(seq=1)


def test_an_empty_conversation_has_an_empty_page(conversation: Conversation) -> None:
    page = frames.page(conversation)

    assert (page.units, page.queue, page.seq, page.has_older) == ([], [], 0, False)
    panels = {"status", "todos", "background", "meter", "waiting", "title", "features", "queue"}
    assert set(page.panels) == {
        *panels,
        "asked",
        "budget",
        "team",
        "subagents",
        "timers",
        "retention",
        "pinned",
    }


def test_a_message_queued_long_ago_is_still_on_the_newest_page(conversation: Conversation) -> None:
    (message,) = record(conversation, UserMessage(content=words("Waiting")))
    record(conversation, *(AgentMessage(content=words(f"{n}")) for n in range(20)))

    page = frames.page(conversation, limit=5)

    assert [key_of(unit) for unit in page.queue] == [message.uid]
    assert [order_of(unit) for unit in page.units] == [17, 18, 19, 20, 21]


def test_what_is_named_later_is_not_drawn_a_second_time_there(conversation: Conversation) -> None:
    (wake,) = record(conversation, WakeDue(reason="r"))
    record(conversation, SessionStatusRunning(), InputTaken(event_ids=(wake.uid,)))

    newest = frames.page(conversation, limit=2)
    older = frames.page(conversation, before=newest.first_seq)

    assert newest.units == []
    assert [key_of(unit) for unit in older.units] == [wake.uid]


def test_an_event_about_a_message_that_was_taken_before_does_not_queue_it_again(
    conversation: Conversation,
) -> None:
    (message,) = record(conversation, UserMessage(content=words("Hello")))
    record(conversation, InputTaken(event_ids=(message.uid,)))
    record(conversation, MessageSteered(event_id=message.uid))

    assert frames.changes(conversation, 2).units == []


def test_another_conversation_s_events_are_never_drawn(
    conversation: Conversation, mallory: User, elsewhere: Organisation
) -> None:
    other = make_conversation(mallory, elsewhere)
    (stolen,) = record(other, UserMessage(content=words("secret")))
    record(conversation, InputTaken(event_ids=(stolen.uid,)), SessionStatusRunning())

    assert frames.page(conversation).units == []
    assert frames.changes(conversation, 0).units == []


# --- bounded queries ------------------------------------------------------------------------------


def long_log(turns: int) -> list[Entry]:
    """Eight events a turn, with authors, calls and replies."""
    entries: list[Entry] = []
    for number in range(turns):
        message = Entry.of(UserMessage(content=words(f"Question {number}")))
        call = Entry.of(AgentToolUse(name="read_file", input={"path": "a.py"}))
        events: tuple[Event, ...] = (
            InputTaken(event_ids=(message.uid,)),
            SpanToolStart(tool_use_id=call.uid, effect="read"),
            SpanToolEnd(tool_use_id=call.uid, milliseconds=5),
            AgentToolResult(tool_use_id=call.uid, content=words("x = 1")),
            AgentMessage(content=words(f"Answer {number} with `code`.")),
            SessionStatusIdle(stop_reason=EndTurn()),
        )
        taken, started, ended, result, answer, rest = map(Entry.of, events)
        entries += [message, taken, call, started, ended, result, answer, rest]
    return entries


PAGE_QUERIES = 16
"""Conversation with its agent, window, queue, events; a panel each for status, tasks, commands, meter,
what waits, the team, subagents, timers; budgets, and whether one is near its end."""
CHANGES_QUERIES = 9
"""News, events about them, conversation; a panel each."""


@pytest.mark.parametrize("turns", [1, 25, 60])
def test_a_page_takes_the_same_number_of_queries_however_long_the_log(
    conversation: Conversation, alice: User, turns: int, django_assert_num_queries
) -> None:
    record(conversation, *long_log(turns), actor=alice)

    with django_assert_num_queries(PAGE_QUERIES):
        page = frames.page(conversation, limit=200)

    assert page.seq == turns * 8
    assert len(page.units) == min(turns, 25) * 3
    assert page.has_older == (turns > 25)


@pytest.mark.parametrize("turns", [1, 25, 60])
def test_changes_take_the_same_number_of_queries_however_many_there_are(
    conversation: Conversation, alice: User, turns: int, django_assert_max_num_queries
) -> None:
    record(conversation, *long_log(turns), actor=alice)

    with django_assert_max_num_queries(CHANGES_QUERIES):
        changes = frames.changes(conversation, 0)

    assert len(changes.units) == turns * 3


def test_no_news_take_one_query(conversation: Conversation, django_assert_num_queries) -> None:
    record(conversation, *long_log(1))

    with django_assert_num_queries(1):
        frames.changes(conversation, 8)
