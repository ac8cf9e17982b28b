"""Hooks are asked about a call before it runs: they hold it back, have a person asked, and allow nothing."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from standardwebhooks import Webhook

from accounts.models import User
from audit.models import AuditEntry
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from hooks import asking
from hooks.actions.hooks import delete_hook, save_hook
from hooks.guarding import guard
from hooks.installed import Answer
from hooks.models import Hook, ToldUpTo
from providers.scripted import call
from tests.cast import join, make_user, shown
from tests.conversations.conftest import rested, still, types
from tools_app.workspace import Workspace, workspace_for

from .conftest import counted, results

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = call("write_file", path="a.txt", content="x")


def refuse(about: Any, where: Any) -> Answer:
    return Answer("refuse", "not on a Friday")


def has_file(conversation: Conversation) -> bool:
    return bool((workspace_for(conversation.uid) / "a.txt").exists())


def test_a_refused_call_does_not_run_and_the_log_says_which_hook_refused_and_what_it_took(
    alice, acme, converse, install, hook
):
    install(fridays=refuse, never=lambda *_: pytest.fail("asked behind a refusal"))
    held = hook("fridays", tool="write_*", position=1)
    hook("never", position=2)
    conversation, _scripted = converse([WRITE, "I see."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert not has_file(conversation)
    assert "The hook “fridays” refuses this call: not on a Friday" in results(conversation)[0]
    assert "span.tool_start" not in types(conversation)
    [told] = conversation.events.filter(type="x.hooks_answered")
    assert told.payload["told"][0]["verdict"] == "refuse"
    assert counted(held) == (1, 1, 0)
    assert AuditEntry.objects.filter(action="hook_saved").count() == 2


def test_a_call_that_a_hook_asks_about_waits_for_a_person_and_then_runs(
    alice, acme, converse, install, hook
):
    asked: list[Any] = []

    async def careful(about: Any, where: Any) -> Answer:
        asked.append((about.tool, dict(about.arguments), where.conversation))
        return Answer("ask", "it is a file")

    install(careful=careful)
    hook("careful")
    conversation, _scripted = converse([WRITE, "Done."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert not has_file(conversation)
    assert conversation.stop_reason == "requires_action"
    use = conversation.events.get(type="agent.tool_use")
    decide_call(actor=alice, conversation=conversation, call_uid=use.uid, allow=True)
    rested(conversation, 2)
    assert Workspace(workspace_for(conversation.uid)).read_bytes("a.txt") == b"x"
    assert asked[0] == ("write_file", {"path": "a.txt", "content": "x"}, conversation.uid)


def test_a_hook_loosens_nothing_that_a_rule_denies(alice, converse, install, hook):
    install(eager=lambda *_: pytest.fail("it is denied already"))
    hook("eager")
    rules = [{"tool": "*"}, {"tool": "write_file", "permission": "always_deny"}]
    conversation, _scripted = converse([WRITE, "I see."], tools=rules)
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert not has_file(conversation)


async def _hang(about: Any, where: Any) -> None:
    await asyncio.sleep(60)


def _break(about: Any, where: Any) -> None:
    raise RuntimeError("broken")


def _loosen(about: Any, where: Any) -> Any:
    return Answer("allow")  # type: ignore[arg-type]


@pytest.mark.parametrize("on_failure", ["refuse", "pass"])
@pytest.mark.parametrize("function", [_hang, _break, _loosen])
def test_a_hook_that_gives_no_answer_counts_by_its_own_rule(
    alice, converse, install, hook, function, on_failure
):
    install(odd=function)
    held = hook("odd", on_failure=on_failure, deadline=0.2)
    conversation, _scripted = converse([WRITE, "I see."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert has_file(conversation) is (on_failure == "pass")
    assert counted(held) == (1, 0, 1)
    [told] = conversation.events.filter(type="x.hooks_answered")
    assert told.payload["told"][0]["verdict"] == "failed"


def _say_a_half(about: Any, where: Any) -> Answer:
    return Answer("refuse", "no \ud83d")


def test_half_a_character_in_a_reason_loses_no_refusal(alice, converse, install, hook, client_of):
    install(odd=_say_a_half)
    hook("odd", on_failure="pass")
    conversation, _scripted = converse([WRITE, "I see."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert not has_file(conversation)
    [told] = conversation.events.filter(type="x.hooks_answered")
    assert told.payload["told"][0]["reason"] == "no \N{REPLACEMENT CHARACTER}"
    assert client_of(alice).get(conversation.get_absolute_url()).status_code == 200


@pytest.mark.parametrize(
    "reason",
    ['"no"', r'"no \ud83d"', r'"no \u0000"', f'"{"n" * 600}"', '"no:\n\tit says \x1b"', "null"],
    ids=["words", "half a character", "nul", "long", "as it was printed", "none"],
)
def test_a_signed_request_tells_of_the_call_and_its_answer_counts(
    alice, acme, converse, settings, client_of, reason
):
    told: list[tuple[dict[str, str], bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.append(({name.lower(): value for name, value in self.headers.items()}, body))
            said = f'{{"verdict": "refuse", "reason": {reason}}}'.encode()
            self.send_response(200)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = [f"127.0.0.1:{server.server_port}"]
    settings.AGENTSITE_WEBHOOK_ALLOW_HTTP = True
    saved = save_hook(
        actor=alice,
        organisation=acme,
        name="gate",
        kind="webhook",
        target=f"http://127.0.0.1:{server.server_port}/hook",
        on_failure="pass",
    )
    conversation, _scripted = converse([WRITE, "I see."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    server.shutdown()
    server.server_close()
    assert not has_file(conversation)
    [(headers, body)] = told
    said = Webhook(saved.secret).verify(body, headers)
    assert said["tool"] == "write_file"
    assert said["conversation"] == conversation.uid
    assert saved.secret not in saved.hook.sealed
    assert client_of(alice).get(conversation.get_absolute_url()).status_code == 200


def test_without_hooks_no_call_is_shown_to_anybody(
    alice, elsewhere, mallory, converse, install, monkeypatch, django_assert_num_queries
):
    install(fridays=refuse)
    save_hook(actor=mallory, organisation=elsewhere, name="f", kind="python", target="fridays")
    monkeypatch.setattr(asking, "ask_one", lambda *_: pytest.fail("asked"))
    conversation, _scripted = converse([WRITE, "Done."])
    post_message(actor=alice, conversation=conversation, text="Write it")
    rested(conversation)
    assert has_file(conversation)
    assert "x.hooks_answered" not in types(conversation)
    still()
    assert not ToldUpTo.objects.exists()
    with django_assert_num_queries(1):
        assert guard(conversation) is None


def test_only_managers_have_hooks_and_strangers_find_none(
    alice, bob, mallory, acme, install, hook, client_of
):
    install(fridays=refuse)
    held = hook("fridays")
    fields = {"organisation": acme, "name": "mine", "kind": "python", "target": "fridays"}
    with pytest.raises(NotFound):
        save_hook(actor=mallory, **fields)
    with pytest.raises(Forbidden):
        save_hook(actor=bob, **fields)
    for somebody in (mallory, bob):
        with pytest.raises(NotFound):
            delete_hook(actor=somebody, hook=held)
        assert client_of(somebody).get(f"/settings/hooks/{held.uid}/").status_code == 404
    with pytest.raises(Invalid, match="No installed package"):
        save_hook(actor=alice, **{**fields, "target": "other"})
    with pytest.raises(Invalid, match="deadline"):
        save_hook(actor=alice, **fields, deadline=31)
    with pytest.raises(Conflict):
        save_hook(actor=alice, **{**fields, "name": "fridays"})


def test_staff_with_every_permission_on_hooks_look_at_them_and_take_none_over(
    acme, install, hook, client_of
):
    install(fridays=refuse)
    held = hook("fridays")
    helper = make_user("helper", is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(content_type__app_label="hooks"))
    helper = User.objects.get(pk=helper.pk)
    fields = {"organisation": acme, "name": "mine", "kind": "command", "target": "true"}
    for hooked in (None, held):
        with pytest.raises(NotFound):
            save_hook(actor=helper, hook=hooked, **fields)
    with pytest.raises(NotFound):
        delete_hook(actor=helper, hook=held)
    client = client_of(helper)
    assert client.get(f"/settings/hooks/{held.uid}/").status_code == 404
    assert client.post(f"/settings/hooks/{held.uid}/delete/").status_code == 404
    assert client.get(f"/admin/hooks/hook/{held.pk}/change/").status_code == 200
    join(helper, acme)
    with pytest.raises(Forbidden):
        save_hook(actor=helper, hook=held, **fields)


def test_a_manager_looks_after_hooks_on_their_page(alice, acme, install, client_of):
    install(fridays=refuse)
    client = client_of(alice)
    form = {
        "name": "Gate",
        "kind": "python",
        "target": "fridays",
        "points": ["rest", "tool.before"],
        "tool": "bash",
        "position": "3",
        "deadline": "2",
        "on_failure": "pass",
        "enabled": "on",
    }
    client.post("/settings/hooks/", shown(acme, **form))
    held = Hook.objects.get()
    assert "When it fails it is passed over." in client.get("/settings/hooks/").content.decode()
    changed = {name: value for name, value in form.items() if name != "enabled"}
    client.post(f"/settings/hooks/{held.uid}/", {**changed, "on_failure": "refuse"})
    held.refresh_from_db()
    assert (held.on_failure, held.enabled) == ("refuse", False)
    assert held.points == ["tool.before", "rest"]
    refused = client.post("/settings/hooks/", shown(acme, **{**form, "name": "B", "target": "?"}))
    assert refused.status_code == 422
    assert "There are: fridays." in refused.content.decode()
    client.post(f"/settings/hooks/{held.uid}/delete/")
    assert not Hook.objects.exists()
