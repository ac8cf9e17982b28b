"""Attacks through a browser: foreign pages, words that would be markup, files that would be pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from typing import Any

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.log import append
from conversations.models import Conversation
from harness.content import Text
from harness.events import AgentMessage, AgentToolResult, AgentToolUse, UserMessage
from harness.history import Entry
from tests.architecture.routes import page_routes
from tests.architecture.test_every_door_is_guarded import PUBLIC, STRICT, values_for
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.world import MARK, World
from tools_app.workspace import workspace_for
from vaults.models import Vault

SUBJECT = "browsers"

# --- foreign pages --------------------------------------------------------------------------------


def _forgeries(world: World, beginnings: tuple[str, ...], **headers: str) -> Got:
    """Posts to every such page with alice's cookies and nothing that only a page of ours knows."""
    before = world.state()
    with world.browser(world.alice, world.acme, forge=True) as victim:
        victim.headers.update(headers)
        routes = [
            one
            for one in page_routes()
            if one.pattern.startswith(beginnings) and one.key not in PUBLIC
        ]
        tried(routes, "there is no such page")
        for route in routes:
            address = route.address(values_for(route, world.objects))
            if not address.startswith(STRICT):
                victim.post(
                    address,
                    data={
                        **world.shown(world.acme),
                        "title": "stolen",
                        "name": "stolen",
                        "enabled": "0",
                        "decision": "allow",
                    },
                )
    return world.changed_since(before)


for _name, _beginnings in {
    "conversations": ("c/", "new/"),
    "settings": ("settings/", "organisation/", "usage/", "approvals/"),
}.items():
    attack(
        SUBJECT,
        f"forged posts to {_name}",
        "a foreign page posts alice's forms without their token",
    )(partial(_forgeries, beginnings=_beginnings))


@attack(
    SUBJECT,
    "forged posts from a page that names itself",
    "Origin and Referer of a foreign page, with a token of its own",
)
def _forged_origin(world: World) -> Got:
    before = world.state()
    with world.browser(world.alice, world.acme) as victim:
        victim.headers.update(
            {"Origin": "https://evil.example", "Referer": "https://evil.example/"}
        )
        victim.form(f"/c/{world.conversation.uid}/rename/", title="stolen")
        victim.form(f"/c/{world.conversation.uid}/delete/")
        victim.form("/organisation/rename/", **world.shown(world.acme, name="stolen"))
    return world.changed_since(before)


@attack(SUBJECT, "changes by following a link", "GETs every address that changes something")
def _by_get(world: World) -> Got:
    before = world.state()
    with world.browser(world.alice, world.acme, forge=True) as victim:
        for route in page_routes():
            word = route.pattern.rstrip("/").rpartition("/")[2]
            if word in {
                "delete",
                "remove",
                "revoke",
                "archive",
                "rotate",
                "withdraw",
                "decide",
                "rename",
                "invite",
                "role",
                "stop",
                "pin",
                "switch",
                "retry",
            } and not route.pattern.startswith(("v1", "api", "admin")):
                victim.get(route.address(values_for(route, world.objects)))
    return world.changed_since(before)


@attack(
    SUBJECT, "programs' doors by cookie", "a foreign page calls /v1 and /agui with alice's session"
)
def _cookie_api(world: World) -> Got:
    before = world.state()
    with world.browser(world.alice, world.acme, forge=True) as victim:
        texts = [
            victim.get(path).text
            for path in ("/v1/sessions", "/v1/agents", "/v1/vaults", "/v1/files")
        ]
        victim.delete(f"/v1/sessions/{world.conversation.uid}")
        victim.post("/api/chat", content="{}", headers={"Content-Type": "text/plain"})
    return world.changed_since(before) or (
        "it shows what is alice's" if MARK in "".join(texts) else ""
    )


ORIGINS = {
    "of a foreign page": "https://evil.example",
    "of no page": "null",
    "of another port": "http://127.0.0.1:1",
    "of another scheme": "https://127.0.0.1:{port}",
    "that looks like ours": "http://127.0.0.1:{port}.evil.example",
    "with a user before": "http://127.0.0.1:{port}@evil.example",
}


def _origin(origin: str | None, world: World) -> Got:
    session = world.session_of(world.alice)
    named = origin.format(port=world.site.port) if origin else None
    with world.line(
        f"/ws/conversations/{world.conversation.uid}/", session=session, origin=world.address
    ) as line:
        tried("changes" in line.listen(5, until="changes"), "our own page does not get in")
    for path in ("/ws/conversations/{uid}/", "/api/chat/{uid}/ws"):
        with world.line(
            path.format(uid=world.conversation.uid), session=session, origin=named
        ) as line:
            if line.refused:
                continue
            heard = line.listen(1, until="changes")
            if "changes" in heard or '"ready"' in heard:
                return f"{path} opens"
    return ""


for _label, _given in ORIGINS.items():
    attack(SUBJECT, f"a socket with an origin {_label}", "opens alice's socket with her cookie")(
        partial(_origin, _given)
    )
attack(SUBJECT, "a socket with a cookie and no origin", "a program with a stolen cookie")(
    partial(_origin, None)
)


@attack(
    SUBJECT,
    "answers to foreign pages",
    "asks with an Origin and preflights, with and without credentials",
)
def _cors(world: World) -> Got:
    got = []
    with world.browser(world.alice) as victim:
        for path in (
            "/v1/sessions",
            "/api/conversations",
            "/agui",
            "/",
            f"/c/{world.conversation.uid}/",
        ):
            for method in ("GET", "OPTIONS"):
                answer = victim.request(
                    method,
                    path,
                    headers={
                        "Origin": "https://evil.example",
                        "Access-Control-Request-Method": "POST",
                        "Access-Control-Request-Headers": "authorization",
                    },
                )
                allowed = answer.headers.get("access-control-allow-origin", "")
                if allowed in ("*", "https://evil.example", "null"):
                    got.append(f"{path} allows {allowed}")
    return "; ".join(got)


# --- words that would be markup -------------------------------------------------------------------

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)>",
    '"><iframe srcdoc="<script>alert(1)</script>">',
    "[x](javascript:alert(1)) ![x](javascript:alert(1)) <javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=) [x](JaVaScRiPt&colon;alert(1)) [x](vbscript:x)",
    "[x]: javascript:alert(1)\n[x]\n\n<a href='&#106;avascript:alert(1)'>x</a>",
    '```mermaid\nclick A href "javascript:alert(1)"\n```\n```html onload=alert(1)\n<script>1</script>\n```',
    "$\\href{javascript:alert(1)}{x}$ $$\\text{</math><script>alert(1)</script>}$$",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<form action=https://evil.example><button>x</button></form><base href=https://evil.example>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'><link rel=stylesheet href=//evil.example>",
    "{{7*7}}{% debug %}${7*7}<%= 7*7 %>",
    "<details open ontoggle=alert(1)><p hx-get=//evil.example hx-trigger=load>x</p></details>",
    "\u202e<ſcript>\x01javascript:alert(1)",
)
NAME = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}"


class _Seen(HTMLParser):
    """What of a page a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if (
            tag == "script"
            and not given.get("src", "").startswith("/static/")
            and "application/json" not in given.get("type", "")
        ):
            self.found.append(f"a script {given}")
        confined = tag == "iframe" and given.get("sandbox") == ""
        if tag in {"iframe", "object", "embed", "base", "frame", "applet"} and not confined:
            self.found.append(f"<{tag}>")
        if tag == "meta" and "refresh" in given.get("http-equiv", "").lower():
            self.found.append("a refresh")
        for name, value in given.items():
            plain = "".join(value.split()).lower()
            if name.startswith("on") or name == "srcdoc":
                self.found.append(f"<{tag} {name}={value[:40]}>")
            if name in {"href", "src", "action", "formaction", "xlink:href", "data"}:
                if plain.startswith(("javascript:", "vbscript:")) or (
                    plain.startswith("data:") and not plain.startswith("data:image/")
                ):
                    self.found.append(f"<{tag} {name}={value[:40]}>")
                if "evil.example" in plain and tag in {"form", "base", "link", "img", "button"}:
                    self.found.append(f"<{tag} {name}={value[:40]}>")
            if name.startswith("hx-") and "evil.example" in value:
                self.found.append(f"<{tag} {name}={value[:40]}>")

    handle_startendtag = handle_starttag


def _active(html: str) -> Got:
    seen = _Seen()
    seen.feed(html)
    return "; ".join(seen.found[:3])


def _said(world: World, *entries: Any) -> Conversation:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    append(conversation.pk, [Entry.of(one) for one in entries], actor=world.olga)
    return conversation


def _words(make: Callable[[str], Iterator[Any]], world: World) -> Got:
    entries = [entry for payload in PAYLOADS for entry in make(payload)]
    conversation = _said(world, *entries)
    with world.browser(world.olga, world.home) as visitor:
        page = visitor.get(f"/c/{conversation.uid}/").text
        tried("alert" in page, "the page does not show it")
        return _active(page)


def _of_person(text: str) -> Iterator[Any]:
    yield UserMessage(content=(Text(text=text),))


def _of_model(text: str) -> Iterator[Any]:
    yield AgentMessage(content=(Text(text=text),))


def _of_tool(text: str) -> Iterator[Any]:
    use = AgentToolUse(
        name="bash", input={"command": text, text: text}, evaluated_permission="allow"
    )
    yield use


for _label, _make in {
    "a person": _of_person,
    "a model": _of_model,
    "a tool's call": _of_tool,
}.items():
    attack(SUBJECT, f"markup of {_label}", "scripts, handlers, links and frames in what is said")(
        partial(_words, _make)
    )


@attack(SUBJECT, "markup of a tool's result", "scripts, handlers, links and frames in output")
def _output(world: World) -> Got:
    entries = []
    for payload in PAYLOADS:
        use = Entry.of(AgentToolUse(name="web_fetch", input={}, evaluated_permission="allow"))
        entries += [
            use,
            Entry.of(AgentToolResult(tool_use_id=use.uid, content=(Text(text=payload),))),
        ]
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    append(conversation.pk, entries, actor=world.olga)
    with world.browser(world.olga, world.home) as visitor:
        page = visitor.get(f"/c/{conversation.uid}/").text
        tried("alert" in page, "the page does not show it")
        return _active(page)


def _named(place: str, world: World) -> Got:
    """A name that breaks out, wherever it is shown."""
    agent = world.agent_of(world.home, world.olga)
    conversation = world.converse(world.olga, organisation=world.home, agent=agent, title="x")
    paths: tuple[str, ...] = ("/",)
    match place:
        case "conversation":
            Conversation.objects.filter(pk=conversation.pk).update(title=NAME[:100])
            paths = (
                "/",
                f"/c/{conversation.uid}/",
                "/?q=onerror",
                f"/c/{conversation.uid}/export/markdown/",
            )[:3]
        case "agent":
            Agent.objects.filter(pk=agent.pk).update(name=NAME, description=NAME)
            paths = ("/new/", "/settings/", f"/c/{conversation.uid}/", "/approvals/simulate/")
        case "person":
            User.objects.filter(pk=world.rita.pk).update(first_name=NAME)
            paths = ("/organisation/", "/approvals/", "/usage/")
        case "organisation":
            Organisation.objects.filter(pk=world.home.pk).update(name=NAME)
            paths = (
                "/",
                "/organisation/",
                "/settings/keys/",
                "/settings/tokens/",
                "/organisation/webhooks/",
            )
        case "environment":
            made = Environment.objects.create(name=NAME, organisation=world.home)
            paths = ("/new/", "/settings/", "/settings/workers/")
        case "vault":
            made = world.program(world.olgas).says("POST", "/v1/vaults", {"display_name": NAME})
            tried(Vault.objects.filter(display_name=NAME).exists(), f"no vault: {made}")
            paths = ("/settings/vaults/", f"/settings/vaults/{made['id']}/", "/new/")
        case "file":
            folder = workspace_for(conversation.uid)
            name = NAME.replace("/", "_")
            (folder / name).write_text("<script>alert(1)</script>")
            (folder / "page.html").write_text("<script>alert(1)</script>")
            (folder / "image.svg").write_text("<svg onload=alert(1)>")
            (folder / "notes.md").write_text("\n\n".join(PAYLOADS))
            paths = tuple(
                f"/c/{conversation.uid}/files/{one}"
                for one in (
                    "",
                    "view/?path=page.html",
                    "view/?path=image.svg",
                    "view/?path=notes.md",
                )
            )
    shown = False
    got = ""
    with world.browser(world.olga, world.home) as visitor:
        for path in paths:
            answer = visitor.get(path)
            shown = shown or "onerror" in answer.text or "alert" in answer.text
            if answer.headers.get("content-type", "").startswith("text/html"):
                got = got or _active(answer.text)
    Organisation.objects.filter(pk=world.home.pk).update(name="Home")
    User.objects.filter(pk=world.rita.pk).update(first_name="")
    Environment.objects.filter(name=NAME).delete()
    tried(shown, "no page shows it")
    return got


for _place in ("conversation", "agent", "person", "organisation", "environment", "vault", "file"):
    attack(
        SUBJECT,
        f"markup in the name of a {_place}",
        "a name that breaks out of its place, on every page that shows it",
    )(partial(_named, _place))


@attack(SUBJECT, "markup in what a page is asked", "queries and forms that come back on the page")
def _reflected(world: World) -> Got:
    got = []
    with world.browser(world.olga, world.home) as visitor:
        for path in (
            "/",
            "/approvals/simulate/",
            "/approvals/",
            "/approvals/audit/",
            "/usage/",
            "/new/",
            "/accounts/login/",
            "/approvals/rules/",
        ):
            names = (
                "q",
                "message",
                "tool",
                "input",
                "person",
                "agent",
                "after",
                "next",
                "email",
                "conversation",
                "view",
                "level",
            )
            for payload in PAYLOADS[:4]:
                answer = visitor.get(path, params=dict.fromkeys(names, payload))
                if found := _active(answer.text):
                    got.append(f"{path}: {found}")
        if found := _active(visitor.get(f"/c/{NAME}/").text):
            got.append(found)
    return "; ".join(got[:3])


# --- what answers say to a browser ----------------------------------------------------------------


def _pages(world: World) -> Iterator[tuple[str, Any]]:
    uid = world.conversation.uid
    with world.browser(world.alice, world.acme) as visitor:
        for path in (
            "/",
            "/new/",
            f"/c/{uid}/",
            f"/c/{uid}/files/",
            "/settings/tokens/",
            "/settings/keys/",
            "/organisation/",
            "/approvals/",
            "/usage/",
            "/accounts/2fa/",
            "/nowhere/",
            f"/c/{uid}/export/json/",
            f"/c/{uid}/files/download/?path=secret.txt",
        ):
            yield path, visitor.get(path)
    with world.browser(world.staff) as visitor:
        for path in ("/admin/", "/admin/accounts/user/", "/operations/"):
            yield path, visitor.get(path)


@attack(
    SUBJECT, "pages without a strict policy", "looks for a page that lets scripts of others run"
)
def _csp(world: World) -> Got:
    got = []
    for path, answer in _pages(world):
        policy = answer.headers.get("content-security-policy", "")
        parts = {part.split()[0]: part.split()[1:] for part in policy.split(";") if part.split()}
        scripts = set(parts.get("script-src", parts.get("default-src", [])))
        # The administration's own scripts evaluate expressions; inline ones run nowhere.
        known = {"'self'", "'unsafe-eval'"} if path.startswith("/admin/") else {"'self'"}
        is_page = answer.headers.get("content-type", "").startswith("text/html")
        if is_page and (not scripts or scripts - known):
            got.append(f"{path}: {sorted(scripts)}")
        if (
            "frame-ancestors 'none'" not in policy
            and answer.headers.get("x-frame-options") != "DENY"
        ):
            got.append(f"{path} may be framed")
        if answer.headers.get("x-content-type-options") != "nosniff":
            got.append(f"{path} may be sniffed")
    return "; ".join(got[:4])


@attack(
    SUBJECT,
    "private pages in shared caches",
    "looks for a page that a cache would show to the next one",
)
def _cached(world: World) -> Got:
    got = []
    for path, answer in _pages(world):
        control = answer.headers.get("cache-control", "").lower()
        if MARK not in answer.text:
            continue
        if "public" in control or (
            "private" not in control
            and "no-store" not in control
            and "cookie" not in answer.headers.get("vary", "").lower()
        ):
            got.append(f"{path}: {control!r}")
    return "; ".join(got)


@attack(SUBJECT, "secrets in caches", "pages that show a secret once are kept by a browser")
def _kept(world: World) -> Got:
    with world.browser(world.olga, world.home) as visitor:
        made = visitor.form(
            "/settings/tokens/",
            **world.shown(
                world.home, name="kept", scopes=["conversations:read"], days="30", expires="30"
            ),
        )
        tried(made.status_code in (200, 422), f"{made.status_code}")
        return "" if "no-store" in made.headers.get("cache-control", "") else "it may be kept"


@attack(
    SUBJECT,
    "files as pages of the site",
    "opens uploaded HTML, SVG and XML where a browser would show them",
)
def _inline(world: World) -> Got:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    folder, got = workspace_for(conversation.uid), []
    bad = "<script>alert(1)</script>"
    program = world.program(world.olgas)
    for name, kind in (
        ("a.html", "text/html"),
        ("a.svg", "image/svg+xml"),
        ("a.xml", "text/xml"),
        ("a.js", "text/javascript"),
        ("a.pdf", "application/pdf"),
    ):
        (folder / name).write_text(bad)
        made = program.post("/v1/files", files={"file": (name, bad.encode(), kind)})
        answers = [
            world.browser(world.olga).get(f"/c/{conversation.uid}/files/download/?path={name}"),
            program.get(f"/api/files/{conversation.uid}/{name}"),
        ]
        if made.status_code < 300:
            answers.append(program.get(f"/v1/files/{made.json()['id']}/content"))
        for answer in answers:
            tried(bad in answer.text, f"{name} was not given: {answer.status_code}")
            if not answer.headers.get("content-disposition", "").startswith("attachment"):
                got.append(f"{name} is shown: {answer.headers.get('content-type')}")
            if answer.headers.get("x-content-type-options") != "nosniff":
                got.append(f"{name} may be sniffed")
    return "; ".join(got[:4])


@attack(
    SUBJECT,
    "a file's name as a header",
    "names with quotes, line ends and other scripts in a download",
)
def _disposition(world: World) -> Got:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    folder = workspace_for(conversation.uid)
    for name in (
        'a"; filename=evil.exe; x="',
        "a\r\nX-Evil: yes",
        "ä\u202ecod.exe",
        "a;b=c",
        "%0d%0aX-Evil: yes",
    ):
        (folder / name).write_text("x")
        with world.browser(world.olga) as visitor:
            answer = visitor.get(f"/c/{conversation.uid}/files/download/", params={"path": name})
            if "x-evil" in answer.headers:
                return f"{name!r} writes a header"
            if (
                "filename=evil.exe"
                in answer.headers.get("content-disposition", "").replace('\\"', "").split('"')[0]
            ):
                return f"{name!r} renames the download"
    return ""


@control(SUBJECT, "a page's own form and socket", "renames a conversation, and follows it")
def _own_page(world: World) -> Got:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    with world.browser(world.olga, world.home) as visitor:
        visitor.form(f"/c/{conversation.uid}/rename/", title="Another name")
        session = visitor.session
    conversation.refresh_from_db()
    path = f"/ws/conversations/{conversation.uid}/"
    with world.line(path, session=session, origin=world.address) as line:
        follows = "changes" in line.listen(5, until="changes")
    renamed = conversation.title == "Another name"
    return "" if renamed and follows else f"renamed: {renamed}, follows: {follows}"
