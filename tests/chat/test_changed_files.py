"""What the agent's tools changed in a conversation is listed with its counts, and each change shown."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest
from django.urls import reverse

from accounts.models import User
from chat.presentation.changed import CHANGES_SHOWN, changes_of
from conversations.models import Conversation
from harness.content import Text, UploadedFile
from harness.events import (
    AgentToolResult,
    DiffDisplay,
    Rewound,
    TableDisplay,
    UserMessage,
)
from tests.cast import ClientOf
from tests.chat.drawing import conversation, record
from tests.chat.test_presentation_units import EVIL
from tools_app.diffs import diff_of
from tools_app.workspace import workspace_for

__all__ = ["conversation"]


@pytest.fixture
def root(conversation: Conversation) -> Path:
    return workspace_for(conversation.uid)


def change(conversation: Conversation, path: str, before: str, after: str, **more: bool) -> None:
    display = diff_of(path, before, after, **more)
    record(
        conversation,
        AgentToolResult(tool_use_id="sevt_1", content=(Text(text="Well."),), display=display),
    )


def panel(client_of: ClientOf, person: User, conversation: Conversation) -> str:
    place = reverse("conversations:changes", args=[conversation.uid])
    answer = client_of(person).get(place, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_each_file_is_listed_once_with_what_was_added_and_removed(
    conversation: Conversation, root: Path, alice: User, client_of: ClientOf
) -> None:
    change(conversation, "a.py", "", "one\ntwo\n", created=True)
    change(conversation, "a.py", "one\ntwo\n", "one\n2\n")
    change(conversation, "b.py", "x\n", "y\n")
    record(
        conversation,
        AgentToolResult(
            tool_use_id="sevt_2", content=(), display=TableDisplay(columns=("a",), rows=())
        ),
    )
    for name in ("a.py", "b.py"):
        (root / name).write_text("x")
    html = panel(client_of, alice, conversation)
    assert html.count("<li>") == 2
    last, first = html.split("<li>")[1:]
    assert "b.py" in last
    assert ">new<" not in last
    assert "a.py" in first
    assert ">new<" in first
    assert "</span>3</span>" in first
    assert "</span>1</span>" in first
    assert "files/download/?path=a.py" in first


def test_a_workspace_that_is_lost_is_told_with_the_files_that_were_in_it(
    conversation: Conversation, root: Path, alice: User, client_of: ClientOf
) -> None:
    def listed() -> str:
        place = reverse("conversations:files", args=[conversation.uid])
        return client_of(alice).get(place, headers={"HX-Request": "true"}).content.decode()

    assert "No files yet." in listed()
    brought = UploadedFile(path="uploads/plan.pdf", size=9, media_type="application/pdf")
    record(conversation, UserMessage(content=(Text(text="Read it"),), files=(brought,)))
    change(conversation, f"{EVIL}.py", "", "one\n", created=True)
    change(conversation, "b.py", "", "one\n", created=True)
    (root / "b.py").write_text("one\n")
    assert "No files are here any more." not in listed()
    rmtree(root)
    told = listed()
    assert "No files yet." not in told
    assert "No files are here any more." in told
    assert told.count("plan.pdf") == 1
    assert told.count("b.py") == 1
    assert EVIL not in told


def test_a_file_that_is_gone_is_said_to_be(
    conversation: Conversation, root: Path, alice: User, client_of: ClientOf
) -> None:
    change(conversation, "a.py", "", "one\n", created=True)
    html = panel(client_of, alice, conversation)
    assert "deleted since" in html
    assert "files/download" not in html


@pytest.mark.parametrize("path", [EVIL, "../../etc/passwd", "a\0b", "", "x" * 5_000])
def test_a_path_is_text_wherever_it_leads(
    path: str, conversation: Conversation, root: Path, alice: User, client_of: ClientOf
) -> None:
    display = DiffDisplay(
        path=path.replace("\0", ""), diff="@@ -1 +1 @@\n-a\n+b\n", added=1, removed=1
    )
    record(conversation, AgentToolResult(tool_use_id="sevt_1", content=(), display=display))
    html = panel(client_of, alice, conversation)
    assert "<script>" not in html
    place = reverse("conversations:change", args=[conversation.uid])
    answer = client_of(alice).get(place, {"path": path.replace("\0", "")})
    assert answer.status_code == 200
    assert b"<script>alert" not in answer.content


def test_the_changes_of_a_file_are_shown_one_after_the_other(
    conversation: Conversation, alice: User, client_of: ClientOf
) -> None:
    for number in range(CHANGES_SHOWN + 2):
        change(conversation, "a.py", f"{number}\n", f"{number + 1}\n")
    change(conversation, "other.py", "no\n", "never\n")
    steps, more = changes_of(conversation, "a.py")
    assert more
    assert len(steps) == CHANGES_SHOWN
    place = reverse("conversations:change", args=[conversation.uid])
    html = client_of(alice).get(place, {"path": "a.py"}).content.decode()
    assert html.index('">2</td>') < html.index('">20</td>')
    assert "never" not in html
    assert "Only the newest changes" in html


def test_mallory_sees_no_change(
    conversation: Conversation, mallory: User, client_of: ClientOf
) -> None:
    change(conversation, "secret.py", "", "one\n", created=True)
    for name in ("changes", "change"):
        place = reverse(f"conversations:{name}", args=[conversation.uid])
        answer = client_of(mallory).get(place, {"path": "secret.py"})
        assert answer.status_code == 404
        assert b"diff" not in answer.content


def test_what_was_changed_on_a_branch_that_was_left_is_not_listed(
    conversation: Conversation, alice: User, client_of: ClientOf
) -> None:
    change(conversation, "kept.py", "", "one\n", created=True)
    conversation.refresh_from_db()
    behind = conversation.last_seq
    change(conversation, "left.py", "", "one\n", created=True)
    record(conversation, Rewound(behind=behind))
    html = panel(client_of, alice, conversation)
    assert "kept.py" in html
    assert "left.py" not in html
