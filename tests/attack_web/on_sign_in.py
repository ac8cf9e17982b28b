"""Attacks on who one is: passwords, sessions, second factors, resets, single sign-on."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value

from accounts.models import User
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import SESSION, Visitor
from tests.attack_web.world import PASSWORD, World

SUBJECT = "signing in"
LOGIN = "/accounts/login/"


def _is_in(visitor: Visitor) -> bool:
    """Whether pages of signed-in people open."""
    return visitor.get("/settings/tokens/").status_code == 200


def _sign_in(visitor: Visitor, login: str, password: str = PASSWORD, **more: Any) -> Any:
    return visitor.form(LOGIN, login=login, password=password, **more)


def _fails(world: World, login: str, source: str, times: int, **headers: str) -> None:
    with world.browser(source=source) as visitor:
        visitor.headers.update(headers)
        for number in range(times):
            _sign_in(visitor, login, f"wrong {number}")


def _gets_in(world: World, login: str, source: str, **headers: str) -> bool:
    with world.browser(source=source) as visitor:
        visitor.headers.update(headers)
        _sign_in(visitor, login)
        return _is_in(visitor)


@attack(SUBJECT, "guessing on", "the right password after many wrong ones from one address")
def _guessing(world: World) -> Got:
    victim, source = world.person(password=True), world.source()
    tried(_gets_in(world, victim.username, world.source()), "the password does not even work")
    _fails(world, victim.username, source, 7)
    return "the seventh guess counted" if _gets_in(world, victim.username, source) else ""


@attack(
    SUBJECT, "guessing by other spellings", "user name, address and letters in turn", quick=False
)
def _spellings(world: World) -> Got:
    victim, source = world.person(password=True), world.source()
    for login in (
        victim.username,
        victim.email,
        victim.username.upper(),
        f" {victim.email.upper()} ",
    ):
        _fails(world, login, source, 2)
    return "spellings were counted apart" if _gets_in(world, victim.username, source) else ""


@attack(
    SUBJECT,
    "guessing behind X-Forwarded-For",
    "names another address with every guess",
    quick=False,
)
def _forwarded(world: World) -> Got:
    victim, source = world.person(password=True), world.source()
    for number in range(7):
        _fails(world, victim.username, source, 1, **{"X-Forwarded-For": f"203.0.113.{number}"})
    came = _gets_in(world, victim.username, source, **{"X-Forwarded-For": "203.0.113.99"})
    return "the header was believed" if came else ""


@attack(
    SUBJECT,
    "locking somebody out from afar",
    "a stranger's failures keep alice out of her account",
    quick=False,
)
def _lock_out(world: World) -> Got:
    victim = world.person(password=True)
    _fails(world, victim.username, world.source(), 8)
    return "" if _gets_in(world, victim.username, world.source()) else "she cannot sign in"


@attack(
    SUBJECT,
    "a session set beforehand",
    "a visitor's session key is known, then she signs in",
    quick=False,
)
def _fixation(world: World) -> Got:
    victim = world.person(password=True)
    with world.browser(source=world.source()) as visitor:
        visitor.get(LOGIN)
        visitor.cookies.set(SESSION, "attackerattackerattackerattacker", domain="127.0.0.1")
        _sign_in(visitor, victim.username)
        tried(_is_in(visitor), "she is not in")
    with world.browser() as thief:
        thief.cookies.set(SESSION, "attackerattackerattackerattacker", domain="127.0.0.1")
        return "the known key opens her account" if _is_in(thief) else ""


@attack(SUBJECT, "a cookie after signing out", "replays the session of somebody who left")
def _signed_out(world: World) -> Got:
    person = world.person()
    with world.browser(person) as visitor:
        tried(_is_in(visitor), "the session does not work")
        key = visitor.session
        visitor.form("/accounts/logout/")
    with Visitor(world.address, session=key) as thief:
        return "the session lives on" if _is_in(thief) else ""


@attack(
    SUBJECT,
    "an old session after a new password",
    "a thief's session outlives the change",
    quick=False,
)
def _new_password(world: World) -> Got:
    person = world.person(password=True)
    with world.browser(person) as thief, world.browser(person) as owner:
        tried(_is_in(thief), "the session does not work")
        owner.form(
            "/accounts/password/change/",
            oldpassword=PASSWORD,
            password1="another long passphrase 7",
            password2="another long passphrase 7",
        )
        person.refresh_from_db()
        tried(not person.check_password(PASSWORD), "the password was not changed")
        return "the session lives on" if _is_in(thief) else ""


@attack(
    SUBJECT, "a deactivated account", "signs in, shows an old session and an old token", quick=False
)
def _inactive(world: World) -> Got:
    person = world.person(password=True)
    home = world.organisation(person)
    token, session = world.token_of(person, home), world.session_of(person)
    tried(world.program(token).get("/api/auth/me").status_code == 200, "the token does not work")
    User.objects.filter(pk=person.pk).update(is_active=False)
    if _gets_in(world, person.username, world.source()):
        return "the password opens it"
    with Visitor(world.address, session=session) as visitor:
        if _is_in(visitor):
            return "the session lives on"
    return (
        "the token lives on" if world.program(token).get("/api/auth/me").status_code == 200 else ""
    )


@attack(
    SUBJECT, "the name of somebody else as a password-less account", "signs in as a service account"
)
def _service(world: World) -> Got:
    robot = world.robot(world.alice, world.acme)
    robot.set_password(PASSWORD)
    robot.save()
    return "it signed in" if _gets_in(world, robot.username, world.source()) else ""


@attack(SUBJECT, "a session of a service account", "a session that names a service account")
def _service_session(world: World) -> Got:
    robot = world.robot(world.alice, world.acme)
    with world.browser(robot) as visitor:
        return "pages open to it" if _is_in(visitor) else ""


# --- second factors -------------------------------------------------------------------------------

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def _with_second(world: World) -> User:
    person = world.person(password=True)
    TOTP.activate(person, SECRET)
    return person


def _code() -> str:
    """Of this half minute, so that it is still taken when the next one begins."""
    return str(format_hotp_value(hotp_value(SECRET, int(time.time()) // 30)))


def _half_in(world: World, person: User) -> Visitor:
    visitor = world.browser(source=world.source())
    _sign_in(visitor, person.username)
    return visitor


@attack(
    SUBJECT,
    "a password without the second factor",
    "opens pages, socket and programs half signed in",
    quick=False,
)
def _half(world: World) -> Got:
    person = _with_second(world)
    control = _half_in(world, person)
    control.form("/accounts/2fa/authenticate/", code=_code())
    tried(_is_in(control), "not even both factors let her in")
    visitor = _half_in(world, person)
    for path in (
        "/",
        "/settings/tokens/",
        "/accounts/2fa/",
        "/accounts/email/",
        "/admin/",
        "/c/new/",
    ):
        if visitor.get(path).status_code == 200:
            return f"{path} opens"
    key = visitor.cookies.get(SESSION) or ""
    with world.line(
        f"/ws/conversations/{world.conversation.uid}/", session=key, origin=world.address
    ) as line:
        return "the socket opens" if "changes" in line.listen(1) else ""


@attack(SUBJECT, "a code for a second time", "replays a TOTP code that was used")
def _replayed(world: World) -> Got:
    person, code = _with_second(world), _code()
    first = _half_in(world, person)
    first.form("/accounts/2fa/authenticate/", code=code)
    tried(_is_in(first), "the code does not work")
    second = _half_in(world, person)
    second.form("/accounts/2fa/authenticate/", code=code)
    return "it worked again" if _is_in(second) else ""


@attack(
    SUBJECT,
    "a recovery code for a second time",
    "replays a recovery code that was used",
    quick=False,
)
def _recovery(world: World) -> Got:
    person = _with_second(world)
    code = RecoveryCodes.activate(person).get_unused_codes()[0]
    first = _half_in(world, person)
    first.form("/accounts/2fa/authenticate/", code=code)
    tried(_is_in(first), "the code does not work")
    second = _half_in(world, person)
    second.form("/accounts/2fa/authenticate/", code=code)
    return "it worked again" if _is_in(second) else ""


@attack(SUBJECT, "codes by trying", "many wrong codes, then the right one", quick=False)
def _many_codes(world: World) -> Got:
    person = _with_second(world)
    visitor = _half_in(world, person)
    for number in range(14):
        visitor.form("/accounts/2fa/authenticate/", code=f"{number:06}")
    visitor.form("/accounts/2fa/authenticate/", code=_code())
    return "the fifteenth counted" if _is_in(visitor) else ""


@attack(
    SUBJECT,
    "seeds of second factors at rest",
    "reads them from the table as a copy of the database would",
)
def _at_rest(world: World) -> Got:
    person = _with_second(world)
    row = Authenticator.objects.get(user=person)
    tried(get_adapter().decrypt(row.data["secret"]) == SECRET, "the seed is not there")
    return "the seed stands there" if SECRET in json.dumps(row.data) else ""


# --- addresses and resets -------------------------------------------------------------------------


@attack(
    SUBJECT,
    "somebody's address as one's own",
    "adds bob's and a stranger's address and makes it the main one",
)
def _address(world: World) -> Got:
    person, wanted = world.person(), "carol-to-be@example.org"
    with world.browser(person) as visitor:
        for email in (wanted, world.bob.email):
            visitor.form("/accounts/email/", action_add="", email=email)
            visitor.form("/accounts/email/", action_primary="", email=email)
    person.refresh_from_db()
    if person.email != f"{person.username}@example.org":
        return f"the account now has {person.email}"
    verified = EmailAddress.objects.filter(
        user=person, verified=True, email__in=[wanted, world.bob.email]
    )
    return "an address counts as verified" if verified.exists() else ""


def _reset_link(world: World, person: User) -> str:
    said = len(world.site.said)
    world.browser(source=world.source()).form("/accounts/password/reset/", email=person.email)
    pattern = re.compile(r"/accounts/password/reset/key/\S+")

    def link() -> Any:
        return pattern.search(world.site.said[said:])

    return str(world.until(link, "no mail came", 5)[0])


def _reset(world: World, link: str, password: str) -> None:
    with world.browser(source=world.source()) as visitor:
        answer = visitor.get(link)
        visitor.form(answer.headers.get("location", link), password1=password, password2=password)


@attack(
    SUBJECT,
    "a reset's link for a second time",
    "uses the mailed link again after the owner did",
    quick=False,
)
def _reset_twice(world: World) -> Got:
    person = world.person(password=True)
    link = _reset_link(world, person)
    _reset(world, link, "the owner's new passphrase 1")
    person.refresh_from_db()
    tried(person.check_password("the owner's new passphrase 1"), "the link does not work")
    _reset(world, link, "the thief's new passphrase 2")
    person.refresh_from_db()
    return "it worked again" if person.check_password("the thief's new passphrase 2") else ""


@attack(
    SUBJECT,
    "a reset's link for another account",
    "puts another person's id into a link of one's own",
    quick=False,
)
def _reset_other(world: World) -> Got:
    person, victim = world.person(password=True), world.person(password=True)
    link = _reset_link(world, person)
    other = _reset_link(world, victim).rpartition("/key/")[2].split("-")[0]
    key = link.rpartition("/key/")[2].split("-", 1)[1]
    _reset(world, f"/accounts/password/reset/key/{other}-{key}", "the thief's new passphrase 2")
    victim.refresh_from_db()
    return (
        "it opened the other account"
        if victim.check_password("the thief's new passphrase 2")
        else ""
    )


@attack(SUBJECT, "where a sign-in leads", "next= with every spelling of another site")
def _next(world: World) -> Got:
    person = world.person(password=True)
    spellings = (
        *("https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example"),
        *(
            "///evil.example",
            "javascript:alert(1)",
            "http:evil.example",
            "/%09/evil.example",
            "https:///evil.example",
        ),
    )
    got = []
    with world.browser(person) as visitor:
        for spelling in spellings:
            for answer in (
                visitor.get(LOGIN, params={"next": spelling}),
                visitor.form("/accounts/logout/?next=" + spelling),
                visitor.form("/theme/", theme="dark", next=spelling),
            ):
                place = urlsplit(answer.headers.get("location", "").replace("\\", "/"))
                if (
                    place.netloc not in ("", urlsplit(world.address).netloc)
                    or place.scheme == "javascript"
                ):
                    got.append(f"{spelling} leads to {answer.headers['location']}")
    with world.browser(source=world.source()) as visitor:
        answer = _sign_in(visitor, person.username, next="https://evil.example/")
        if "evil.example" in answer.headers.get("location", ""):
            got.append("signing in leads there")
    return "; ".join(got)


@control(SUBJECT, "a password and both factors", "let their owner in")
def _owner(world: World) -> Got:
    plain = world.person(password=True)
    if not _gets_in(world, plain.username, world.source()):
        return "the password does not"
    person = _with_second(world)
    with _half_in(world, person) as visitor:
        tried(not _is_in(visitor), "one factor was enough")
        visitor.form("/accounts/2fa/authenticate/", code=_code())
        return "" if _is_in(visitor) else "both factors do not"
