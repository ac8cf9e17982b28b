"""Each kind of unit: what it says, what can be done on it, and that nobody's text becomes markup."""

from __future__ import annotations

import json
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.utils.formats import date_format

from accounts.models import User
from chat.presentation import frames
from conversations.models import Conversation
from harness.content import Base64Source, Image, Text, UrlSource
from harness.events import (
    TYPES,
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    ApprovalRequested,
    BackgroundFinished,
    BudgetReached,
    CommandDisplay,
    DiffDisplay,
    EndTurn,
    Event,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessageSteered,
    NetworkDecision,
    NetworkRecord,
    OutcomeUnknown,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    RetryRequested,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionUpdated,
    SpanToolEnd,
    SpanToolStart,
    StopDetails,
    TableDisplay,
    UserCustomToolResult,
    UserMessage,
    UserToolConfirmation,
    WakeDue,
    WakeRequested,
    load,
)
from harness.frontends import FrontEnd, Surrounding
from harness.history import Entry
from harness.rules import AskTerms
from tests.chat.drawing import attribute_of, conversation, record

__all__ = ["conversation"]

GOLDEN = Path(__file__).parent.parent / "golden" / "events"
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'


def words(text: str) -> tuple[Text, ...]:
    return (Text(text=text),)


def drawn(conversation: Conversation) -> list[str]:
    page = frames.page(conversation, limit=1_000)
    return [str(unit) for unit in (*page.units, *page.queue)]


def the_unit(conversation: Conversation) -> str:
    (unit,) = drawn(conversation)
    return unit


class Reader(HTMLParser):
    """The text a person sees, the elements it is in, and whether they are balanced."""

    VOID = frozenset({"br", "hr", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def having(self, **attributes: str) -> list[dict[str, str | None]]:
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [attrs for _tag, attrs in self.tags if wanted.items() <= attrs.items()]


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    reader.text = " ".join(reader.text.split())
    return reader


def test_what_the_front_end_sent_along_is_shown_with_the_words_it_came_with(
    conversation: Conversation,
) -> None:
    page = Surrounding(description="The page", value="page three")
    sent = FrontEnd(context=(page,), state={"line": 14})
    record(conversation, UserMessage(content=words("Hi"), front_end=sent))
    unit = read(the_unit(conversation))
    assert "The page" in unit.text
    assert "page three" in unit.text
    assert '{"line":14}' in unit.text


# --- every type -----------------------------------------------------------------------------------

WITHOUT_UNIT = {
    "user.interrupt",
    "session.status_running",
    "session.status_idle",  # the golden one waits for two calls, whose cards say so
    "session.usage",
    "span.model_request_start",
    "x.background_started",
    "x.queue_ordered",
    "x.queue_held",
    "x.queue_released",
    "x.input_taken",
    "x.todos_updated",
    "x.session_memory_written",
}
"""Types that make no unit by themselves."""
ABOUT_ANOTHER = {
    "span.outcome_evaluation_end",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "agent.message",  # the golden one is a continuation
    "agent.tool_result",
    "agent.mcp_tool_result",
    "span.model_request_end",
    "x.mcp_elsewhere",
    "span.tool_start",
    "span.tool_end",
    "x.approval_requested",
    "x.approval_voted",
    "x.call_handed_out",
    "x.content_set_aside",
    "x.content_redacted",
    "x.feedback_given",
    "x.message_pinned",
    "x.message_withdrawn",
    "x.message_edited",
    "x.message_steered",
    "x.outcome_check_ran",
    "x.outcome_unknown",
    "x.subagent_started",
    "x.subagent_ended",
}
"""Types whose golden event belongs to another one, without which it draws nothing."""


@pytest.mark.parametrize("event_type", TYPES)
def test_each_type_makes_the_unit_it_should(conversation: Conversation, event_type: str) -> None:
    event = load(json.loads(sorted(GOLDEN.glob(f"v*/{event_type}.json"))[-1].read_text()))
    if event_type == "span.model_request_end":
        event = event.model_copy(
            update={
                "model_request_start_id": record(
                    conversation, load({"type": "span.model_request_start"})
                )[0].uid
            }
        )

    record(conversation, event)

    expected = 0 if event_type in WITHOUT_UNIT | ABOUT_ANOTHER else 1
    assert len(drawn(conversation)) == expected, (
        "name it in WITHOUT_UNIT or ABOUT_ANOTHER, or have chat/presentation/units.py draw it"
    )
    for unit in drawn(conversation):
        read(unit)


def test_a_unit_is_one_element_with_its_key_kind_and_order(conversation: Conversation) -> None:
    (event,) = record(conversation, AgentMessage(content=words("Hi")))

    unit = the_unit(conversation)

    assert unit.startswith("<article ")
    assert unit.endswith("</article>")
    assert attribute_of(unit, "id") == f"u-{event.uid}"
    assert attribute_of(unit, "data-kind") == "text"
    assert attribute_of(unit, "data-order") == "1"


def evil_events() -> list[Event]:
    return [
        UserMessage(content=words(EVIL)),
        AgentMessage(content=words(EVIL)),
        AgentThinking(thinking=EVIL),
        AgentToolUse(name=EVIL, input={EVIL: EVIL, "list": [EVIL]}, evaluated_permission="ask",
                     reason=EVIL),
        AgentToolUse(name="x", input={}, invalid_input=EVIL),
        AgentToolUse(name="present_plan", input={"plan": EVIL}, evaluated_permission="ask"),
        McpElsewhere(kind="use", server=EVIL, block={"name": EVIL, "input": {EVIL: EVIL}}),
        AgentMcpToolUse(name=EVIL, mcp_server_name=EVIL, input={}),
        SessionError(error=SessionErrorBody(type="x", code=EVIL, message=EVIL, hint=EVIL)),
        SessionStatusIdle(
            stop_reason=BudgetReached(),
            stop_details=StopDetails(code=EVIL, message=EVIL, hint=EVIL),
        ),
        AgentThreadContextCompacted(summary=EVIL, through="x"),
    ]  # fmt: skip


@pytest.mark.parametrize("event", evil_events(), ids=lambda event: event.type)
def test_nobody_s_text_becomes_markup(
    conversation: Conversation, alice: User, event: Event
) -> None:
    User.objects.filter(pk=alice.pk).update(first_name="<script>", last_name="x</script>")
    alice.refresh_from_db()
    record(conversation, event, actor=alice)

    reader = read(the_unit(conversation))

    assert not {"script", "img"} & {tag for tag, _attrs in reader.tags}
    assert not any(name.startswith("on") for _tag, attrs in reader.tags for name in attrs)


def test_results_and_decisions_are_no_markup_either(
    conversation: Conversation, alice: User
) -> None:
    call = Entry.of(AgentToolUse(name="x", input={}, evaluated_permission="ask"))
    display = DiffDisplay(path=EVIL, diff=f"@@ -1 +1 @@\n-{EVIL}\n+{EVIL}\n", added=1, removed=1)
    record(conversation, call)
    record(
        conversation,
        UserToolConfirmation(tool_use_id=call.uid, result="deny", deny_message=EVIL),
        AgentToolResult(tool_use_id=call.uid, content=words(EVIL), display=display),
        actor=alice,
    )

    assert not {"script", "img"} & {tag for tag, _attrs in read(the_unit(conversation)).tags}


# --- messages -------------------------------------------------------------------------------------


def test_a_message_is_shown_as_typed_with_author_and_time(
    conversation: Conversation, alice: User
) -> None:
    (row,) = record(
        conversation, UserMessage(content=words("**a**\n  b https://x.org")), actor=alice
    )

    unit = the_unit(conversation)

    assert '<pre class="plain">**a**\n  b https://x.org</pre>' in unit
    assert "alice wrote" in read(unit).text
    assert (
        f'<time datetime="{row.created_at:%Y-%m-%dT%H:%M:%SZ}">{row.created_at:%H:%M}</time>'
        in unit
    )


def test_a_queued_message_says_so_and_can_be_changed_until_it_is_taken(
    conversation: Conversation,
) -> None:
    (row,) = record(conversation, UserMessage(content=words("Hi")))
    queued = read(the_unit(conversation))
    record(conversation, InputTaken(event_ids=(row.uid,)))
    taken = read(the_unit(conversation))

    assert "Queued" in queued.text
    assert "Queued" not in taken.text
    for action in ("withdraw", "edit", "steer"):
        assert queued.having(data_action=action, data_message=row.uid)
        assert not taken.having(data_action=action)


def test_an_edited_message_says_its_last_words(conversation: Conversation) -> None:
    (row,) = record(conversation, UserMessage(content=words("first")))
    record(conversation, MessageEdited(event_id=row.uid, content=words("second")))
    record(conversation, MessageEdited(event_id=row.uid, content=words("third")))

    text = read(the_unit(conversation)).text

    assert "third" in text
    assert "edited" in text
    assert "first" not in text
    assert "second" not in text


def test_a_steered_message_says_when_it_joins(conversation: Conversation) -> None:
    (row,) = record(conversation, UserMessage(content=words("Also this")))
    record(conversation, MessageSteered(event_id=row.uid))
    steered = read(the_unit(conversation))
    assert "Joins the current answer at its next step" in steered.text
    assert not steered.having(data_action="steer")
    assert steered.having(data_action="edit")
    assert steered.having(data_action="withdraw")

    record(conversation, InputTaken(event_ids=(row.uid,), steered=True))
    assert "Joins" not in read(the_unit(conversation)).text


def test_a_message_with_more_than_text_is_not_offered_for_editing(
    conversation: Conversation,
) -> None:
    """An edit would take its picture away."""
    picture = Image(source=UrlSource(url="https://example.org/a.png"))
    record(conversation, UserMessage(content=(*words("Look"), picture)))
    unit = read(the_unit(conversation))

    assert not unit.having(data_action="edit")
    assert unit.having(data_action="steer")


def test_each_turn_begins_with_a_heading(conversation: Conversation) -> None:
    record(conversation, UserMessage(content=words("Hi")))

    assert "h2" in {tag for tag, _attrs in read(the_unit(conversation)).tags}


def test_a_long_message_is_shown_whole(conversation: Conversation) -> None:
    record(conversation, UserMessage(content=words("line\n" * 500)))

    assert the_unit(conversation).count("line\n") == 500


def test_only_pictures_made_of_pixels_are_shown_and_none_is_fetched(
    conversation: Conversation,
) -> None:
    record(
        conversation,
        UserMessage(
            content=(
                Image(source=Base64Source(media_type="image/png", data="AAAA")),
                Image(source=Base64Source(media_type="image/svg+xml", data="AAAA")),
                Image(source=Base64Source(media_type="image/png", data='"><script>')),
                Image(source=UrlSource(url="https://example.org/a.png")),
                Image(source=UrlSource(url="javascript:alert(1)")),
            )
        ),
    )

    reader = read(the_unit(conversation))

    assert [a["src"] for tag, a in reader.tags if tag == "img"] == ["data:image/png;base64,AAAA"]
    assert [a["href"] for tag, a in reader.tags if tag == "a"] == ["https://example.org/a.png"]


# --- replies --------------------------------------------------------------------------------------


def test_a_reply_that_was_continued_is_one_text(conversation: Conversation) -> None:
    """The pieces join without a seam, even in the middle of a word."""
    first = Entry.of(AgentMessage(content=words("It is **impor")))
    more = Entry.of(AgentMessage(content=words("tant** to"), continues=first.uid))
    last = Entry.of(AgentMessage(content=words(" stop"), continues=first.uid, interrupted=True))
    record(conversation, first, more, last)

    unit = the_unit(conversation)

    assert "It is <strong>important</strong> to stop" in unit
    assert attribute_of(unit, "data-members") == f"{first.uid} {more.uid} {last.uid}"
    assert "cut off" in read(unit).text


def test_a_whole_reply_can_be_copied_as_markdown(conversation: Conversation) -> None:
    source = 'Some **bold** "text" & <b>\n\n- x'
    record(conversation, AgentMessage(content=words(source)))

    (button,) = read(the_unit(conversation)).having(data_action="copy")

    assert button["data-source"] == source


def test_an_empty_reply_makes_no_unit(conversation: Conversation) -> None:
    record(
        conversation, AgentMessage(content=words(" \n")), AgentThinking(thinking="", signature="x")
    )

    assert drawn(conversation) == []


def test_thinking_is_folded_and_says_when_it_is_withheld(conversation: Conversation) -> None:
    record(
        conversation, AgentThinking(thinking="Hm."), AgentThinking(thinking="", redacted_data="x")
    )

    shown, withheld = drawn(conversation)

    assert shown.startswith("<details")
    assert " open" not in shown.partition(">")[0]
    assert "Hm." in shown
    assert "keeps this part of its thinking to itself" in withheld


# --- calls ----------------------------------------------------------------------------------------


def states_of(conversation: Conversation, call: Event, *later: object) -> list[str]:
    """The state of a call's card after the call and after each further event."""
    (row,) = record(conversation, call)
    states = [attribute_of(the_unit(conversation), "data-state")]
    for make in later:
        record(conversation, make(row.uid))  # type: ignore[operator]
        states.append(attribute_of(the_unit(conversation), "data-state"))
    return states


def started(call: str) -> Event:
    return SpanToolStart(tool_use_id=call, effect="read")


def ended(call: str) -> Event:
    return SpanToolEnd(tool_use_id=call, milliseconds=2_500)


def allowed(call: str) -> Event:
    return UserToolConfirmation(tool_use_id=call, result="allow")


def denied(call: str) -> Event:
    return UserToolConfirmation(tool_use_id=call, result="deny", deny_message="Too risky.")


def unknown(call: str) -> Event:
    return OutcomeUnknown(tool_use_id=call, effect="outside")


def asked_anew(call: str) -> Event:
    return ApprovalRequested(tool_use_id=call, reason="Nobody knows.", terms=AskTerms())


def result(outcome: str = "ok", text: str = "done") -> object:
    def make(call: str) -> Event:
        failed = outcome != "ok"
        return AgentToolResult.model_validate(
            {"tool_use_id": call, "content": words(text), "outcome": outcome, "is_error": failed}
        )

    return make


ASKING = AgentToolUse(
    name="write_file",
    input={"path": "a.txt", "content": "x"},
    evaluated_permission="ask",
    reason="Rule write_file: always ask.",
)
FREE = AgentToolUse(name="read_file", input={"path": "a.txt"})


@pytest.mark.parametrize(
    ("call", "later", "states"),
    [
        (FREE, [started, ended, result()], ["requested", "running", "running", "ok"]),
        (FREE, [started, result("error")], ["requested", "running", "error"]),
        (FREE, [started, result("unknown")], ["requested", "running", "unknown"]),
        (FREE, [result("stopped")], ["requested", "stopped"]),
        (FREE, [result(), started], ["requested", "ok", "ok"]),
        (ASKING, [allowed, started, result()], ["waiting", "requested", "running", "ok"]),
        (ASKING, [denied, result("denied")], ["waiting", "denied", "denied"]),
        (ASKING, [denied, allowed], ["waiting", "denied", "denied"]),
        (ASKING, [result("stopped"), allowed], ["waiting", "stopped", "stopped"]),
        (
            FREE,
            [started, unknown, asked_anew, allowed, started, result()],
            ["requested", "running", "requested", "waiting", "requested", "running", "ok"],
        ),
        (
            ASKING,
            [allowed, started, unknown, asked_anew, denied, result("unknown")],
            ["waiting", "requested", "running", "requested", "waiting", "denied", "unknown"],
        ),
        (
            AgentCustomToolUse(name="x", input={}),
            [lambda call: UserCustomToolResult(custom_tool_use_id=call, is_error=True)],
            ["waiting", "error"],
        ),
    ],
)
def test_a_card_tells_the_state_of_its_call(
    conversation: Conversation, call: Event, later: list[object], states: list[str]
) -> None:
    assert states_of(conversation, call, *later) == states


def test_a_card_that_asks_tells_until_when(conversation: Conversation) -> None:
    words = "Unless somebody answers, it is denied on"
    (row,) = record(conversation, ASKING)
    assert words not in read(the_unit(conversation)).text

    day = AskTerms(expires_seconds=86_400)
    record(
        conversation, ApprovalRequested(tool_use_id=row.uid, reason="A rule changed.", terms=day)
    )
    due = date_format(row.created_at + timedelta(days=1), "DATETIME_FORMAT")
    assert f"{words} {due.partition(',')[0]}" in read(the_unit(conversation)).text

    record(conversation, allowed(row.uid))
    assert words not in read(the_unit(conversation)).text


def test_a_card_that_asks_at_once_tells_until_when(conversation: Conversation) -> None:
    record(conversation, ASKING.model_copy(update={"terms": AskTerms(expires_seconds=60)}))
    assert "Unless somebody answers, it is denied on" in read(the_unit(conversation)).text


def test_a_card_is_one_line_until_it_is_opened(conversation: Conversation) -> None:
    (row,) = record(conversation, FREE)
    record(conversation, started(row.uid), ended(row.uid), result()(row.uid))  # type: ignore[operator]

    unit = the_unit(conversation)

    assert " open" not in unit.partition(">")[0]
    line = read(unit.split("<summary>")[1].split("</summary>")[0]).text
    assert line == "✓ Read a.txt 2.5 s done"


def test_errors_are_open_and_say_so_first(conversation: Conversation) -> None:
    (row,) = record(conversation, FREE)
    record(conversation, result("error", "No such file.")(row.uid))  # type: ignore[operator]

    unit = the_unit(conversation)

    assert " open" in unit.partition(">")[0]
    assert unit.index("No such file.") < unit.index("a.txt</pre>")


def test_a_call_that_asks_shows_its_exact_arguments_the_rule_and_both_answers(
    conversation: Conversation,
) -> None:
    """Whoever decides sees all of what would run."""
    content = "line\n" * 3_000
    (row,) = record(conversation, ASKING.model_copy(update={"input": {"content": content}}))

    unit = the_unit(conversation)
    reader = read(unit)

    assert unit.count("line\n") == 3_000
    assert "Show all" not in reader.text
    assert "Rule write_file: always ask." in reader.text
    assert "changes files of this conversation's workspace" in reader.text
    assert reader.having(data_action="allow", data_call=row.uid)
    assert reader.having(data_action="deny", data_call=row.uid)
    assert reader.having(name="reason", id=f"reason-{row.uid}")
    assert reader.having(**{"for": f"reason-{row.uid}"})
    assert " open" in unit.partition(">")[0]


def test_a_call_of_unknown_outcome_asks_before_it_runs_again(
    conversation: Conversation, alice: User
) -> None:
    (row,) = record(conversation, ASKING)
    record(conversation, allowed(row.uid), actor=alice)
    record(conversation, started(row.uid), unknown(row.uid))
    assert not read(the_unit(conversation)).having(data_action="allow"), "nobody is asked yet"
    record(conversation, asked_anew(row.uid))

    reader = read(the_unit(conversation))

    assert "it may or may not have happened" in reader.text
    assert "Allowed by" not in reader.text
    assert reader.having(data_action="allow", data_call=row.uid)


def test_arguments_cannot_hide_what_they_say(conversation: Conversation) -> None:
    record(
        conversation, ASKING.model_copy(update={"input": {"path": "safe\u202etxt.exe\u200b\x1b"}})
    )

    assert "safe\\u202etxt.exe\\u200b\\u001b" in the_unit(conversation)


def test_a_decided_call_folds_and_says_who_decided_and_why(
    conversation: Conversation, alice: User
) -> None:
    (row,) = record(conversation, ASKING)
    record(conversation, denied(row.uid), actor=alice)
    record(conversation, allowed(row.uid))

    unit = the_unit(conversation)
    reader = read(unit)

    assert " open" not in unit.partition(">")[0]
    assert "Denied by alice" in reader.text
    assert "Too risky." in reader.text
    assert "Allowed by" not in reader.text
    assert not reader.having(data_action="allow")


def test_long_arguments_and_results_are_cut_and_whole_behind_show_all(
    conversation: Conversation,
) -> None:
    (row,) = record(conversation, FREE.model_copy(update={"input": {"path": "y" * 5_000}}))
    text = "\n".join(f"row {n}" for n in range(100))
    record(conversation, result("ok", text)(row.uid))  # type: ignore[operator]

    unit = the_unit(conversation)

    assert "y" * 5_000 in unit
    assert "row 99</pre>" in unit
    assert "Show all (100 lines, 689 characters)" in unit


def test_a_change_of_a_file_is_shown_as_a_diff_with_counts(conversation: Conversation) -> None:
    (row,) = record(conversation, AgentToolUse(name="edit_file", input={"path": "a.py"}))
    change = DiffDisplay(path="a.py", diff="@@ -1 +1,2 @@\n-a\n+b\n+c\n", added=2, removed=1)
    record(
        conversation,
        AgentToolResult(tool_use_id=row.uid, content=words("Replaced."), display=change),
    )

    unit = the_unit(conversation)

    assert unit.count('<tr class="diff-added">') == 2
    line = read(unit.split("<summary>")[1].split("</summary>")[0]).text
    assert "added:+2 removed:−1" in line
    assert "What the agent was told" in unit
    assert " open" in unit.partition(">")[0]


def test_a_table_is_shown_as_one(conversation: Conversation) -> None:
    (row,) = record(conversation, FREE)
    table = TableDisplay(columns=("name",), rows=(("<b>",),))
    record(conversation, AgentToolResult(tool_use_id=row.uid, content=(), display=table))

    assert "<td>&lt;b&gt;</td>" in the_unit(conversation)


def test_input_that_no_schema_allows_does_not_break_the_card(conversation: Conversation) -> None:
    record(conversation, AgentToolUse(name="read_file", input={"path": {"not": "text"}}))
    record(conversation, AgentToolUse(name="no_such_tool", input={"a": None}))

    for unit in drawn(conversation):
        read(unit)


def test_a_plan_is_rendered_and_approved_or_sent_back(conversation: Conversation) -> None:
    call = AgentToolUse(
        name="present_plan", input={"plan": "# Steps\n\n1. *Read*"}, evaluated_permission="ask"
    )
    (row,) = record(conversation, call)

    unit = the_unit(conversation)
    reader = read(unit)

    assert attribute_of(unit, "data-kind") == "plan"
    assert "<em>Read</em>" in unit
    assert "Approve plan" in reader.text
    assert "Ask for changes" in reader.text
    assert any(tag == "textarea" and a["name"] == "reason" for tag, a in reader.tags)

    record(conversation, allowed(row.uid))
    decided = read(the_unit(conversation))
    assert "Read" in decided.text
    assert not decided.having(data_action="allow")


# --- the rest -------------------------------------------------------------------------------------


def test_an_error_says_what_to_do_names_its_code_and_offers_another_try(
    conversation: Conversation,
) -> None:
    body = SessionErrorBody(
        type="x", code="overloaded", message="Too busy.", hint="Wait a bit.", attempts=4
    )
    record(conversation, SessionError(error=body))

    reader = read(the_unit(conversation))

    assert "Too busy." in reader.text
    assert "Tried 4 times." in reader.text
    assert "Wait a bit." in reader.text
    assert "overloaded" in reader.text
    assert reader.having(data_action="retry")


@pytest.mark.parametrize("code", ["bad_credentials", "not_configured", "overloaded"])
def test_a_failure_for_want_of_a_good_key_leads_to_the_keys(
    conversation: Conversation, code: str
) -> None:
    record(conversation, SessionError(error=SessionErrorBody(type="x", code=code, message="No.")))

    linked = bool(read(the_unit(conversation)).having(href="/settings/keys/"))

    assert linked == (code != "overloaded")


def test_an_error_that_is_being_retried_is_a_line_with_the_wait_and_a_way_out_of_it(
    conversation: Conversation,
) -> None:
    body = SessionErrorBody(
        type="x", code="overloaded", message="Busy.", retry_status="retrying", attempts=2
    )
    record(conversation, SessionError(error=body), SessionStatusRescheduled(delay_seconds=30))

    failed, waits = drawn(conversation)
    assert "The model could not answer: Busy. Tried 2 times." in failed
    assert "data-due" not in failed
    assert "Trying again at" in waits
    assert 'data-action="retry"' in waits


DETAILS = StopDetails(code="why", message="Because.", hint="Do this.")


@pytest.mark.parametrize(
    ("idle", "said"),
    [
        (SessionStatusIdle(stop_reason=EndTurn()), None),
        (SessionStatusIdle(stop_reason=RequiresAction(event_ids=("a",))), None),
        (SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=DETAILS), None),
        (SessionStatusIdle(stop_reason=EndTurn(), interrupted=True), "Stopped."),
        (SessionStatusIdle(stop_reason=EndTurn(), stop_details=DETAILS), "Because."),
        (SessionStatusIdle(stop_reason=BudgetReached(), stop_details=DETAILS),
         "Stopped at a limit. Because. Do this."),
        (SessionStatusIdle(stop_reason=Refusal()), "The model declined to answer."),
    ],
)  # fmt: skip
def test_only_a_rest_one_would_wonder_about_is_told(
    conversation: Conversation, idle: Event, said: str | None
) -> None:
    record(conversation, idle)

    if said is None:
        assert drawn(conversation) == []
    else:
        assert said in read(the_unit(conversation)).text


def test_a_limit_offers_to_go_on_and_leads_to_the_budgets(conversation: Conversation) -> None:
    record(conversation, SessionStatusIdle(stop_reason=BudgetReached(), stop_details=DETAILS))

    limit = read(the_unit(conversation))
    assert limit.having(data_action="retry")
    assert limit.having(href=f"/c/{conversation.uid}/budget/")


def test_switches_and_retries_name_who_asked(conversation: Conversation, alice: User) -> None:
    record(
        conversation, SessionUpdated(features={"plan_mode": True}), RetryRequested(), actor=alice
    )
    record(conversation, SessionUpdated(title="Only a title"))

    switched, retried = (read(unit).text for unit in drawn(conversation))

    assert "Plan mode: on. (alice)" in switched
    assert "Trying again. (alice)" in retried


def test_the_end_of_a_background_command_is_told_with_code_time_and_output(
    conversation: Conversation,
) -> None:
    record(
        conversation,
        BackgroundFinished(
            background_id="bg_1",
            command="make\ntest",
            state="failed",
            exit_code=2,
            seconds=41.2,
            tail="1 <failed>",
        ),
        BackgroundFinished(
            background_id="bg_2", command="x", state="lost", detail="The server was restarted."
        ),
    )

    failed, lost = (read(unit).text for unit in drawn(conversation))

    assert "Background command failed (exit code 2, 41 s): make test" in failed
    assert "1 <failed>" in failed
    assert "lost with its process" in lost
    assert "The server was restarted." in lost


REACHED = NetworkDecision(
    method="CONNECT", host="files.example", port=443, allowed=True, reason="it is listed", times=2
)
TURNED_AWAY = NetworkDecision(
    method="GET", host=f"evil.example{EVIL}", port=80, allowed=False, reason=f"not listed {EVIL}"
)


def test_what_a_command_asked_its_way_out_for_stands_on_its_card_and_whose_words_it_holds(
    conversation: Conversation,
) -> None:
    use = Entry.of(AgentToolUse(name="bash", input={"command": "curl x"}))
    network = NetworkRecord(allowed=2, refused=9, decisions=(REACHED, TURNED_AWAY))
    record(
        conversation,
        use,
        AgentToolResult(
            tool_use_id=use.uid,
            content=words("ok"),
            display=CommandDisplay(stdout="ok", exit_code=0, network=network),
            untrusted=True,
            untrusted_by=f"a command that reached files.example{EVIL}",
        ),
    )

    html = the_unit(conversation)

    assert "<script" not in html
    assert "<img" not in html
    text = read(html).text
    assert "Network: 2 allowed, 9 refused: evil.example" in text
    assert "files.example:443" in text
    assert "8 more requests are not listed." in text
    assert "This answer may hold words of others: a command that reached files.example" in text


def test_a_command_that_asked_for_nothing_has_no_line_on_the_network(
    conversation: Conversation,
) -> None:
    use = Entry.of(AgentToolUse(name="bash", input={"command": "ls"}))
    display = CommandDisplay(stdout="ok", exit_code=0, network=NetworkRecord())
    record(
        conversation,
        use,
        AgentToolResult(tool_use_id=use.uid, content=words("ok"), display=display),
    )

    assert "Network" not in read(the_unit(conversation)).text


def test_the_network_of_a_background_command_is_told_with_its_end(
    conversation: Conversation,
) -> None:
    network = NetworkRecord(allowed=2, decisions=(REACHED,))
    record(
        conversation,
        BackgroundFinished(
            background_id="bg_1", command="make", state="completed", exit_code=0, network=network
        ),
    )

    text = read(the_unit(conversation)).text
    assert "Network: 2 allowed, 0 refused: files.example" in text


def test_sleeping_and_waking_are_told(conversation: Conversation) -> None:
    record(
        conversation,
        WakeRequested(delay_seconds=5_400, reason="see the build"),
        WakeDue(reason="see the build"),
    )

    sleeping, woken = (read(unit).text for unit in drawn(conversation))

    assert "Sleeps for 1 h 30 min: see the build" in sleeping
    assert "Woken: see the build" in woken
