"""Memory in conversations: learned, recalled where it helps, explained, and kept from everybody else."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.current_organisation import SHOWN
from conversations.actions.messages import edit_message, post_message, steer_message
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, ShareRole
from harness.agentconfig import Limits
from harness.content import Document, PlainTextSource, Text
from harness.errors import NotFound, ToolError
from harness.events import (
    AgentMcpToolResult,
    AgentToolResult,
    MessageEdited,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    UserDefineOutcome,
    UserMessage,
)
from harness.history import Entry
from harness.hooks import TOOL_AFTER, TURN_BEFORE
from harness.tools import ToolContext
from hooks.events import HookAnswer, HooksAnswered
from memory.actions.remembering import (
    Source,
    correct_memory,
    forget_memory,
    mark_memory,
    own_store,
    remember,
)
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import Memory
from providers.scripted import Hold, call, reply
from providers.scripted import say as said
from recall.actions.switching import leave_out, switch_memory
from recall.kitpart import part
from recall.models import Recall
from recall.strangers import has_strangers_words
from recall.tools import EXTRA, share
from tests.conversations.conftest import rested, types, until

pytestmark = pytest.mark.django_db(transaction=True)
PAPER = Document(source=PlainTextSource(data="Somebody wrote this."))
OURS = HookAnswer(hook="Guard", verdict="pass", milliseconds=1, context="Hi.", adds=True)
OTHERS = OURS.model_copy(update={"untrusted": True})
JUDGED = SpanOutcomeEvaluationEnd(
    outcome_evaluation_start_id="sevt_1", outcome_id="outc_1", result="needs_revision"
)


def told(conversation: Conversation) -> str:
    """What of memory stands in the prompt."""
    conversation = Conversation.objects.get(pk=conversation.pk)
    made = part(conversation, conversation.config, Path())
    return made.sections[0].text if made.sections else ""


def known(alice, acme, text: str = "The office of Acme is in Lisbon.", **more) -> Memory:
    store = own_store(actor=alice, organisation=acme)
    return remember(actor=alice, store=store, text=text, **more).memory


def say(conversation: Conversation, text: str, times: int = 1) -> Conversation:
    post_message(actor=conversation.owner, conversation=conversation, text=text)
    return rested(conversation, times)


def result(conversation: Conversation) -> str:
    row = conversation.events.filter(type="agent.tool_result").order_by("seq").last()
    return row.value.content[0].text


# --- from one conversation to the next ------------------------------------------------------------


def test_what_one_conversation_learns_the_next_one_recalls_and_can_say_why(
    converse, alice, client_of
):
    learned = call("remember", text="The office of Acme is in Lisbon.", key="office")
    first, _script = converse([reply(learned), reply("Noted.")])
    say(first, "Our office is in Lisbon, keep that in mind.")
    memory = Memory.objects.get()
    assert (memory.source_conversation, memory.store.owner) == (first.uid, alice)
    assert memory.source_event == first.events.get(type="agent.tool_use").uid

    second, script = converse([reply("In Lisbon.")])
    say(second, "Where is the office of Acme?")
    assert "The office of Acme is in Lisbon." in script.requests[0].system
    assert "<memory>" in script.requests[0].system
    recall = Recall.objects.get(conversation=second)
    assert recall.message_uid == second.events.get(type="user.message").uid
    (hit,) = recall.hits
    assert (hit["memory"], hit["version"]) == (memory.uid, memory.version_uid)
    assert {"offic", "acm"} <= set(hit["words"])
    assert "x.memory_recalled" in types(second)
    memory.refresh_from_db()
    assert memory.uses == 1
    page = client_of(alice).get(f"/c/{second.uid}/memory/").content.decode()
    assert "The office of Acme is in Lisbon." in page
    assert "found by: office, Acme" in page, "in the words of the message"
    one = client_of(alice).get(f"/settings/memory/{memory.uid}/").content.decode()
    assert f"{first.get_absolute_url()}?at={memory.source_event}" in one
    assert "only you see it" in one


def test_a_message_that_nothing_fits_recalls_nothing(converse, alice, acme):
    known(alice, acme)
    conversation, script = converse([reply("Sunny.")])
    say(conversation, "How is the weather on Mars?")
    assert "<memory>" not in script.requests[0].system
    assert not Recall.objects.exists()
    assert "x.memory_recalled" not in types(conversation)


def test_the_prompts_beginning_stays_while_nothing_new_is_recalled(converse, alice, acme):
    known(alice, acme)
    conversation, script = converse([reply(call("think", thought="Hm.")), reply("A."), reply("B.")])
    say(conversation, "Where is the office of Acme?")
    say(conversation, "And is the office of Acme large?", times=2)
    assert len({request.system for request in script.requests}) == 1


def test_an_edited_message_recalls_what_it_says_now(converse, alice, acme):
    known(alice, acme)
    hold = Hold()
    conversation, _script = converse([reply(said("Hm", hold)), reply("In Lisbon.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    row = post_message(actor=alice, conversation=conversation, text="How is the weather?")
    assert not Recall.objects.exists()
    text = "Where is the office of Acme?"
    edit_message(actor=alice, conversation=conversation, message_uid=row.uid, text=text)
    assert Recall.objects.get().message_uid == row.uid
    hold.release.set()
    rested(conversation)


def test_pinned_ones_are_told_whatever_is_said(converse, alice, acme):
    memory = known(alice, acme, text="Answer in one sentence.")
    mark_memory(actor=alice, memory=memory, pinned=True)
    conversation, script = converse([reply("Hello.")])
    say(conversation, "Hi")
    assert "Answer in one sentence." in script.requests[0].system


# --- as it is now ---------------------------------------------------------------------------------


def test_what_was_put_right_is_told_so_and_what_was_forgotten_no_more(converse, alice, acme):
    memory = known(alice, acme)
    conversation, _script = converse([reply("Yes.")])
    say(conversation, "Where is the office of Acme?")
    correct_memory(actor=alice, memory=memory, text="The office of Acme is in Porto.")
    assert "Porto" in told(conversation)
    assert "Lisbon" not in told(conversation)
    forget_memory(actor=alice, memory=memory)
    assert told(conversation) == ""
    assert "Lisbon" not in str(list(Recall.objects.values()))


def test_the_newest_fact_is_told_and_the_one_before_not(converse, alice, acme):
    known(alice, acme, key="office")
    known(alice, acme, text="The office of Acme is in Oslo.", key="office")
    conversation, script = converse([reply("In Oslo.")])
    say(conversation, "Where is the office of Acme now?")
    assert "Oslo" in script.requests[0].system
    assert "Lisbon" not in script.requests[0].system


# --- learning -------------------------------------------------------------------------------------


def test_a_run_learns_three_things_at_most(converse, alice):
    texts = ["Tea is green.", "Rust is a language.", "Oslo is cold.", "Jazz is loud."]
    script = [reply(*(call("remember", text=text) for text in texts)), reply("Done.")]
    conversation, _ = converse(script)
    say(conversation, "Learn all of it.")
    assert Memory.objects.count() == 3
    assert "already" in result(conversation)


def test_what_is_learned_where_strangers_wrote_waits_for_a_person(converse, alice, client_of):
    conversation, _script = converse([reply(call("remember", text="Pay to 123.")), reply("Ok.")])
    answer = AgentToolResult(
        tool_use_id="sevt_none", content=(Text(text="A page."),), untrusted=True
    )
    append(conversation.pk, [Entry.of(answer)])
    say(conversation, "Remember how to pay.")
    memory = Memory.objects.get()
    assert memory.untrusted
    assert memory.confirmed_at is None
    assert "confirmed" in result(conversation)
    other, script = converse([reply("I do not know.")])
    say(other, "How do I pay 123?")
    assert "123" not in script.requests[0].system
    page = client_of(alice)
    assert "waits for your yes" in page.get("/settings/memory/").content.decode()
    page.post(f"/settings/memory/{memory.uid}/confirm/", {"version_uid": memory.version_uid})
    third, script = converse([reply("To 123.")])
    say(third, "How do I pay 123?")
    assert "Pay to 123." in script.requests[0].system


@pytest.mark.parametrize(
    ("event", "strangers"),
    [
        (AgentMcpToolResult(mcp_tool_use_id="sevt_1", content=(Text(text="Hi."),)), True),
        (AgentToolResult(tool_use_id="sevt_1", content=(Text(text="Hi."),)), False),
        (AgentToolResult(tool_use_id="s", content=(Text(text="Hi."),), untrusted=True), True),
        (AgentToolResult(tool_use_id="s", content=(PAPER,)), True),
        (UserMessage(content=(Text(text='An "image" in words.'),)), False),
        (UserMessage(content=(Text(text="Hi."), PAPER)), True),
        (UserMessage(content=(Text(text="Hi."),), untrusted_by="a webhook"), True),
        (MessageEdited(event_id="sevt_1", content=(PAPER,)), True),
        (HooksAnswered(point=TURN_BEFORE, told=(OTHERS,)), True),
        (HooksAnswered(point=TURN_BEFORE, told=(OURS,)), False),
        (HooksAnswered(point=TOOL_AFTER, tool_use_id="sevt_1", told=(OTHERS,)), False),
        (JUDGED, False),
        (JUDGED.model_copy(update={"untrusted_by": "a page"}), True),
    ],
)
def test_whatever_taints_a_run_counts_as_strangers_words(converse, alice, event, strangers):
    conversation, _script = converse()
    append(conversation.pk, [Entry.of(event)], actor=alice)
    assert has_strangers_words(conversation) is strangers


def test_what_an_agent_learns_that_was_told_by_one_that_read_strangers_words_waits(
    converse, alice, acme
):
    """A person's word to the one above is none about what the one below is told to remember."""
    above, _script = converse()
    below, _script = converse()
    Conversation.objects.filter(pk=below.pk).update(parent=above)
    below = Conversation.objects.get(pk=below.pk)
    assert not has_strangers_words(below)
    page = AgentToolResult(tool_use_id="s", content=(Text(text="Hi."),), untrusted=True)
    append(above.pk, [Entry.of(page)], actor=alice)
    assert has_strangers_words(below)


def test_a_secret_is_not_learned(converse, alice):
    secret = call("remember", text="The password: hunter2hunter2")
    conversation, _script = converse([reply(secret), reply("Ok.")])
    say(conversation, "Remember my password.")
    assert not Memory.objects.exists()
    assert "vault" in result(conversation)


def test_sharing_a_memory_asks_the_person(converse, alice, acme):
    store = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    memory = known(alice, acme)
    sharing = call("share_memory", id=memory.uid, store=store.uid, sha256=memory.sha256)
    conversation, _script = converse([reply(sharing), reply("Shared.")])
    say(conversation, "Share where the office is.")
    assert conversation.waits_for_person
    assert not store.memories.exists()


@pytest.mark.parametrize("verdict", ["satisfied", "failed", None])
def test_what_was_learned_for_an_outcome_is_shared_once_that_is_reached(
    converse, alice, acme, verdict
):
    store = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    conversation, _script = converse()
    asked = UserDefineOutcome(outcome_id="outc_1", description="Find it", rubric="- It is found")
    append(conversation.pk, [Entry.of(asked)], actor=alice)
    if verdict is not None:
        begun = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
        ended = SpanOutcomeEvaluationEnd(
            outcome_evaluation_start_id=begun.uid, outcome_id="outc_1", result=verdict
        )
        append(conversation.pk, [begun, Entry.of(ended)])
    memory = known(alice, acme, source=Source(conversation.uid))
    context = ToolContext("sevt_1", Path(), extras={EXTRA: conversation.pk})
    given = {"id": memory.uid, "store": store.uid, "sha256": memory.sha256}
    if verdict == "satisfied":
        assert "Shared" in share(context, given).content
    else:
        with pytest.raises(ToolError):
            share(context, given)
    assert store.memories.exists() is (verdict == "satisfied")


# --- tools ----------------------------------------------------------------------------------------


def test_an_agent_searches_reads_and_forgets(converse, alice, acme):
    memory = known(alice, acme)
    conversation, _script = converse(
        [
            reply(call("search_memory", query="Where is the office?")),
            reply(call("read_memory", id=memory.uid)),
            reply(call("forget_memory", id=memory.uid)),
            reply("Gone."),
        ]
    )
    say(conversation, "Forget where we sit.")
    results = conversation.events.filter(type="agent.tool_result").order_by("seq")
    found, read, forgotten = (row.value.content[0].text for row in results)
    assert memory.uid in found
    assert "offic" in found
    assert "Lisbon" in read
    assert forgotten.startswith("Forgotten")
    assert not Memory.objects.exists()


def test_what_covers_no_question_is_told_with_low_confidence(converse, alice, acme):
    known(alice, acme)
    asked = call("search_memory", query="Who is the owner of the office?")
    conversation, _script = converse([reply(asked), reply("I do not know.")])
    say(conversation, "Whose is it?")
    assert result(conversation).startswith("Low confidence")


def test_earlier_conversations_are_found_with_what_stands_beside(converse, alice):
    first, _script = converse([reply("The code is blue-42.")])
    say(first, "What is the code of the door?")
    asked = call("search_memory", query="code of the door", conversations=True)
    second, _script = converse([reply(asked), reply("Blue.")])
    say(second, "Look it up.")
    assert "The code is blue-42." in result(second)
    place = f"{first.uid}#{first.events.get(type='user.message').seq}"
    assert place in result(second)
    third, _script = converse([reply(call("read_memory", id=place)), reply("Blue.")])
    say(third, "Read it.")
    assert "person: What is the code of the door?" in result(third)


def test_in_a_small_window_what_is_asked_now_is_told_and_the_section_has_its_end(
    converse, alice, acme
):
    towns = ("Lisbon", "Oslo", "Bremen", "Genoa")
    for town in towns:
        known(alice, acme, text=f"The harbour of {town}: {f'{town}berth ' * 40}")
    conversation, script = converse(
        [reply("Yes.") for _ in towns],
        limits=Limits(context_window=8_000),
        instructions="Be kind. " * 450,
    )
    for times, town in enumerate(towns, start=1):
        say(conversation, f"Tell me of the harbour of {town} and every {town}berth.", times)
    told = script.requests[-1].system
    section = told[told.index("<memory>") :]
    assert "harbour of Genoa:" in section
    assert "</memory>" in section
    assert "more found no room here" in section
    assert "left out here" not in section


def found_by(converse, **arguments) -> str:
    conversation, _script = converse([reply(call("search_memory", **arguments)), reply("So.")])
    say(conversation, "Look it up.")
    return result(conversation)


def test_what_was_true_then_has_an_answer_and_what_came_to_be_known_when(converse, alice, acme):
    known(alice, acme, key="office")
    known(alice, acme, text="The office of Acme is in Oslo.", key="office")
    before, now = Memory.objects.order_by("pk")
    assert before.valid_from
    assert before.valid_until
    assert now.valid_from
    day = timedelta(days=1)
    Memory.objects.filter(pk=before.pk).update(
        valid_from=before.valid_from - 9 * day, valid_until=before.valid_until - 5 * day
    )
    Memory.objects.filter(pk=now.pk).update(valid_from=now.valid_from - 5 * day)
    asked = {"query": "Where is the office of Acme?"}

    def cities(**days: int) -> list[str]:
        given = {name: str(timezone.localdate() - ago * day) for name, ago in days.items()}
        told = found_by(converse, **asked, **given)
        return [city for city in ("Lisbon", "Oslo") if city in told]

    assert cities() == ["Oslo"]
    assert cities(at=6) == ["Lisbon"]
    assert cities(at=5) == ["Oslo"]
    assert cities(since=5) == cities(since=5, until=5) == ["Oslo"]
    assert cities(since=4) == cities(until=6) == []
    assert cities(at=6, until=9) == ["Lisbon"]
    assert "no day" in found_by(converse, **asked, at="soon")
    assert "behind" in found_by(converse, **asked, since="2026-02-01", until="2026-01-31")


def test_what_begins_with_the_next_day_is_not_true_at_the_end_of_this_one(converse, alice, acme):
    known(alice, acme, key="office")
    known(alice, acme, text="The office of Acme is in Oslo.", key="office")
    before, now = Memory.objects.order_by("pk")
    moved = datetime(2026, 2, 1, tzinfo=timezone.get_current_timezone())
    Memory.objects.filter(pk=before.pk).update(valid_from=None, valid_until=moved)
    Memory.objects.filter(pk=now.pk).update(valid_from=moved)
    asked = {"query": "Where is the office of Acme?"}
    assert "Lisbon" in found_by(converse, **asked, at="2026-01-31")
    assert "Oslo" in found_by(converse, **asked, at="2026-02-01")


def test_without_a_question_what_came_to_be_known_then_is_listed(converse, alice, acme):
    known(alice, acme)
    today, day = timezone.localdate(), timedelta(days=1)
    assert "Lisbon" in found_by(converse, since=str(today))
    assert "Lisbon" not in found_by(converse, until=str(today - day))
    assert "Lisbon" not in found_by(converse, at=str(today - day))


def test_two_sources_that_cover_a_question_are_told_with_high_confidence(converse, alice, acme):
    known(alice, acme)
    asked = {"query": "Where is the office of Acme?", "conversations": True}
    assert "confidence" not in found_by(converse, **asked)
    first, _script = converse([reply("The office of Acme is in Lisbon.")])
    say(first, "Where is the office of Acme?")
    assert found_by(converse, **asked).startswith("High confidence")


def test_what_was_said_when_is_found_by_its_day(converse, alice):
    first, _script = converse([reply("The code is blue-42.")])
    say(first, "What is the code of the door?")
    today, day = timezone.localdate(), timedelta(days=1)
    asked = {"query": "code of the door", "conversations": True}
    assert "blue-42" in found_by(converse, **asked, since=str(today), until=str(today))
    assert "blue-42" not in found_by(converse, **asked, until=str(today - day))
    assert "blue-42" not in found_by(converse, **asked, since=str(today + day))


def test_of_its_own_children_and_parents_an_agent_finds_what_was_done_and_of_no_others(
    converse, alice
):
    """Also what tools answered there, with a place that is read again."""
    child, _script = converse(
        [reply(call("think", thought="The quay opens at nine.")), reply("So.")]
    )
    say(child, "Find out when the quay opens.")
    other, _script = converse([reply("The quay is closed.")])
    say(other, "When does the quay open?")
    search = {"query": "When does the quay open?"}
    parent, _script = converse(
        [
            reply(call("search_memory", **search, lineage="children")),
            reply("At nine."),
        ]
    )
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    say(parent, "Ask them.")
    told = result(parent)
    assert "opens at nine" in told
    assert "closed" not in told
    place = f"{child.uid}#{child.events.get(type='agent.tool_use').seq}"
    assert place in told
    again, _script = converse([reply(call("read_memory", id=place)), reply("At nine.")])
    say(again, "Read it.")
    assert "opens at nine" in result(again)
    assert "quay" not in found_by(converse, **search, lineage="children")

    below, _script = converse(
        [reply(call("search_memory", **search, lineage="parents")), reply("Nothing.")]
    )
    Conversation.objects.filter(pk=below.pk).update(parent=other)
    say(below, "Ask those above.")
    assert "The quay is closed." in result(below)
    assert "nine" not in result(below)


def test_what_those_above_called_is_read_again_at_its_place_as_what_they_said_is(converse, alice):
    above, _script = converse(
        [reply(call("think", thought="The quay opens at nine.")), reply("One moment.")]
    )
    say(above, "Find out when the harbour is open.")
    search = call("search_memory", query="When does the quay open?", lineage="parents")
    below, _script = converse([reply(search), reply("So.")])
    Conversation.objects.filter(pk=below.pk).update(parent=above)
    say(below, "Ask those above.")
    place = f"{above.uid}#{above.events.get(type='agent.tool_use').seq}"
    assert place in result(below)
    again, _script = converse([reply(call("read_memory", id=place)), reply("At nine.")])
    say(again, "Read it.")
    assert "opens at nine" in result(again)
    assert "begun by an agent" not in result(again)


@pytest.mark.parametrize("seq", ["", "x", "²", "-1", "9" * 19])
def test_a_place_that_is_none_is_said_to_the_model(converse, alice, seq):
    first, _script = converse([reply("Blue.")])
    say(first, "What is the code of the door?")
    second, _script = converse(
        [reply(call("read_memory", id=f"{first.uid}#{seq}")), reply("Nothing.")]
    )
    say(second, "Read it.")
    assert "There is no such place" in result(second)


# --- everybody else -------------------------------------------------------------------------------


def test_others_who_read_along_keep_a_persons_own_memory_out(converse, alice, bob, acme):
    known(alice, acme)
    conversation, script = converse(
        [reply(call("search_memory", query="office")), reply("I do not know.")]
    )
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    say(conversation, "Where is the office of Acme?")
    assert "Lisbon" not in script.requests[0].system
    assert result(conversation) == "Nothing is remembered about this."


def test_who_is_let_in_while_it_works_is_answered_without_a_persons_own_memory(
    converse, alice, bob, acme
):
    known(alice, acme)
    hold = Hold()
    conversation, script = converse([reply(said("In Lisbon", hold)), reply("I do not know.")])
    post_message(actor=alice, conversation=conversation, text="Where is the office of Acme?")
    until(hold.reached.is_set)
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.WRITER
    )
    post_message(actor=bob, conversation=conversation, text="What else is known of that office?")
    hold.release.set()
    rested(conversation, 2)
    first, second = script.requests
    assert "is in Lisbon" in first.system
    assert "is in Lisbon" not in second.system


def test_nor_do_her_words_join_a_turn_that_has_it(converse, alice, bob, acme):
    known(alice, acme)
    hold = Hold()
    conversation, script = converse(
        [reply(said("Hm", hold), call("list_files")), reply("In Lisbon."), reply("Of what?")]
    )
    post_message(actor=alice, conversation=conversation, text="Where is the office of Acme?")
    until(hold.reached.is_set)
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.WRITER
    )
    row = post_message(actor=bob, conversation=conversation, text="What else is known?")
    steer_message(actor=bob, conversation=conversation, message_uid=row.uid)
    hold.release.set()
    rested(conversation, 2)
    told = [
        ("is in Lisbon" in each.system, "else" in str(each.messages)) for each in script.requests
    ]
    assert told == [(True, False), (True, False), (False, True)]


def test_nothing_of_alices_reaches_mallory_by_any_tool(
    converse, alice, acme, mallory, elsewhere, client_of
):
    memory = known(alice, acme)
    first, _script = converse([reply("The code is blue-42.")])
    say(first, "What is the code of the door?")
    hers, script = converse(
        [
            reply(
                call("search_memory", query="office code door Lisbon", conversations=True),
                call("read_memory", id=memory.uid),
                call("read_memory", id=f"{first.uid}#1"),
                call("forget_memory", id=memory.uid),
            ),
            reply("Nothing."),
        ]
    )
    Conversation.objects.filter(pk=hers.pk).update(owner=mallory, organisation=elsewhere)
    hers = Conversation.objects.get(pk=hers.pk)
    say(hers, "Where is the office of Acme, and what is the code of the door?")
    results = [row.value.content[0].text for row in hers.events.filter(type="agent.tool_result")]
    assert len(results) == 4
    assert "Lisbon" not in str(results) + script.requests[0].system
    assert "blue" not in str(results)
    assert Memory.objects.filter(pk=memory.pk).exists()
    page = client_of(mallory)
    assert "Lisbon" not in page.get("/settings/memory/?q=office").content.decode()
    assert "Lisbon" not in b"".join(page.get("/settings/memory/export/")).decode()
    for path in (f"/settings/memory/{memory.uid}/", f"/c/{first.uid}/memory/"):
        assert page.get(path).status_code == 404
    assert page.post(f"/settings/memory/{memory.uid}/forget/").status_code == 404
    assert Memory.objects.filter(pk=memory.pk).exists()


# --- switches -------------------------------------------------------------------------------------


def test_who_switched_memory_off_is_not_remembered_and_not_recalled(converse, alice, acme):
    known(alice, acme)
    switch_memory(actor=alice, organisation=acme, on=False)
    conversation, script = converse([reply(call("remember", text="Tea.")), reply("Ok.")])
    say(conversation, "Where is the office of Acme?")
    assert "Lisbon" not in script.requests[0].system
    assert Memory.objects.count() == 1
    switch_memory(actor=alice, organisation=acme, on=True)
    assert "Lisbon" not in told(conversation)


def test_an_agent_without_memory_has_no_tool_for_it(converse, alice, acme):
    known(alice, acme)
    conversation, script = converse([reply("Hi.")], features={"memory": False})
    say(conversation, "Where is the office of Acme?")
    assert "remember" not in {tool.name for tool in script.requests[0].tools}
    assert "Lisbon" not in script.requests[0].system


def test_do_not_remember_this_one_forgets_what_was_learned_there(converse, alice, acme, mallory):
    known(alice, acme)
    conversation, _script = converse([reply(call("remember", text="Tea.")), reply("Ok.")])
    say(conversation, "Remember tea.")
    with pytest.raises(NotFound):
        leave_out(actor=mallory, conversation=conversation)
    with pytest.raises(NotFound):
        switch_memory(actor=mallory, organisation=acme, on=False)
    assert leave_out(actor=alice, conversation=conversation) == 1
    assert [memory.content for memory in Memory.objects.all()] == [
        "The office of Acme is in Lisbon."
    ]
    conversation.refresh_from_db()
    assert not conversation.features.memory


# --- pages ----------------------------------------------------------------------------------------


def test_a_person_adds_finds_corrects_pins_exports_and_forgets(alice, acme, client_of):
    page = client_of(alice)
    shown = {SHOWN: acme.uid}
    page.post("/settings/memory/", {**shown, "text": "I like green tea.", "kind": "preference"})
    memory = Memory.objects.get()
    assert memory.kind == "preference"
    assert "I like green tea." in page.get("/settings/memory/?q=tea").content.decode()
    assert "I like green tea." not in page.get("/settings/memory/?q=coffee").content.decode()
    refused = page.post(
        "/settings/memory/", {**shown, "text": "password: abcdefgh", "kind": "fact"}
    )
    assert refused.status_code == 422
    assert "password: abcdefgh" in refused.content.decode()
    page.post(f"/settings/memory/{memory.uid}/", {"text": "I like black tea."})
    page.post(f"/settings/memory/{memory.uid}/pin/")
    memory.refresh_from_db()
    assert (memory.content, memory.pinned) == ("I like black tea.", True)
    exported = b"".join(page.get("/settings/memory/export/")).decode()
    assert "I like black tea." in exported
    assert "I like green tea." in exported
    assert page.post(f"/settings/memory/{memory.uid}/burn/").status_code == 404
    page.post(f"/settings/memory/{memory.uid}/forget/")
    assert not Memory.objects.exists()
    known(alice, acme)
    assert "One memory" in page.get("/settings/memory/forget/").content.decode()
    page.post("/settings/memory/forget/", shown)
    assert not Memory.objects.exists()
