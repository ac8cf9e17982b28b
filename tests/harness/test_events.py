"""Old payloads load for ever: one golden file for each type and version of the event union.

A type whose fields change gets a file in the next version's directory; the older ones stay as they
are.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.events import TYPES, AgentToolUse, dump, dump_text, load, subject_of

GOLDEN = Path(__file__).parent.parent / "golden" / "events"
FILES = sorted(GOLDEN.glob("v*/*.json"))
NEWEST = {path.stem: path for path in sorted(FILES, key=lambda path: int(path.parent.name[1:]))}
"""The last version of each type."""


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_stored_payload_of_any_version_still_loads(path: Path) -> None:
    event = load(json.loads(path.read_text()))

    assert event.type == path.stem
    assert load(dump(event)) == event


@pytest.mark.parametrize("path", NEWEST.values(), ids=named)
def test_a_payload_of_the_current_version_is_stored_again_as_it_was(path: Path) -> None:
    payload = json.loads(path.read_text())

    assert dump(load(payload)) == payload
    assert json.loads(dump_text(load(payload))) == payload


@pytest.mark.parametrize("number", [1, 2**70, 0.5, float("nan"), float("-inf")])
@pytest.mark.parametrize(
    "text",
    ["A\0B", r"A\u0000B", "\ud83d", "\ud83d\ude00", "\N{SNOWMAN}"],
    ids=["nul", "words", "half", "halves", "wide"],
)
def test_the_text_of_a_payload_says_what_the_payload_says_and_both_can_be_kept(
    text: str, number: float
) -> None:
    event = AgentToolUse(name="look", input={text: [text, number]})

    assert json.loads(dump_text(event)) == dump(event)
    assert "\0" not in str(dump(event))
    json.dumps(dump(event), ensure_ascii=False, allow_nan=False).encode()
    ((said, _number),) = dump(event)["input"].values()
    assert said == text or "\N{REPLACEMENT CHARACTER}" in said or said == "\N{GRINNING FACE}"


def test_every_type_of_the_union_has_a_golden_file_and_no_file_is_left_over() -> None:
    assert set(NEWEST) ^ set(TYPES) == set(), (
        "its golden file stands in the newest tests/golden/events/v*"
    )


def test_the_names_of_types_are_unique() -> None:
    assert len(TYPES) == len(set(TYPES))


@pytest.mark.parametrize("path", NEWEST.values(), ids=named)
def test_an_unknown_field_is_refused_by_its_name(path: Path) -> None:
    payload = {**json.loads(path.read_text()), "surprise": 1}

    with pytest.raises(ValidationError) as refused:
        load(payload)

    (problem,) = refused.value.errors()
    assert problem["loc"][-1] == "surprise"
    assert problem["type"] == "extra_forbidden"


@pytest.mark.parametrize("payload", [{"type": "x.unheard_of"}, {"type": None}, {}])
def test_an_unknown_type_is_refused_and_the_known_ones_are_listed(
    payload: dict[str, object],
) -> None:
    with pytest.raises(ValidationError) as refused:
        load(payload)

    (problem,) = refused.value.errors()
    assert problem["type"] in {"union_tag_invalid", "union_tag_not_found"}
    if problem["type"] == "union_tag_invalid":
        assert "user.message" in problem["msg"]


def test_an_event_cannot_be_changed_after_it_was_made() -> None:
    event = load(json.loads(NEWEST["agent.message"].read_text()))

    with pytest.raises(ValidationError):
        setattr(event, "type", "agent.thinking")  # noqa: B010 - the point is to try


SUBJECTS = {
    "user.tool_confirmation": "tool_use_id",
    "user.tool_result": "tool_use_id",
    "x.call_handed_out": "tool_use_id",
    "x.subagent_started": "tool_use_id",
    "x.subagent_ended": "tool_use_id",
    "x.outcome_unknown": "tool_use_id",
    "x.approval_requested": "tool_use_id",
    "x.approval_voted": "tool_use_id",
    "x.message_edited": "event_id",
    "x.message_steered": "event_id",
    "user.custom_tool_result": "custom_tool_use_id",
    "agent.message": "continues",
    "agent.tool_result": "tool_use_id",
    "agent.mcp_tool_result": "mcp_tool_use_id",
    "x.mcp_elsewhere": "tool_use_id",
    "span.model_request_end": "model_request_start_id",
    "span.outcome_evaluation_end": "outcome_evaluation_start_id",
    "x.outcome_check_ran": "outcome_evaluation_start_id",
    "span.tool_start": "tool_use_id",
    "span.tool_end": "tool_use_id",
    "x.message_withdrawn": "event_id",
    "x.content_set_aside": "event_id",
    "x.content_redacted": "event_id",
    "x.feedback_given": "event_id",
    "x.message_pinned": "event_id",
}


@pytest.mark.parametrize("event_type", TYPES)
def test_an_event_is_about_what_it_names_and_otherwise_about_itself(event_type: str) -> None:
    payload = json.loads(NEWEST[event_type].read_text())
    expected = payload[SUBJECTS[event_type]] if event_type in SUBJECTS else "sevt_own"

    assert subject_of("sevt_own", load(payload)) == expected
