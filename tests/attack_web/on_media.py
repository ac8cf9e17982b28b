"""Attacks by files: pictures and papers that unfold, archives, wrong types, and names that are more."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from websockets.sync.client import connect

from accounts.actions.provider_keys import store_provider_key
from accounts.models import Scope
from conversations.models import Conversation, Event, StoredFile
from providers.scripted import call, reply
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.waits import Memory, Waits
from tests.attack_web.world import World
from tests.pictures import bomb, paper, picture
from tools_app.workspace import workspace_for

SUBJECT = "files"
MOST_GROWN = 700_000_000
"""Bytes that the server and what it starts may take for one: a process that opens one may take some."""


def _coded(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(*extra: bytes, wide: int = 8, high: int = 8) -> bytes:
    """A PNG with these chunks before its points."""
    header = struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)
    points = zlib.compress((b"\0" + b"\0" * wide) * high)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + b"".join(extra)
        + _chunk(b"IDAT", points)
        + _chunk(b"IEND", b"")
    )


def _pdf(*objects: bytes, root: int = 1) -> bytes:
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        root,
        start,
    )
    return bytes(out)


def _doubling(levels: int) -> bytes:
    """A tree of pages, each of whose branches is the next level twice."""
    catalog = b"<< /Type /Catalog /Pages 2 0 R >>"
    branches = [
        b"<< /Type /Pages /Kids [%d 0 R %d 0 R] /Count %d >>"
        % (level + 3, level + 3, 2 ** (levels - level))
        for level in range(levels)
    ]
    return _pdf(catalog, *branches, b"<< /Type /Page /MediaBox [0 0 9 9] >>")


def _unfolding() -> bytes:
    """A PDF whose objects lie in a stream of a gigabyte of blanks."""
    packed = zlib.compressobj(9)
    body = b"".join(packed.compress(b" " * 1_000_000) for _ in range(1_000)) + packed.flush()
    stream = (
        b"<< /Type /ObjStm /N 1 /First 4 /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream"
    )
    return _pdf(b"<< /Type /Catalog /Pages 3 0 R >>", stream % (len(body), body), b"null")


PICTURES: dict[str, Callable[[], tuple[str, bytes]]] = {
    "of thirty thousand points a side": lambda: ("image/png", bomb(30_000)),
    "of all points there may be": lambda: ("image/png", bomb(2**31 - 1)),
    "within the sides that unfolds": lambda: ("image/png", bomb(7_999)),
    "with a text that unfolds": lambda: (
        "image/png",
        _png(_chunk(b"zTXt", b"a\0\0" + zlib.compress(b"a" * 500_000_000))),
    ),
    "with a colour profile that unfolds": lambda: (
        "image/png",
        _png(_chunk(b"iCCP", b"a\0\0" + zlib.compress(b"a" * 500_000_000))),
    ),
    "called another": lambda: ("image/jpeg", picture("PNG")),
    "that is a page": lambda: ("image/png", b"<html><script>alert(1)</script>"),
    "that is an SVG": lambda: ("image/svg+xml", b"<svg onload=alert(1)>"),
    "that is a PostScript program": lambda: ("image/png", b"%!PS-Adobe-3.0 EPSF-3.0\n{} loop"),
    "that is an archive": lambda: ("image/png", _zip({"a": b"x"})),
}
PAPERS: dict[str, Callable[[], tuple[str, bytes]]] = {
    "of a billion pages": lambda: ("application/pdf", _doubling(30)),
    "whose pages lead to themselves": lambda: (
        "application/pdf",
        _pdf(
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>",
        ),
    ),
    "whose objects unfold": lambda: ("application/pdf", _unfolding()),
    "that counts more than it has": lambda: (
        "application/pdf",
        _pdf(
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [] /Count 2147483647 >>",
        ),
    ),
    "that is a picture": lambda: ("application/pdf", picture()),
    "that is an archive": lambda: ("application/pdf", _zip({"a": b"x"})),
    "of a hundred thousand brackets": lambda: (
        "application/pdf",
        _pdf(b"<< /Type /Catalog /Pages " + b"[" * 100_000 + b" >>"),
    ),
}


def _zip(files: dict[str, bytes]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return kept.getvalue()


def _mine(world: World, **config: Any) -> Conversation:
    agent = world.agent_of(world.home, world.olga, **config)
    return world.converse(world.olga, organisation=world.home, agent=agent)


def _block(kind: str, media_type: str, body: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": _coded(body)}
    return {"type": kind, "source": source}


def _doors(conversation: Conversation, block: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    content = [{"type": "text", "text": "Look"}, block]
    source = block["source"]
    part = {
        "type": "image" if block["type"] == "image" else "document",
        "source": {"type": "data", "value": source["data"], "mimeType": source["media_type"]},
    }
    return [
        (
            f"/v1/sessions/{conversation.uid}/events",
            {"events": [{"type": "user.message", "content": content}]},
        ),
        (
            "/agui",
            {
                "threadId": conversation.uid,
                "runId": "r",
                "messages": [{"id": "m", "role": "user", "content": [part]}],
                "tools": [],
                "context": [],
                "state": {},
                "forwardedProps": {},
            },
        ),
    ]


def _shown(kind: str, made: Callable[[], tuple[str, bytes]], world: World) -> Got:
    """What is stored is in every prompt of its conversation from then on."""
    conversation = _mine(world)
    media_type, body = made()
    with (
        Memory(world.site.pid) as taken,
        Waits(world) as waits,
        world.program(world.olgas) as program,
    ):
        for path, given in _doors(conversation, _block(kind, media_type, body)):
            answer = program.post(path, json=given, timeout=60)
            if answer.status_code >= 500:
                return f"{path}: {answer.status_code}"
    stored = Event.objects.filter(conversation=conversation, type="user.message").exists()
    if stored:
        return "it was stored"
    return f"the server took {taken.grown} bytes" if taken.grown > MOST_GROWN else waits.got


for _kind, _files, _quick in (
    ("image", PICTURES, ("of thirty thousand points a side", "called another")),
    ("document", PAPERS, ("that is a picture",)),
):
    for _label, _made in _files.items():
        attack(
            SUBJECT,
            f"a {'picture' if _kind == 'image' else 'paper'} {_label}",
            "shown to a model by the doors of programs",
            quick=_label in _quick,
        )(partial(_shown, _kind, _made))


@attack(
    SUBJECT,
    "a picture by a custom tool",
    "a program's answer to a call holds one that unfolds",
    quick=False,
)
def _custom(world: World) -> Got:
    custom = [{"name": "camera", "description": "Looks.", "input_schema": {"type": "object"}}]
    conversation = _mine(world, tools=[{"tool": "*"}], custom_tools=custom)
    world.turn(world.olgas, conversation, reply(call("camera")), reply("Done."))
    world.rested(conversation)
    use = conversation.events.get(type="agent.custom_tool_use")
    answer = {
        "type": "user.custom_tool_result",
        "custom_tool_use_id": use.uid,
        "content": [_block("image", "image/png", bomb(30_000))],
    }
    path = f"/v1/sessions/{conversation.uid}/events"
    with Waits(world) as waits:
        world.program(world.olgas).post(path, json={"events": [answer]})
    stored = conversation.events.filter(type="user.custom_tool_result").exists()
    return "it was stored" if stored else waits.got


@control(SUBJECT, "a picture and a paper", "are shown to a model by the doors of programs")
def _good(world: World) -> Got:
    conversation = _mine(world)
    blocks = [
        _block("image", "image/png", picture()),
        _block("document", "application/pdf", paper()),
    ]
    events = [{"type": "user.message", "content": [{"type": "text", "text": "Look"}, *blocks]}]
    path = f"/v1/sessions/{conversation.uid}/events"
    sent = world.program(world.olgas).post(path, json={"events": events})
    return "" if sent.status_code < 300 else f"refused: {sent.text[:200]}"


@control(SUBJECT, "a file there and back", "is what was sent, by every door for files")
def _there_and_back(world: World) -> Got:
    conversation, body = _mine(world), _zip({"a/b.txt": b"x" * 1_000})
    with world.program(world.olgas) as program:
        made = program.post("/v1/files", files={"file": ("a.zip", body, "application/zip")})
        tried(made.status_code < 300, f"refused: {made.text[:200]}")
        got = [program.get(f"/v1/files/{made.json()['id']}/content").content]
        program.delete(f"/v1/files/{made.json()['id']}")
        program.post(
            "/api/workspace/upload",
            params={"conversation_id": conversation.uid},
            files={"files": ("a.zip", body, "application/zip")},
        )
        got.append(program.get(f"/api/files/{conversation.uid}/a.zip").content)
    return "" if got == [body, body] else "it came back as another"


# --- what unfolds ---------------------------------------------------------------------------------


def _read_by_model(name: str, body: bytes, world: World) -> Got:
    """A model looks at an archive or paper that was uploaded."""
    conversation = _mine(world, tools=[{"tool": "*"}])
    with world.program(world.olgas) as program:
        sent = program.post(
            "/api/workspace/upload",
            params={"conversation_id": conversation.uid},
            files={"files": (name, body)},
        )
    tried(sent.status_code < 300, f"it was not taken: {sent.text[:200]}")
    with Memory(world.site.pid) as taken, Waits(world) as waits:
        calls = [
            reply(call("read_file", path=name)),
            reply(call("grep", pattern="a", path=name)),
            reply(call("outline", path=name)),
            reply("Done."),
        ]
        world.turn(world.olgas, conversation, *calls)
        world.rested(conversation)
        with world.browser(world.olga, world.home) as visitor:
            visitor.get(f"/c/{conversation.uid}/files/view/", params={"path": name})
    size = sum(file.stat().st_size for file in workspace_for(conversation.uid).rglob("*"))
    if size > 20_000_000:
        return f"the workspace has {size} bytes now"
    return f"the server took {taken.grown} bytes" if taken.grown > MOST_GROWN else waits.got


def _nested() -> bytes:
    body = _zip({f"a{number}": b"\0" * 3_000_000 for number in range(8)})
    for _level in range(4):
        body = _zip({f"{number}.zip": body for number in range(8)})
    return body


attack(
    SUBJECT, "an archive of archives", "a zip that unfolds to terabytes, read by a model's tools"
)(lambda world: _read_by_model("a.zip", _nested(), world))
attack(SUBJECT, "a document that unfolds", "a text document whose archive is a bomb", quick=False)(
    lambda world: _read_by_model("a.docx", _zip({"word/document.xml": b"<a>" * 30_000_000}), world)
)
attack(SUBJECT, "a paper that unfolds", "the same as a PDF in the workspace", quick=False)(
    lambda world: _read_by_model("a.pdf", _unfolding(), world)
)
attack(
    SUBJECT, "an archive that leads out", "names with .. and absolute ones in a zip", quick=False
)(
    lambda world: _read_by_model(
        "a.zip", _zip({"../../../../evil": b"x", "/tmp/evil": b"x", "a\0b": b"x"}), world
    )
)


@attack(SUBJECT, "a body that unfolds", "requests whose bodies say that they are compressed")
def _compressed(world: World) -> Got:
    packed = gzip.compress(b'{"title": "' + b" " * 100_000_000 + b'"}')
    with (
        Memory(world.site.pid) as taken,
        Waits(world) as waits,
        world.program(world.olgas) as program,
    ):
        for path in ("/v1/sessions", "/api/chat", "/agui"):
            for coding in ("gzip", "deflate", "br"):
                program.post(
                    path,
                    content=packed,
                    headers={"Content-Type": "application/json", "Content-Encoding": coding},
                )
    return f"the server took {taken.grown} bytes" if taken.grown > 60_000_000 else waits.got


@attack(SUBJECT, "frames that unfold", "a socket whose frames are compressed")
def _compressed_frames(world: World) -> Got:
    conversation = _mine(world)
    for address in (world.address, world.second.address):
        url = f"{address.replace('http://', 'ws://')}/api/chat/{conversation.uid}/ws"
        head = {"Authorization": f"Bearer {world.olgas}"}
        with connect(url, additional_headers=head, compression="deflate", proxy=None) as line:
            if line.protocol.extensions:
                return f"{address} unfolds frames: {line.protocol.extensions}"
    return ""


def _streamed(body: bytes, headers: dict[str, str], world: World) -> Got:
    """A member's own provider, which may be anybody's server, answers with what unfolds."""
    world.listed.answer = lambda _path: (
        200,
        {"Content-Type": "text/event-stream", **headers},
        body,
    )
    owner = world.person()
    home = world.organisation(owner)
    store_provider_key(
        actor=owner,
        organisation=home,
        scope=Scope.USER,
        provider="openai_compatible",
        base_url=f"http://127.0.0.1:{world.listed.port}/v1",
        key="key-of-a-member-77",
    )
    agent = world.agent_of(home, owner, provider="openai_compatible", model="any")
    conversation = world.converse(owner, organisation=home, agent=agent)
    token = world.token_of(owner, home)
    with Memory(world.site.pid) as taken, Waits(world) as waits:
        world.turn(token, conversation)
        world.until(lambda: world.listed.visits, "the service was not asked")
        time.sleep(4)
        world.program(token).post(
            f"/v1/sessions/{conversation.uid}/events", json={"events": [{"type": "user.interrupt"}]}
        )
        world.rested(conversation)
    return f"the server took {taken.grown} bytes" if taken.grown > 250_000_000 else waits.got


_PIECE = b'data: {"choices": [{"delta": {"content": "' + b"a" * 1_000_000 + b'"}}]}\n\n'
for _label, _body, _headers in (
    (
        "that unfolds",
        lambda: gzip.compress(b":" + b" " * 600_000_000),
        {"Content-Encoding": "gzip"},
    ),
    ("of one line without an end", lambda: b"data: " + b"a" * 300_000_000, {}),
    ("of words without an end", lambda: _PIECE * 300, {}),
):
    attack(
        SUBJECT,
        f"a model's answer {_label}",
        "a provider of one's own says more than a server can hold",
        quick=_label == "of one line without an end",
    )(lambda world, body=_body, headers=_headers: _streamed(body(), headers, world))


# --- how much -------------------------------------------------------------------------------------


@attack(
    SUBJECT, "more files than one may have", "eight uploads at once, each of which alone has room"
)
def _at_once(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    token, body = world.token_of(person, home), b"x" * 1_500_000

    def send() -> None:
        with world.program(token) as program:
            program.post("/v1/files", files={"file": ("a.bin", body)})

    threads = [threading.Thread(target=send) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    kept = sum(StoredFile.objects.filter(owner=person).values_list("size", flat=True))
    tried(kept, "none was kept")
    return f"{kept} bytes where 6,000,000 may be" if kept > 6_000_000 else ""


@attack(
    SUBJECT, "a file that is too long", "past what one file may have, with a length and in chunks"
)
def _too_long(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    with world.program(world.token_of(person, home)) as program:
        program.post("/v1/files", files={"file": ("a.bin", b"x" * 3_000_001)})
    kept = StoredFile.objects.filter(owner=person, size__gt=3_000_000).exists()
    return "it was kept" if kept else ""


# --- names and types ------------------------------------------------------------------------------

NAMES = (
    *("../../../../env", "/etc/passwd", "..\\..\\env", "a/../../b", "C:\\evil.exe", "\\\\evil\\a"),
    *("a%0d%0aX-Evil: yes", "a%22; filename=evil.exe", "\u202etxt.exe", "a\u2028b"),
    *("CON", "a" * 400, ".", "..", " ", "%00", "~/.ssh/authorized_keys", "${HOME}/a", "a;b=c"),
    *("ä%C3%A4", "＜script＞", "a\u0000b"),
)


def _form(name: str) -> tuple[bytes, str]:
    """By hand, so that nothing of the name is made harmless by an honest client."""
    mark = "frontier"
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="'.encode()
    head += name.encode("utf-8", "surrogatepass") + b'"\r\nContent-Type: text/html\r\n\r\n'
    return head + f"evil\r\n--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def _named(world: World, forms: list[tuple[bytes, str]]) -> Got:
    person = world.person()
    home = world.organisation(person)
    with world.program(world.token_of(person, home)) as program:
        for body, kind in forms:
            made = program.post("/v1/files", content=body, headers={"Content-Type": kind})
            if made.status_code >= 500:
                return f"{body[:120]!r}: {made.status_code}"
            if made.status_code >= 300:
                continue
            name = made.json()["filename"]
            if "/" in name or "\\" in name or not name.isprintable() or name in (".", ".."):
                return f"kept as {name!r}"
            answer = program.get(f"/v1/files/{made.json()['id']}/content")
            said = answer.headers.get("content-disposition", "")
            if "x-evil" in answer.headers or not said.startswith("attachment"):
                return f"{name!r} is sent as {dict(answer.headers)}"
            if answer.headers.get("content-type") != "application/octet-stream":
                return f"{name!r} is sent as {answer.headers.get('content-type')}"
            if "filename=evil" in said.replace('\\"', "").split('"')[0]:
                return f"{name!r} is renamed"
    stray = [
        one for one in (world.directory / "evil", world.directory / "data" / "b") if one.exists()
    ]
    return f"written: {stray}" if stray else ""


attack(SUBJECT, "names of uploads", "ways out, line ends, quotes and signs in a file's name")(
    lambda world: _named(world, [_form(name) for name in NAMES])
)


def _odd_forms() -> list[tuple[bytes, str]]:
    mark, kind = b"frontier", "multipart/form-data; boundary=frontier"
    heads = (
        b"filename*=UTF-8''..%2f..%2fenv",
        b"filename*=UTF-8''a%0d%0aX-Evil%3a%20yes",
        b"filename=a; filename=../../env",
        b"filename=\"a\"; filename*=UTF-8''..%2fenv",
        b'filename="a\r\n b"',
        b'filename="' + b"a" * 8_000 + b'"',
    )
    return [
        (
            b'--%s\r\nContent-Disposition: form-data; name="file"; %s\r\n\r\nevil\r\n--%s--\r\n'
            % (mark, head, mark),
            kind,
        )
        for head in heads
    ] + [
        (b"--a\r\n", "multipart/form-data"),
        (b"--a\r\n", "multipart/form-data; boundary=" + "a" * 5_000),
        (b"x", "multipart/form-data; boundary=a; charset=zlib_codec"),
        (
            (
                b"--a\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: form-data; "
                b'name="file"; filename="a"\r\n\r\n!!!!\r\n--a--\r\n'
            ),
            "multipart/form-data; boundary=a",
        ),
    ]


attack(SUBJECT, "forms of uploads", "names said twice, in other codings, and forms that are none")(
    lambda world: _named(world, _odd_forms())
)


@attack(SUBJECT, "types of uploads", "pages and pictures that are pages, called what they are not")
def _types(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    body = b"\x89PNG\r\n\x1a\n<script>alert(1)</script>"
    with world.program(world.token_of(person, home)) as program:
        for kind in (
            "text/html",
            "image/svg+xml",
            "image/png",
            "text/html;charset=utf-7",
            "a\tb/c",
        ):
            made = program.post("/v1/files", files={"file": ("a.html", body, kind)})
            if made.status_code >= 300:
                continue
            answer = program.get(f"/v1/files/{made.json()['id']}/content")
            if answer.headers.get("content-type") != "application/octet-stream":
                return f"{kind} is sent as {answer.headers.get('content-type')}"
            if answer.headers.get("x-content-type-options") != "nosniff":
                return f"{kind} may be sniffed"
    return ""


@attack(
    SUBJECT,
    "a policy that unfolds",
    "YAML whose names stand for each other, at the door for environments",
)
def _yaml(world: World) -> Got:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    texts = (
        "\n".join(lines),
        "a: &a\n  - *a",
        "{" * 20_000,
        "- " * 20_000,
        "? " * 5_000,
        "!!python/x a",
    )
    with (
        Memory(world.site.pid) as taken,
        Waits(world) as waits,
        world.browser(world.staff) as visitor,
    ):
        for text in texts:
            answer = visitor.form(
                "/admin/agents/environment/add/",
                name=f"Evil {world.number()}",
                description="",
                upload_limit=1000,
                backend="",
                policy=text,
            )
            if answer.status_code >= 500:
                return f"{text[:40]!r}: {answer.status_code}"
    return f"the server took {taken.grown} bytes" if taken.grown > 200_000_000 else waits.got


@attack(
    SUBJECT,
    "an answer that is JSON of files",
    "a form where a body is asked for, and the other way",
    quick=False,
)
def _crossed(world: World) -> Got:
    with world.program(world.olgas) as program:
        for path in ("/v1/sessions", "/v1/agents", "/api/chat", "/agui"):
            answer = program.post(path, files={"file": ("a", b"{}")})
            if answer.status_code >= 500:
                return f"{path}: {answer.status_code}"
        answer = program.post("/v1/files", content=json.dumps({"file": "x"}).encode())
    return f"/v1/files: {answer.status_code}" if answer.status_code >= 500 else ""
