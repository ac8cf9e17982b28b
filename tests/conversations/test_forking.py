"""Fork from here: a conversation of one's own that begins with a copy, and what does not come along."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import AgentVersion
from approvals.actions.approvals import decide_approval
from approvals.actions.rules import save_rule
from approvals.models import PolicyRule
from audit.models import AuditEntry
from conversations.actions.branching import regenerate, rewind
from conversations.actions.children import begin_child
from conversations.actions.conversations import delete_conversation
from conversations.actions.files import Upload, add_files
from conversations.actions.forking import copied_entries, fork_conversation
from conversations.actions.messages import set_feature
from conversations.actions.sharing import share_conversation, unshare_conversation
from conversations.judging import history_of, judge
from conversations.log import append
from conversations.models import Conversation, Event, Share, ShareRole
from conversations.provenance import TableProvenance
from harness.agentconfig import ToolRule
from harness.content import Text
from harness.errors import Conflict, Forbidden, NotFound
from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    CompactionRequested,
    ContentSetAside,
    EndTurn,
    FeedbackGiven,
    InputTaken,
    MessageWithdrawn,
    ModelUsage,
    RetriesExhausted,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    SubagentEnded,
    UserDefineOutcome,
    UserMessage,
)
from harness.history import Entry, History
from harness.ids import new_event_id
from harness.policy import Verdict
from harness.texts import Texts
from harness.transcript import build_messages
from providers.scripted import reply
from recall.strangers import has_strangers_words
from spending.models import Usage
from tests.approvals.asking import WRITE, asks
from tests.conversations.conftest import Converse, still
from tests.conversations.test_branching import texts
from tests.conversations.test_checkpoints import files, say, settled, write
from tools_app.provenance import UPLOADED

pytestmark = pytest.mark.django_db(transaction=True)


def entries(conversation: Conversation) -> list[Entry]:
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    return [row.entry() for row in rows]


def said(conversation: Conversation) -> list[str]:
    return texts(build_messages(entries(conversation), texts=Texts()))


@pytest.fixture
def work(alice, converse):
    script = [
        *(write("first"), reply("one done")),
        *(write("second"), reply("two done")),
        *(reply("anew"), reply("on its own")),
    ]
    conversation, scripted = converse(script)
    upload = Upload("data.csv", 1, [b"x"])
    add_files(actor=alice, conversation=conversation, uploads=[upload])
    rows = [say(alice, conversation, text, n) for n, text in enumerate(("one", "two"), 1)]
    return conversation, rows, scripted


def test_a_request_whose_end_nobody_has_heard_is_paid_for_where_it_was_asked(alice, converse):
    conversation, _scripted = converse()
    message = Entry.of(UserMessage(content=(Text(text="Hi."),)))
    append(conversation.pk, [message], actor=alice)
    begun = Entry.of(SpanModelRequestStart(prompt_tokens_at_most=1_000, output_tokens_at_most=10))
    words = AgentMessage(content=(Text(text="Half of"),), model_request_id=begun.uid)
    broken = SessionStatusIdle(stop_reason=RetriesExhausted())
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    running = Entry.of(SessionStatusRunning())
    append(conversation.pk, [taken, running, begun, Entry.of(words), Entry.of(broken)])
    Conversation.objects.update(owes_run=False)

    fork = fork_conversation(actor=alice, conversation=conversation)

    assert said(fork) == ["Hi.", "Half of"]
    history = History(entries(fork))
    assert history.open_request is None
    assert history.usage.total_tokens == 0
    (end,) = (each.event for each in entries(fork) if isinstance(each.event, SpanModelRequestEnd))
    assert end.end == "lost"
    fork.delete()
    assert not Usage.objects.exists()


def test_a_fork_goes_on_by_itself_from_a_place_with_its_files(alice, work):
    conversation, (_, two), scripted = work
    regenerate(actor=alice, conversation=conversation, event_uid=two.uid)
    settled(conversation, 3)
    before = list(Event.objects.filter(conversation=conversation).values_list("uid", "payload"))
    paid = Usage.objects.count()
    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=two.uid)
    assert (fork.origin, fork.owner, fork.status) == (conversation, alice, "idle")
    assert (fork.message_count, fork.queued_count, fork.owes_run) == (2, 0, False)
    assert files(fork) == {"data.csv": "x", "plan.md": "first"}
    assert said(fork) == ["one", "one done"]
    assert Usage.objects.count() == paid
    assert History(entries(fork)).usage.total_tokens == 0
    foreign = TableProvenance(fork.pk).foreign()
    assert foreign.paths == {"data.csv": UPLOADED}
    assert [entry.seq for entry in entries(fork)] == list(range(1, len(entries(fork)) + 1))
    assert not {uid for uid, _payload in before} & {entry.uid for entry in entries(fork)}
    say(alice, fork, "three", 2)
    assert said(fork) == ["one", "one done", "three", "on its own"]
    assert [part for message in scripted.requests[-1].messages for part in message.parts]
    after = list(Event.objects.filter(conversation=conversation).values_list("uid", "payload"))
    assert after == before
    assert files(conversation)["plan.md"] == "first"

    whole = fork_conversation(actor=alice, conversation=conversation, event_uid=before[-1][0])
    assert said(whole) == said(conversation) == ["one", "one done", "two", "anew"]
    message = next(entry for entry in entries(whole) if isinstance(entry.event, UserMessage))
    gone = rewind(actor=alice, conversation=whole, event_uid=message.uid)
    assert gone.value.files == "not_kept"
    delete_conversation(actor=alice, conversation=conversation)
    fork.refresh_from_db()
    assert fork.origin is None


def test_there_is_nothing_to_fork_before_the_first_message_and_nobody_elses(alice, mallory, work):
    conversation, (one, two), _ = work
    with pytest.raises(Conflict, match="before this"):
        fork_conversation(actor=alice, conversation=conversation, event_uid=one.uid)
    with pytest.raises(NotFound):
        fork_conversation(actor=mallory, conversation=conversation, event_uid=two.uid)
    with pytest.raises(NotFound):
        fork_conversation(actor=alice, conversation=conversation, event_uid="sevt_none")
    assert Conversation.objects.count() == 1
    other = Client()
    other.force_login(mallory)
    assert other.post(f"/c/{conversation.uid}/events/{two.uid}/fork/").status_code == 404


def test_there_is_nothing_to_fork_where_all_before_is_of_kinds_that_stay_behind(alice, converse):
    conversation, _script = converse()
    message = Entry.of(UserMessage(content=(Text(text="Hi"),)))
    outcome = Entry.of(UserDefineOutcome(outcome_id="outc_1", description="Find", rubric="- a"))
    append(conversation.pk, [outcome], actor=alice)
    append(conversation.pk, [Entry.of(MessageWithdrawn(event_id=outcome.uid))], actor=alice)
    append(conversation.pk, [message], actor=alice)
    turn = (
        SessionStatusRunning(),
        InputTaken(event_ids=(message.uid,)),
        AgentMessage(content=(Text(text="Yes"),)),
        SessionStatusIdle(stop_reason=EndTurn()),
    )
    append(conversation.pk, [Entry.of(event) for event in turn])
    with pytest.raises(Conflict, match="Nothing was said before this"):
        fork_conversation(actor=alice, conversation=conversation, event_uid=message.uid)
    assert Conversation.objects.count() == 1


def test_every_door_forks(alice, acme, work, capsys):
    conversation, (_, two), _ = work
    secret = create_token(
        actor=alice,
        organisation=acme,
        name="t",
        scopes=[TokenScope.CONVERSATIONS_WRITE, TokenScope.CONVERSATIONS_READ],
    ).secret
    auth = {"authorization": f"Bearer {secret}"}
    for address in (
        f"/api/conversations/{conversation.uid}/fork",
        f"/v1/sessions/{conversation.uid}/x_fork",
    ):
        answer = Client(headers=auth).post(
            address, {"event_id": two.uid}, content_type="application/json"
        )
        assert answer.status_code in {200, 201}, answer.content
        assert said(Conversation.objects.get(uid=answer.json()["id"])) == ["one", "one done"]
    call_command("agent", "fork", conversation.uid, two.uid, "--user", alice.username)
    assert said(Conversation.objects.get(uid=capsys.readouterr().out.strip())) == [
        "one",
        "one done",
    ]
    browser = Client()
    browser.force_login(alice)
    answer = browser.post(f"/c/{conversation.uid}/events/{two.uid}/fork/")
    page = browser.get(answer.headers["Location"]).content.decode()
    assert "Forked from" in page
    assert conversation.get_absolute_url() in page


def test_what_is_copied_names_only_what_is_copied():
    message, other = (Entry.of(UserMessage(content=(Text(text=each),))) for each in "ab")
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    answer = Entry.of(AgentMessage(content=(Text(text=message.uid),)))
    rated = Entry.of(FeedbackGiven(event_id=answer.uid, rating="up"))
    summed = Entry.of(AgentThreadContextCompacted(summary="s", through=rated.uid))
    aside = Entry.of(ContentSetAside(event_id=message.uid))
    strange = Entry.of(ContentSetAside(event_id=other.uid))
    given = [message, other, taken, answer, rated, summed, aside, strange]
    copied = copied_entries(given)
    assert [was for was, _entry in copied] == [
        each.uid for each in (message, taken, answer, summed, aside)
    ]
    now = dict(copied)
    assert now[taken.uid].event == InputTaken(event_ids=(now[message.uid].uid,))
    assert now[answer.uid].event == answer.event  # its words stay, whatever they look like
    assert now[summed.uid].event == summed.event.model_copy(update={"through": now[answer.uid].uid})
    assert now[aside.uid].event == ContentSetAside(event_id=now[message.uid].uid)


def test_what_another_wrote_narrows_the_fork_too(alice, bob, converse):
    conversation, _scripted = converse([reply("hello bob")])
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.WRITER
    )
    row = say(bob, conversation, "from bob", 1)
    assert conversation.others_wrote
    fork = fork_conversation(
        actor=alice, conversation=conversation, event_uid=first_answer(conversation).uid
    )
    assert fork.others_wrote
    again = fork_conversation(actor=alice, conversation=fork, event_uid=first_answer(fork).uid)
    assert again.others_wrote
    with pytest.raises(NotFound):
        fork_conversation(actor=bob, conversation=fork, event_uid=row.uid)


def test_who_may_read_goes_on_in_a_copy_that_is_hers_alone(alice, bob, mallory, work):
    conversation, _, _ = work
    last = entries(conversation)[-1].uid
    with pytest.raises(NotFound):
        fork_conversation(actor=bob, conversation=conversation, event_uid=last)
    share = share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    asks(conversation)
    copy = fork_conversation(actor=bob, conversation=conversation)
    unshare_conversation(actor=alice, conversation=conversation, share_uid=share.uid)
    with pytest.raises(NotFound):
        fork_conversation(actor=bob, conversation=conversation, event_uid=last)
    assert copy.owner == bob
    assert said(copy) == ["one", "one done", "two", "two done"], "to the end of what is over"
    assert files(copy) == files(conversation)
    assert TableProvenance(copy.pk).foreign().paths == {"data.csv": UPLOADED}
    assert list(Conversation.objects.visible_to(alice).filter(pk=copy.pk)) == []
    assert copy.others_wrote, "rules for one person alone allow nothing"
    before = Usage.objects.filter(user=alice).count()
    say(bob, copy, "mine", 1)
    assert Usage.objects.filter(user=alice).count() == before
    assert Usage.objects.get(conversation=copy).user == bob
    assert asks(copy, requester_may_not_decide=True).requested_by == bob


def test_a_copy_needs_an_agent_that_is_hers_to_use(alice, bob, work):
    conversation, _, _ = work
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    agent = conversation.agent_version.agent
    agent.organisation, agent.owner, agent.private = conversation.organisation, alice, True
    agent.save()
    with pytest.raises(Forbidden, match="may not use the agent"):
        fork_conversation(
            actor=bob, conversation=conversation, event_uid=entries(conversation)[-1].uid
        )
    assert not Conversation.objects.filter(owner=bob).exists()


def first_answer(conversation: Conversation) -> Event:
    return Event.objects.get(conversation=conversation, type="agent.message")


def test_whoever_wrote_to_an_agent_below_is_named_where_the_fork_asks(alice, bob, converse):
    conversation, _scripted = converse([reply("hello")])
    say(alice, conversation, "from alice", 1)
    child = begin_child(
        actor=alice,
        parent=conversation,
        agent=conversation.agent_version.agent,
        environment=conversation.environment,
        text="Write the file.",
    )
    append(child.pk, [Entry.of(UserMessage(content=(Text(text="Send it."),)))], actor=bob)
    ended = SubagentEnded(tool_use_id="call", subagent=child.uid, state="completed")
    append(conversation.pk, [Entry.of(ended)])
    still()
    fork = fork_conversation(
        actor=alice, conversation=conversation, event_uid=first_answer(conversation).uid
    )
    again = fork_conversation(actor=alice, conversation=fork, event_uid=first_answer(fork).uid)
    for each in (fork, again):
        assert each.others_wrote
        asked = asks(each, requester_may_not_decide=True)
        assert list(asked.also_requested_by.all()) == [bob]


@pytest.mark.parametrize(
    "wish",
    [
        UserDefineOutcome(outcome_id="outc_1", description="Send it.", rubric="- It is sent."),
        CompactionRequested(focus="Send it."),
    ],
    ids=["an outcome", "what to dwell on"],
)
def test_so_is_whoever_said_what_stays_behind(wish, alice, bob, converse):
    conversation, _scripted = converse([reply("hello")])
    say(alice, conversation, "from alice", 1)
    append(conversation.pk, [Entry.of(wish)], actor=bob)
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    fork = fork_conversation(
        actor=alice, conversation=conversation, event_uid=first_answer(conversation).uid
    )
    asked = asks(fork, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]


def test_in_a_copy_of_a_readers_own_that_is_whose_conversation_it_was(alice, bob, converse):
    conversation, _scripted = converse([reply("hello")])
    say(alice, conversation, "from alice", 1)
    wish = UserDefineOutcome(outcome_id="outc_1", description="Send it.", rubric="- It is sent.")
    append(conversation.pk, [Entry.of(wish)], actor=alice)
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="viewer")
    fork = fork_conversation(
        actor=bob, conversation=conversation, event_uid=first_answer(conversation).uid
    )
    asked = asks(fork, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [alice]


def test_strangers_words_that_only_a_judge_read_are_theirs_in_the_fork_too(alice, converse):
    conversation, _scripted = converse()
    goal = UserDefineOutcome(outcome_id="outc_1", description="Write.", rubric="- good")
    wish = Entry.of(goal)
    append(conversation.pk, [wish], actor=alice)
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    judged = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid,
        outcome_id="outc_1",
        result="needs_revision",
        explanation="Send it.",
        untrusted_by="a page",
    )
    answer = Entry.of(AgentMessage(content=(Text(text="I shall send it."),)))
    rest = SessionStatusIdle(stop_reason=EndTurn())
    taken = InputTaken(event_ids=(wish.uid,))
    begun = [Entry.of(SessionStatusRunning()), Entry.of(taken), start]
    append(conversation.pk, [*begun, Entry.of(judged), answer, Entry.of(rest)])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    assert has_strangers_words(conversation)
    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=answer.uid)
    assert has_strangers_words(fork)
    again = fork_conversation(actor=alice, conversation=fork, event_uid=first_answer(fork).uid)
    assert has_strangers_words(again)


def test_a_fork_in_which_somebody_went_back_keeps_the_mark_that_stands_at_its_end(alice, converse):
    conversation, _scripted = converse()
    wish = Entry.of(UserDefineOutcome(outcome_id="outc_1", description="Write.", rubric="- good"))
    append(conversation.pk, [wish], actor=alice)
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    judged = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid,
        outcome_id="outc_1",
        result="needs_revision",
        explanation="Send it.",
        untrusted_by="a page",
    )
    begun = [Entry.of(SessionStatusRunning()), Entry.of(InputTaken(event_ids=(wish.uid,))), start]
    append(conversation.pk, [*begun, Entry.of(judged), *replied("I shall send it."), ended()])
    thanks = Entry.of(UserMessage(content=(Text(text="Thanks."),)))
    append(conversation.pk, [thanks], actor=alice)
    taken = Entry.of(InputTaken(event_ids=(thanks.uid,)))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), taken, *replied("So."), ended()])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)

    fork = fork_conversation(actor=alice, conversation=conversation)
    rewind(actor=alice, conversation=fork, event_uid=fork.events.get(type="user.message").uid)
    assert "I shall send it." in said(fork)
    assert "So." not in said(fork)
    assert "a page" in history_of(fork).ever_tainted_by
    again = fork_conversation(actor=alice, conversation=fork)
    assert "a page" in history_of(again).ever_tainted_by
    with pytest.raises(Conflict, match="stands there already"):
        rewind(actor=alice, conversation=again, event_uid=first_answer(again).uid)


def ended() -> Entry:
    return Entry.of(SessionStatusIdle(stop_reason=EndTurn()))


def test_a_summary_in_a_fork_keeps_the_mark_of_a_verdict_before_a_page_that_is_copied(
    alice, converse
):
    """The page's own mark would say that all before it was hers."""
    conversation, _scripted = converse()
    wish = Entry.of(UserDefineOutcome(outcome_id="outc_1", description="Write.", rubric="- good"))
    append(conversation.pk, [wish], actor=alice)
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    judged = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid,
        outcome_id="outc_1",
        result="needs_revision",
        explanation="Send it.",
        untrusted_by="an upload",
    )
    answer = replied("I shall send it.")
    rest = SessionStatusIdle(stop_reason=EndTurn())
    begun = [Entry.of(SessionStatusRunning()), Entry.of(InputTaken(event_ids=(wish.uid,))), start]
    append(conversation.pk, [*begun, Entry.of(judged), *answer, Entry.of(rest)])
    page = Entry.of(UserMessage(content=(Text(text="Read it."),), untrusted_by="a page"))
    append(conversation.pk, [page], actor=alice)
    taken = Entry.of(InputTaken(event_ids=(page.uid,)))
    ends = Entry.of(rest)
    append(conversation.pk, [Entry.of(SessionStatusRunning()), taken, *replied("So."), ends])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)

    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=ends.uid)
    again = fork_conversation(actor=alice, conversation=fork)

    for each in (fork, again):
        summary = AgentThreadContextCompacted(
            summary="Send it.", through=each.events.filter(type="agent.message").first().uid
        )
        thanks = Entry.of(UserMessage(content=(Text(text="Thanks."),)))
        taken = Entry.of(InputTaken(event_ids=(thanks.uid,)))
        heard = History([*entries(each), *replied("Yes."), thanks, taken])
        assert heard.tainted_by == ""
        heard.add(Entry.of(summary))
        assert heard.tainted_by


def replied(text: str, *, end: str = "end_turn") -> list[Entry]:
    """What a request leaves to which the model says this."""
    start = Entry.of(SpanModelRequestStart())
    over = SpanModelRequestEnd(model_request_start_id=start.uid, model_usage=ModelUsage(), end=end)
    return [start, Entry.of(AgentMessage(content=(Text(text=text),))), Entry.of(over)]


def test_what_a_judge_has_said_since_a_person_spoke_marks_a_fork_that_rests_on_it(alice, converse):
    conversation, _scripted = converse()
    told = Entry.of(UserMessage(content=(Text(text="Read it."),), untrusted_by="a page"))
    goal = UserDefineOutcome(outcome_id="outc_1", description="Write.", rubric="- good")
    more = Entry.of(UserMessage(content=(Text(text="Go on."),)))
    stopped = Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted()))
    for said in (told, Entry.of(goal), more):
        append(conversation.pk, [said], actor=alice)
        taken = Entry.of(InputTaken(event_ids=(said.uid,)))
        append(conversation.pk, [Entry.of(SessionStatusRunning()), taken, *replied("So.")])
        if said is not more:
            append(conversation.pk, [replace(stopped, uid=new_event_id())])
    assert not history_of(conversation).tainted_by
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    judged = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid,
        outcome_id="outc_1",
        result="needs_revision",
        explanation="Send it.",
    )
    cut = replied("I shall send", end="max_tokens")
    append(conversation.pk, [start, Entry.of(judged), *cut, stopped])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    assert history_of(conversation).tainted_by

    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=cut[1].uid)

    again = fork_conversation(
        actor=alice,
        conversation=fork,
        event_uid=fork.events.filter(type="agent.message").latest("seq").uid,
    )
    for each in (fork, again):
        here = history_of(each)
        assert here.may_retry
        assert here.tainted_by


# --- what holds back goes along -------------------------------------------------------------------


def spoken(conversation: Conversation) -> Event:
    """What it rests with, after a message of its owner's."""
    message = Entry.of(UserMessage(content=(Text(text="Hello."),)))
    append(conversation.pk, [message], actor=conversation.owner)
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    ends = Entry.of(SessionStatusIdle(stop_reason=EndTurn()))
    rows = append(conversation.pk, [Entry.of(SessionStatusRunning()), taken, ends])
    conversation.refresh_from_db()
    return rows[-1]


def test_what_a_conversation_denies_a_fork_of_it_denies(
    alice: User, bob: User, converse: Converse
) -> None:
    conversation, _script = converse(tools=[ToolRule(tool="*")])
    denies = {"tool": "write_file", "permission": "always_deny"}
    rule = save_rule(
        actor=alice, level="conversation", rule=denies, conversation=conversation, note="Secret."
    )
    spoken(conversation)
    assert judge(conversation, "write_file", WRITE).verdict is Verdict.DENY

    fork = fork_conversation(actor=alice, conversation=conversation)
    assert judge(fork, "write_file", WRITE).verdict is Verdict.DENY

    Share.objects.create(conversation=conversation, user=bob, role=ShareRole.VIEWER)
    his = fork_conversation(actor=bob, conversation=conversation)
    assert judge(his, "write_file", WRITE).verdict is Verdict.DENY
    copies = PolicyRule.objects.filter(conversation__in=[fork, his]).order_by("pk")
    assert [(copy.made_by, copy.note) for copy in copies] == [(alice, "Secret."), (bob, "")]
    told = AuditEntry.objects.filter(rule_uid__in=copies.values("uid"))
    assert [entry.details["copy_of"] for entry in told] == [rule.uid, rule.uid]


def test_what_was_allowed_in_a_conversation_is_not_allowed_in_a_fork_of_it(
    alice: User, converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    ask = ToolRule(tool="write_file", permission="always_ask")
    conversation, _script = converse(tools=[ToolRule(tool="*"), ask])
    asked = asks(conversation)
    decide_approval(
        actor=alice,
        approval=asked,
        verdict="approve",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
        scope="conversation",
    )
    spoken(conversation)
    assert judge(conversation, "write_file", WRITE).verdict is Verdict.ALLOW

    fork = fork_conversation(actor=alice, conversation=conversation)
    assert judge(fork, "write_file", WRITE).verdict is Verdict.ASK


DOORS = ("/api/conversations/{}/fork", "/v1/sessions/{}/x_fork")
USUAL = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)


@pytest.mark.parametrize("door", DOORS)
def test_a_token_that_may_not_decide_forks_nothing_that_holds_back_less_than_its_agent(
    alice: User, bob: User, acme: Organisation, converse: Converse, door: str
) -> None:
    """Alice switched off in her conversation what holds its agent back; Bob may read it."""
    conversation, _script = converse(features={"approval": True})
    version = conversation.agent_version
    version.stored_config["features"]["approval"] = True
    AgentVersion.objects.filter(pk=version.pk).update(stored_config=version.stored_config)
    last = spoken(conversation)
    set_feature(actor=alice, conversation=conversation, feature="approval", enabled=False)
    Share.objects.create(conversation=conversation, user=bob, role=ShareRole.VIEWER)

    def forked(who: User, *scopes: TokenScope) -> int:
        token = create_token(actor=who, organisation=acme, name="t", scopes=[*USUAL, *scopes])
        client = Client(headers={"authorization": f"Bearer {token.secret}"})
        body = {"event_id": last.uid}
        return client.post(door.format(conversation.uid), body, "application/json").status_code

    for who in (alice, bob):
        assert forked(who) == 403
    assert not Conversation.objects.filter(origin=conversation).exists()
    assert forked(bob, TokenScope.APPROVALS_DECIDE) in {200, 201}
    browser = Client()
    browser.force_login(alice)
    browser.post(f"/c/{conversation.uid}/events/{last.uid}/fork/")
    forks = Conversation.objects.filter(origin=conversation).order_by("pk")
    assert [(fork.owner, fork.features.approval) for fork in forks] == [
        (bob, False),
        (alice, False),
    ]
