"""Who may do what in a conversation that its owner shares: every action, every door, and its end."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from accounts.actions.members import remove_member
from accounts.actions.tokens import create_token
from accounts.models import Membership, Organisation, Role, TokenScope, User
from agents.models import Agent, Environment
from approvals.actions import rules, simulation
from approvals.actions.approvals import decide_approval
from approvals.models import Approval, PolicyRule
from approvals.policyrules import held_for
from audit.models import AuditEntry
from conversations.actions import (
    answers,
    attachments,
    background,
    branching,
    children,
    choosing,
    compacting,
    conversations,
    deciding,
    direct,
    files,
    forking,
    lending,
    links,
    messages,
    outcomes,
    queue,
    redacting,
    reverting,
    setaside,
    sharing,
    tickets,
    together,
)
from conversations.log import append
from conversations.models import Conversation, Event, FileResource, Share
from evals.actions import cases
from folders.actions import places
from harness.content import Text
from harness.errors import AgentError, Conflict, Forbidden, Invalid, MayNotDecide, NotFound
from harness.events import InputTaken, UserMessage
from harness.history import Entry
from keeping.actions import feedback, pinning, pins, seen, tags
from mcpservers.actions import attaching as servers
from programs.actions import metadata, outputs, resources, sending, sessions
from recall.actions import attaching, switching
from receipts.actions import receipts
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import create_skill
from skillsets.actions import adding, trusting
from spending.actions import budgets
from spending.applying import applying_to
from spending.models import Budget
from steering.actions import trust
from subagents.actions import subagents
from tests.approvals.asking import WRITE, asks
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse
from vaults.actions.vaults import create_vault

ROLES = ("viewer", "writer", "decider")
Act = Callable[..., Any]
Made = tuple[str, Act]


def walked() -> set[str]:
    """The names of all actions that somebody does to a conversation, by their signatures."""
    found: set[str] = set()
    for path in sorted(Path().glob("*/actions/*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            given = [*node.args.kwonlyargs, *node.args.args]
            about = any("Conversation" in ast.unparse(a.annotation or ast.Pass()) for a in given)
            if about and "actor" in {a.arg for a in given} and path.stem != "own":
                found.add(f"{path.stem}.{node.name}")
    return found


def table(alice: User, conversation: Conversation, asked: Approval) -> dict[str, Made]:
    """By action the least that allows it, and what does it. What is allowed may still be refused for
    another reason."""
    of: dict[str, Any] = {"conversation": conversation}
    event = asked.call_uid
    shown = [together.Shown(event, asked.effective_sha256, 1)]
    upload = files.Upload("a.txt", 1, [b"a"])
    agent, environment = Agent.objects.get(), Environment.objects.get()
    resource = FileResource(uid="sesrsc_x", conversation=conversation, path="x")
    asking = {"tool": "bash", "permission": "always_ask"}
    another: dict[str, Any] = {"agent": agent, "environment": environment}

    def attach(actor: User) -> None:
        with attachments.attached(actor=actor, uids=["file_x"], **of):
            pass

    def aside(actor: User) -> None:
        answers.answer_questions(actor=actor, call_uid=event, answers=[], **of)

    return {
        "answers.answer_custom_tool": (
            "owner",
            partial(answers.answer_custom_tool, call_uid=event, content="x", **of),
        ),
        "answers.refuse_custom_tool": (
            "owner",
            partial(answers.refuse_custom_tool, call_uid=event, **of),
        ),
        "answers.answer_questions": ("writer", aside),
        "answers.skip_questions": ("writer", partial(answers.skip_questions, call_uid=event, **of)),
        "attachments.attached": ("writer", attach),
        "background.cancel_all_background": (
            "owner",
            partial(background.cancel_all_background, **of),
        ),
        "branching.edit_and_resend": (
            "owner",
            partial(branching.edit_and_resend, message_uid=event, text="x", **of),
        ),
        "branching.regenerate": ("owner", partial(branching.regenerate, event_uid=event, **of)),
        "branching.rewind": ("owner", partial(branching.rewind, event_uid=event, **of)),
        "branching.switch_branch": (
            "owner",
            partial(branching.switch_branch, event_uid=event, **of),
        ),
        "branching.go_elsewhere": (
            "owner",
            partial(branching.go_elsewhere, act="rewind", event_uid=event, **of),
        ),
        "children.begin_child": (
            "owner",
            partial(children.begin_child, parent=conversation, text="x", **another),
        ),
        "children.tell_agent": (
            "owner",
            partial(children.tell_agent, sender=conversation, receiver=conversation, text="x"),
        ),
        "subagents.stop_subagents": ("writer", partial(subagents.stop_subagents, **of)),
        "choosing.choose_model": (
            "owner",
            partial(choosing.choose_model, wish=choosing.Wish(), **of),
        ),
        "conversations.create_conversation": (
            "owner",
            partial(
                conversations.create_conversation,
                organisation=conversation.organisation,
                parent=conversation,
                **another,
            ),
        ),
        "conversations.rename_conversation": (
            "owner",
            partial(conversations.rename_conversation, title="x", **of),
        ),
        "conversations.change_tools": (
            "owner",
            partial(conversations.change_tools, overrides={}, **of),
        ),
        "tags.tag_conversation": ("viewer", partial(tags.tag_conversation, words=["x"], **of)),
        "places.move_conversation": (
            "viewer",
            partial(places.move_conversation, folder=None, **of),
        ),
        "seen.mark_as_seen": ("viewer", partial(seen.mark_as_seen, **of)),
        "pinning.pin_message": ("writer", partial(pinning.pin_message, event_uid=event, **of)),
        "pins.pin_conversation": ("viewer", partial(pins.pin_conversation, pinned=True, **of)),
        "conversations.archive_conversation": (
            "owner",
            partial(conversations.archive_conversation, archived=True, **of),
        ),
        "conversations.delete_conversation": (
            "owner",
            partial(conversations.delete_conversation, **of),
        ),
        "deciding.decide_call": (
            "decider",
            partial(deciding.decide_call, call_uid=event, allow=False, **of),
        ),
        "direct.use_tool": (
            "owner",
            partial(direct.use_tool, name="calculator", arguments={"expression": "1"}, **of),
        ),
        "feedback.give_feedback": (
            "owner",
            partial(feedback.give_feedback, event_uid=event, rating="up", **of),
        ),
        "files.add_files": ("writer", partial(files.add_files, uploads=[upload], **of)),
        "forking.fork_conversation": (
            "viewer",
            partial(forking.fork_conversation, event_uid=event, **of),
        ),
        "sessions.fork_session": (
            "viewer",
            partial(sessions.fork_session, caller=None, event_uid=event, **of),
        ),
        "queue.move_message": ("owner", partial(queue.move_message, message_uid=event, **of)),
        "queue.release_queue": ("owner", partial(queue.release_queue, **of)),
        "queue.discard_queue": ("owner", partial(queue.discard_queue, **of)),
        "reverting.revert_files": (
            "owner",
            partial(reverting.revert_files, event_uid=event, **of),
        ),
        "lending.lend_vaults": ("owner", partial(lending.lend_vaults, vault_uids=[], **of)),
        "links.make_link": (
            "owner",
            partial(links.make_link, days=1, details=False, members_only=True, **of),
        ),
        "messages.post_message": ("writer", partial(messages.post_message, text="x", **of)),
        "messages.stop": ("writer", partial(messages.stop, **of)),
        "messages.withdraw_message": (
            "writer",
            partial(messages.withdraw_message, message_uid=event, **of),
        ),
        "messages.edit_message": (
            "writer",
            partial(messages.edit_message, message_uid=event, text="x", **of),
        ),
        "messages.steer_message": (
            "writer",
            partial(messages.steer_message, message_uid=event, **of),
        ),
        "messages.request_retry": ("owner", partial(messages.request_retry, **of)),
        "messages.set_feature": (
            "owner",
            partial(messages.set_feature, feature="approval", enabled=False, **of),
        ),
        "metadata.note_conversation": (
            "owner",
            partial(metadata.note_conversation, metadata={}, **of),
        ),
        "outputs.outputs_of": ("viewer", partial(outputs.outputs_of, **of)),
        "rules.save_rule": (
            "owner",
            partial(rules.save_rule, level="conversation", rule=asking, **of),
        ),
        "simulation.simulate_call": (
            "decider",
            partial(simulation.simulate_call, tool="write_file", input=WRITE, **of),
        ),
        "redacting.redact_content": (
            "owner",
            partial(redacting.redact_content, event_uid=event, **of),
        ),
        "sending.send_events": (
            "writer",
            partial(sending.send_events, events=[UserMessage(content=(Text(text="x"),))], **of),
        ),
        "setaside.set_aside": ("owner", partial(setaside.set_aside, event_uid=event, **of)),
        "sharing.share_conversation": (
            "owner",
            partial(sharing.share_conversation, user_uid="", role="viewer", **of),
        ),
        "sharing.unshare_conversation": (
            "owner",
            partial(sharing.unshare_conversation, share_uid="shr_x", **of),
        ),
        "sharing.shares_of": ("viewer", partial(sharing.shares_of, **of)),
        "sharing.people_to_share_with": ("owner", partial(sharing.people_to_share_with, **of)),
        "resources.add_resource": (
            "owner",
            partial(resources.add_resource, file_uid="file_x", **of),
        ),
        "resources.remove_resource": (
            "owner",
            partial(resources.remove_resource, resource=resource, **of),
        ),
        "adding.add_skill": (
            "owner",
            partial(adding.add_skill, name=released_skill(alice, conversation), **of),
        ),
        "tickets.issue_ticket": ("viewer", partial(tickets.issue_ticket, **of)),
        "together.allow_calls": ("decider", partial(together.allow_calls, shown=shown, **of)),
        "together.deny_calls": (
            "decider",
            partial(together.deny_calls, call_uids=[event], reason="no", **of),
        ),
        "together.deny_with_message": (
            "decider",
            partial(together.deny_with_message, call_uids=[event], message_uid=event, **of),
        ),
        "outcomes.define_outcome": (
            "writer",
            partial(outcomes.define_outcome, description="x", rubric="- y", **of),
        ),
        "compacting.request_compaction": (
            "writer",
            partial(compacting.request_compaction, focus="", **of),
        ),
        "trust.trust_file": (
            "owner",
            partial(trust.trust_file, path="AGENTS.md", sha256="", **of),
        ),
        "trust.distrust_file": ("owner", partial(trust.distrust_file, path="AGENTS.md", **of)),
        "trusting.trust_skill": (
            "writer",
            partial(trusting.trust_skill, place=".agents/skills/tidy", digest="", **of),
        ),
        "trusting.distrust_skill": (
            "writer",
            partial(trusting.distrust_skill, place=".agents/skills/tidy", **of),
        ),
        "receipts.make_receipt": ("owner", partial(receipts.make_receipt, **of)),
        "cases.case_of": ("viewer", partial(cases.case_of, event_uid=event, **of)),
        "switching.leave_out": ("owner", partial(switching.leave_out, **of)),
        "attaching.attach_resource": (
            "writer",
            partial(servers.attach_resource, server_uid="mcps_x", label="x", **of),
        ),
        "attaching.attach_prompt": (
            "writer",
            partial(servers.attach_prompt, server_uid="mcps_x", name="x", arguments={}, **of),
        ),
        "attaching.find_prompt": (
            "writer",
            partial(servers.find_prompt, server_uid="mcps_x", name="x", **of),
        ),
        "attaching.attach_stores": ("owner", partial(attaching.attach_stores, stores=(), **of)),
        "sessions.cap_session": ("owner", partial(sessions.cap_session, limit=1, **of)),
        "sessions.wake_session": ("owner", partial(sessions.wake_session, **of)),
        "budgets.set_budget": (
            "owner",
            partial(
                budgets.set_budget,
                scope=Budget.Scope.CONVERSATION,
                unit="tokens",
                period="total",
                limit=1,
                **of,
            ),
        ),
    }


def released_skill(alice: User, conversation: Conversation) -> str:
    files = {"SKILL.md": b"---\nname: tidy\ndescription: How to tidy up.\n---\nTidy up."}
    made = create_skill(actor=alice, organisation=conversation.organisation, files=files)
    ask_for_release(actor=alice, version=made)
    decide_release(actor=alice, version=made, approve=True)
    return made.skill.name


_OF_A_BOARD = "Asked of a board, which says who may (`tests/teams_app/test_tasks.py`)."
ELSEWHERE = {
    **dict.fromkeys(
        ("tasks.create_task", "tasks.change_task", "tasks.link_task", "tasks.claim_task"),
        _OF_A_BOARD,
    ),
    "tasks.delete_task": _OF_A_BOARD,
    "teams.spawn_teammate": "Asked by a lead for its owner (`tests/teams_app/test_teams.py`).",
    "answers.set_questions_aside": "Handed a conversation that its caller has checked.",
    "beginning.begin_conversation": "Begins one of the actor's own.",
    "runs.start_run": "`create_conversation` below it says whose the one above is.",
    "places.move_by_uid": "`places.move_conversation` by the id of a folder.",
    "calls.decide_call": "`deciding.decide_call` leads to it.",
    "background.cancel_background": "Asked of a command; `cancel_all_background` leads to it.",
    "subagents.stop_subagent": "Asked of a child: `stop_subagents` above it says who may.",
    "children.answer_of": "Asked of a child, which is nobody's but its owner's.",
    "rules.take_rules_along": "Asked of a fork: `forking.fork_conversation` says who may.",
    "servers.add_server": "For a conversation it is `require_own`'s (`tests/mcpservers/test_wire.py`).",
    "handing.hand_to_conversation": "`servers.add_server` says who may, and that she changes only her own.",
}


@pytest.fixture
def cast(alice: User, bob: User, mallory: User, acme: Organisation) -> dict[str, User]:
    """Bob belongs here and has no share; the others are called what they may do."""
    people = {name: make_user(name) for name in ROLES}
    for person in people.values():
        join(person, acme)
    return {"owner": alice, "bob": bob, "mallory": mallory, **people}


@pytest.fixture
def shared(cast: Mapping[str, User], converse: Converse) -> Conversation:
    conversation, _script = converse()
    for name in ROLES:
        share(conversation, cast[name], name)
    return conversation


def share(conversation: Conversation, user: User | None, role: str) -> Share:
    return sharing.share_conversation(
        actor=conversation.owner,
        conversation=conversation,
        user_uid="" if user is None else user.uid,
        role=role,
    )


def came_of(act: Act, actor: User) -> AgentError | None:
    """What it raised; what it did is undone."""
    try:
        with transaction.atomic():
            act(actor=actor)
            transaction.set_rollback(True)
    except AgentError as problem:
        return problem
    return None


@pytest.mark.django_db
def test_every_action_on_a_conversation_is_for_whom_its_owner_gave_it_to(
    cast: Mapping[str, User], shared: Conversation
) -> None:
    asked = asks(shared)
    actions = table(cast["owner"], shared, asked)
    assert walked() == set(actions) | set(ELSEWHERE)
    ranks = ["viewer", "writer", "decider", "owner"]
    last = Event.objects.filter(conversation=shared).count()

    for name, (least, act) in actions.items():
        for stranger in ("bob", "mallory"):
            problem = came_of(act, cast[stranger])
            assert isinstance(problem, NotFound), (name, stranger, problem)
        for rank in ranks:
            problem = came_of(act, cast[rank])
            if ranks.index(rank) >= ranks.index(least):
                assert type(problem) is not Forbidden, (name, rank, problem)
                if isinstance(problem, NotFound) and name != "children.tell_agent":
                    assert "conversation" not in str(problem.message), (name, rank, problem)
            else:
                assert isinstance(problem, Forbidden | NotFound), (name, rank, problem)
    assert Event.objects.filter(conversation=shared).count() == last


def program(user: User, organisation: Organisation) -> Client:
    scopes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
    scopes.append(TokenScope.APPROVALS_DECIDE)
    issued = create_token(actor=user, organisation=organisation, name="Tests", scopes=scopes)
    return Client(headers={"x-api-key": issued.secret})


@pytest.mark.django_db
def test_the_doors_open_for_reading_and_close_with_the_share(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation, client_of: ClientOf
) -> None:
    uid = shared.uid
    pages = [f"/c/{uid}/", f"/c/{uid}/files/", f"/c/{uid}/changes/", f"/c/{uid}/export/json/"]
    reads = [
        f"/api/conversations/{uid}",
        f"/api/conversations/{uid}/shares",
        f"/api/workspace/files?conversation_id={uid}",
        f"/v1/sessions/{uid}",
        f"/v1/sessions/{uid}/events",
        f"/v1/sessions/{uid}/threads",
        f"/v1/sessions/{uid}/export",
    ]
    own = [f"/api/conversations/{uid}/budgets"]
    viewer = cast["viewer"]
    browser, token = client_of(viewer), program(viewer, acme)

    assert [browser.get(page).status_code for page in pages] == [200] * len(pages)
    assert [token.get(read).status_code for read in reads] == [200] * len(reads)
    assert [token.get(read).status_code for read in own] == [403]
    assert browser.get(f"/c/{uid}/budget/").status_code in {403, 404}
    for stranger in ("bob", "mallory"):
        his = client_of(cast[stranger])
        assert {his.get(page).status_code for page in pages} == {404}
    of_bob = program(cast["bob"], acme)
    assert {of_bob.get(read).status_code for read in (*reads, *own)} == {404}
    # Lists are of one's own.
    assert token.get("/api/conversations").json() == []
    assert token.get("/v1/sessions").json()["data"] == []

    row = Share.objects.get(user=viewer)
    assert program(cast["owner"], acme).delete(
        f"/api/conversations/{uid}/shares/{row.uid}"
    ).json() == {"status": "deleted"}
    assert {browser.get(page).status_code for page in pages} == {404}
    assert {token.get(read).status_code for read in (*reads, *own)} == {404}


@pytest.mark.django_db
def test_programs_of_whoever_may_not_change_it_change_nothing(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation
) -> None:
    uid = shared.uid
    message = {"type": "user.message", "content": [{"type": "text", "text": "x"}]}
    writes: list[tuple[str, str, Any]] = [
        ("delete", f"/api/conversations/{uid}", None),
        ("post", f"/api/conversations/{uid}/branch", {"act": "rewind", "event_id": "sevt_x"}),
        ("delete", f"/api/conversations/{uid}/background", None),
        ("post", f"/api/conversations/{uid}/shares", {"user_id": None, "role": "viewer"}),
        ("post", f"/v1/sessions/{uid}/events", {"events": [message]}),
        ("post", f"/v1/sessions/{uid}", {"title": "x"}),
        ("delete", f"/v1/sessions/{uid}", None),
        ("post", f"/v1/sessions/{uid}/archive", {}),
        ("post", f"/v1/sessions/{uid}/x_wake", {}),
    ]
    for name, refusal in (("viewer", 403), ("bob", 404)):
        client = program(cast[name], acme)
        for method, where, body in writes:
            more = {} if body is None else {"data": body, "content_type": "application/json"}
            answer = getattr(client, method)(where, **more)
            assert answer.status_code in {refusal, 404}, (name, where, answer.content)
            if name == "viewer" and "x_wake" not in where:
                assert answer.status_code == 403, (where, answer.content)
    shared.refresh_from_db()
    assert (shared.last_seq, shared.archived_at, shared.shares.count()) == (0, None, 3)


@pytest.mark.django_db
def test_a_share_is_within_the_organisation_and_ends_with_the_membership(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation
) -> None:
    viewer, mallory, alice = cast["viewer"], cast["mallory"], cast["owner"]
    for who in (mallory, alice):
        with pytest.raises(Invalid):
            share(shared, who, "viewer")
    with pytest.raises(Invalid):
        share(shared, viewer, "king")
    share(shared, None, "viewer")
    assert Conversation.objects.visible_to(cast["bob"]).contains(shared)
    assert not Conversation.objects.writable_by(cast["bob"]).contains(shared)
    assert Conversation.objects.writable_by(cast["writer"]).contains(shared)
    assert not Conversation.objects.visible_to(mallory).exists()

    remove_member(actor=alice, membership=Membership.objects.get(user=viewer, organisation=acme))
    assert not Conversation.objects.visible_to(viewer).exists()
    join(viewer, acme)
    assert not Share.objects.filter(user=viewer).exists()

    # What its owner left is nobody's to read by her word.
    Membership.objects.filter(user=alice, organisation=acme).delete()
    assert not Conversation.objects.visible_to(cast["writer"]).exists()
    told = AuditEntry.objects.filter(action="conversation_shared", actor=alice)
    assert told.count() == 4


@pytest.mark.django_db
def test_what_others_write_gains_no_right_that_they_or_the_owner_lack(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation
) -> None:
    alice, writer = cast["owner"], cast["writer"]
    agent = shared.agent_version.agent

    def rule(who: User | None, permission: str) -> PolicyRule:
        return PolicyRule.objects.create(
            scope=PolicyRule.Scope.AGENT,
            organisation=acme,
            agent=agent,
            for_user=who,
            tool="bash",
            permission=permission,
            made_by=alice,
        )

    hers, his = rule(alice, "always_allow"), rule(writer, "always_deny")
    everybodys = rule(None, "always_allow")

    def named() -> set[str]:
        held = Conversation.objects.get(pk=shared.pk)
        return {each.uid for each in held_for(held)}

    assert named() == {hers.uid, everybodys.uid}
    append(shared.pk, [Entry.of(UserMessage(content=(Text(text="Hi"),)))], actor=writer)
    assert named() == {his.uid, everybodys.uid}

    private = Agent.objects.filter(pk=agent.pk)
    private.update(organisation=acme, owner=alice, private=True)
    with pytest.raises(Forbidden, match="agent"):
        messages.post_message(actor=writer, conversation=shared, text="Hi")


@pytest.mark.django_db
def test_a_writers_words_cost_the_writer(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation
) -> None:
    alice, writer = cast["owner"], cast["writer"]
    for who in (alice, writer):
        budgets.set_budget(
            actor=alice,
            scope=Budget.Scope.USER,
            organisation=acme,
            user=who,
            unit="tokens",
            period="month",
            limit=100,
        )

    def said(by: User) -> None:
        message = Entry.of(UserMessage(content=(Text(text="Hi"),)))
        append(shared.pk, [message], actor=by)
        append(shared.pk, [Entry.of(InputTaken(event_ids=(message.uid,)))])

    def charged() -> tuple[int, set[int | None]]:
        held = Conversation.objects.get(pk=shared.pk)
        payer, found = applying_to(held, server_keys=False)
        return payer, {one.user_id for one in found}

    assert charged() == (alice.pk, {alice.pk})
    said(writer)
    assert charged() == (writer.pk, {writer.pk})
    said(alice)
    assert charged() == (alice.pk, {alice.pk})


@pytest.mark.django_db
def test_a_decider_counts_as_a_person_but_not_for_what_she_asked_for_herself(
    cast: Mapping[str, User], shared: Conversation
) -> None:
    decider, writer = cast["decider"], cast["writer"]
    share(shared, writer, "decider")
    shared.refresh_from_db()

    def answer(approval: Approval, by: User, **more: Any) -> Approval:
        return decide_approval(
            actor=by,
            approval=approval,
            verdict="approve",
            input_hash=approval.effective_sha256,
            seen_round=approval.round,
            **more,
        )

    two = asks(shared, two_people=True)
    assert answer(two, cast["owner"]).state == "pending"
    assert answer(two, decider).state == "approved"

    # The writer's words led to this call.
    Conversation.objects.filter(pk=shared.pk).update(others_wrote=True, owner=writer)
    other = asks(Conversation.objects.get(pk=shared.pk), requester_may_not_decide=True)
    Conversation.objects.filter(pk=shared.pk).update(owner=cast["owner"])
    other.requested_by = cast["owner"]
    other.save(update_fields=["requested_by"])
    other.also_requested_by.set([writer])
    for who in (writer, cast["owner"]):
        with pytest.raises(MayNotDecide):
            answer(other, who)
        assert other not in Approval.objects.decidable_by(who)
    assert other in Approval.objects.decidable_by(decider)
    with pytest.raises(MayNotDecide, match="once"):
        answer(other, decider, scope="always")
    assert answer(other, decider).state == "approved"
    with pytest.raises(NotFound):
        answer(asks(shared), cast["viewer"])


@pytest.mark.django_db
def test_the_authors_of_a_turn_are_known_when_its_call_asks(
    cast: Mapping[str, User], shared: Conversation
) -> None:
    writer = cast["writer"]
    Conversation.objects.filter(pk=shared.pk).update(owner=writer)  # `asks` speaks for the owner
    first = Conversation.objects.get(pk=shared.pk)
    Conversation.objects.filter(pk=shared.pk).update(owner=cast["owner"])
    asked = asks(first)
    assert asked.requested_by == cast["owner"]
    assert list(asked.also_requested_by.all()) == [writer]
    shared.refresh_from_db()
    assert (shared.others_wrote, shared.asker_id) == (True, writer.pk)


@pytest.mark.django_db
def test_nobody_edits_anothers_words_and_others_take_them_away_only_if_they_own_the_place(
    cast: Mapping[str, User], shared: Conversation
) -> None:
    row = append(
        shared.pk, [Entry.of(UserMessage(content=(Text(text="Hi"),)))], actor=cast["writer"]
    )[0]
    here: dict[str, Any] = {"conversation": shared, "message_uid": row.uid}
    for who in ("owner", "decider"):
        with pytest.raises(Forbidden):
            messages.edit_message(actor=cast[who], text="Other words", **here)
    with pytest.raises(Forbidden):
        messages.withdraw_message(actor=cast["decider"], **here)
    messages.edit_message(actor=cast["writer"], text="Hello", **here)
    messages.withdraw_message(actor=cast["owner"], **here)


@pytest.mark.django_db
def test_vaults_are_not_lent_where_others_write(
    cast: Mapping[str, User], shared: Conversation, acme: Organisation
) -> None:
    alice = cast["owner"]
    vault = create_vault(actor=alice, organisation=acme, display_name="Keys")
    lend = partial(lending.lend_vaults, actor=alice, conversation=shared, vault_uids=[vault.uid])
    with pytest.raises(Conflict):
        lend()
    for name in ("writer", "decider"):
        share(shared, cast[name], "viewer")
    lend()
    with pytest.raises(Conflict):
        share(shared, cast["bob"], "writer")
    share(shared, cast["bob"], "viewer")


@pytest.mark.django_db
def test_a_reviewer_reads_no_more_for_being_one(shared: Conversation, acme: Organisation) -> None:
    rita = make_user("rita")
    join(rita, acme, Role.REVIEWER)
    assert not Conversation.objects.visible_to(rita).exists()
