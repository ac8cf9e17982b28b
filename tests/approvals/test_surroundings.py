"""Those who decide see what stands around a call, as far as its organisation shows that."""

from __future__ import annotations

import pytest

from accounts.actions.organisations import set_reviewers_see
from accounts.models import Organisation, ReviewersSee, User
from approvals.models import Approval
from approvals.surroundings import around
from audit.models import AuditEntry
from conversations.log import append
from conversations.models import Conversation
from harness.content import Text
from harness.errors import Forbidden, Invalid, NotFound
from harness.events import (
    AgentMessage,
    AgentToolUse,
    InputTaken,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionUpdated,
    UserMessage,
)
from harness.history import Entry
from harness.rules import AskTerms
from tests.approvals.asking import a_reviewer
from tests.cast import ClientOf
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked(converse: Converse) -> Approval:
    """A call behind a request, a word and another call of the agent's."""
    conversation: Conversation = converse()[0]
    message = Entry.of(UserMessage(content=(Text(text="Tidy the <b>release</b>."),)))
    titled = Entry.of(SessionUpdated(title="Release of May"))
    append(conversation.pk, [message, titled], actor=conversation.owner)
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    use = Entry.of(
        AgentToolUse(
            name="bash",
            input={"command": "rm -rf build --target production"},
            evaluated_permission="ask",
            terms=AskTerms(effect="workspace", turn=taken.uid),
        )
    )
    entries = [
        Entry.of(SessionStatusRunning()),
        taken,
        Entry.of(AgentMessage(content=(Text(text="I look first."),))),
        Entry.of(AgentToolUse(name="read_file", input={"path": "notes.md"})),
        use,
        Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,)))),
    ]
    append(conversation.pk, entries)
    return Approval.objects.get(call_uid=use.uid)


@pytest.mark.parametrize(
    ("level", "request_shown", "steps_shown"),
    [("call", False, False), ("request", True, False), ("steps", True, True)],
)
def test_a_reviewer_sees_as_much_as_the_organisation_shows(
    alice: User,
    acme: Organisation,
    asked: Approval,
    client_of: ClientOf,
    level: str,
    request_shown: bool,
    steps_shown: bool,
) -> None:
    set_reviewers_see(actor=alice, organisation=acme, shown=level)
    client = client_of(a_reviewer(acme))
    for where in ("/approvals/", f"/approvals/{asked.uid}/"):
        page = client.get(where).content.decode()
        assert ("Release of May" in page) is request_shown
        assert ("Tidy the &lt;b&gt;release&lt;/b&gt;." in page) is request_shown
        assert ("The steps before it" in page) is steps_shown
    steps = client.get(f"/approvals/{asked.uid}/steps/")
    assert steps.status_code == (200 if steps_shown else 404)
    assert ("I look first." in steps.content.decode()) is steps_shown
    assert ("notes.md" in steps.content.decode()) is steps_shown


def test_the_owner_and_staff_see_all_whatever_reviewers_see(
    alice: User, staff: User, acme: Organisation, asked: Approval, client_of: ClientOf
) -> None:
    set_reviewers_see(actor=alice, organisation=acme, shown="call")
    for person in (alice, staff):
        page = client_of(person).get(f"/approvals/{asked.uid}/").content.decode()
        assert "Release of May" in page
        steps = client_of(person).get(f"/approvals/{asked.uid}/steps/").content.decode()
        assert steps.index("I look first.") < steps.index("notes.md")


def test_strangers_and_members_who_do_not_review_see_no_step(
    alice: User, bob: User, mallory: User, acme: Organisation, asked: Approval, client_of: ClientOf
) -> None:
    set_reviewers_see(actor=alice, organisation=acme, shown="steps")
    for stranger in (bob, mallory):
        assert client_of(stranger).get(f"/approvals/{asked.uid}/steps/").status_code == 404


def test_only_who_manages_says_what_reviewers_see_and_the_audit_log_keeps_it(
    alice: User, bob: User, mallory: User, acme: Organisation, client_of: ClientOf
) -> None:
    for other, refusal in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(refusal):
            set_reviewers_see(actor=other, organisation=acme, shown="steps")
    with pytest.raises(Invalid):
        set_reviewers_see(actor=alice, organisation=acme, shown="everything")
    acme.refresh_from_db()
    assert acme.reviewers_see == ReviewersSee.REQUEST
    posted = {"reviewers_see": "call", "shown_organisation": acme.uid}
    client_of(alice).post("/organisation/reviewers/", posted)
    acme.refresh_from_db()
    assert acme.reviewers_see == ReviewersSee.CALL
    (entry,) = AuditEntry.objects.filter(action="reviewers_see_set")
    assert (entry.actor, entry.details) == (alice, {"to": "call", "before": "request"})


def test_a_list_of_calls_takes_two_queries_for_what_stands_around_them(
    alice: User, asked: Approval, django_assert_max_num_queries
) -> None:
    one = Approval.objects.select_related("root", "organisation", "conversation").get()
    with django_assert_max_num_queries(2):
        around(alice, [one])


def test_a_grave_command_says_what_makes_it_so(
    acme: Organisation, asked: Approval, client_of: ClientOf
) -> None:
    page = client_of(a_reviewer(acme)).get("/approvals/").content.decode()
    assert "deletes much at once" in page
    assert "names production" in page
