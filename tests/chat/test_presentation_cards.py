"""A card says in words what its call does, and shows what an edit would change before it may."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from chat.presentation import frames
from chat.presentation.proposals import proposed_by
from conversations.models import Conversation
from harness.content import Text
from harness.events import (
    AgentToolResult,
    AgentToolUse,
    ApprovalVoted,
    CommandDisplay,
    DiffDisplay,
    SpanToolStart,
    UserToolConfirmation,
)
from harness.events import Event as EventValue
from tests.chat.drawing import attribute_of, conversation, record
from tests.chat.test_presentation_units import EVIL, read, the_unit

__all__ = ["conversation"]


def title_of(unit: str) -> str:
    return read(unit.partition("<summary>")[2].partition("</summary>")[0]).text


def called(conversation: Conversation, name: str, given: dict[str, Any], **more: Any) -> str:
    (row,) = record(conversation, AgentToolUse(name=name, input=given, **more))
    return row.uid


def told(call: str, outcome: str = "ok", display: object = None) -> EventValue:
    return AgentToolResult.model_validate(
        {
            "tool_use_id": call,
            "content": (Text(text="Well."),),
            "outcome": outcome,
            "is_error": outcome != "ok",
            "display": display,
        }
    )


EDIT = {"path": "app.py", "old_text": "a = 1", "new_text": "a = 2"}


def test_a_title_says_what_is_asked_done_and_was_done(conversation: Conversation) -> None:
    call = called(conversation, "edit_file", EDIT)
    said = [title_of(the_unit(conversation))]
    for event in (SpanToolStart(tool_use_id=call, effect="workspace"), told(call)):
        record(conversation, event)
        said.append(title_of(the_unit(conversation)))
    assert [line.split(" app.py")[0] for line in said] == ["○ Edit", "● Editing", "✓ Edited"]


def test_a_title_says_what_could_not_be_done(conversation: Conversation) -> None:
    call = called(conversation, "edit_file", EDIT)
    record(conversation, told(call, "error"))
    assert "Could not edit app.py" in title_of(the_unit(conversation))


def test_a_new_file_is_created_and_one_that_was_there_written(conversation: Conversation) -> None:
    for created, verb in ((True, "Created"), (False, "Wrote")):
        call = called(conversation, "write_file", {"path": f"{verb}.py", "content": "x\n"})
        change = DiffDisplay(
            path="x.py", diff="@@ -0,0 +1 @@\n+x\n", added=1, removed=0, created=created
        )
        record(conversation, told(call, display=change))
    from_log = titles_of(conversation)
    assert "Created Created.py" in from_log[0]
    assert "Wrote Wrote.py" in from_log[1]


def titles_of(conversation: Conversation) -> list[str]:
    return [title_of(str(unit)) for unit in frames.page(conversation, limit=100).units]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("bash", {"command": "pytest  -q"}, "Run pytest -q"),
        ("read_file", {"path": "notes.md"}, "Read notes.md"),
        ("list_files", {}, "List the workspace"),
        ("grep", {"pattern": "TODO", "path": "src"}, "Search for TODO · src"),
        ("todo_list", {}, "Look at the tasks"),
        ("no_such_tool", {"a": 1}, "no_such_tool"),
        ("write_file", {"path": {"no": "text"}}, "Write {'no': 'text'}"),
        ("read_file", {"path": "n" * 500}, f"Read {'n' * 120}…"),
    ],
)
def test_titles(conversation: Conversation, name: str, given: dict[str, Any], words: str) -> None:
    called(conversation, name, given)
    assert title_of(the_unit(conversation)) == f"○ {words} about to run"


def test_a_title_is_no_markup_and_hides_nothing(conversation: Conversation) -> None:
    called(conversation, "read_file", {"path": EVIL})
    unit = the_unit(conversation)
    assert not {"script", "img"} & {tag for tag, _attrs in read(unit).tags}
    assert "\\u202e" in title_of(unit)


@pytest.mark.parametrize(
    ("ended", "state"), [({"exit_code": 0}, "ok"), ({"exit_code": 1}, "failed"),
                         ({"exit_code": None, "ended_by": "memory"}, "failed")]
)  # fmt: skip
def test_a_command_that_ended_badly_has_no_green_tick(
    conversation: Conversation, ended: dict[str, Any], state: str
) -> None:
    call = called(conversation, "bash", {"command": "pytest -q"})
    record(conversation, told(call, display=CommandDisplay(stdout="1 failed", **ended)))
    unit = the_unit(conversation)
    assert attribute_of(unit, "data-state") == state
    assert "Ran pytest -q" in title_of(unit)
    assert ("✓" in title_of(unit)) == (state == "ok")
    assert '<pre class="plain">pytest -q</pre>' in unit, "what ran is there to the letter"


def test_an_edit_that_asks_shows_its_change_and_folds_its_arguments(
    conversation: Conversation,
) -> None:
    called(conversation, "edit_file", EDIT, evaluated_permission="ask")
    unit = the_unit(conversation)
    reader = read(unit)
    assert unit.count('<tr class="diff-removed">') == unit.count('<tr class="diff-added">') == 1
    assert "May the agent change this file exactly so?" in reader.text
    (fold,) = reader.having(data_fold="arguments")
    assert "open" not in fold
    assert "old_text" in reader.text
    assert "No newline" not in reader.text
    assert "diff-counts" not in unit, "nothing has changed yet"


def test_a_whole_file_that_asks_says_that_it_replaces(conversation: Conversation) -> None:
    given = {"path": "a.py", "content": "one\ntwo\n"}
    called(conversation, "write_file", given, evaluated_permission="ask")
    unit = the_unit(conversation)
    assert unit.count('<tr class="diff-added">') == 2
    assert "is replaced as a whole" in read(unit).text


def test_the_change_shown_is_the_one_that_a_person_put_in_its_place(
    conversation: Conversation,
) -> None:
    call = called(conversation, "edit_file", EDIT, evaluated_permission="ask")
    changed = {**EDIT, "path": "other.py", "new_text": "a = 3"}
    record(conversation, ApprovalVoted(tool_use_id=call, allowed=1, needed=2, edited_input=changed))
    unit = the_unit(conversation)
    assert "a = 3" in unit.partition('data-fold="arguments"')[0]
    assert "Edit other.py" in title_of(unit)


@pytest.mark.parametrize(
    "given",
    [
        {**EDIT, "new_text": "y" * 3_000},
        {**EDIT, "new_text": "y\n" * 3_000},
        {**EDIT, "old_text": f"{'y' * 1_000}\n" * 70},
        {**EDIT, "more": "than is shown"},
        {**EDIT, "new_text": None},
        {**EDIT, "path": ""},
    ],
)
def test_what_a_diff_would_not_show_to_the_last_letter_is_decided_by_its_arguments(
    conversation: Conversation, given: dict[str, Any]
) -> None:
    called(conversation, "edit_file", given, evaluated_permission="ask")
    unit = the_unit(conversation)
    assert "diff-added" not in unit
    assert not read(unit).having(data_fold="arguments")
    assert "exactly these arguments" in read(unit).text


def test_a_change_cannot_hide_what_it_says(conversation: Conversation) -> None:
    evil = {**EDIT, "new_text": "safe\u202e\x1b[2K\r"}
    called(conversation, "edit_file", evil, evaluated_permission="ask")
    assert "safe\\u202e\\u001b[2K\\u000d" in the_unit(conversation).partition("data-fold")[0]


def test_what_was_denied_changed_nothing(conversation: Conversation) -> None:
    call = called(conversation, "edit_file", EDIT, evaluated_permission="ask")
    record(
        conversation, UserToolConfirmation(tool_use_id=call, result="deny"), told(call, "denied")
    )
    unit = the_unit(conversation)
    assert "what it was to change" in read(unit).text
    assert "diff-counts" not in unit
    assert " open" not in unit.partition(">")[0]


def test_the_longest_edit_is_told_in_a_moment() -> None:
    """Two texts without a line in common at either end, and much in between that matches."""
    old = "".join(f"{number % 7}\n" for number in range(900))
    new = "".join(f"{number % 5}\n" for number in range(900))
    began = process_time()
    proposal = proposed_by("edit_file", {"path": "a", "old_text": f"x\n{old}", "new_text": new})
    assert proposal is not None
    assert (proposal.added, proposal.removed) == (900, 901)
    assert process_time() - began < 1
