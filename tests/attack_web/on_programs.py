"""Attacks by tokens and on them: scopes, revocation under open streams, keys and fields of others."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
from django.contrib.sessions.models import Session

from accounts.actions.members import remove_member
from accounts.actions.tokens import revoke_token
from accounts.models import ApiToken, Invitation, Membership, User
from agents.models import Agent
from conversations.models import Conversation
from harness.content import Text
from harness.events import AgentMessage
from providers.scripted import call, reply
from tests.architecture.routes import page_routes
from tests.architecture.test_every_door_is_guarded import values_for
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.world import MARK, World
from tools_app.workspace import workspace_for

SUBJECT = "programs"
PROGRAMS = ("v1/", "api/", "agui")
SKILLS = ("v1/skills", "api/skills")
TICKETS = "conversations_socketticket"

# --- scopes ---------------------------------------------------------------------------------------


def _walk(
    world: World, token: str, methods: tuple[str, ...], besides: tuple[str, ...] = ()
) -> list[tuple[str, Any]]:
    """Every address of the programs' doors, with alice's ids and alice's own token, but those that begin so:
    what the token is for."""
    answers = []
    with world.program(token) as program:
        for route in page_routes():
            if not route.pattern.startswith(PROGRAMS) or "stream" in route.pattern:
                continue
            if besides and route.pattern.startswith(besides):
                continue
            address = route.address(values_for(route, world.objects))
            for method in methods:
                body = (
                    None
                    if method == "GET"
                    else {"title": "stolen", "name": "stolen", "enabled": False}
                )
                answers.append((f"{method} {address}", program.request(method, address, json=body)))
    return answers


@attack(
    SUBJECT,
    "changes with a token that reads",
    "every operation that changes something, with conversations:read",
)
def _reader(world: World) -> Got:
    token = world.token_of(world.alice, world.acme, "conversations:read")
    before = world.state()
    _walk(world, token, ("POST", "PATCH", "DELETE"))
    # Who may read may listen: a ticket is made for that, and says whose it is.
    changed = [one for one in world.changed_since(before).split(", ") if one and one != TICKETS]
    return ", ".join(changed)


FRAMES: tuple[dict[str, Any], ...] = (
    {"type": "message", "content": "said by a reader"},
    {"type": "interrupt"},
    {"type": "interrupt", "content": "said by a reader"},
    {"type": "cancel"},
    {"type": "tool_approval_response", "decision": "approve"},
    {"type": "tool_approval_response", "decision": "auto_approve"},
    {"type": "tool_approval_response", "decision": "deny"},
    {"type": "plan_approval", "decision": "approve"},
    *(
        {"type": f"toggle_{feature}", "enabled": enabled}
        for feature in ("plan_mode", "teams", "approval", "tracing")
        for enabled in (True, False)
    ),
)


def _listener(by_ticket: bool, world: World) -> Got:
    """Sends each frame that does something where a call of olga's waits to be approved."""
    asking = [{"tool": "*", "permission": "always_ask"}]
    agent = world.agent_of(world.home, world.olga, tools=asking)
    conversation = world.converse(world.olga, organisation=world.home, agent=agent)
    given = call("write_file", path="read.txt", content="y")
    world.turn(world.olgas, conversation, reply(given), reply("Done."))
    asked = world.asked(conversation)

    def state() -> tuple[Any, ...]:
        asked.refresh_from_db()
        conversation.refresh_from_db()
        return asked.state, conversation.features, len(world.log(conversation))

    world.until(lambda: world.log(conversation)[-1]["type"] == "session.status_idle", "it runs on")
    before = state()
    token = world.token_of(world.olga, world.home, "conversations:read")
    path, who = f"/api/chat/{conversation.uid}/ws", {"token": token}
    if by_ticket:
        said = world.program(token).says("POST", f"/api/chat/{conversation.uid}/ticket")
        path, who = f"{path}?ticket={said['ticket']}", {}
    got = []
    with world.line(path, **who) as line:
        tried(line.listen(5, until='"ready"'), f"the socket did not open: {line.refused}")
        for frame in FRAMES:
            line.send({**frame, "key": (key := f"key-{world.number()}.")})
            if '"forbidden"' not in line.listen(5, until=key):
                got.append(f"{frame} was not refused")
    if state() != before:
        got.append("what there was has changed")
    return ", ".join(got)


for _label, _by_ticket in (("a ticket", True), ("the token", False)):
    attack(
        SUBJECT,
        f"a socket opened with {_label} of one who reads",
        "says, approves, stops and switches by every frame",
    )(partial(_listener, _by_ticket))


def _scope(scopes: tuple[str, ...], own: tuple[str, ...], world: World) -> Got:
    token = world.token_of(world.alice, world.acme, *scopes)
    before = world.state()
    shown = [
        what
        for what, answer in _walk(world, token, ("GET", "DELETE"), besides=own)
        if answer.status_code < 300
        and (f"Plans {MARK}" in answer.text or "secret plan" in answer.text)
    ]
    changed = world.changed_since(before)
    return "; ".join([*shown, *([f"changed: {changed}"] if changed else [])])


for _name, _own in (("approvals:decide", ()), ("skills:manage", SKILLS)):
    attack(
        SUBJECT,
        f"all with a token of {_name}",
        f"reads and deletes all that it is not for with {_name} alone",
        quick=not _own,
    )(partial(_scope, (_name,), _own))


@attack(
    SUBJECT,
    "a token's power over tokens",
    "makes tokens, members and keys with a token of all scopes",
)
def _more_tokens(world: World) -> Got:
    before = ApiToken.objects.count()
    with world.program(world.token) as program:
        for path in (
            "/settings/tokens/",
            "/organisation/invite/",
            "/settings/keys/",
            "/admin/accounts/apitoken/add/",
        ):
            program.post(
                path,
                data=world.shown(
                    world.acme, name="more", scopes="admin", email="m@evil.example", role="owner"
                ),
            )
    invited = Invitation.objects.filter(email="m@evil.example").exists()
    return "pages take tokens" if ApiToken.objects.count() != before or invited else ""


@attack(
    SUBJECT,
    "a token that was rotated away",
    "shows the old secret after a rotation without overlap",
)
def _revoked(world: World) -> Got:
    person = world.member()
    token = world.token_of(person, world.acme)
    row = ApiToken.objects.filter(user=person).latest("created")
    tried(world.program(token).get("/api/auth/me").status_code == 200, "it does not work")
    world.browser(person, world.acme).form(f"/settings/tokens/{row.uid}/revoke/")
    return "it works on" if world.program(token).get("/api/auth/me").status_code == 200 else ""


@attack(
    SUBJECT, "a token of somebody removed", "works on in the organisation that removed its person"
)
def _removed(world: World) -> Got:
    person = world.member()
    token = world.token_of(person, world.acme)
    membership = Membership.objects.get(user=person, organisation=world.acme)
    remove_member(actor=world.alice, membership=membership)
    answer = world.program(token).get("/v1/agents")
    return "it shows what is there" if MARK in answer.text or answer.status_code == 200 else ""


@attack(SUBJECT, "a token in the address", "where logs and referers keep it")
def _in_address(world: World) -> Got:
    with world.browser() as nobody:
        for path in ("/v1/sessions", "/api/conversations"):
            for name in ("token", "access_token", "api_key", "key"):
                if MARK in nobody.get(path, params={name: world.token}).text:
                    return f"{path}?{name}= is taken"
    with world.line(f"/api/chat/{world.conversation.uid}/ws?token={world.token}") as line:
        return "the socket takes it" if '"ready"' in line.listen(1) else ""


# --- what ends under an open stream ---------------------------------------------------------------

LATER = "whimbrel-late-words"


class _Scene:
    """A member of alice's organisation who follows a conversation of hers, with each way in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.person = world.member(world.home)
        self.agent = world.agent_of(world.home, world.olga)
        self.conversation = world.converse(self.person, organisation=world.home, agent=self.agent)
        self.token = world.token_of(self.person, world.home)
        self.session = world.session_of(self.person)

    def say(self) -> None:
        self.world.say(self.conversation, AgentMessage(content=(Text(text=LATER),)))

    def heard_by_stream(self, ending: Callable[[_Scene], None]) -> str:
        """What the stream of `/v1` says after `ending`."""
        heard: list[str] = []
        open_ = threading.Event()

        def follow() -> None:
            with self.world.program(self.token) as program:
                try:
                    path = f"/v1/sessions/{self.conversation.uid}/events/stream"
                    with program.stream("GET", path, timeout=6) as answer:
                        open_.set()
                        heard.extend(answer.iter_text())
                except httpx2.HTTPError:
                    pass

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        tried(open_.wait(8), "the stream did not open")
        ending(self)
        time.sleep(0.3)
        self.say()
        thread.join(3)
        return "".join(heard)

    def heard_by_socket(self, ending: Callable[[_Scene], None], page: bool) -> str:
        path = (
            f"/ws/conversations/{self.conversation.uid}/"
            if page
            else f"/api/chat/{self.conversation.uid}/ws"
        )
        who: dict[str, Any] = (
            {"session": self.session, "origin": self.world.address}
            if page
            else {"token": self.token}
        )
        with self.world.line(path, **who) as line:
            tried(
                line.listen(5, until="changes" if page else "ready"),
                f"the socket did not open: {line.refused}",
            )
            ending(self)
            time.sleep(0.3)
            self.say()
            return line.listen(2)


def _token(scene: _Scene) -> None:
    revoke_token(
        actor=scene.person, token=ApiToken.objects.filter(user=scene.person).latest("created")
    )


def _membership(scene: _Scene) -> None:
    row = Membership.objects.get(user=scene.person, organisation=scene.world.home)
    remove_member(actor=scene.world.olga, membership=row)


def _account(scene: _Scene) -> None:
    User.objects.filter(pk=scene.person.pk).update(is_active=False)


def _session(scene: _Scene) -> None:
    Session.objects.filter(session_key=scene.session).delete()


def _live(road: str, ending: Callable[[_Scene], None], world: World) -> Got:
    scene = _Scene(world)
    if road == "stream":
        heard = scene.heard_by_stream(ending)
    else:
        heard = scene.heard_by_socket(ending, page=road == "page's socket")
    return "it heard what was said afterwards" if LATER in heard else ""


for _road, _label, _ending in (
    ("stream", "its token was revoked", _token),
    ("stream", "its person was removed", _membership),
    ("stream", "its account was closed", _account),
    ("program's socket", "its token was revoked", _token),
    ("program's socket", "its person was removed", _membership),
    ("program's socket", "its account was closed", _account),
    ("page's socket", "its session ended", _session),
    ("page's socket", "its person was removed", _membership),
    ("page's socket", "its account was closed", _account),
):
    attack(SUBJECT, f"an open {_road} after {_label}", "goes on listening")(
        partial(_live, _road, _ending)
    )


@attack(
    SUBJECT,
    "a ticket for a second time",
    "opens two sockets, and another conversation's, with one ticket",
)
def _ticket(world: World) -> Got:
    scene = _Scene(world)
    other = world.converse(scene.person, organisation=world.home, agent=scene.agent)
    said = world.program(scene.token).says("POST", f"/api/chat/{scene.conversation.uid}/ticket")
    ticket = said["ticket"]
    with world.line(f"/api/chat/{other.uid}/ws?ticket={ticket}") as line:
        if '"ready"' in line.listen(1.5, until="ready"):
            return "it opens another conversation"
    said = world.program(scene.token).says("POST", f"/api/chat/{scene.conversation.uid}/ticket")
    path = f"/api/chat/{scene.conversation.uid}/ws?ticket={said['ticket']}"
    with world.line(path) as line:
        tried('"ready"' in line.listen(5, until="ready"), "the ticket does not work")
    with world.line(path) as line:
        return "it opens again" if '"ready"' in line.listen(1.5, until="ready") else ""


# --- keys, cursors, fields ------------------------------------------------------------------------


@attack(SUBJECT, "another's idempotency key", "repeats alice's request under her key")
def _key(world: World) -> Got:
    agent, key = world.agent_of(world.home, world.olga), f"key-{world.number()}"
    body = {"agent": agent.uid, "environment_id": world.environment.uid, "title": f"Keyed {MARK}"}
    headers = {"Idempotency-Key": key}
    made = world.program(world.olgas).post("/v1/sessions", json=body, headers=headers)
    tried(made.status_code < 300, made.text[:200])
    again = world.program(world.mallorys).post("/v1/sessions", json=body, headers=headers)
    return (
        "the first answer is shown"
        if made.json()["id"] in again.text or MARK in again.text.replace(body["title"], "")
        else ""
    )


@attack(SUBJECT, "another's cursor", "goes on in alice's list with her cursor")
def _cursor(world: World) -> Got:
    with world.program(world.token) as hers, world.program(world.mallorys) as other:
        for path in (
            "/v1/sessions",
            "/v1/agents",
            "/v1/files",
            "/v1/vaults",
            "/api/conversations",
            "/v1/environments",
        ):
            said = hers.says("GET", path, params={"limit": 1})
            if not isinstance(said, dict):
                continue
            for page in (
                said.get("next_page"),
                said.get("next_cursor"),
                said.get("last_id"),
                said.get("cursor"),
            ):
                for name in ("page", "cursor", "after_id", "before_id"):
                    if page and MARK in other.get(path, params={name: page}).text:
                        return f"{path} goes on in her list"
    return ""


@attack(
    SUBJECT,
    "fields that nobody asked for",
    "owner, organisation and powers in the bodies of programs",
)
def _fields(world: World) -> Got:
    extra = {
        "owner": world.alice.uid,
        "owner_id": world.alice.pk,
        "user": world.alice.uid,
        "organisation": world.acme.uid,
        "organisation_id": world.acme.pk,
        "is_staff": True,
        "actor": world.alice.pk,
        "created_by": world.alice.pk,
        "budget": 10**9,
        "trusts_workers": True,
    }
    agent = world.agent_of(world.elsewhere, world.mallory)
    before = world.state()
    with world.program(world.mallorys) as program:
        program.post(
            "/v1/sessions",
            json={"agent": agent.uid, "environment_id": world.environment.uid, **extra},
        )
        program.post("/v1/agents", json={"name": "Mass", "model": "claude-sonnet-5-5", **extra})
        program.post("/v1/vaults", json={"display_name": "Mass", **extra})
        program.post("/api/chat", json={"preset": agent.uid, **extra})
        program.post(
            "/api/webhooks",
            json={"url": "https://hooks.example.invalid/", "event_types": ["*"], **extra},
        )
    mine = Agent.objects.filter(name="Mass", organisation=world.acme).exists()
    changed = [
        one
        for one in world.changed_since(before).split(", ")
        if one in ("accounts_user", "accounts_membership", "conversations_event")
    ]
    got = mine or Conversation.objects.filter(owner=world.mallory, organisation=world.acme).exists()
    world.mallory.refresh_from_db()
    return "a field was believed" if got or world.mallory.is_staff or changed else ""


@attack(SUBJECT, "words of others in the search", "searches for alice's words at every list")
def _search(world: World) -> Got:
    texts = []
    with world.browser(world.mallory) as visitor:
        for name in ("q", "search", "query"):
            texts += [
                visitor.get(path, params={name: word}).text.replace(word, "")
                for path in ("/", "/approvals/", "/approvals/audit/")
                for word in (MARK, "secret plan")
            ]
    return (
        "it shows alice's"
        if "Plans" in "".join(texts) or world.conversation.uid in "".join(texts)
        else ""
    )


@attack(
    SUBJECT, "AG-UI in another's thread", "runs in alice's conversation, and resumes her questions"
)
def _agui(world: World) -> Got:
    before = world.state()
    texts = []
    for thread in (world.conversation.uid, world.conversation.uid.replace("sesn_", "session_")):
        body = {
            "threadId": thread,
            "runId": "r1",
            "messages": [{"id": "m", "role": "user", "content": "hello"}],
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
        }
        texts.append(world.program(world.mallorys).post("/agui", json=body).text)
    return world.changed_since(before) or ("it shows alice's" if MARK in "".join(texts) else "")


@attack(
    SUBJECT,
    "alice's things in one's own",
    "lends alice's vault, files, agent and environment to mallory's session",
)
def _lend(world: World) -> Got:
    objects = world.objects
    agent = world.agent_of(world.elsewhere, world.mallory)
    got = []
    with world.program(world.mallorys) as program:
        base = {"agent": agent.uid, "environment_id": world.environment.uid}
        tried(program.post("/v1/sessions", json=base).status_code < 300, "not even her own begins")
        for label, more in (
            ("vault", {"vault_ids": [objects["v1/vaults/"]["uid"]]}),
            ("agent", {"agent": objects["v1/agents/"]["uid"]}),
            ("environment", {"environment_id": objects["v1/environments/"]["uid"]}),
            (
                "file",
                {
                    "resources": [
                        {"type": "file", "file_id": objects["v1/files/"]["uid"], "mount_path": "/x"}
                    ]
                },
            ),
        ):
            answer = program.post("/v1/sessions", json={**base, **more})
            if answer.status_code < 300:
                got.append(f"{label} was lent")
    return "; ".join(got)


# --- frames ---------------------------------------------------------------------------------------


@attack(SUBJECT, "frames without measure", "megabytes, depths, floods and bytes on both sockets")
def _frames(world: World) -> Got:
    scene = _Scene(world)
    for page in (True, False):
        path = (
            f"/ws/conversations/{scene.conversation.uid}/"
            if page
            else f"/api/chat/{scene.conversation.uid}/ws"
        )
        who: dict[str, Any] = (
            {"session": scene.session, "origin": world.address} if page else {"token": scene.token}
        )
        for frame in (
            "x" * 3_000_000,
            "[" * 200_000,
            json.dumps({"type": "message", "content": "a" * 400_000}),
            b"\x00\xff" * 1000,
            '{"type":"message","content":"\\ud800\\u0000"}',
            '{"type":' + "1" * 100_000 + "}",
        ):
            with world.line(path, **who) as line:
                line.send(frame)
                line.listen(0.5, until="error")
    stored = [one for one in world.log(scene.conversation) if len(str(one)) > 300_000]
    alive = world.browser().get("/health").status_code == 200
    return "it was stored" if stored else "" if alive else "the server is gone"


# --- files ----------------------------------------------------------------------------------------


@attack(
    SUBJECT,
    "links out of the workspace",
    "links to the server's files in a workspace, read by every door",
)
def _links(world: World) -> Got:
    scene = _Scene(world)
    folder = workspace_for(scene.conversation.uid)
    secret = world.directory / "env"
    tried(secret.exists(), "there is no environment file")
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(world.directory)
    (folder / "root").symlink_to("/")
    (folder / "dir").mkdir()
    (folder / "dir" / "again").symlink_to("../link")
    texts = []
    with world.program(scene.token) as program, world.browser(scene.person) as visitor:
        for path in (
            "link",
            "up/env",
            "root/etc/passwd",
            "dir/again",
            "up/data/db.sqlite3",
            "../env",
            "%2e%2e/%2e%2e/env",
            "/etc/passwd",
        ):
            texts.append(program.get(f"/api/files/{scene.conversation.uid}/{path}").text)
            texts.append(
                program.get(
                    f"/api/workspace/file/{path}",
                    params={"conversation_id": scene.conversation.uid},
                ).text
            )
            for page in ("view", "download"):
                texts.append(
                    visitor.get(
                        f"/c/{scene.conversation.uid}/files/{page}/", params={"path": path}
                    ).text
                )
        texts.append(program.get("/v1/files", params={"scope_id": scene.conversation.uid}).text)
    got = "".join(texts)
    return (
        "a file of the server is shown"
        if "AGENTSITE_SECRET" in got or "root:x:0" in got or "SQLite format" in got
        else ""
    )


@attack(SUBJECT, "uploads out of the workspace", "names with .., absolute ones, and through a link")
def _uploads(world: World) -> Got:
    scene = _Scene(world)
    outside = world.directory / "outside"
    outside.mkdir(exist_ok=True)
    (workspace_for(scene.conversation.uid) / "link").symlink_to(outside)
    (workspace_for(scene.conversation.uid) / "file").symlink_to(outside / "by-link.txt")
    with world.program(scene.token) as program:
        for name, subdir in (
            ("../../../outside/a", ""),
            ("a", "../../../outside"),
            ("a", "link"),
            ("file", ""),
            (str(outside / "b"), ""),
            ("a", str(outside)),
            ("..%2f..%2foutside%2fc", ""),
            ("a\x00b", ""),
        ):
            program.post(
                "/api/workspace/upload",
                params={"conversation_id": scene.conversation.uid, "subdir": subdir},
                files={"files": (name, b"evil")},
            )
    found = [one.name for one in outside.iterdir()]
    return f"written outside: {found}" if found else ""


@control(SUBJECT, "a token within its scopes", "begins a session, reads it and hears of it")
def _within(world: World) -> Got:
    scene = _Scene(world)
    token = world.token_of(scene.person, world.home, "conversations:read", "conversations:write")
    with world.program(token) as program:
        body = {"agent": scene.agent.uid, "environment_id": world.environment.uid}
        made = program.says("POST", "/v1/sessions", body)
        tried("id" in made, f"{made}")
        read = program.get(f"/v1/sessions/{made['id']}").status_code
    heard = scene.heard_by_stream(lambda _scene: None)
    return "" if read == 200 and LATER in heard else f"read: {read}, heard: {LATER in heard}"
