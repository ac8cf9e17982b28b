"""Questions to a person and custom tools: answered once, by whom they belong to, across restarts."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from conversations.actions.answers import (
    SKIPPED,
    answer_custom_tool,
    answer_questions,
    refuse_custom_tool,
    skip_questions,
)
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, stop
from conversations.models import Conversation, Event
from harness.agentconfig import CustomTool
from harness.content import text_of
from harness.errors import Conflict, Invalid, NotFound, TooLarge
from harness.events import AgentMessage
from jobs.engine import engine
from providers.scripted import Hold, call, reply, say
from tests.conversations.conftest import Converse, rested, types, until
from tools_app.questions import OWN_WORDS, Answer

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = [
    {
        "question": "Which database shall it use?",
        "header": "Database",
        "options": [
            {"label": "PostgreSQL", "description": "A server of its own."},
            {"label": "SQLite", "description": "One file."},
        ],
    },
    {
        "question": "Which parts shall have tests?",
        "options": [{"label": "Models"}, {"label": "Views"}, {"label": "Jobs"}],
        "multi_select": True,
        "free_text": False,
    },
    {"question": "Anything else?"},
]
ASK = reply(say("First some questions."), call("ask_user", questions=QUESTIONS))
ANSWERS = (
    Answer(chosen=("PostgreSQL",), text="version 17"),
    Answer(chosen=("Models", "Jobs")),
    Answer(),
)
STOCK = CustomTool(name="look_up_stock", description="How many are left.")


def asked(conversation: Conversation) -> Event:
    return conversation.events.get(type="agent.custom_tool_use")


def texts(conversation: Conversation) -> list[str]:
    rows = conversation.events.filter(type="agent.message").order_by("seq")
    return [text_of(row.value.content) for row in rows if isinstance(row.value, AgentMessage)]


def said_to_the_model(scripted) -> str:
    """The last answer of a tool in the newest request."""
    parts = [part for message in scripted.requests[-1].messages for part in message.parts]
    return text_of([part for part in parts if hasattr(part, "call_id")][-1].content)


@pytest.fixture
def questioned(alice: User, converse: Converse):
    """Alice's conversation, resting on questions, with nothing alive that waits for her."""
    conversation, scripted = converse([ASK, reply("I will use that.")])
    post_message(actor=alice, conversation=conversation, text="Set it up.")
    rested(conversation)
    assert conversation.stop_reason == "requires_action"
    engine.stop()
    return conversation, scripted


def test_answers_given_after_a_restart_reach_the_model_and_count_once(alice: User, questioned):
    conversation, scripted = questioned
    uid = asked(conversation).uid
    answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=ANSWERS)
    for late in (ANSWERS, (Answer(text="Something else"),)):
        with pytest.raises(Conflict):
            answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=late)
    with pytest.raises(Conflict):
        skip_questions(actor=alice, conversation=conversation, call_uid=uid)
    rested(conversation, 2)
    assert texts(conversation)[-1] == "I will use that."
    assert said_to_the_model(scripted) == (
        "Which database shall it use?\n→ PostgreSQL; “version 17”\n\n"
        "Which parts shall have tests?\n→ Models, Jobs\n\n"
        "Anything else?\n→ (left open)"
    )
    result = conversation.events.get(type="user.custom_tool_result")
    assert result.actor == alice
    with pytest.raises(Conflict):
        answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=ANSWERS)


def test_nobody_else_can_answer_and_nobody_learns_that_there_is_a_question(
    questioned, bob: User, mallory: User
):
    conversation, _ = questioned
    uid = asked(conversation).uid
    for stranger in (bob, mallory):
        for attempt in (
            lambda who: answer_questions(
                actor=who, conversation=conversation, call_uid=uid, answers=ANSWERS
            ),
            lambda who: skip_questions(actor=who, conversation=conversation, call_uid=uid),
            lambda who: answer_custom_tool(
                actor=who, conversation=conversation, call_uid=uid, content="x"
            ),
        ):
            with pytest.raises(NotFound):
                attempt(stranger)
    assert types(conversation).count("user.custom_tool_result") == 0


def test_a_call_of_another_conversation_is_not_found(alice: User, questioned, converse: Converse):
    conversation, _ = questioned
    other, _script = converse([])
    with pytest.raises(NotFound):
        answer_questions(
            actor=alice, conversation=other, call_uid=asked(conversation).uid, answers=ANSWERS
        )
    for uid in ("sevt_none", "", "\0", conversation.events.get(type="user.message").uid):
        with pytest.raises(NotFound):
            answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=ANSWERS)


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ((), "No question has an answer"),
        ((Answer(), Answer(text="  ")), "No question has an answer"),
        ((Answer(chosen=("Oracle",)),), "not among the options"),
        ((Answer(chosen=("PostgreSQL", "SQLite")),), "takes one option"),
        ((Answer(), Answer(chosen=("Models",), text="and more")), "takes only its options"),
        ((Answer(text="x" * (OWN_WORDS + 1)),), f"at most {OWN_WORDS}"),
        ((Answer(text="x"),) * 4, "only 3 questions"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(
    alice: User, questioned, answers: tuple[Answer, ...], problem: str
):
    conversation, _ = questioned
    uid = asked(conversation).uid
    with pytest.raises(Invalid, match=problem) as refused:
        answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=answers)
    assert refused.value.field.startswith("answers")
    longest = (Answer(text="x" * OWN_WORDS),)
    answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=longest)


def test_skipped_questions_are_told_so(alice: User, questioned):
    conversation, scripted = questioned
    skip_questions(actor=alice, conversation=conversation, call_uid=asked(conversation).uid)
    rested(conversation, 2)
    assert said_to_the_model(scripted) == SKIPPED


def test_a_message_in_place_of_an_answer_is_the_answer_and_joins_the_turn(alice: User, questioned):
    conversation, scripted = questioned
    post_message(actor=alice, conversation=conversation, text="Just use what you like.")
    rested(conversation, 2)
    assert texts(conversation)[-1] == "I will use that."
    last = scripted.requests[-1].messages[-1]
    assert "Just use what you like." in str(last.parts)
    assert "wrote a message" in str(last.parts)
    assert conversation.queued_count == 0
    with pytest.raises(Conflict):
        skip_questions(actor=alice, conversation=conversation, call_uid=asked(conversation).uid)


def test_the_same_message_sent_twice_sets_questions_aside_once(alice: User, questioned):
    conversation, _ = questioned
    for _attempt in range(2):
        post_message(actor=alice, conversation=conversation, text="As you like.", key="k1")
    rested(conversation, 2)
    assert types(conversation).count("user.custom_tool_result") == 1
    assert types(conversation).count("x.message_steered") == 1


def test_a_stop_answers_the_questions_as_stopped(alice: User, questioned):
    conversation, scripted = questioned
    stop(actor=alice, conversation=conversation)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    assert conversation.events.get(type="agent.tool_result").value.outcome == "stopped"
    assert len(scripted.requests) == 1
    with pytest.raises(Conflict):
        answer_questions(
            actor=alice,
            conversation=conversation,
            call_uid=asked(conversation).uid,
            answers=ANSWERS,
        )


def test_questions_are_not_allowed_or_denied_like_other_calls(alice: User, questioned):
    conversation, _ = questioned
    with pytest.raises(NotFound):
        decide_call(
            actor=alice,
            conversation=conversation,
            call_uid=asked(conversation).uid,
            allow=True,
        )


def test_an_answer_may_come_while_other_calls_of_the_step_still_run(
    alice: User, converse: Converse
):
    hold = Hold()
    conversation, scripted = converse(
        [
            reply(call("ask_user", questions=QUESTIONS), call("list_files")),
            reply(say("So ", hold, "be it.")),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    row = until(lambda: conversation.events.filter(type="agent.custom_tool_use").first())
    answer_questions(actor=alice, conversation=conversation, call_uid=row.uid, answers=ANSWERS)
    until(hold.reached.is_set)
    hold.release.set()
    until(lambda: texts(conversation) == ["So be it."])
    rested(conversation)
    assert "PostgreSQL" in str(scripted.requests[-1].messages[-1].parts)


@pytest.mark.parametrize(
    "questions",
    [
        [],
        QUESTIONS + QUESTIONS,
        [{"question": ""}],
        [{"question": "?", "options": [{"label": "only one"}]}],
        [{"question": "?", "options": [{"label": "a"}, {"label": "a"}]}],
        [{"question": "?", "colour": "red"}],
    ],
)
def test_questions_that_break_the_schema_are_told_to_the_model_and_to_nobody_else(
    alice: User, converse: Converse, questions: list[Any]
):
    conversation, _ = converse([reply(call("ask_user", questions=questions)), reply("Sorry.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert conversation.stop_reason == "end_turn"
    assert conversation.events.get(type="agent.tool_result").value.is_error


# --- custom tools ---------------------------------------------------------------------------------


@pytest.fixture
def calling(alice: User, converse: Converse):
    conversation, scripted = converse(
        [reply(call("look_up_stock", article="A-113")), reply("14 are left.")],
        custom_tools=(STOCK,),
    )
    post_message(actor=alice, conversation=conversation, text="How many?")
    rested(conversation)
    engine.stop()
    return conversation, scripted


def test_the_result_of_a_custom_tool_resumes_the_run_once(alice: User, calling):
    conversation, scripted = calling
    assert conversation.stop_reason == "requires_action"
    uid = asked(conversation).uid
    answer_custom_tool(actor=alice, conversation=conversation, call_uid=uid, content="14")
    with pytest.raises(Conflict):
        answer_custom_tool(actor=alice, conversation=conversation, call_uid=uid, content="15")
    rested(conversation, 2)
    assert said_to_the_model(scripted) == "14"
    assert texts(conversation) == ["14 are left."]
    assert len(scripted.requests) == 2


def test_somebody_elses_custom_call_is_not_found(calling, bob: User, mallory: User):
    conversation, _ = calling
    for stranger in (bob, mallory):
        with pytest.raises(NotFound):
            answer_custom_tool(
                actor=stranger,
                conversation=conversation,
                call_uid=asked(conversation).uid,
                content="0",
            )


def test_a_custom_call_refused_by_hand_is_an_error_that_the_model_reads(alice: User, calling):
    conversation, scripted = calling
    refuse_custom_tool(
        actor=alice,
        conversation=conversation,
        call_uid=asked(conversation).uid,
        reason="The shop is closed.",
    )
    rested(conversation, 2)
    assert said_to_the_model(scripted) == "The person refused this call. The shop is closed."
    assert conversation.events.get(type="user.custom_tool_result").value.is_error


def test_a_message_does_not_answer_a_programs_call(alice: User, calling):
    """It waits, as it does behind any call that asks."""
    conversation, _ = calling
    post_message(actor=alice, conversation=conversation, text="Hello?")
    rested(conversation)
    assert conversation.queued_count == 1
    assert types(conversation).count("user.custom_tool_result") == 0


def test_a_result_that_is_too_long_or_no_questions_answer_is_refused(alice: User, calling):
    conversation, _ = calling
    uid = asked(conversation).uid
    with pytest.raises(TooLarge):
        answer_custom_tool(
            actor=alice, conversation=conversation, call_uid=uid, content="x" * 200_001
        )
    with pytest.raises(Invalid, match="asks no questions"):
        answer_questions(actor=alice, conversation=conversation, call_uid=uid, answers=ANSWERS)
    answer_custom_tool(actor=alice, conversation=conversation, call_uid=uid, content="x" * 200_000)
