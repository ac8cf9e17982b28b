"""The operators' page and the journal of claims: who sees what, and that it stays cheap."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation, User
from conversations import activations, claims, log, sandboxing
from conversations.actions.messages import post_message
from conversations.actions.wakes import cancel_wake
from conversations.models import Activation, BackgroundCommand, Conversation, Run, Wake
from deadletters.models import DeadLetter
from harness.errors import Conflict, Forbidden, Invalid
from harness.events import (
    AgentToolUse,
    RequiresAction,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    StopDetails,
    UserMessage,
    WakeRequested,
)
from harness.history import Entry
from jobs.engine import engine
from operations import listing as operations
from subagents.models import Subagent, Tree
from teams_app.models import Team, Teammate
from tests.cast import ClientOf, make_user
from tests.chat.drawing import make_conversation
from tests.patience import PATIENCE
from tools_app import sandboxes

SECRET = "the plan nobody may read"
SECTIONS = tuple(operations.LISTS)


def url(section: str = "") -> str:
    return f"{reverse('operations:operations')}{section}/" if section else "/operations/"


def claim(conversation: Conversation) -> Run:
    run = claims.claim(conversation.pk)
    assert run is not None
    return run


def failing(code: str = "overloaded") -> list[Entry]:
    body = SessionErrorBody(type="unknown_error", code=code, message="It failed.")
    details = StopDetails(code=code, message="It failed.", hint="Wait.")
    idle = SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=details)
    return [Entry.of(SessionError(error=body)), Entry.of(idle)]


@pytest.fixture
def owner(alice: User, acme: Organisation):
    """Makes conversations of alice's, each with a title and a message that must not be shown."""

    def make() -> Conversation:
        conversation = make_conversation(alice, acme)
        Conversation.objects.filter(pk=conversation.pk).update(title=SECRET)
        return conversation

    return make


def one_of_each(make) -> dict[str, Conversation]:
    """One conversation in every section."""
    found = {name: make() for name in SECTIONS}
    text = ({"type": "text", "text": SECRET},)
    log.append(found["backlog"].pk, [Entry.of(UserMessage(content=text))])
    run = claim(found["running"])
    log.append(found["running"].pk, [Entry.of(SessionStatusRunning())], run=run)
    body = SessionErrorBody(type="x", code="rate_limited", message="Slowly.")
    log.append(
        found["rescheduling"].pk,
        [Entry.of(SessionError(error=body)), Entry.of(SessionStatusRescheduled(delay_seconds=60))],
    )
    asked = Entry.of(AgentToolUse(name="write_file", input={"content": SECRET}))
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(asked.uid,)))
    log.append(found["waiting"].pk, [asked, Entry.of(rest)])
    asks = WakeRequested(delay_seconds=60, reason=f"Look: {SECRET}", note=SECRET, priority="low")
    log.append(found["wakes"].pk, [Entry.of(asks)])
    BackgroundCommand.objects.create(
        conversation=found["background"],
        call_uid=f"sevt_{found['background'].pk}",
        command=SECRET,
        output_path="background/x.log",
        timeout_seconds=60,
        host="worker-7",
        boot="b",
        pid=4711,
        seen_at=timezone.now(),
        started_at=timezone.now(),
    )
    lead, child = found["teams"], make()
    Conversation.objects.filter(pk=child.pk).update(parent=lead)
    team = Team.objects.create(lead=lead)
    Teammate.objects.create(team=team, name="anna", conversation=child)
    root, child = found["subagents"], make()
    Conversation.objects.filter(pk=child.pk).update(parent=root, owes_run=True)
    Tree.objects.create(root=root)
    Subagent.objects.create(
        root=root,
        parent=root,
        child=child,
        call_uid=f"sevt_of_{child.pk}",
        kind="explore",
        description=SECRET,
        state=Subagent.State.RUNNING,
        started_at=timezone.now(),
    )
    log.append(found["letters"].pk, failing())
    claims.release(claim(found["journal"]))
    return found


# --- who sees it ----------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("section", ["", *SECTIONS, "nonsense"])
def test_for_everybody_but_staff_there_is_no_such_page(
    alice: User, bob: User, mallory: User, client_of: ClientOf, section: str
):
    for person in (alice, bob, mallory):
        assert client_of(person).get(url(section)).status_code == 404


@pytest.mark.django_db
def test_nothing_can_be_done_there_but_by_staff(
    alice: User, bob: User, mallory: User, client_of: ClientOf, owner
):
    found = one_of_each(owner)
    letter = DeadLetter.objects.get(conversation=found["letters"])
    wake = Wake.objects.get(conversation=found["wakes"])
    for person in (alice, bob, mallory):
        client = client_of(person)
        for address, sent in (
            (reverse("operations:operations-replay"), {"letter": letter.pk}),
            (reverse("operations:operations-discard"), {"letter": letter.pk, "reason": "x"}),
            (reverse("operations:operations-cancel"), {"wake": wake.pk}),
        ):
            assert client.post(address, sent).status_code == 404
    letter.refresh_from_db()
    wake.refresh_from_db()
    assert (letter.state, wake.state) == ("open", "waiting")


@pytest.mark.django_db
@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_shows_its_own(staff: User, client_of: ClientOf, owner, section: str):
    """Backlog, lease owner, retry time, pending requests."""
    found = one_of_each(owner)
    page = client_of(staff).get(url(section))
    assert page.status_code == 200
    text = page.content.decode()
    assert found[section].uid in text
    told = {
        "running": claims.worker(),
        "rescheduling": "rate_limited",
        "waiting": "write_file",
        "wakes": "low",
        "background": "worker-7:4711",
        "teams": "anna: idle",
        "subagents": "explore: at work",
        "letters": "overloaded",
        "journal": "acked",
    }
    assert told.get(section, "") in text
    strangers = {name: each for name, each in found.items() if name != section}
    shown = {name for name, each in strangers.items() if each.uid in text}
    assert shown <= ({"running"} if section == "journal" else set())


@pytest.mark.django_db
@pytest.mark.parametrize("section", SECTIONS)
def test_what_people_wrote_is_for_staff_who_may_read_it(client_of: ClientOf, owner, section: str):
    one_of_each(owner)
    helper = make_user("helper", is_staff=True)
    assert SECRET not in client_of(helper).get(url(section)).content.decode()
    helper.user_permissions.set(Permission.objects.filter(codename="view_event"))
    allowed = client_of(User.objects.get(pk=helper.pk)).get(url(section)).content.decode()
    assert allowed.count(SECRET) == (2 if section == "wakes" else allowed.count(SECRET))
    assert SECRET in allowed


@pytest.mark.django_db
def test_staff_finds_the_page_in_the_menu_and_others_do_not(
    staff: User, alice: User, client_of: ClientOf
):
    assert url() in client_of(staff).get("/").content.decode()
    assert url() not in client_of(alice).get("/").content.decode()


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_takes_as_many_queries_for_many_rows_as_for_few(
    staff: User, client_of: ClientOf, owner, section: str
):
    client = client_of(staff)
    one_of_each(owner)
    client.get(url(section))
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(url(section))
    for _ in range(5):
        one_of_each(owner)
    with CaptureQueriesContext(connection) as many:
        page = client.get(url(section))
    assert page.status_code == 200
    assert len(many) <= len(few) + 1, [query["sql"][:200] for query in many]
    assert len(many) < 40


@pytest.mark.django_db
def test_figures_stop_counting(staff: User, client_of: ClientOf, owner, monkeypatch):
    monkeypatch.setattr(operations, "COUNTED", 2)
    for _ in range(3):
        log.append(owner().pk, failing())
    assert operations.figures()["letters"].shown == "2+"
    assert operations.figures()["backlog"].shown == "0"
    page = client_of(staff).get(reverse("operations:operations-figures"), {"section": "letters"})
    assert "2+" in page.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("section", ["backlog", "letters", "journal", "wakes"])
def test_pages_follow_one_another_without_gap_or_repetition(owner, section: str, monkeypatch):
    monkeypatch.setattr(operations, "PAGE_SIZE", 2)
    for _ in range(5):
        one_of_each(owner)
    seen, after = [], ""
    while True:
        page = operations.LISTS[section](after)
        seen += [row.pk for row in page.rows]
        after = page.after
        if not after:
            break
    assert len(seen) == len(set(seen)) >= 5


@pytest.mark.django_db
@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("after", ["x", "-1", "2026-01-01~1", "9" * 30, "~", "2026~x"])
def test_a_place_that_is_none_is_refused_in_words(
    staff: User, client_of: ClientOf, section: str, after: str
):
    page = client_of(staff).get(url(section), {"after": after})
    assert page.status_code == 400
    assert "not a place" in page.content.decode()


# --- letters and wakes ----------------------------------------------------------------------------


@pytest.mark.django_db
def test_letters_are_chosen_by_state_class_code_and_organisation(
    owner, mallory: User, elsewhere: Organisation
):
    mine, other = owner(), owner()
    log.append(mine.pk, failing("overloaded"))
    log.append(other.pk, failing("bad_credentials"))
    theirs = make_conversation(mallory, elsewhere)
    log.append(theirs.pk, failing("overloaded"))

    def chosen(**by: str) -> set[int]:
        return {letter.conversation_id for letter in operations.letters(**by).rows}

    assert chosen() == {mine.pk, other.pk, theirs.pk}
    assert chosen(code="overloaded") == {mine.pk, theirs.pk}
    assert chosen(cause="permanent") == {other.pk}
    assert chosen(organisation=elsewhere.uid) == {theirs.pk}
    assert chosen(state="discarded") == set()
    with pytest.raises(Invalid):
        chosen(state="lost")
    with pytest.raises(Invalid):
        chosen(cause="bad luck")


@pytest.mark.django_db
def test_staff_discards_several_for_one_reason_and_none_without(
    staff: User, client_of: ClientOf, owner
):
    for _ in range(3):
        log.append(owner().pk, failing())
    letters = list(DeadLetter.objects.all())
    client = client_of(staff)
    address = reverse("operations:operations-discard")
    chosen = [letter.pk for letter in letters[:2]]
    refused = client.post(address, {"letter": chosen, "reason": " "})
    assert refused.status_code == 400
    assert "reason" in refused.content.decode()
    assert DeadLetter.objects.open().count() == 3
    assert client.post(address, {"letter": [], "reason": "x"}).status_code == 400
    assert client.post(address, {"letter": ["0"], "reason": "x"}).status_code == 404
    done = client.post(address, {"letter": chosen, "reason": "Known outage."})
    assert done.status_code == 302
    assert DeadLetter.objects.open().get() == letters[2]


@pytest.mark.django_db
def test_of_several_one_that_is_closed_keeps_all_from_being_discarded(
    staff: User, client_of: ClientOf, owner
):
    for _ in range(2):
        log.append(owner().pk, failing())
    first, second = DeadLetter.objects.order_by("pk")
    client = client_of(staff)
    address = reverse("operations:operations-discard")
    client.post(address, {"letter": second.pk, "reason": "x"})
    assert client.post(address, {"letter": [first.pk, second.pk], "reason": "x"}).status_code == 409
    assert DeadLetter.objects.open().get() == first


@pytest.mark.django_db
@pytest.mark.parametrize("budget", ["many", "-5", "1.5", "9" * 30, "10"])
def test_a_budget_that_is_no_number_is_refused_in_words(
    staff: User, client_of: ClientOf, owner, budget: str
):
    log.append(owner().pk, failing())
    letter = DeadLetter.objects.get()
    sent = {"letter": letter.pk, "token_budget": budget}
    assert client_of(staff).post(reverse("operations:operations-replay"), sent).status_code == 400
    letter.refresh_from_db()
    assert letter.state == "open"


@pytest.mark.django_db
def test_a_letter_with_nothing_to_do_again_is_told_and_stays(
    staff: User, client_of: ClientOf, owner
):
    log.append(owner().pk, failing())
    letter = DeadLetter.objects.get()
    page = client_of(staff).post(
        reverse("operations:operations-replay"), {"letter": letter.pk}, follow=True
    )
    assert "nothing to do again" in page.content.decode()
    letter.refresh_from_db()
    assert (letter.state, letter.replays) == ("open", 0)


@pytest.mark.django_db
def test_a_wake_is_cancelled_once_and_a_retry_is_not(
    staff: User, alice: User, client_of: ClientOf, owner
):
    found = one_of_each(owner)
    wake = Wake.objects.get(conversation=found["wakes"])
    with pytest.raises(Forbidden):
        cancel_wake(actor=alice, wake=wake)
    address, sent = reverse("operations:operations-cancel"), {"wake": wake.pk}
    assert client_of(staff).post(address, sent).status_code == 302
    wake.refresh_from_db()
    assert wake.state == "cancelled"
    assert client_of(staff).post(address, sent).status_code == 409
    for nobody in ("0", "x", ""):
        assert client_of(staff).post(address, {"wake": nobody}).status_code == 404
    with pytest.raises(Conflict):
        cancel_wake(actor=staff, wake=Wake.objects.get(conversation=found["rescheduling"]))


@pytest.mark.django_db
def test_the_admin_lists_letters_and_discards_with_a_reason(
    staff: User, client_of: ClientOf, owner
):
    log.append(owner().pk, failing())
    letter = DeadLetter.objects.get()
    client = client_of(staff)
    changelist = reverse("admin:deadletters_deadletter_changelist")
    assert letter.conversation.uid in client.get(changelist).content.decode()
    sent = {"action": "discard", "_selected_action": [letter.pk]}
    asked = client.post(changelist, sent)
    assert asked.status_code == 200
    assert DeadLetter.objects.open().exists()
    assert "missing" in client.post(changelist, {**sent, "reason": ""}).content.decode()
    client.post(changelist, {**sent, "reason": "Known outage."})
    letter.refresh_from_db()
    assert (letter.state, letter.reason) == ("discarded", "Known outage.")
    again = client.post(
        changelist, {"action": "replay_from_start", "_selected_action": [letter.pk]}, follow=True
    )
    assert "closed" in again.content.decode()


@pytest.mark.django_db
def test_in_the_admin_only_staff_with_the_permission_may_settle(client_of: ClientOf, owner):
    log.append(owner().pk, failing())
    letter = DeadLetter.objects.get()
    helper = make_user("helper", is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(codename="view_deadletter"))
    client = client_of(helper)
    changelist = reverse("admin:deadletters_deadletter_changelist")
    assert client.get(changelist).status_code == 200
    client.post(
        changelist, {"action": "discard", "_selected_action": [letter.pk], "reason": "Mine."}
    )
    letter.refresh_from_db()
    assert letter.state == "open"


# --- priorities -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_people_wait_for_comes_before_wakes_and_those_by_priority(owner):
    """New user input runs before queued low-priority work, however old that is."""
    waiting = {}
    for age, priority in enumerate(("low", "normal", "high")):
        waiting[priority] = conversation = owner()
        asks = WakeRequested(delay_seconds=1, reason="look", priority=priority)
        log.append(conversation.pk, [Entry.of(asks)])
        old = timezone.now() - timedelta(hours=3 - age)
        Conversation.objects.filter(pk=conversation.pk).update(active_at=old)
    Wake.objects.update(due_at=timezone.now() - timedelta(hours=1))
    retried = owner()
    log.append(retried.pk, [Entry.of(SessionStatusRescheduled(delay_seconds=1))])
    Wake.objects.filter(conversation=retried).update(due_at=timezone.now() - timedelta(seconds=1))
    asked = owner()
    log.append(asked.pk, [Entry.of(UserMessage(content=({"type": "text", "text": "Go."},)))])
    assert claims.lost_conversations() == [
        retried.pk,
        asked.pk,
        waiting["high"].pk,
        waiting["normal"].pk,
        waiting["low"].pk,
    ]


# --- the journal ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_old_rows_of_the_journal_are_let_go_and_newer_ones_stay(owner, settings):
    settings.AGENTSITE_JOURNAL_DAYS = 30
    conversation = owner()
    claims.release(claim(conversation))
    old, new = Activation.objects.order_by("pk")
    Activation.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    Activation.objects.filter(pk=new.pk).update(created_at=timezone.now() - timedelta(days=29))
    assert activations.prune() == 1
    assert Activation.objects.get() == new
    assert activations.prune() == 0


@pytest.mark.django_db
def test_a_claim_that_is_refused_or_given_back_twice_leaves_no_row(owner):
    conversation = owner()
    run = claim(conversation)
    assert claims.claim(conversation.pk) is None
    assert claims.release(run)
    assert not claims.release(run)
    assert [row.step for row in Activation.objects.order_by("pk")] == ["leased", "acked"]
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_message_posted_by_the_owner_is_in_the_backlog(alice: User, owner):
    conversation = owner()
    post_message(actor=alice, conversation=conversation, text="Go.")
    assert [row.pk for row in operations.backlog().rows] == [conversation.pk]
    assert operations.figures()["backlog"].since is not None


@pytest.mark.django_db(transaction=True)
def test_operators_see_what_each_sandbox_can_promise_on_each_host(staff: User, client_of: ClientOf):
    client = client_of(staff)
    cache.delete(sandboxing.FOUND)
    assert "No process has looked" in client.get(url("background")).content.decode()
    sandboxes._found.clear()
    engine.submit(sandboxing.probe_sandboxes).result(PATIENCE)
    engine.stop()
    text = client.get(url("background")).content.decode()
    assert socket.gethostname() in text
    assert "<td>bubblewrap</td>" in text
    assert "<td>process</td>" in text


@pytest.mark.django_db
def test_a_subagent_that_nobody_works_at_is_called_that(staff: User, client_of: ClientOf, owner):
    root = one_of_each(owner)["subagents"]
    row = Subagent.objects.get(root=root)
    child = row.child
    assert child is not None

    def told() -> bool:
        return "nobody works at it" in client_of(staff).get(url("subagents")).content.decode()

    assert not told()  # a run is owed
    Conversation.objects.filter(pk=child.pk).update(owes_run=False)
    assert told()
    rests = {"stop_reason": "end_turn", "status": "idle", "queued_count": 0}
    for column, value in (
        ("stop_reason", "requires_action"),
        ("status", "running"),
        ("queued_count", 1),  # a person may let go on what she holds
    ):
        Conversation.objects.filter(pk=child.pk).update(**{**rests, column: value})
        assert not told()
    Conversation.objects.filter(pk=child.pk).update(**rests)
    log.append(child.pk, [Entry.of(WakeRequested(delay_seconds=60, reason="r", note="n"))])
    assert not told()
    Wake.objects.all().delete()
    assert told()
    below = Subagent.objects.create(root=root, parent=child, call_uid="sevt_below", kind="explore")
    assert not told()  # one that it asked is about to begin
    below.delete()
    child.delete()
    assert told()
