"""A yes to sharing, forgetting or deleting memories is for those that were shown, as they were then."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import gettext, override

from accounts.models import Organisation, User
from approvals.actions.approvals import decide_approval
from approvals.models import Approval
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, set_feature
from conversations.judging import judge
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.errors import Invalid, ToolError
from harness.events import Scope
from harness.policy import Verdict
from harness.tools import ToolContext
from memory.actions.memories import create_memory
from memory.actions.remembering import correct_memory, forget_memory, own_store, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import Memory, MemoryStore
from providers.scripted import call, reply
from recall.actions.attaching import Wanted, attach_stores
from recall.models import Access, AttachedStore
from recall.tools import EXTRA, forget
from recall.trained import memory_tool
from tests.approvals.asking import a_reviewer, asks
from tests.cast import ClientOf
from tests.conversations.conftest import rested
from tools_app.touches import as_data, is_shown_whole, words_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mine(alice: User, acme: Organisation) -> Memory:
    store = own_store(actor=alice, organisation=acme)
    return remember(actor=alice, store=store, text="The office is in Lisbon.", key="office").memory


@pytest.fixture
def ours(alice: User, acme: Organisation) -> MemoryStore:
    store = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    remember(actor=alice, store=store, text="The office is in Porto.", key="office")
    return store


def asked(converse: Any, name: str, said_by: str = "", **given: Any) -> Approval:
    """Of a call of the agent's, in a run that a page is in where `said_by` says so."""
    conversation, _script = converse([reply(call(name, **given)), reply("Done.")])
    post_message(
        actor=conversation.owner, conversation=conversation, text="Go.", untrusted_by=said_by
    )
    rested(conversation)
    return Approval.objects.get(conversation=conversation)


def answer(approval: Approval) -> str:
    """What the agent is told once its owner has said yes."""
    conversation = approval.conversation
    decide_call(
        actor=conversation.owner,
        conversation=conversation,
        call_uid=approval.call_uid,
        allow=True,
        shown=approval.effective_sha256,
    )
    rested(conversation, 2)
    return text_of(
        Event.objects.get(subject=approval.call_uid, type="agent.tool_result").value.content
    )


def sharing(converse: Any, memory: Memory, store: MemoryStore) -> Approval:
    return asked(converse, "share_memory", id=memory.uid, store=store.uid, sha256=memory.sha256)


def said_in(store: MemoryStore) -> list[str]:
    return list(store.memories.filter(valid_until=None).values_list("content", flat=True))


def test_the_question_shows_what_is_shared_now_and_what_would_be(
    converse: Any, mine: Memory, ours: MemoryStore, client_of: ClientOf
) -> None:
    approval = sharing(converse, mine, ours)
    client = client_of(approval.conversation.owner)
    for address in (approval.conversation.get_absolute_url(), "/approvals/"):
        shown = client.get(address).content.decode().partition('class="touched"')[2]
        assert "The office is in Porto." in shown, address
        assert "The office is in Lisbon." in shown, address
    (change,) = approval.touches["changes"]
    assert change["diff"].splitlines()[1:] == [
        "-The office is in Porto.",
        "+The office is in Lisbon.",
    ]
    assert "Shared in" in answer(approval)
    assert said_in(ours) == ["The office is in Lisbon."]


def test_what_the_memory_says_only_after_the_question_is_not_shared(
    alice: User, converse: Any, mine: Memory, ours: MemoryStore
) -> None:
    approval = sharing(converse, mine, ours)
    correct_memory(actor=alice, memory=mine, text="The office is for sale.")
    assert "changed meanwhile" in answer(approval)
    assert said_in(ours) == ["The office is in Porto."]


def test_what_nobody_was_shown_is_not_replaced(
    alice: User, converse: Any, mine: Memory, ours: MemoryStore
) -> None:
    approval = sharing(converse, mine, ours)
    remember(actor=alice, store=ours, text="The office is in Faro.", key="office")
    assert "has changed since a person was asked" in answer(approval)
    assert said_in(ours) == ["The office is in Faro."]


def test_a_call_that_names_another_text_shows_none(
    converse: Any, mine: Memory, ours: MemoryStore
) -> None:
    approval = asked(converse, "share_memory", id=mine.uid, store=ours.uid, sha256="0" * 64)
    assert approval.touches["changes"] == []
    assert approval.touches["whole"] is False


def test_a_call_that_names_no_memory_says_so_in_the_language_of_who_is_asked(converse: Any) -> None:
    touches = asked(converse, "forget_memory", "a page", id="mem_none").touches
    assert words_of(touches) == ["What this call names is not there; it would fail."]
    assert not is_shown_whole(touches)
    with override("de"):
        (told,) = as_data(touches)["words"]
        assert told == gettext("What this call names is not there; it would fail.")


def test_read_memory_tells_the_hash_that_sharing_names(converse: Any, mine: Memory) -> None:
    conversation, _script = converse([reply(call("read_memory", id=mine.uid)), reply("Done.")])
    post_message(actor=conversation.owner, conversation=conversation, text="Go.")
    rested(conversation)
    row = conversation.events.get(type="agent.tool_result")
    assert f"sha256 {mine.sha256}" in text_of(row.value.content)


def test_forgetting_shows_the_text_and_spares_another_one(
    alice: User, converse: Any, mine: Memory
) -> None:
    approval = asked(converse, "forget_memory", "a page", id=mine.uid)
    (change,) = approval.touches["changes"]
    assert (change["path"], "-The office is in Lisbon." in change["diff"]) == (mine.path, True)
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")
    assert "has changed since a person was asked" in answer(approval)
    assert said_in(mine.store) == ["The office is in Faro."]


def test_no_answer_in_advance_has_a_memory_forgotten_that_nobody_was_shown(
    alice: User, converse: Any, mine: Memory
) -> None:
    twice = [reply(call("forget_memory", id=mine.uid)), reply(call("forget_memory", id=mine.uid))]
    conversation, _script = converse([*twice, reply("Done.")])
    post_message(actor=alice, conversation=conversation, text="Go.", untrusted_by="a page")
    rested(conversation)
    approval = Approval.objects.get(conversation=conversation)
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")

    def allow(scope: Scope) -> None:
        decide_approval(
            actor=alice,
            approval=approval,
            verdict="approve",
            input_hash=approval.effective_sha256,
            seen_round=approval.round,
            scope=scope,
        )

    with suppress(Invalid):
        allow("run")
    approval.refresh_from_db()
    if approval.is_waiting:
        allow("once")
    rested(conversation, 2)
    assert said_in(mine.store) == ["The office is in Faro."]
    assert Approval.objects.waiting().count() == 1, "it is asked again, and shown what it says now"


def test_what_was_shown_is_forgotten(converse: Any, mine: Memory) -> None:
    assert answer(asked(converse, "forget_memory", "a page", id=mine.uid)).startswith("Forgotten")
    assert not Memory.objects.exists()


def test_what_is_forgotten_stands_in_no_question_any_more(
    alice: User, converse: Any, mine: Memory, ours: MemoryStore, client_of: ClientOf
) -> None:
    shared = sharing(converse, mine, ours)
    other = asked(converse, "forget_memory", "a page", id=mine.uid)
    forget_memory(actor=alice, memory=mine)
    for approval in (shared, other):
        approval.refresh_from_db()
        assert "Lisbon" not in str(approval.touches)
        page = client_of(alice).get(f"/approvals/{approval.uid}/").content.decode()
        assert "What it showed is forgotten." in page
    assert answer(shared).startswith("There is no memory")
    assert answer(other).startswith("There is no memory")


def test_nobody_edits_what_a_call_acts_on_into_what_she_was_not_shown(
    alice: User, acme: Organisation, converse: Any, mine: Memory
) -> None:
    store = own_store(actor=alice, organisation=acme)
    other = remember(actor=alice, store=store, text="Tea is green.").memory
    approval = asked(converse, "forget_memory", "a page", id=mine.uid)
    with pytest.raises(Invalid, match="than is shown here"):
        decide_call(
            actor=alice,
            conversation=approval.conversation,
            call_uid=approval.call_uid,
            allow=True,
            edited_input={"id": other.uid},
        )
    assert Memory.objects.count() == 2


def test_two_people_agree_on_what_the_first_of_them_was_shown(
    alice: User, acme: Organisation, converse: Any, mine: Memory
) -> None:
    approval = asks(converse()[0], {"id": mine.uid}, tool="forget_memory", two_people=True)
    correct_memory(actor=alice, memory=mine, text="The office is for sale.")
    decide_approval(
        actor=a_reviewer(acme),
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )
    approval.refresh_from_db()
    assert "Lisbon" in approval.touches["changes"][0]["diff"]
    context = ToolContext(
        approval.call_uid,
        Path(),
        extras={EXTRA: approval.conversation_id},
        ever_tainted_by="a page",
    )
    with pytest.raises(ToolError, match="has changed since a person was asked"):
        forget(context, {"id": mine.uid})
    assert Memory.objects.exists()


# --- the tool that models were trained on ---------------------------------------------------------


@pytest.fixture
def notes(alice: User, acme: Organisation) -> MemoryStore:
    store = create_store(actor=alice, organisation=acme, name="Notes")
    for name in ("green", "black"):
        create_memory(actor=alice, store=store, path=f"/tea/{name}.md", content=f"{name} tea")
    return store


@pytest.fixture
def given(alice: User, converse: Any, notes: MemoryStore) -> Conversation:
    conversation: Conversation = converse([])[0]
    wanted = [Wanted(notes.uid, Access.READ_WRITE)]
    attach_stores(actor=alice, conversation=conversation, stores=wanted)
    return conversation


def perform(approval: Approval) -> Any:
    """The call as a run carries it out."""
    conversation = approval.conversation
    tool = memory_tool(list(AttachedStore.objects.filter(conversation=conversation)))
    context = ToolContext(approval.call_uid, Path(), extras={EXTRA: conversation.pk})
    return tool.handler(context, approval.effective_input)


DELETE = {"command": "delete", "path": "/memories/notes/tea"}
RENAME = {
    "command": "rename",
    "old_path": "/memories/notes/tea",
    "new_path": "/memories/notes/drinks",
}


def test_deleting_a_folder_shows_each_memory_in_it(given: Conversation, notes: MemoryStore) -> None:
    approval = asks(given, DELETE, tool="memory")
    shown = {change["path"]: change["diff"] for change in approval.touches["changes"]}
    assert set(shown) == {"/tea/green.md", "/tea/black.md"}
    assert "-green tea" in shown["/tea/green.md"]
    perform(approval)
    assert not notes.memories.exists()


@pytest.mark.parametrize("command", [DELETE, RENAME], ids=["delete", "rename"])
def test_a_memory_that_came_into_the_folder_after_the_question_keeps_it_all(
    alice: User, given: Conversation, notes: MemoryStore, command: dict[str, str]
) -> None:
    approval = asks(given, command, tool="memory")
    create_memory(actor=alice, store=notes, path="/tea/contract.md", content="Signed.")
    with pytest.raises(ToolError, match="has changed since a person was asked"):
        perform(approval)
    assert notes.memories.filter(path__startswith="/tea/").count() == 3


def test_what_was_allowed_in_a_folder_in_advance_takes_nothing_out_of_it(
    alice: User, given: Conversation, notes: MemoryStore
) -> None:
    set_feature(actor=alice, conversation=given, feature="approval", enabled=True)
    writes = {"command": "create", "path": "/memories/notes/tea/white.md", "file_text": "white"}
    approval = asks(given, writes, tool="memory")
    decide_approval(
        actor=alice,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        scope="conversation",
        pattern="/memories/notes/tea/**",
    )
    given.refresh_from_db()
    another = {**writes, "path": "/memories/notes/tea/red.md"}
    assert judge(given, "memory", another).verdict is Verdict.ALLOW
    gone = judge(given, "memory", {"command": "delete", "path": "/memories/notes/tea/green.md"})
    assert gone.verdict is Verdict.ASK
    assert gone.terms is not None
    assert not gone.terms.may_be_settled


def test_of_many_memories_the_texts_are_cut_and_every_path_is_told(
    alice: User, given: Conversation, notes: MemoryStore
) -> None:
    for number in range(30):
        create_memory(actor=alice, store=notes, path=f"/tea/{number}.md", content="tea")
    touches = asks(given, DELETE, tool="memory").touches
    told = {change["path"] for change in touches["changes"]}
    told |= {names["path"] for _sentence, names in touches["words"] if "path" in names}
    assert told == set(notes.memories.values_list("path", flat=True))
    assert touches["whole"] is False


def test_of_two_calls_that_name_different_memories_by_the_same_path_each_has_its_own_yes(
    alice: User, acme: Organisation, converse: Any, notes: MemoryStore, client_of: ClientOf
) -> None:
    others = create_store(actor=alice, organisation=acme, name="Notes", scope=ORGANIZATION)
    create_memory(actor=alice, store=others, path="/tea/contract.md", content="Signed.")
    asked = []
    for store in (notes, others, notes):
        conversation = converse([])[0]
        wanted = [Wanted(store.uid, Access.READ_WRITE)]
        attach_stores(actor=alice, conversation=conversation, stores=wanted)
        asked.append(asks(conversation, DELETE, tool="memory"))
    first, other, same = asked
    client = client_of(alice)

    page = client.get("/approvals/").content.decode()
    assert page.count("Exactly the same call") == 1
    assert "Choose this and 1 identical call<" in page
    assert len(set(re.findall(r'data-alike="([^"]*)"', page))) == 2
    (chosen,) = re.findall(r'data-choose="([^"]*)"', page)
    assert page.count(f'data-alike="{chosen}"') == 2

    shown = [f"{one.uid}:{one.effective_sha256}:{one.round}" for one in asked]
    for both, status in ((first, other), 400), ((first, same), 302):
        together = {"approval": [one.uid for one in both], "shown": shown, "verdict": "approve"}
        assert client.post("/approvals/decide/", together).status_code == status
    assert set(Approval.objects.filter(state="approved")) == {first, same}
