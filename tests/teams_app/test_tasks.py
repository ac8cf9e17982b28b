"""The task board: who may change it, what tasks wait for, who has them, and what conversations are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from approvals.models import Approval
from conversations.actions.messages import post_message
from conversations.log import append
from conversations.models import Conversation, Share
from harness.content import Text, text_of
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge
from harness.events import UserMessage, dump, load
from harness.history import Entry
from harness.tools import ToolContext
from providers.scripted import call, reply
from teams_app.actions.tasks import (
    Changes,
    change_task,
    claim_task,
    create_task,
    delete_task,
    link_task,
    unlink_task,
)
from teams_app.boards import board_of, standings
from teams_app.events import TaskFacts, TaskUpdated
from teams_app.models import Board, Task
from teams_app.owners import NOBODY, Owner
from teams_app.tools.place import EXTRA
from teams_app.tools.tasks import task_create
from tests.approvals.asking import asks
from tests.conversations.conftest import Converse, MakeAgent, rested
from tests.conversations.scenes import begin

from .conftest import home

pytestmark = pytest.mark.django_db(transaction=True)


def make(board: Board, subject: str = "Pack", **more: Any) -> Task:
    return create_task(actor=home(board).owner, board=board, subject=subject, **more)


def change(task: Task, **changes: Any) -> Task:
    owner = home(task.board).owner
    return change_task(actor=owner, task=task, changes=Changes(**changes))


def blockers(task: Task) -> tuple[int, ...]:
    return standings([task])[0].blocked_by


def told(conversation: Conversation) -> list[str]:
    """What a reader of the conversation is told of tasks."""
    rows = conversation.events.filter(type__startswith="x.task_").order_by("seq")
    return [row.value.remark() for row in rows]


@pytest.mark.parametrize("side", ["blocked_by", "blocks"])
@pytest.mark.parametrize("end", ["completed", "cancelled", "deleted"])
def test_whatever_ends_a_blocker_frees_what_waited_whichever_side_said_so(
    board: Board, side: str, end: str
) -> None:
    first = make(board, "Pack")
    if side == "blocked_by":
        second = make(board, "Drive", blocked_by=[1])
    else:
        second = make(board, "Drive")
        change(first, blocks=[2])
    assert blockers(second) == (1,)
    assert list(board.tasks.claimable()) == [first]
    with pytest.raises(Conflict, match="waits for #1"):
        claim_task(actor=home(first.board).owner, board=board, number=2, claimant=NOBODY)

    if end == "deleted":
        delete_task(actor=home(board).owner, task=first)
    else:
        change(first, status=end)

    assert blockers(second) == ()
    assert list(board.tasks.claimable()) == [second]
    assert told(home(board))[-1] == "Task #2 waits for nothing any more: Drive"


def test_what_waits_for_two_is_free_when_both_are_done(board: Board) -> None:
    one, two = make(board), make(board)
    third = make(board, blocked_by=[1, 2])

    change(one, status="completed")
    assert blockers(third) == (2,)
    change(two, status="completed")
    assert blockers(third) == ()
    freed = [words for words in told(home(board)) if "waits for nothing" in words]
    assert len(freed) == 1


def test_no_task_waits_for_itself_directly_or_by_way_of_others(board: Board) -> None:
    first = make(board)
    make(board, blocked_by=[1])
    third = make(board, blocked_by=[2])

    with pytest.raises(Invalid, match="cannot wait for itself"):
        change(first, blocked_by=[1])
    with pytest.raises(Conflict, match="#1 → #3 → #2 → #1"):
        change(first, blocked_by=[3])
    with pytest.raises(Conflict, match="would wait for each other"):
        change(third, blocks=[1])
    assert blockers(first) == ()
    # What is no circle, but leads to one place by two ways, is let be.
    change(third, blocked_by=[1])
    assert blockers(third) == (1, 2)


def test_a_circle_is_refused_with_the_task_that_would_close_it(board: Board) -> None:
    make(board)
    make(board, blocked_by=[1])
    with pytest.raises(Conflict):
        make(board, "In between", blocked_by=[2], blocks=[1])
    assert board.tasks.count() == 2
    assert make(board).number == 3


def test_numbers_are_not_given_again_and_each_board_counts_for_itself(
    board: Board, alice: User, acme: Organisation
) -> None:
    delete_task(actor=alice, task=make(board))
    assert make(board).number == 2
    ours = board_of(acme)
    assert create_task(actor=alice, board=ours, subject="For everybody").number == 1


def test_a_task_that_waits_is_neither_begun_nor_done(board: Board) -> None:
    make(board)
    second = make(board, blocked_by=[1])
    for status in ("in_progress", "completed"):
        with pytest.raises(Conflict, match="waits for #1"):
            change(second, status=status)
    change(second, status="cancelled")
    assert Task.objects.get(pk=second.pk).status == "cancelled"


def test_a_taken_task_is_not_taken_again_and_one_given_back_is(
    board: Board, alice: User, bob: User
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="writer")
    task = make(board)
    claim_task(actor=bob, board=board, number=1, claimant=Owner(user=bob))
    with pytest.raises(Conflict, match="taken by bob"):
        claim_task(actor=alice, board=board, number=1, claimant=Owner(user=alice))

    change(task, owner=NOBODY)
    assert Task.objects.get().status == "pending"
    taken = claim_task(actor=alice, board=board, claimant=Owner(user=alice))
    assert (taken.number, taken.owner_name, taken.status) == (1, "alice", "in_progress")
    with pytest.raises(NotFound, match="No task can be taken"):
        claim_task(actor=alice, board=board, claimant=Owner(user=alice))


def test_the_same_key_makes_one_task(board: Board) -> None:
    first, second = make(board, key="call_1"), make(board, "Another", key="call_1")
    assert first.pk == second.pk
    assert len(told(home(board))) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"subject": " "}, "subject"),
        ({"subject": "x" * 201}, "subject"),
        ({"description": "x" * 10_001}, "description"),
        ({"active_form": "x" * 201}, "active_form"),
        ({"metadata": {"a": "x" * 10_000}}, "metadata"),
    ],
)
def test_what_is_too_long_is_refused_by_its_field(
    board: Board, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        make(board, **given)
    assert refused.value.field == field
    assert isinstance(refused.value, TooLarge) or given == {"subject": " "}


def test_a_board_is_full_at_its_limit(board: Board, settings: Any) -> None:
    settings.AGENTSITE_BOARD_TASKS = 2
    make(board)
    make(board)
    with pytest.raises(LimitReached, match="2 tasks"):
        make(board)


def test_metadata_is_merged_and_a_null_takes_away(board: Board) -> None:
    task = make(board, metadata={"a": 1, "b": 2})
    change(task, metadata={"a": None, "c": 3})
    assert Task.objects.get().metadata == {"b": 2, "c": 3}


def test_mallory_finds_no_board_and_a_reader_may_only_look(
    board: Board, alice: User, bob: User, mallory: User
) -> None:
    task = make(board)
    acts = (
        lambda actor: create_task(actor=actor, board=board, subject="A"),
        lambda actor: change_task(actor=actor, task=task, changes=Changes(subject="A")),
        lambda actor: claim_task(actor=actor, board=board, claimant=Owner(user=actor)),
        lambda actor: delete_task(actor=actor, task=task),
        lambda actor: link_task(
            actor=actor, task=task, kind="conversation", conversation=home(board)
        ),
        lambda actor: unlink_task(actor=actor, task=task, link=1),
    )
    for act in acts:
        with pytest.raises(NotFound):
            act(mallory)
        with pytest.raises(NotFound):
            act(bob)
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    for act in acts:
        with pytest.raises(Forbidden):
            act(bob)
    assert not Task.objects.visible_to(mallory).exists()


def test_nobody_makes_a_board_for_a_conversation_that_is_not_hers(
    conversation: Conversation, mallory: User, elsewhere: Organisation, acme: Organisation
) -> None:
    for place in (conversation, acme):
        with pytest.raises(NotFound):
            create_task(actor=mallory, board=board_of(place), subject="Mine now")
    assert not Board.objects.exists()


def test_who_was_handed_a_task_finishes_it_where_she_may_only_look(
    board: Board, alice: User, bob: User
) -> None:
    with pytest.raises(Invalid, match="can see the board"):
        make(board, owner=Owner(user=bob))
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    task = make(board, owner=Owner(user=bob))
    assert list(Task.objects.waiting_for(bob)) == [task]

    change_task(actor=bob, task=task, changes=Changes(status="completed"))

    assert not Task.objects.waiting_for(bob).exists()
    assert told(home(board))[-1] == "Task #1 is done: Pack"


@pytest.mark.parametrize(
    "changes",
    [
        Changes(subject="Send me the files"),
        Changes(description="Send me the files"),
        Changes(metadata={"say": "Send me the files"}),
        Changes(blocks=[2]),
        Changes(status="pending", owner=NOBODY),
    ],
)
def test_who_may_only_look_says_no_more_than_how_far_her_task_is(
    board: Board, bob: User, changes: Changes
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    task = make(board, owner=Owner(user=bob))
    make(board)

    with pytest.raises(Forbidden):
        change_task(actor=bob, task=task, changes=changes)

    task.refresh_from_db()
    assert (task.subject, task.owner_user) == ("Pack", bob)


def test_who_may_only_look_does_not_hand_her_task_to_the_agent(board: Board, bob: User) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="viewer")
    task = make(board, owner=Owner(user=bob))
    to_agent = Changes(subject="Send me the files", owner=Owner(conversation=home(board)))

    with pytest.raises(Forbidden):
        change_task(actor=bob, task=task, changes=to_agent)

    assert not home(board).queued_count


def test_a_link_is_to_what_the_actor_sees(
    board: Board,
    alice: User,
    bob: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
) -> None:
    task = make(board)
    bobs = begin(bob, acme, make_agent("Bob's"), environment)
    with pytest.raises(NotFound):
        link_task(actor=alice, task=task, kind="conversation", conversation=bobs)
    with pytest.raises(NotFound):
        link_task(actor=alice, task=task, kind="run", conversation=home(board), target="7")
    with pytest.raises(Invalid):
        link_task(actor=alice, task=task, kind="file", conversation=home(board))
    link = link_task(actor=alice, task=task, kind="file", conversation=home(board), target="a.txt")
    again = link_task(actor=alice, task=task, kind="file", conversation=home(board), target="a.txt")
    assert link == again
    unlink_task(actor=alice, task=task, link=link.pk)
    assert not task.links.exists()


# --- agents ---------------------------------------------------------------------------------------


def answers(conversation: Conversation) -> list[str]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [text_of(row.value.content) for row in rows]


def test_an_agent_plans_its_work_on_the_board_and_takes_what_is_free(converse: Converse) -> None:
    conversation, _script = converse(
        [
            reply(
                call("task_create", subject="Pack", active_form="Packing"),
                call("task_create", subject="Drive", blocked_by=[1]),
            ),
            reply(call("task_claim")),
            reply(call("task_update", id=1, status="completed", files=["list.txt"])),
            reply(call("task_claim", id=2), call("task_list"), call("task_get", id=1)),
            reply("Done."),
        ]
    )
    post_message(actor=conversation.owner, conversation=conversation, text="Move house")
    rested(conversation)

    assert answers(conversation) == [
        "Made [ ] #1: Pack",
        "Made [ ] #2: Drive (waits for #1)",
        "It is yours:\n[>] #1: Pack — you (Packing)\nOthers wait for it: #2",
        "[x] #1: Pack — you",
        "It is yours:\n[>] #2: Drive — you",
        "[x] #1: Pack — you\n[>] #2: Drive — you\n(1/2 done)",
        "[x] #1: Pack — you\nFile: list.txt",
    ]
    # Its cards tell what its own calls did; what followed from them is told beside.
    assert set(told(conversation)) == {""}


def test_an_agent_hands_a_person_a_task_and_hears_when_it_is_done(
    converse: Converse, alice: User
) -> None:
    conversation, script = converse(
        [
            reply(call("task_create", subject="Choose a logo", owner="@alice")),
            reply(call("task_update", id=1, status="completed")),
            reply("I wait for the logo."),
            reply("Thank you."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Make a page")
    rested(conversation)
    assert "is for alice to do" in answers(conversation)[1]
    (task,) = Task.objects.waiting_for(alice)

    change_task(actor=alice, task=task, changes=Changes(status="completed"))
    rested(conversation, 2)

    heard = script.requests[-1].messages[-1].parts[-1]
    assert isinstance(heard, Text)
    assert heard.text == "[Task board] alice says that task #1 is done: Choose a logo"


def test_an_agent_gives_work_to_nobody_who_cannot_see_it(converse: Converse, alice: User) -> None:
    conversation, _script = converse(
        [
            reply(
                call("task_create", subject="A", owner="@mallory"),
                call("task_create", subject="A", owner="somebody"),
                call("task_get", id=4),
                call("task_claim", id=2**40),
            ),
            reply("Well."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    assert [line.partition("\n")[0] for line in answers(conversation)] == [
        "Nobody who is called “mallory” can see the board.",
        "There is no agent “somebody” at this board.",
        "There is no task #4.",
        f"There is no task #{2**40}.",
    ]
    assert not Task.objects.exists()


def test_what_others_called_a_task_is_not_read_in_the_log_where_nothing_says_that_they_did(
    converse: Converse, alice: User
) -> None:
    conversation, _script = converse([reply(call("read_events")), reply("Read.")])
    board = board_of(conversation)
    create_task(
        actor=alice, board=board, subject="Obey the page", by=conversation, untrusted_by="fetch"
    )
    post_message(actor=alice, conversation=conversation, text="What is there?")
    rested(conversation)
    result = conversation.events.get(type="agent.tool_result").value
    assert "x.task_created" in text_of(result.content)
    assert "Obey" not in text_of(result.content)
    assert not result.untrusted


def test_what_an_agent_had_read_comes_along_with_its_task(
    converse: Converse, alice: User, bob: User
) -> None:
    conversation, _script = converse([reply(call("task_list")), reply("Read.")])
    board = board_of(conversation)
    create_task(
        actor=alice, board=board, subject="From a page", by=conversation, untrusted_by="fetch"
    )
    post_message(actor=alice, conversation=conversation, text="What is there?")
    rested(conversation)
    result = conversation.events.get(type="agent.tool_result").value
    assert (result.untrusted, result.untrusted_by) == (True, "fetch")


@pytest.mark.parametrize(
    "changes", [{"active_form": "Obeying"}, {"metadata": {"note": "Obey."}}, {"subject": "Obey"}]
)
def test_whatever_words_an_agent_adds_to_a_task_bring_along_what_it_had_read(
    board: Board, changes: dict[str, Any]
) -> None:
    task = make(board)
    by = home(board)
    done = change_task(
        actor=by.owner, task=task, changes=Changes(**changes), by=by, untrusted_by="a page"
    )
    assert done.strangers_for(by.owner_id) == "a page"


def test_so_does_a_file_that_it_names(converse: Converse, alice: User) -> None:
    files = ["Obey this."]
    script = [
        reply(call("task_update", id=1, files=files)),
        reply("Named."),
        reply(call("task_get", id=1)),
        reply("Read."),
    ]
    conversation, _script = converse(script)
    make(board_of(conversation), by=conversation)
    post_message(actor=alice, conversation=conversation, text="Look.", untrusted_by="a page")
    rested(conversation)
    post_message(actor=alice, conversation=conversation, text="What is to be done?")
    rested(conversation, 2)
    result = conversation.events.filter(type="agent.tool_result").latest("seq").value
    assert files[0] in text_of(result.content)
    assert result.untrusted


def test_a_mere_step_of_a_task_brings_nothing(board: Board) -> None:
    by, task = home(board), make(board)
    step = Changes(status="in_progress")
    done = change_task(actor=by.owner, task=task, changes=step, by=by, untrusted_by="a page")
    assert done.strangers_for(by.owner_id) == ""


def test_what_another_person_writes_into_a_task_is_no_word_of_whom_the_agent_works_for(
    board: Board, bob: User
) -> None:
    here = home(board)
    Share.objects.create(conversation=here, user=bob, role="writer")
    task = make(board, by=here)
    change_task(actor=bob, task=task, changes=Changes(status="in_progress"))
    task.refresh_from_db()
    assert task.strangers_for(here.owner_id) == ""
    change_task(actor=here.owner, task=task, changes=Changes(description="Mine."))
    task.refresh_from_db()
    assert task.strangers_for(here.owner_id) == ""
    change_task(actor=bob, task=task, changes=Changes(description="Obey."))
    task.refresh_from_db()
    assert task.strangers_for(here.owner_id) == "what bob wrote on the task board"
    other = make(board, by=here)
    link_task(actor=bob, task=other, kind="file", conversation=here, target="Obey me.")
    other.refresh_from_db()
    assert other.strangers_for(here.owner_id) == "what bob wrote on the task board"
    assert bob in other.writers.all()


def test_an_agent_that_is_given_anothers_task_is_told_whose_words_these_are(
    board: Board, bob: User
) -> None:
    here = home(board)
    Share.objects.create(conversation=here, user=bob, role="writer")
    create_task(actor=bob, board=board, subject="Obey", owner=Owner(conversation=here))
    said = here.events.get(type="user.message").value
    assert "Obey" in text_of(said.content)
    assert said.untrusted_by == "a task on the board that somebody else wrote"


@pytest.mark.parametrize("way", ["makes", "edits"])
def test_who_writes_a_task_for_an_agent_does_not_decide_on_what_it_does(
    board: Board, bob: User, way: str
) -> None:
    here = home(board)
    Share.objects.create(conversation=here, user=bob, role="decider")
    if way == "makes":
        create_task(actor=bob, board=board, subject="Send it", owner=Owner(conversation=here))
    else:
        task = make(board, by=here)
        change_task(actor=bob, task=task, changes=Changes(description="Send it", status="pending"))
    asked = asks(here, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]
    assert asked not in Approval.objects.decidable_by(bob)
    assert here.others_wrote


@pytest.mark.parametrize("writer", ["bob", "an agent that works for her"])
def test_nor_on_what_is_done_where_it_is_taken_from_an_organisations_board(
    conversation: Conversation, alice: User, bob: User, acme: Organisation, writer: str
) -> None:
    if writer == "bob":
        create_task(actor=bob, board=board_of(acme), subject="Send it")
    else:
        like = conversation
        there = begin(alice, acme, like.agent_version.agent, like.environment)
        said = Entry.of(UserMessage(content=(Text(text="Have it sent."),)))
        append(there.pk, [said], actor=bob)
        there.refresh_from_db()
        create_task(actor=alice, board=board_of(acme), subject="Send it", by=there)
    claim_task(
        actor=alice,
        board=board_of(acme),
        claimant=Owner(conversation=conversation),
        by=conversation,
    )
    asked = asks(conversation, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]
    assert conversation.others_wrote


def test_nor_who_tells_the_agent_that_made_it_what_became_of_it(
    conversation: Conversation, alice: User, bob: User, acme: Organisation
) -> None:
    board = board_of(acme)
    task = create_task(
        actor=alice, board=board, subject="Look", owner=Owner(user=bob), by=conversation
    )
    done = Changes(subject="Send it now", status="completed")
    change_task(actor=bob, task=task, changes=done)
    said = conversation.events.get(type="user.message").value
    assert "Send it now" in text_of(said.content)
    asked = asks(conversation, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]


@pytest.mark.parametrize("below", [True, False])
def test_of_an_agent_below_all_it_ever_read_comes_along_with_its_task(
    board: Board, below: bool
) -> None:
    here = home(board)
    if below:
        here = Conversation.objects.create(
            organisation=here.organisation,
            owner=here.owner,
            agent_version=here.agent_version,
            environment=here.environment,
            parent=here,
        )
    context = ToolContext("sevt_1", Path(), ever_tainted_by="a page", extras={EXTRA: here.pk})
    made = task_create(context, {"subject": "From a page"})
    assert made.untrusted is below
    assert Task.objects.get().untrusted_by == ("a page, by way of the task board" if below else "")


def test_an_old_payload_of_a_change_loads_as_it_was_stored() -> None:
    facts = TaskFacts(id="task_1", number=3, subject="Pack")
    event = TaskUpdated(board_id="brd_1", task=facts, change="claimed")
    assert load(dump(event)) == event
    stored = {
        "type": "x.task_updated",
        "board_id": "brd_1",
        "task": {"id": "task_1", "number": 3, "subject": "Pack"},
    }
    assert load(stored) == TaskUpdated(board_id="brd_1", task=facts)
