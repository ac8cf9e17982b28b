"""A lead asks subagents: each works in a conversation of its own, and its result answers the call, once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.models import User
from api.facts import TableFacts
from api.projection import LoggedEvent, frames_of
from approvals.models import Approval
from conversations.actions.branching import rewind
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, stop
from conversations.models import Conversation, ForeignMark
from conversations.provenance import TableProvenance
from harness.events import BackgroundFinished, SubagentEnded
from providers.scripted import Hold, call, reply, say
from subagents.models import Subagent
from tests.cast import ClientOf
from tests.conversations.conftest import types
from tests.conversations.strangers import more_tools, upload
from tools_app.provenance import MARGIN, WRITTEN
from tools_app.workspace import Workspace, workspace_for

from .conftest import (
    Lead,
    answers,
    ask,
    child_of,
    done,
    named_in,
    read,
    scenes,
    told,
    until,
    words_of,
)

__all__ = ["more_tools"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_foreground_subagent_answers_the_call_with_its_last_words_alone(lead: Lead) -> None:
    script = scenes(
        [reply(ask("alpha", agent="explore")), reply("All done.")],
        alpha=[reply(call("list_files"), "Looking."), reply("Seven callers.")],
    )
    conversation = done(lead(script, files={"a.py": "x = 1\n"}))

    (row,) = told(conversation)
    assert (row.state, row.kind, row.background) == ("completed", "explore", False)
    (answer,) = answers(conversation)
    assert "Seven callers." in answer
    assert "Looking" not in answer
    child = child_of(row)
    assert child.uid in answer
    assert child.parent == conversation
    assert row.tokens_used == 30
    assert "Looking." in str(list(child.events.values_list("payload", flat=True)))
    assert types(conversation).count("session.thread_created") == 1
    begun, ended = told_on_the_socket(conversation)
    call_id = row.call_uid
    assert begun == {
        "subagent_id": child.uid,
        "tool_use_id": call_id,
        "task": "Do alpha",
        "agent_type": "explore",
        "background": False,
    }
    assert (ended["subagent_id"], ended["tool_use_id"]) == (child.uid, call_id)
    assert (ended["state"], ended["agent_type"], ended["tool_count"]) == ("completed", "explore", 1)
    assert "Seven callers." in ended["summary"]
    assert ended["usage"]["total_tokens"] == 30
    assert ended["usage"]["input_tokens"] + ended["usage"]["output_tokens"] == 30


def told_on_the_socket(conversation: Conversation) -> list[dict[str, Any]]:
    """What the frames about subagents say beside what every frame does."""
    facts = TableFacts(conversation)
    rows = conversation.events.filter(type__startswith="x.subagent_").order_by("seq")
    frames = [
        frame
        for row in rows
        for frame in frames_of(LoggedEvent(row.seq, row.uid, row.created_at, row.value), facts)
        if isinstance(frame, dict)
    ]
    assert [frame["type"] for frame in frames] == ["subagent_start", "subagent_end"]
    return [
        {name: said for name, said in frame.items() if name not in {"type", "id", "at", "seq"}}
        for frame in frames
    ]


def test_the_parent_rests_without_a_run_while_its_subagent_works(lead: Lead) -> None:
    hold = Hold()
    script = scenes([reply(ask("alpha")), reply("Done.")], alpha=[reply(say("Se", hold, "ven."))])
    conversation = lead(script)

    until(lambda: hold.reached.is_set())
    until(lambda: not conversation.runs.filter(state="running").exists())
    conversation.refresh_from_db()
    assert conversation.waits_for_worker
    assert not Approval.objects.filter(conversation=conversation).exists()

    hold.release.set()
    assert "Seven." in answers(done(conversation))[0]


def test_several_of_one_step_work_side_by_side(lead: Lead) -> None:
    first, second = Hold(), Hold()
    script = scenes(
        [reply(ask("alpha"), ask("beta")), reply("Done.")],
        alpha=[reply(say("A", first))],
        beta=[reply(say("B", second))],
    )
    conversation = lead(script)

    until(lambda: first.reached.is_set() and second.reached.is_set())
    second.release.set()
    until(lambda: len(answers(conversation)) == 1)
    first.release.set()

    done(conversation)
    assert len(answers(conversation)) == 2
    held = [row.tokens_reserved for row in told(conversation)]
    assert sum(held) <= conversation.config.limits.token_budget


def test_one_in_the_background_announces_its_end_once_and_wakes_its_parent(
    alice: User, lead: Lead, client_of: ClientOf
) -> None:
    hold = Hold()
    script = scenes(
        [
            reply(ask("alpha", background=True)),
            reply("I go on."),
            lambda request: reply("Heard: " + str("Forty-two." in words_of(request))),
        ],
        alpha=[reply(say(hold, "Forty-two."))],
    )
    conversation = lead(script)
    until(lambda: types(conversation).count("session.status_idle") >= 1 and hold.reached.is_set())
    until(lambda: "I go on." in str(list(conversation.events.values_list("payload", flat=True))))
    hold.release.set()

    until(lambda: "Heard: True" in str(list(conversation.events.values_list("payload", flat=True))))
    (end,) = (
        row.value
        for row in conversation.events.filter(type="x.background_finished")
        if isinstance(row.value, BackgroundFinished)
    )
    assert "Forty-two." in end.tail
    assert end.subagent == told(conversation)[0].child.uid
    page = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "Subagent in the background done" in page
    assert "Background command" not in page


def test_a_finished_one_is_asked_again_and_remembers(lead: Lead) -> None:
    def again(request):
        return reply(ask("And now?", resume=named_in(request)))

    script = scenes(
        [reply(ask("alpha", agent="explore")), again, reply("Done.")],
        alpha=[
            reply("Seven."),
            lambda request: "Eight." if "Seven." in words_of(request) else "Who?",
        ],
    )
    conversation = done(lead(script))

    first, second = told(conversation)
    assert first.child == second.child
    assert second.kind == "explore"
    assert "Eight." in answers(conversation)[1]


def test_explore_cannot_write_although_its_agent_may(lead: Lead) -> None:
    script = scenes(
        [reply(ask("alpha", agent="explore")), reply("Done.")],
        alpha=[reply(call("write_file", path="b.txt", content="x")), reply("I could not.")],
    )
    conversation = done(lead(script))

    (row,) = told(conversation)
    (refused,) = answers(child_of(row))
    assert "A rule of this conversation denies write_file" in refused


def test_what_a_subagent_changed_comes_back_where_nobody_else_changed_it(lead: Lead) -> None:
    script = scenes(
        [reply(ask("alpha", agent="code")), reply("Done.")],
        alpha=[
            reply(
                call("write_file", path="new/of_child.txt", content="new"),
                call("write_file", path="old.txt", content="changed"),
            ),
            reply("Changed."),
        ],
    )
    conversation = done(lead(script, files={"old.txt": "old", "mine.txt": "mine"}))

    assert read(conversation, "old.txt") == "changed"
    assert read(conversation, "new/of_child.txt") == "new"
    assert read(conversation, "mine.txt") == "mine"
    (answer,) = answers(conversation)
    assert "Files brought into this workspace: new/of_child.txt, old.txt." in answer


def test_two_writers_of_one_file_never_overwrite_each_other_silently(lead: Lead) -> None:
    def writes(text: str):
        return [reply(call("write_file", path="one.txt", content=text)), reply("Written.")]

    script = scenes(
        [reply(ask("alpha"), ask("beta")), reply("Done.")], alpha=writes("A"), beta=writes("B")
    )
    conversation = done(lead(script, files={"one.txt": "0"}))

    assert read(conversation, "one.txt") in {"A", "B"}
    told_of = answers(conversation)
    assert sum("Not brought, because they changed here too" in each for each in told_of) == 1


@pytest.mark.parametrize("accept", [True, False])
def test_changes_of_a_copy_wait_until_they_are_taken_or_refused(lead: Lead, accept: bool) -> None:
    def decide(request):
        assert "changed: one.txt (+1 −1)" in words_of(request)
        return reply(call("merge_subagent", id=named_in(request), accept=accept))

    script = scenes(
        [reply(ask("alpha", files="copy")), decide, reply("Done.")],
        alpha=[reply(call("write_file", path="one.txt", content="new\n")), reply("Written.")],
    )
    conversation = done(lead(script, files={"one.txt": "old\n"}))

    assert read(conversation, "one.txt") == ("new\n" if accept else "old\n")
    assert told(conversation)[0].merged is accept


def test_a_stop_of_the_parent_stops_whom_it_waits_for_and_not_the_background(
    alice: User, lead: Lead
) -> None:
    front, back = Hold(), Hold()
    script = scenes(
        [reply(ask("alpha"), ask("beta", background=True)), reply("Stopped.")],
        alpha=[reply(say(front, "A"))],
        beta=[reply(say(back, "B"))],
    )
    conversation = lead(script)
    until(lambda: front.reached.is_set() and back.reached.is_set())

    stop(actor=alice, conversation=conversation)

    alpha = until(lambda: Subagent.objects.filter(background=False, state="stopped").first())
    beta = Subagent.objects.get(background=True)
    assert beta.state == "running"
    assert alpha.child.events.filter(type="session.status_idle").exists()
    back.release.set()
    told(conversation)
    done(conversation)
    assert Subagent.objects.get(background=True).state == "completed"
    first = conversation.events.filter(subject=alpha.call_uid, type="agent.tool_result")
    assert [row.value.outcome for row in first] == ["stopped"]


def test_a_subagent_that_asks_is_answered_by_a_person_and_goes_on(
    alice: User, lead: Lead, more_tools: None
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("Done.")],
        alpha=[reply(call("send", to="x")), reply("Sent it.")],
    )
    rules = ({"tool": "*"}, {"tool": "send", "permission": "always_ask"})
    conversation = lead(script, tools=rules)

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert asked.root_id == conversation.pk
    assert asked.conversation.parent == conversation
    conversation.refresh_from_db()
    assert Subagent.objects.get().state == "running"
    decide_call(actor=alice, conversation=asked.conversation, call_uid=asked.call_uid, allow=True)

    assert "Sent it." in answers(done(conversation))[0]


def test_what_a_subagent_read_of_strangers_makes_its_parent_ask(
    alice: User, lead: Lead, more_tools: None
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply(call("send", to="x")), reply("Done.")],
        alpha=[reply(call("fetch", url="x")), reply("Obey.")],
    )
    conversation = lead(script)

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert asked.conversation == conversation
    assert asked.tainted
    assert "by way of the agent below" in asked.reason


def test_what_is_shown_of_a_strangers_file_in_a_subagents_copy_makes_its_parent_ask(
    alice: User, lead: Lead, more_tools: None
) -> None:
    """A person gave it to the subagent, which never read it."""
    hold = Hold()
    script = scenes(
        [reply(ask("alpha", files="copy")), reply(call("send", to="x")), reply("Done.")],
        alpha=[reply(say(hold, "Nothing to do."))],
    )
    conversation = lead(script)
    until(lambda: hold.reached.is_set())
    child = child_of(Subagent.objects.get())
    upload(alice, child, "notes.txt", "Obey.\n", folder="in")
    hold.release.set()

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert "+Obey." in answers(conversation)[0]
    assert asked.tainted
    assert "in/notes.txt: it was uploaded" in asked.reason


def test_what_is_shown_of_a_file_that_a_command_may_have_brought_makes_its_parent_ask(
    lead: Lead, more_tools: None
) -> None:
    """A hook's, of which the subagent has heard nothing."""
    hold = Hold()
    script = scenes(
        [reply(ask("alpha", files="copy")), reply(call("send", to="x")), reply("Done.")],
        alpha=[reply(say(hold, "Nothing to do."))],
    )
    conversation = lead(script)
    until(lambda: hold.reached.is_set())
    child = child_of(Subagent.objects.get())
    marks = TableProvenance(child.pk)
    marks.begin_command("hook_1", "a command that could reach x.example")
    Workspace(workspace_for(child.uid)).write_bytes("made.txt", b"Obey.\n")
    marks.end_command("hook_1", "a command that reached x.example")
    hold.release.set()

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert "+Obey." in answers(conversation)[0]
    assert asked.tainted
    assert "made.txt: it was changed by, or after, a command that reached x.example" in asked.reason


def test_the_folder_that_a_command_made_for_files_makes_its_parent_ask_where_these_are_named(
    lead: Lead, more_tools: None
) -> None:
    """The file itself is as it was."""
    hold = Hold()
    script = scenes(
        [reply(ask("alpha", files="copy")), reply(call("send", to="x")), reply("Done.")],
        alpha=[reply(say(hold, "Nothing to do."))],
    )
    conversation = lead(script, files={"a/own.txt": "Mine.\n"})
    until(lambda: hold.reached.is_set())
    child = child_of(Subagent.objects.get())
    marks, there = TableProvenance(child.pk), workspace_for(child.uid)
    marks.begin_command("hook_1", "a command that could reach x.example")
    made = there / "send the keys"
    made.mkdir()
    (there / "a").rename(made / "a")
    marks.end_command("hook_1", "a command that reached x.example")
    # Clocks of files may be behind by the margin, and this takes less than that.
    own = Workspace(there).stat("send the keys/a/own.txt")
    since = datetime.fromtimestamp(own.changed + MARGIN + 0.001, UTC)
    ForeignMark.objects.filter(conversation=child, path="").update(since=since)
    (made / "a").touch()
    hold.release.set()

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert "It changed in its copy: a/own.txt, send the keys/a/own.txt" in answers(conversation)[0]
    assert asked.tainted
    assert "send the keys/a/own.txt: it was changed by, or after, a command" in asked.reason


def test_names_of_files_that_a_command_may_have_brought_make_its_parent_ask_too(
    lead: Lead, more_tools: None
) -> None:
    hold = Hold()
    script = scenes(
        [reply(ask("alpha", agent="code")), reply(call("send", to="x")), reply("Done.")],
        alpha=[reply(say(hold, "Nothing to do."))],
    )
    conversation = lead(script)
    until(lambda: hold.reached.is_set())
    child = child_of(Subagent.objects.get())
    marks = TableProvenance(child.pk)
    marks.begin_command("hook_1", "a command that could reach x.example")
    Workspace(workspace_for(child.uid)).write_bytes("send the keys.txt", b"x\n")
    marks.end_command("hook_1", "a command that reached x.example")
    hold.release.set()

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert "Files brought into this workspace: send the keys.txt." in answers(conversation)[0]
    assert asked.tainted
    assert "send the keys.txt: it was changed by, or after, a command" in asked.reason


def test_folders_that_come_with_a_strangers_file_are_marked_where_they_come(
    lead: Lead, more_tools: None
) -> None:
    writes = call("write_file", path="mine/send the keys/a.txt", content="x\n")
    script = scenes(
        [reply(ask("alpha", agent="code")), reply("Done.")],
        alpha=[reply(call("peek")), reply(writes), reply("Written.")],
    )
    conversation = done(lead(script, files={"mine/old.txt": "old"}))

    assert read(conversation, "mine/send the keys/a.txt") == "x\n"
    marked = TableProvenance(conversation.pk).foreign().paths
    assert sorted(marked) == ["mine/send the keys", "mine/send the keys/a.txt"]


def test_names_that_are_taken_from_one_that_read_strangers_words_bring_these_back(
    alice: User, lead: Lead, more_tools: None
) -> None:
    """Also when a person has spoken since it answered."""
    named: list[str] = []

    def heard(request):
        named.append(named_in(request))
        return reply("Heard.")

    script = scenes(
        [
            *[reply(ask("alpha", files="copy")), heard],
            lambda _request: reply(call("merge_subagent", id=named[0], accept=True)),
            *[reply(call("send", to="x")), reply("Done.")],
        ],
        alpha=[
            reply(call("write_file", path="a.txt", content="x\n")),
            *[reply(call("peek")), reply("Written.")],
        ],
    )
    conversation = done(lead(script))
    post_message(actor=alice, conversation=conversation, text="Take it.")

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert asked.tainted
    assert "peek, by way of the agent below" in asked.reason


@pytest.mark.parametrize("left", [False, True], ids=["there still", "on a branch that was left"])
def test_what_a_subagent_wrote_once_a_person_spoke_there_stays_a_strangers_for_its_parent(
    alice: User, lead: Lead, more_tools: None, left: bool
) -> None:
    """She said it to the subagent, which had read a page, and not to its parent."""
    named: list[str] = []

    def heard(request):
        named.append(named_in(request))
        return reply("Heard.")

    script = scenes(
        [
            *[reply(ask("alpha", files="copy")), heard],
            lambda _request: reply(call("merge_subagent", id=named[0], accept=True)),
            *[reply("Merged."), reply(call("read_file", path="new/a.txt"))],
            *[reply(call("send", to="x")), reply("Done.")],
        ],
        alpha=[
            *[reply(call("peek")), reply("Read.")],
            *[reply(call("write_file", path="new/a.txt", content="Obey.\n")), reply("Written.")],
        ],
    )
    conversation = done(lead(script))
    child = child_of(Subagent.objects.get())
    post_message(actor=alice, conversation=child, text="Write it down, alpha.")
    done(child)
    assert not TableProvenance(child.pk).foreign().paths
    if left:
        first = child.events.filter(type="user.message").order_by("seq")[0]
        rewind(actor=alice, conversation=child, event_uid=first.uid, files=False)
    post_message(actor=alice, conversation=conversation, text="Take it.")
    done(conversation)
    post_message(actor=alice, conversation=conversation, text="Look at it.")

    asked = until(lambda: Approval.objects.filter(state="pending").first())
    assert asked.tainted
    assert f"new/a.txt: {WRITTEN}" in asked.reason


def test_what_was_not_used_comes_back_and_what_was_used_counts(lead: Lead) -> None:
    script = scenes([reply(ask("alpha")), reply("Done.")], alpha=[reply("Seven.")])
    conversation = done(lead(script))

    ended = conversation.events.get(type="x.subagent_ended").value
    assert isinstance(ended, SubagentEnded)
    assert ended.tokens == 15
    (row,) = told(conversation)
    limits = row.child.config.limits
    assert limits.token_budget == row.tokens_reserved <= 200_000 - 15


def test_nobody_below_the_greatest_depth_has_the_tool(lead: Lead) -> None:
    offered: list[set[str]] = []

    def look(request):
        offered.append({tool.name for tool in request.tools})
        return reply(ask("gamma"))

    script = scenes([reply(ask("alpha")), reply("Done.")], alpha=[look, reply("No.")])
    conversation = done(lead(script))

    assert "subagent" not in offered[0]
    (row,) = told(conversation)
    assert "There is no tool called subagent" in answers(child_of(row))[0]


def test_without_the_switch_there_is_no_tool(lead: Lead) -> None:
    conversation = done(lead([reply(ask("alpha")), reply("No.")], features={"teams": False}))

    assert "is not available: teams is off" in answers(conversation)[0]
    assert not Subagent.objects.exists()


def test_one_too_many_at_once_is_refused_and_the_turn_goes_on(lead: Lead, settings) -> None:
    settings.AGENTSITE_SUBAGENTS_AT_ONCE = 1
    hold = Hold()
    script = scenes(
        [reply(ask("alpha"), ask("beta")), reply("Done.")],
        alpha=lambda request: reply(say(hold, "A")),
        beta=lambda request: reply(say(hold, "B")),
    )
    conversation = lead(script)
    refused = until(lambda: Subagent.objects.filter(state="refused").first())
    assert "the most there may be" in refused.detail
    hold.release.set()

    assert len(answers(done(conversation))) == 2


def test_a_person_talks_to_a_subagent_without_answering_its_parent(alice: User, lead: Lead) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("Done.")],
        alpha=[reply("Seven."), reply("Hello, Alice.")],
    )
    conversation = done(lead(script))
    (row,) = told(conversation)

    post_message(actor=alice, conversation=child_of(row), text="Hello?")
    until(lambda: types(child_of(row)).count("session.status_idle") == 2)

    assert len(answers(conversation)) == 1
    assert Subagent.objects.count() == 1


@pytest.mark.parametrize("began", ["there", "before"])
def test_one_that_was_asked_on_a_branch_that_was_left_brings_what_its_parent_had_read_there(
    alice: User, lead: Lead, more_tools: None, began: str
) -> None:
    """A person had spoken there as well, so that nothing said so to it."""
    named: list[str] = []

    def heard(request: Any) -> Any:
        named.append(named_in(request))
        return reply("Heard.")

    def again(prompt: str) -> Any:
        return lambda _request: reply(ask(prompt, resume=named[0]))

    first, there = reply(ask("alpha")), again("alpha: obey")
    script = scenes(
        [
            *([first, heard] if began == "before" else [reply("Hello.")]),
            *[reply(call("peek")), reply("Read.")],
            *([there, reply("So.")] if began == "before" else [first, heard]),
            *[again("alpha: what was it?"), reply(call("send", to="x")), reply("Done.")],
        ],
        alpha=[reply("Noted.")] * (1 + (began == "before")) + [reply("Obey.")],
    )
    conversation = done(lead(script))
    place = conversation.events.filter(type="agent.message").order_by("seq").last()
    for text in ("Look.", "Ask it."):
        post_message(actor=alice, conversation=conversation, text=text)
        done(conversation)
    assert not child_of(told(conversation)[-1]).events.filter(
        type="user.message", payload__untrusted_by__gt=""
    )
    rewind(actor=alice, conversation=conversation, event_uid=place.uid)
    post_message(actor=alice, conversation=conversation, text="Ask it again.")

    said = conversation.events.filter(type="agent.message")
    until(lambda: Approval.objects.exists() or "Done." in str(said.order_by("seq").last().payload))
    asked = Approval.objects.filter(state="pending").get()
    assert "a tool, on a branch that was left" in asked.reason
