"""Whatever people do with a dialogue, one after another: every prompt is one a service takes, every reader
reads the same, nothing that was stored changes or goes, and files are those of the place.

The agent is played by appending what its run appends; everything a person does is the real action. More
examples: BRANCH_EXAMPLES.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.actions.branching import edit_and_resend, regenerate, rewind, switch_branch
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message
from conversations.actions.reverting import revert_files
from conversations.branches import counting, standing
from conversations.checkpoints import bring_back_due, keep_before_turn
from conversations.log import append, entries_after
from conversations.models import Conversation, Event
from harness.branches import on_path
from harness.compaction import dropped, find_cut
from harness.content import Text
from harness.errors import Conflict
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    EndTurn,
    InputTaken,
    ModelUsage,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolEnd,
    SpanToolStart,
)
from harness.events import Event as EventValue
from harness.history import Entry, History
from harness.messages import ModelRequest, ToolSpec
from harness.texts import Texts
from harness.transcript import build_messages
from providers.anthropic_request import request_body
from tests.conversations.test_branching import texts
from tests.conversations.test_checkpoints import files
from tests.standins.anthropic_rules import check_request
from tools_app.catalogue import all_tools
from tools_app.diffs import diff_of
from tools_app.workspace import Workspace, workspace_for

EXAMPLES = int(os.environ.get("BRANCH_EXAMPLES", "12"))
ACTS = ("send", "edit", "regenerate", "rewind", "switch", "fork", "revert", "compact", "stay")
TOOLS = tuple(ToolSpec(t.name, t.description, t.input_schema) for t in all_tools().values())


@dataclass
class Scene:
    """A conversation, what its log held by the last look, and how its files were at each place."""

    conversation: Conversation
    known: list[Any] = field(default_factory=list)
    held: dict[int, dict[str, str]] = field(default_factory=dict)
    written: int = 0

    @property
    def entries(self) -> list[Entry]:
        return entries_after(self.conversation.pk, 0)

    def add(self, *events: EventValue) -> list[str]:
        rows = append(self.conversation.pk, [Entry.of(event) for event in events])
        self.note()
        return [row.uid for row in rows]

    def note(self) -> None:
        """The places that came since have the files as they are."""
        self.conversation.refresh_from_db()
        now = files(self.conversation)
        for seq in range(len(self.held), self.conversation.last_seq + 1):
            self.held[seq] = now

    def rest(self, *, write: bool) -> None:
        """Do what is owed, as a run does."""
        bring_back_due(self.conversation.pk)
        self.note()
        while (history := History(self.entries)).has_work:
            if not history.turn.open:
                message = history.queued()[0].uid
                self.add(SessionStatusRunning(), InputTaken(event_ids=(message,)))
            elif not history.running:
                self.add(SessionStatusRunning())
            self.reply(write=write)
            self.add(SessionStatusIdle(stop_reason=EndTurn()))

    def reply(self, *, write: bool) -> None:
        (request,) = self.add(SpanModelRequestStart())
        if write:
            self.written += 1
            path, said = f"{self.written % 3}.md", f"{self.written}\n"
            given = {"path": path, "content": said}
            call = AgentToolUse(name="write_file", input=given, model_request_id=request)
            (uid,) = self.add(call)
            self.ended(request)
            turn = History(self.entries).turn.uid
            keep_before_turn(self.conversation.pk, turn, self.conversation.last_seq)
            self.add(SpanToolStart(tool_use_id=uid, effect="workspace"))
            Workspace(workspace_for(self.conversation.uid)).write_bytes(path, said.encode())
            self.add(
                SpanToolEnd(tool_use_id=uid),
                AgentToolResult(
                    tool_use_id=uid, content=(Text(text="ok"),), display=diff_of(path, "", said)
                ),
            )
            (request,) = self.add(SpanModelRequestStart())
        text = (Text(text=f"said {self.conversation.last_seq}"),)
        self.add(AgentMessage(content=text, model_request_id=request))
        self.ended(request)

    def ended(self, request: str) -> None:
        used = ModelUsage(input_tokens=10, output_tokens=5)
        self.add(
            SpanModelRequestEnd(model_request_start_id=request, model_usage=used, end="end_turn")
        )

    def holds(self) -> None:
        """Nothing lost, one truth, a prompt that a service takes."""
        rows = Event.objects.filter(conversation=self.conversation).order_by("seq")
        now = list(rows.values_list("seq", "uid", "type", "payload"))
        assert now[: len(self.known)] == self.known
        assert [row[0] for row in now] == list(range(1, len(now) + 1))
        self.known = now
        entries = self.entries
        whole, grown = History(entries), History()
        for entry in entries:
            grown.add(entry)
        uids = [entry.uid for entry in whole.entries]
        assert [entry.uid for entry in grown.entries] == uids
        assert [entry.uid for entry in on_path(entries)] == uids
        assert (
            list(counting(self.conversation).order_by("seq").values_list("uid", flat=True)) == uids
        )
        assert not whole.unanswered()
        row, here = self.conversation, standing(whole)
        assert (row.stop_reason, row.owes_run) == (here.stop_reason, False)
        prompt = build_messages(entries, texts=Texts())
        if prompt:
            request = ModelRequest("claude-sonnet-5-5", "", prompt, TOOLS)
            body = request_body(request, provider="anthropic", caching=False)
            check_request({**body, "stream": True})


def act(alice, scene: Scene, what: str, at: int, *, write: bool) -> Scene:
    """One thing that a person does, and what the agent does then; the scene that goes on."""
    conversation, entries = scene.conversation, scene.entries
    on_it = [entry for entry in History(entries).entries if entry.seq]
    about = on_it[at % len(on_it)].uid if on_it else "sevt_none"
    before = files(conversation)
    target: int | None = None
    try:
        match what:
            case "send":
                post_message(actor=alice, conversation=conversation, text=f"m{at}")
            case "edit":
                messages = [each.uid for each in on_it if each.event.type == "user.message"]
                row = edit_and_resend(
                    actor=alice,
                    conversation=conversation,
                    message_uid=messages[at % len(messages)] if messages else about,
                    text=f"e{at}",
                )
                target = _place(conversation) if row else None
            case "regenerate":
                regenerate(actor=alice, conversation=conversation, event_uid=about)
                target = _place(conversation)
            case "rewind" | "stay":
                goes = what == "rewind"
                rewind(actor=alice, conversation=conversation, event_uid=about, files=goes)
                target = _place(conversation) if goes else None
            case "switch":
                any_one = entries[at % len(entries)].uid if entries else about
                switch_branch(actor=alice, conversation=conversation, event_uid=any_one)
                target = _place(conversation)
            case "fork":
                return forked(alice, scene, about)
            case "revert":
                diffs = [each.uid for each in on_it if each.event.type == "agent.tool_result"]
                uid = diffs[at % len(diffs)] if diffs else about
                revert_files(actor=alice, conversation=conversation, event_uid=uid)
            case "compact":
                cut = find_cut(on_it, Texts())
                if cut is not None:
                    scene.add(dropped(cut, Texts()))
    except (Conflict, LookupError):
        return scene
    except Exception as refusal:
        if type(refusal).__name__ == "NotFound":
            return scene
        raise
    bring_back_due(conversation.pk)
    if target is not None:
        assert files(conversation) == scene.held[target]
    elif what in {"stay", "send"}:
        assert files(conversation) == before
    scene.rest(write=write)
    return scene


def _place(conversation: Conversation) -> int | None:
    """Whose files are to be there; None: they were not kept."""
    row = Event.objects.filter(conversation=conversation, type="x.rewound").order_by("seq").last()
    assert row is not None
    return int(row.payload["behind"]) if row.payload["files"] != "not_kept" else None


def forked(alice, scene: Scene, about: str) -> Scene:
    prompt = texts(build_messages(scene.entries, texts=Texts()))
    fork = fork_conversation(actor=alice, conversation=scene.conversation, event_uid=about)
    scene.note()
    scene.holds()
    gone_on = Scene(fork)
    gone_on.note()
    copied = texts(build_messages(gone_on.entries, texts=Texts()))
    assert copied == prompt[: len(copied)]
    assert files(fork) in scene.held.values()
    return gone_on


@pytest.mark.django_db
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(0, 60), st.booleans()),
        min_size=3,
        max_size=10,
    )
)
def test_whatever_is_done_to_a_dialogue_it_stays_whole(alice, converse, no_hurry, acts):
    conversation, _ = converse([])
    scene = Scene(conversation)
    scene.note()
    for what, at, write in [("send", 0, True), *acts]:
        scene = act(alice, scene, what, at, write=write)
        scene.note()
        scene.holds()


@pytest.fixture
def no_hurry(settings):
    """Nobody here writes faster than she may."""
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1_000_000
