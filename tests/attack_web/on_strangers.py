"""Attacks by somebody who never signed in: on addresses, headers, bodies, probes and the set-up link."""

from __future__ import annotations

import re
import socket
import time
from functools import partial

from accounts.models import User
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import CSRF, CSRF_SECRET, raw
from tests.attack_web.world import MARK, World

SUBJECT = "strangers"
HOST = b"Host: 127.0.0.1\r\n"


def _told(text: str) -> Got:
    """What an answer tells that is the operator's."""
    for word in ("agentsite_", "bubblewrap", "Traceback", "/data", "django", "sqlite"):
        if word in text:
            return f"it tells “{word}”"
    return ""


@attack(SUBJECT, "metrics without a token", "reads /metrics")
def _metrics(world: World) -> Got:
    return _told(world.browser().get("/metrics").text)


@attack(SUBJECT, "metrics with tokens that are none", "an empty bearer, a wrong one, alice's token")
def _metrics_tokens(world: World) -> Got:
    texts = []
    for given in ("Bearer", "Bearer ", "", "Bearer wrong", f"Bearer {world.token}"):
        head = f"GET /metrics HTTP/1.1\r\nAuthorization: {given}\r\nConnection: close\r\n".encode()
        texts.append(raw(world.address, head + HOST + b"\r\n").decode())
    return _told("".join(texts))


@attack(SUBJECT, "readiness in full", "reads what /readyz knows of sandboxes and tables")
def _readyz(world: World) -> Got:
    return _told(world.browser().get("/readyz").text)


@attack(SUBJECT, "paths out of the static files", "reads the settings and the database by ../")
def _static(world: World) -> Got:
    paths = (
        *("/static/../agentsite/settings.py", "/static/%2e%2e/agentsite/settings.py"),
        *("/static/..%2fagentsite/settings.py", "/static//../../data/db.sqlite3"),
        *("/static/....//agentsite/settings.py", "/static/%5c..%5cagentsite%5csettings.py"),
        *("//agentsite/settings.py", "/.env", "/data/db.sqlite3", "/static/%00/../../.env"),
    )
    for path in paths:
        got = raw(
            world.address, f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"Connection: close\r\n\r\n"
        )
        if b"AGENTSITE_" in got or b"SQLite format" in got:
            return f"{path} is served"
    return ""


@attack(
    SUBJECT, "a header of its own in the answer", "CR and LF in paths, queries, cookies and next="
)
def _crlf(world: World) -> Got:
    evil = "%0d%0aX-Evil:%20yes%0d%0aSet-Cookie:%20agentsite_session=evil"
    paths = (
        f"/accounts/login/?next=/{evil}",
        f"/{evil}",
        f"/c/{evil}/",
        f"/invitations/{evil}/",
        f"/organisation{evil}",
    )
    for path in paths:
        got = raw(
            world.address, f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"Connection: close\r\n\r\n"
        )
        if b"\nx-evil" in got.lower().partition(b"\r\n\r\n")[0]:
            return f"{path} writes a header"
    return ""


@attack(
    SUBJECT, "smuggling by two lengths", "a second request inside a body that one side ends earlier"
)
def _smuggling(world: World) -> Got:
    inner = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    spellings = (
        b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % (5 + len(inner)),
        b"Content-Length: 5\r\nContent-Length: %d\r\n" % (5 + len(inner)),
        b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n",
    )
    for spelling in spellings:
        sent = b"POST /accounts/login/ HTTP/1.1\r\n" + HOST + spelling + b"\r\n0\r\n\r\n" + inner
        got = raw(world.address, sent, seconds=4)
        if got.count(b"HTTP/1.1 ") > 1 and b'"status"' in got:
            return f"the inner request was answered: {spelling!r}"
    return ""


@attack(
    SUBJECT,
    "names of foreign hosts in mails",
    "asks for a reset of alice's password with another Host",
)
def _host(world: World) -> Got:
    victim = world.person(password=True)
    said = len(world.site.said)
    for headers in (
        b"Host: evil.example\r\n",
        b"Host: 127.0.0.1\r\nX-Forwarded-Host: evil.example\r\n",
        b"Host: 127.0.0.1:1@evil.example\r\n",
        b"Host: 127.0.0.1\r\nX-Forwarded-Proto: https\r\nForwarded: host=evil.example\r\n",
    ):
        body = f"email={victim.email}&csrfmiddlewaretoken={CSRF_SECRET}".encode()
        raw(
            world.address,
            b"POST /accounts/password/reset/ HTTP/1.1\r\n"
            + headers
            + f"Cookie: {CSRF}={CSRF_SECRET}\r\n".encode()
            + b"Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body,
            source=world.source(),
        )
    time.sleep(0.3)
    mails = world.site.said[said:]
    tried("127.0.0.1" in mails or "evil.example" in mails, "no mail was written")
    return "the mail's link leads to evil.example" if "evil.example" in mails else ""


def _accepted(world: World, head: bytes, chunk: bytes, most: int, source: str) -> int:
    """Bytes of a body that a stranger could send before the server had enough."""
    host, _, port = world.address.removeprefix("http://").partition(":")
    sent = 0
    with socket.create_connection((host, int(port)), timeout=5, source_address=(source, 0)) as line:
        line.sendall(head)
        try:
            while sent < most:
                line.sendall(chunk)
                sent += len(chunk)
            line.settimeout(2)
            if re.match(rb"HTTP/1.1 (413|400|408|403|401)", line.recv(20)):
                return 0
        except OSError:
            pass
    return sent


@attack(SUBJECT, "an endless body to a page", "chunks without an end, before signing in")
def _endless(world: World) -> Got:
    return _body(world, "/accounts/login/")


@attack(
    SUBJECT, "an endless file to a door for files", "the same where signed-in people send 500 MB"
)
def _endless_file(world: World) -> Got:
    return _body(world, "/v1/files")


@attack(
    SUBJECT, "an endless body with a made-up token", "the same, showing a token that nobody has"
)
def _endless_token(world: World) -> Got:
    return _body(world, "/v1/files", b"Authorization: Bearer ags_made_up_by_a_stranger\r\n")


def _body(world: World, path: str, more: bytes = b"") -> Got:
    head = (
        f"POST {path} HTTP/1.1\r\n".encode() + HOST + more + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    most = 64 * 1024 * 1024
    got = _accepted(world, head, piece, most, world.source())
    return f"{got} bytes were taken" if got >= most else ""


@attack(SUBJECT, "a head that never ends", "one byte of a header now and then", quick=False)
def _slow_head(world: World) -> Got:
    return _slowly(world, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")


@attack(SUBJECT, "a body that never ends", "one byte of a body now and then")
def _slow_body(world: World) -> Got:
    return _slowly(
        world, b"POST /accounts/login/ HTTP/1.1\r\n" + HOST + b"Content-Length: 60000\r\n\r\n"
    )


def _slowly(world: World, head: bytes) -> Got:
    """The site's limits are three seconds here."""
    host, _, port = world.address.removeprefix("http://").partition(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=1) as line:
        line.sendall(head)
        line.settimeout(0.25)
        while time.monotonic() - began < 12:
            try:
                line.sendall(b"x")
                if line.recv(100) == b"":
                    return ""
                return ""  # answered: the request is over
            except TimeoutError:
                continue
            except OSError:
                return ""
    return "it was still open after twelve seconds"


@attack(
    SUBJECT, "heads without measure", "a megabyte of headers, a thousand of them, a long address"
)
def _heads(world: World) -> Got:
    for head in (
        b"GET / HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % n for n in range(5_000)) + b"\r\n",
        b"GET /?" + b"a" * 1_000_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ):
        got = raw(world.address, head, seconds=5)
        if got.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3")):
            return "it was answered like any other"
    return ""


@attack(
    SUBJECT, "the set-up link after set-up", "makes another superuser with the first day's link"
)
def _setup(world: World) -> Got:
    tried(world.site.setup_link, "the site told no set-up link")
    path = world.site.setup_link.partition(str(world.site.port))[2]
    with world.browser() as visitor:
        visitor.form(
            path,
            organisation_name="Evil",
            username="evil-root",
            email="root@evil.example",
            password="a long unusual passphrase 1",
        )
    return "a superuser was made" if User.objects.filter(username="evil-root").exists() else ""


@attack(SUBJECT, "the set-up token in logs", "looks for it where logs go")
def _setup_logged(world: World) -> Got:
    token = world.site.setup_link.rstrip("/").rpartition("/")[2]
    tried(token, "the site told no set-up link")
    world.browser().get(f"/setup/{token}/")
    time.sleep(0.2)
    return "it stands in the log" if token in world.site.errors else ""


@attack(SUBJECT, "methods that echo", "TRACE, CONNECT and made-up methods show what a proxy added")
def _trace(world: World) -> Got:
    for method in ("TRACE", "TRACK", "CONNECT", "DEBUG"):
        sent = (
            f"{method} / HTTP/1.1\r\n".encode()
            + HOST
            + b"X-Secret: echoed-back\r\nConnection: close\r\n\r\n"
        )
        if b"echoed-back" in raw(world.address, sent, seconds=4):
            return f"{method} echoes headers"
    return ""


@attack(
    SUBJECT, "errors that tell", "NULs, broken UTF-8, bad JSON and odd types at every open door"
)
def _errors(world: World) -> Got:
    with world.browser() as visitor:
        for path in (
            "/accounts/login/?next=%00",
            "/c/%ff%fe/",
            "/setup/%00/",
            "/invitations/%c0%80/",
        ):
            answer = visitor.get(path)
            if answer.status_code >= 500 or "Traceback" in answer.text:
                return f"{path}: {answer.status_code}"
        for body in (b"{", b"[" * 100_000, b'{"a": 1e999999}', b"\xff\xfe", b'{"\\ud800": 1}'):
            for path in ("/v1/sessions", "/api/chat", "/agui", "/accounts/login/"):
                answer = visitor.post(
                    path, content=body, headers={"Content-Type": "application/json"}
                )
                if answer.status_code >= 500 or "Traceback" in answer.text:
                    return f"{path} {body[:20]!r}: {answer.status_code}"
    return ""


@attack(
    SUBJECT,
    "bodies in other codings",
    "codecs of Python's that raise, or make halves of characters",
)
def _codings(world: World) -> Got:
    body = b'--z\r\nContent-Disposition: form-data; name="login"\r\n\r\n\\ud800+2AA-\r\n--z--\r\n'
    kinds = [
        f"multipart/form-data; boundary=z; charset={charset}"
        for charset in ("unicode_escape", "utf-7", "idna", "rot13", "undefined", '"zlib"')
    ]
    with world.browser() as visitor:
        for kind in (*kinds, "text/plain; a*=rot13''x", "text/plain; a*=idna''%ff"):
            for path in ("/accounts/login/", "/accounts/password/reset/", "/v1/files", "/agui"):
                answer = visitor.post(path, content=body, headers={"Content-Type": kind})
                if answer.status_code >= 500 or "Traceback" in answer.text:
                    return f"{path} {kind}: {answer.status_code}"
    return ""


@attack(SUBJECT, "the API's description", "reads what operations there are", quick=False)
def _schema(world: World) -> Got:
    return (
        "it is shown to nobody in particular"
        if "paths" in world.browser().get("/api/schema").text
        else ""
    )


@attack(SUBJECT, "accounts by the reset's answer", "tells a known address from an unknown one")
def _enumerate(world: World) -> Got:
    known = world.person(password=True).email
    texts = []
    for email in (known, "nobody-at-all@example.org"):
        with world.browser(source=world.source()) as visitor:
            answer = visitor.form("/accounts/password/reset/", email=email)
            texts.append(
                (answer.status_code, answer.headers.get("location"), answer.text.replace(email, ""))
            )
    return "the answers differ" if texts[0] != texts[1] else ""


@attack(SUBJECT, "an account without an invitation", "signs up as it would with one")
def _sign_up(world: World) -> Got:
    with world.browser(source=world.source()) as visitor:
        visitor.form(
            "/accounts/signup/",
            email="uninvited@evil.example",
            username="uninvited",
            password1="a long unusual passphrase 1",
            password2="a long unusual passphrase 1",
            is_staff="on",
            is_superuser="on",
        )
    return "it was made" if User.objects.filter(username="uninvited").exists() else ""


def _socket(path: str, world: World) -> Got:
    address = path.format(uid=world.conversation.uid)
    with world.line(address) as line:
        if not line.refused:
            line.send({"type": "resync"})
            line.send({"type": "message", "content": "Let me in"})
        heard = line.listen(1.5)
    return (
        "it shows what is alice's"
        if MARK in heard or "changes" in heard or '"ready"' in heard
        else ""
    )


for _path in ("/ws/conversations/{uid}/", "/api/chat/{uid}/ws"):
    attack(SUBJECT, f"the socket {_path}", "follows alice's conversation as nobody")(
        partial(_socket, _path)
    )


@control(SUBJECT, "the sign-in page", "is shown to a stranger, with what it takes to look right")
def _sign_in_page(world: World) -> Got:
    with world.browser() as visitor:
        page = visitor.get("/accounts/login/")
        styles = re.findall(r'href="(/static/[^"]+\.css[^"]*)"', page.text)
        tried(styles, "the page names no style")
        found = [page.status_code, *(visitor.get(one).status_code for one in styles)]
        well = visitor.get("/healthz").status_code
    return "" if {*found, well} == {200} else f"{found} {well}"
