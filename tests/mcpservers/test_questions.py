"""What a server asks of a person rests the run like any question, and goes back to it when she answered."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from django.urls import reverse

from accounts.models import Organisation, User
from approvals.models import Approval
from conversations.actions.messages import post_message, stop
from conversations.models import Conversation, Share
from harness.agentconfig import McpUse, ToolRule
from harness.content import text_of
from harness.errors import Conflict, Invalid, NotFound
from mcpservers.actions.connections import finish_connection
from mcpservers.actions.questions import answer_connected, answer_server
from mcpservers.actions.servers import change_server, look_again, release_tool
from mcpservers.elicitation import Refused, read_asked
from mcpservers.listing import Described
from mcpservers.models import McpQuestion, McpServer
from mcpservers.taskcalls import LEAST_SECONDS, MOST_SECONDS, USUAL_SECONDS, pause_after
from providers.scripted import call, reply
from tests.approvals.asking import asks as told_to
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, rested
from tests.patience import until
from tests.standins.authorisation import AuthorisationServer
from tests.standins.mcp_server import Remote, door_of, said, served

from .test_authorisation import begun, connected, guarded, used, words
from .test_calls import answered, asked_for

__all__ = ["guarded"]
pytestmark = pytest.mark.django_db(transaction=True)

FORM = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "City", "enum": ["Rome", "Oslo"]},
        "nights": {"type": "integer", "minimum": 1},
        "breakfast": {"type": "boolean", "default": True},
    },
    "required": ["city", "nights"],
}


def asks(params: types.CallToolRequestParams) -> Any:
    """Where to, once; then it says what it was told."""
    if params.input_responses is None:
        request = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Where to?", requested_schema=FORM)
        )
        return types.InputRequiredResult(input_requests={"trip": request}, request_state="s-1")
    assert params.request_state == "s-1"
    answer = params.input_responses["trip"]
    assert isinstance(answer, types.ElicitResult)
    return said(f"{answer.action} {answer.content}")


@pytest.fixture
def asking(
    alice: User, server: McpServer, remote: Remote, converse: Converse
) -> tuple[Conversation, McpQuestion]:
    """A conversation that rests because the server asks."""
    remote.asking["echo"] = asks
    conversation = asked_for(alice, converse)
    assert conversation.waits_for_person
    return conversation, McpQuestion.objects.get()


def test_a_question_rests_the_run_and_its_answer_goes_back_with_what_the_server_had_us_keep(
    alice: User, asking: tuple[Conversation, McpQuestion], remote: Remote, client_of: ClientOf
):
    conversation, question = asking
    client, page = client_of(alice), reverse("mcpservers:question", args=[question.uid])
    assert page in client.get(conversation.get_absolute_url()).content.decode()
    drawn = client.get(page).content.decode()
    assert "Where to?" in drawn
    assert "stand-in" in drawn
    assert "s-1" not in f"{question.sealed} {question.asked}"
    given = {"answer": "accept", "q0-f0": "Paris", "q0-f1": "2"}
    assert client.post(page, given).status_code == 422
    given |= {"q0-f0": "Oslo", "q0-f2": "on"}
    answer = client.post(page, given)
    assert answer["Location"] == conversation.get_absolute_url()
    conversation = rested(conversation, 2)
    said_back = text_of(answered(conversation).content)
    assert said_back == "accept {'city': 'Oslo', 'nights': 2, 'breakfast': True}"
    assert len(remote.called) == 2
    assert conversation.stop_reason == "end_turn"
    assert not conversation.events.filter(type="x.outcome_unknown").exists()
    with pytest.raises(Conflict):
        answer_server(actor=alice, question=question, accept=False)
    assert page not in client.get(conversation.get_absolute_url()).content.decode()


def test_who_answers_a_server_does_not_decide_on_what_comes_of_it(
    bob: User, asking: tuple[Conversation, McpQuestion]
):
    conversation, question = asking
    Share.objects.create(conversation=conversation, user=bob, role="decider")
    contents = {"trip": {"city": "Oslo", "nights": 2}}
    answer_server(actor=bob, question=question, accept=True, contents=contents)
    conversation = rested(conversation, 2)
    asked = told_to(conversation, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]
    assert asked not in Approval.objects.decidable_by(bob)


def test_what_was_answered_to_one_place_is_not_sent_to_another(
    alice: User,
    server: McpServer,
    asking: tuple[Conversation, McpQuestion],
    client_of: ClientOf,
    settings: Any,
):
    conversation, question = asking
    asked_at = server.url.split("/")[2]
    elsewhere = Remote()
    elsewhere.offer("echo")
    with served(door_of(elsewhere)) as port:
        settings.AGENTSITE_MCP_PRIVATE_HOSTS += [f"127.0.0.1:{port}"]
        change_server(actor=alice, server=server, url=f"http://127.0.0.1:{port}/mcp")
        look_again(actor=alice, server=server)
        tool = server.tools.get(remote_name="echo")
        seen = Described.model_validate(tool.seen).digest
        release_tool(actor=alice, server=server, tool="echo", digest=seen)

        page = reverse("mcpservers:question", args=[question.uid])
        assert f"Asked by {asked_at}" in client_of(alice).get(page).content.decode()
        contents = {"trip": {"city": "Oslo", "nights": 2}}
        answer_server(actor=alice, question=question, accept=True, contents=contents)
        conversation = rested(conversation, 2)
        assert elsewhere.called == []
    assert "not sent there" in text_of(answered(conversation).content)
    assert conversation.stop_reason == "end_turn"


def begins_a_task(_params: types.CallToolRequestParams) -> Any:
    return {"resultType": "task", "taskId": "t-1", "status": "working", "ttlMs": None}


WORKS: dict[str, Any] = {"status": "working"}
IS_DONE: dict[str, Any] = {
    "status": "completed",
    "result": {"content": [{"type": "text", "text": "It took long."}]},
}


def test_a_call_that_goes_on_as_a_task_is_followed_to_its_answer(
    alice: User, server: McpServer, remote: Remote, converse: Converse
):
    remote.asking["echo"] = begins_a_task
    remote.tasks["t-1"] = [WORKS, WORKS, IS_DONE]
    conversation = asked_for(alice, converse)
    assert text_of(answered(conversation).content) == "It took long."
    remote.tasks["t-1"] = [{"status": "failed", "error": {"code": 1, "message": "No paper."}}]
    conversation = asked_for(alice, converse)
    assert answered(conversation).is_error
    assert "The task failed: No paper." in text_of(answered(conversation).content)
    assert len(remote.called) == 2


def test_a_task_that_takes_too_long_is_cancelled_at_its_server(
    alice: User, server: McpServer, remote: Remote, converse: Converse
):
    McpServer.objects.update(timeout_seconds=1)
    remote.asking["echo"] = begins_a_task
    remote.tasks["t-1"] = [WORKS]
    conversation = asked_for(alice, converse)
    assert "did not answer within 1 seconds" in text_of(answered(conversation).content)
    until(lambda: remote.ended == ["t-1"])


def test_a_task_is_not_begun_anew_where_its_server_wants_another_token_meanwhile(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer,
    remote: Remote, converse: Converse, client_of: ClientOf,
):  # fmt: skip
    connected(alice, acme, guarded, guard)
    client_of(alice).post(reverse("mcpservers:server-look", args=[guarded.uid]))

    def begins_and_forgets_the_token(params: types.CallToolRequestParams) -> Any:
        guard.tokens.clear()
        return begins_a_task(params)

    remote.asking["echo"] = begins_and_forgets_the_token
    remote.tasks["t-1"] = [WORKS, IS_DONE]
    assert words(used(alice, converse)) == "It took long."
    assert len(remote.called) == 1

    def begins_and_forgets_her(params: types.CallToolRequestParams) -> Any:
        guard.renewals.clear()
        return begins_and_forgets_the_token(params)

    remote.asking["echo"] = begins_and_forgets_her
    conversation = used(alice, converse)
    assert conversation.waits_for_person
    finish_connection(actor=alice, server=guarded, given=guard.allow(begun(alice, acme, guarded)))
    answer_connected(actor=alice, server=guarded)
    assert words(rested(conversation, 2)) == "It took long."
    assert len(remote.called) == 2
    assert not remote.updated
    assert not remote.ended


def test_a_task_is_looked_at_within_bounds_whatever_its_server_says():
    assert pause_after(None) == pause_after(float("nan")) == USUAL_SECONDS
    assert pause_after(-1.0) == LEAST_SECONDS
    assert pause_after(float("inf")) == MOST_SECONDS


def test_what_a_task_asks_rests_the_run_and_its_answer_goes_to_the_task(
    alice: User, server: McpServer, remote: Remote, converse: Converse
):
    asks_where = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Where to?", requested_schema=FORM)
    ).model_dump(by_alias=True, mode="json", exclude_none=True)
    remote.asking["echo"] = begins_a_task
    remote.tasks["t-1"] = [
        WORKS,
        {"status": "input_required", "inputRequests": {"trip": asks_where}},
        IS_DONE,
    ]
    conversation = asked_for(alice, converse)
    assert conversation.waits_for_person
    question = McpQuestion.objects.get()
    contents = {"trip": {"city": "Oslo", "nights": 2}}
    answer_server(actor=alice, question=question, accept=True, contents=contents)
    conversation = rested(conversation, 2)
    assert text_of(answered(conversation).content) == "It took long."
    ((uid, given),) = remote.updated
    assert uid == "t-1"
    assert given["trip"]["content"]["city"] == "Oslo"
    assert len(remote.called) == 1, "nothing is begun anew"


def test_a_person_may_decline_and_the_server_is_told(
    alice: User, mallory: User, bob: User, asking: tuple[Conversation, McpQuestion],
    client_of: ClientOf,
):  # fmt: skip
    conversation, question = asking
    for who in (mallory, bob):
        page = reverse("mcpservers:question", args=[question.uid])
        assert client_of(who).post(page, {"answer": "decline"}).status_code == 404
        with pytest.raises(NotFound):
            answer_server(actor=who, question=question, accept=False)
    with pytest.raises(Invalid):
        contents = {"trip": {"city": "Oslo", "nights": 0}}
        answer_server(actor=alice, question=question, accept=True, contents=contents)
    answer_server(actor=alice, question=question, accept=False)
    conversation = rested(conversation, 2)
    assert text_of(answered(conversation).content) == "decline None"


def test_a_stop_puts_the_question_away(
    alice: User, asking: tuple[Conversation, McpQuestion], remote: Remote
):
    conversation, question = asking
    stop(actor=alice, conversation=conversation)
    conversation = rested(conversation, 2)
    assert answered(conversation).outcome == "stopped"
    with pytest.raises(Conflict):
        answer_server(actor=alice, question=question, accept=False)
    assert len(remote.called) == 1


def test_no_model_asks_in_a_servers_name(alice: User, server: McpServer, converse: Converse):
    conversation, _script = converse(
        [reply(call("mcp_question", server="bank", question="x")), reply("Done.")],
        tools=(ToolRule(tool="*"),),
        mcp_servers=(McpUse(name="stand-in"),),
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    conversation = rested(conversation)
    result = conversation.events.get(type="agent.tool_result").value
    assert "no tool called" in text_of(result.content)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"method": "sampling/createMessage", "params": {}}, "a model"),
        ({"method": "roots/list"}, "folders"),
        ({"password": {"type": "string"}}, "secret"),
        ({"x": {"type": "string", "title": "Your API key"}}, "secret"),
        ({"x": {"type": "string", "format": "password"}}, "secret"),
        ({"x": {"type": "object"}}, "of a kind"),
        ({"x": {"type": "string", "description": "a\u202eb"}}, "cannot be shown"),
        ({f"x{number}": {"type": "string"} for number in range(30)}, "fields"),
        ({}, "fields"),
        ("http://bank.example.org/", "opened"),
        ("javascript:alert(1)", "opened"),
        ("https://bank.example.org@evil.example.org/", "opened"),
        ("https://" + "x" * 3_000, "opened"),
    ],
)
def test_what_is_no_question_to_a_person_is_refused(request_: Any, why: str):
    if isinstance(request_, str):
        params: Any = {"mode": "url", "message": "Go.", "url": request_}
        request_ = {"method": "elicitation/create", "params": params}
    elif "method" not in request_:
        schema = {"type": "object", "properties": request_}
        params = {"message": "Say.", "requestedSchema": schema}
        request_ = {"method": "elicitation/create", "params": params}
    with pytest.raises(Refused) as refused:
        read_asked({"one": request_})
    assert why in str(refused.value)


def test_an_address_is_shown_by_its_host_and_opened_by_the_person_alone(
    alice: User, server: McpServer, remote: Remote, converse: Converse, client_of: ClientOf
):
    def asks_to_open(params: types.CallToolRequestParams) -> Any:
        if params.input_responses is None:
            asked = types.ElicitRequestURLParams(
                message="Pay.", url="https://pay.example.org/x", elicitation_id="e"
            )
            return types.InputRequiredResult(
                input_requests={"pay": types.ElicitRequest(params=asked)}
            )
        return said(params.input_responses["pay"].action)

    remote.asking["echo"] = asks_to_open
    conversation = asked_for(alice, converse)
    page = reverse("mcpservers:question", args=[McpQuestion.objects.get().uid])
    drawn = client_of(alice).get(page).content.decode()
    assert "<strong>pay.example.org</strong>" in drawn
    client_of(alice).post(page, {"answer": "accept"})
    assert text_of(answered(rested(conversation, 2)).content) == "accept"


def test_a_server_that_asks_without_end_is_not_answered_without_end(
    alice: User, server: McpServer, remote: Remote, converse: Converse
):
    remote.asking["echo"] = lambda _params: types.InputRequiredResult(request_state="again")
    conversation = asked_for(alice, converse)
    assert "asks too much" in text_of(answered(conversation).content)
    assert len(remote.called) <= 11


def test_a_call_that_wants_an_account_goes_on_when_the_person_has_connected(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer,
    remote: Remote, client_of: ClientOf, converse: Converse,
):  # fmt: skip
    connected(alice, acme, guarded, guard)
    client_of(alice).post(reverse("mcpservers:server-look", args=[guarded.uid]))
    guard.needs = "write"
    conversation = used(alice, converse)
    assert conversation.waits_for_person
    question = McpQuestion.objects.get()
    page = client_of(alice).get(reverse("mcpservers:question", args=[question.uid]))
    assert "allow more: write" in page.content.decode()
    with pytest.raises(Conflict):
        answer_server(actor=alice, question=question, accept=True)
    finish_connection(actor=alice, server=guarded, given=guard.allow(begun(alice, acme, guarded)))
    answer_connected(actor=alice, server=guarded)
    conversation = rested(conversation, 2)
    assert words(conversation) == "you said ahoy"
    assert len(remote.called) == 1
