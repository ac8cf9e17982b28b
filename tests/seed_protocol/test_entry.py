"""Who gets in, and with what: tokens, tickets, sessions, origins."""

from __future__ import annotations

import subprocess
import sys

import pytest
from websockets.exceptions import InvalidStatus

from providers.scripted import Hold, reply, say
from tests.journeys.site import ROOT
from tests.seed_protocol.client import Api, Chat

ADDRESSES = (
    ("GET", "/api/conversations"),
    ("GET", "/api/conversations/{uid}"),
    ("DELETE", "/api/conversations/{uid}"),
    ("POST", "/api/chat"),
    ("POST", "/api/chat/{uid}/ticket"),
    ("GET", "/api/tools"),
    ("GET", "/api/skills"),
    ("POST", "/api/skills"),
    ("GET", "/api/presets"),
    ("GET", "/api/files/{uid}/a.txt"),
    ("POST", "/api/workspace/upload?conversation_id={uid}"),
    ("GET", "/api/workspace/files?conversation_id={uid}"),
    ("GET", "/api/workspace/file/a.txt?conversation_id={uid}"),
    ("GET", "/api/auth/me"),
    ("GET", "/api/schema/"),
)


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
@pytest.mark.parametrize("token", [None, "ags_0000", "nonsense", "x" * 500])
def test_nobody_gets_in_without_a_valid_token(site, alice, method, path, token):
    """Every address but how to sign in and the health of the server."""
    answer = Api(site.address, token).request(method, path.format(uid=alice.begin()))
    assert (answer.status, answer.code) == (401, "anonymous")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
def test_both_headers_are_the_same(program, header):
    me = program("alice", header).get("/api/auth/me").json
    assert me["authenticated"] is True
    assert me["email"] == "alice@example.org"
    assert (me["name"], me["picture"]) == ("alice", None)
    assert "conversations:read" in me["scopes"]


def test_how_one_signs_in_is_public(program):
    config = program(None).get("/api/auth/config")
    assert config.status == 200
    assert config.json["enabled"] is True
    assert "google_client_id" in config.json


def test_the_health_of_the_server_is_public_and_says_little(program):
    health = program(None).get("/health")
    assert (health.status, set(health.json)) == (200, {"status", "model"})
    assert health.json["status"] == "ok"


@pytest.mark.parametrize("who", ["bob", "mallory", "elsewhere"])
def test_somebody_elses_conversation_is_not_there(program, alice, who):
    """Over every address, whether one shares the organisation or not; a token of alice's for
    another organisation opens nothing of this one."""
    other = program(who)
    uid = alice.begin()
    alice.upload([("a.txt", b"secret")], conversation_id=uid)
    for method, path in ADDRESSES:
        if "{uid}" not in path:
            continue
        asked = path.format(uid=uid)
        answer = (
            other.upload([("a.txt", b"mine")], conversation_id=uid)
            if "upload" in path
            else other.request(method, asked)
        )
        assert (answer.status, answer.code) == (404, "not_found"), path
        absent = other.request(method, asked.replace(uid, "sesn_" + "0" * 26))
        assert absent.status in {404, 415}, path
    assert uid not in str(other.get("/api/conversations").json)
    assert other.get("/api/tools", conversation_id=uid).status == 404
    with Chat(other, uid, waits=False) as chat:
        assert chat.until_closed() == 1000
    assert [(f["type"], f["code"]) for f in chat.frames] == [("error", "not_found")]
    assert alice.get(f"/api/conversations/{uid}").status == 200


def test_a_socket_takes_the_token_in_its_first_frame(alice):
    uid = alice.begin()
    with Chat(alice, uid, shows_token=False, waits=False) as chat:
        chat.say("auth", token=alice.token)
        assert chat.until("ready")["conversation_id"] == uid
        chat.say("auth", token=alice.token)
        assert chat.until("error")["code"] == "unknown_frame"


@pytest.mark.parametrize(
    "first", ['{"type":"message","content":"Hi"}', "Hi", "{", "5", '{"type":"auth"}']
)
def test_a_first_frame_that_is_no_token_ends_the_socket(alice, first):
    uid = alice.begin()
    with Chat(alice, uid, shows_token=False, waits=False) as chat:
        chat.say_raw(first)
        assert chat.until_closed() == 4001
    assert [(f["type"], f["code"]) for f in chat.frames] == [("error", "anonymous")]
    assert alice.read(uid)["messages"] == alice.read(uid)["waiting_messages"] == []


def test_a_socket_takes_the_token_as_a_subprotocol_and_does_not_repeat_it(alice):
    offered = ["agentsite.v1", f"agentsite.bearer.{alice.token}"]
    with Chat(alice, alice.begin(), shows_token=False, subprotocols=offered) as chat:
        assert chat.subprotocol == "agentsite.v1"


def test_a_token_in_the_address_is_refused(alice):
    with Chat(alice, alice.begin(), {"token": alice.token}, shows_token=False, waits=False) as chat:
        assert chat.until_closed() == 4001
    assert chat.frames[0]["code"] == "token_in_address"


def test_a_ticket_opens_one_socket_once(alice):
    uid = alice.begin()
    issued = alice.post(f"/api/chat/{uid}/ticket").json
    assert set(issued) == {"ticket", "expires_at"}
    given = {"ticket": issued["ticket"]}
    with Chat(alice, alice.begin(), given, shows_token=False, waits=False) as wrong:
        assert wrong.until_closed() == 4001
    with Chat(alice, uid, given, shows_token=False):
        pass
    with Chat(alice, uid, given, shows_token=False, waits=False) as again:
        assert again.until_closed() == 4001
    assert again.frames[0]["code"] == "anonymous"


def test_a_foreign_page_gets_no_socket_whatever_it_shows(alice):
    headers = {"Origin": "https://evil.example"}
    with pytest.raises(InvalidStatus) as refused, Chat(alice, alice.begin(), headers=headers):
        pass
    assert refused.value.response.status_code == 403


def test_a_page_of_ours_may_open_one(site, alice):
    with Chat(alice, alice.begin(), headers={"Origin": site.address}):
        pass


def test_there_is_no_answer_for_foreign_pages(alice):
    answer = alice.request("GET", "/api/conversations", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("frame", "needs"),
    [
        ({"type": "message", "content": "Hi"}, "conversations:write"),
        ({"type": "cancel"}, "conversations:write"),
        ({"type": "toggle_teams", "enabled": True}, "conversations:write"),
        ({"type": "tool_approval_response", "request_id": "x"}, "approvals:decide"),
        ({"type": "plan_approval"}, "approvals:decide"),
        ({"type": "toggle_approval", "enabled": False}, "approvals:decide"),
    ],
)
def test_a_token_may_do_what_its_scopes_say(program, alice, frame, needs):
    uid = alice.begin()
    with program("reader").chat(uid) as chat:
        chat.say(**frame)
        error = chat.until("error")
        assert error["code"] == "forbidden"
        assert needs in error["hint"]


def test_reading_takes_the_scope_to_read(program, alice):
    skiller, uid = program("skiller"), alice.begin()
    answer = skiller.get("/api/conversations")
    assert (answer.status, answer.code) == (403, "forbidden")
    assert program("reader").post("/api/chat", {}).status == 403
    with Chat(skiller, uid, waits=False) as chat:
        assert chat.until_closed() == 4001
    assert chat.frames[0]["code"] == "forbidden"


def test_a_revoked_token_ends_its_open_sockets(site, cast, program, service, alice):
    """With its next frame, or with the next thing it would be told."""
    code = (
        "from django.utils import timezone; from accounts.models import ApiToken; "
        f"ApiToken._default_manager.filter(uid='{cast['alice_again']['uid']}')"
        ".update(revoked_at=timezone.now())"
    )
    hold = Hold()
    service.expect("Secret", reply(say("Not for them ", hold, "any more")))
    uid = alice.begin()
    with program("alice_again").chat(uid) as chat:
        revoked = subprocess.run(
            [
                sys.executable,
                "manage.py",
                "shell",
                "-c",
                code,
            ],
            cwd=ROOT,
            env=site.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert revoked.returncode == 0, revoked.stderr
        chat.say("message", content="Secret")
        assert chat.until_closed() == 4001
    assert not chat.of("user_message", "text_delta")
    assert alice.read(uid)["messages"] == []
    hold.release.set()
