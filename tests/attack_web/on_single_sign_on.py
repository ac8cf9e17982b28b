"""Attacks on signing in through a provider: its state, its codes, and what its tokens say."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jwt
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa

from accounts.models import User
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.identities import CLIENT_SECRET, Claims, Sent
from tests.attack_web.visitors import Visitor
from tests.attack_web.world import World

SUBJECT = "single sign-on"
LEAVE = "/accounts/oidc/oidc/login/"
BACK = "/accounts/oidc/oidc/login/callback/"


def _is_in(visitor: Visitor) -> bool:
    return visitor.get("/settings/tokens/").status_code == 200


def _is_as(visitor: Visitor, person: User) -> bool:
    return person.email in visitor.get("/accounts/email/").text


def _leave(world: World, visitor: Visitor) -> str:
    """Where a browser is sent."""
    location = str(visitor.form(LEAVE).headers.get("location", ""))
    tried(
        location.startswith(world.provider.url), f"it is not sent to the provider: {location[:80]}"
    )
    return location


def _there(world: World, visitor: Visitor) -> Sent:
    return world.provider.visited(_leave(world, visitor))


def _back(visitor: Visitor, **query: str) -> Any:
    return visitor.get(BACK, params=query)


def _whole_way(world: World, visitor: Visitor) -> None:
    sent = _there(world, visitor)
    _back(visitor, code=sent.code, state=sent.state)


def _linked(world: World) -> User:
    """Somebody who signs in through the provider, which vouches for her now."""
    world.provider.honest()
    person = world.person()
    SocialAccount.objects.create(user=person, provider="oidc", uid=f"sub-{person.pk}")
    world.provider.person = {
        "sub": f"sub-{person.pk}",
        "email": person.email,
        "preferred_username": person.username,
    }
    return person


@control(SUBJECT, "the whole way", "signs in with a token that the provider signed")
def _control(world: World) -> Got:
    person = _linked(world)
    with world.browser(source=world.source()) as visitor:
        _whole_way(world, visitor)
        return "" if _is_as(visitor, person) else f"she is not in: {world.provider.refusals}"


# --- state and codes ------------------------------------------------------------------------------


@attack(SUBJECT, "coming back without its state", "without, with a made-up and with an empty state")
def _state(world: World) -> Got:
    _linked(world)
    for given in ({}, {"state": "made-up"}, {"state": ""}):
        with world.browser(source=world.source()) as visitor:
            sent = _there(world, visitor)
            _back(visitor, code=sent.code, **given)
            if _is_in(visitor):
                return f"it let in with {given}"
    return ""


@attack(
    SUBJECT, "coming back in another browser", "the victim's browser ends what the attacker's began"
)
def _other_browser(world: World) -> Got:
    _linked(world)
    with (
        world.browser(source=world.source()) as attacker,
        world.browser(source=world.source()) as victim,
    ):
        sent = _there(world, attacker)
        victim.get("/accounts/login/")
        _back(victim, code=sent.code, state=sent.state)
        if _is_in(victim):
            return "the victim works in the attacker's account"
        _there(world, victim)
        _back(victim, code=sent.code, state=sent.state)
        return "the victim works in the attacker's account" if _is_in(victim) else ""


@attack(
    SUBJECT,
    "a stolen code",
    "a code that leaked from the victim's browser, in one's own with its state",
)
def _stolen_code(world: World) -> Got:
    """Code injection: state does not help, for it is the attacker's own."""
    _linked(world)
    with (
        world.browser(source=world.source()) as victim,
        world.browser(source=world.source()) as attacker,
    ):
        stolen = _there(world, victim)
        own = _there(world, attacker)
        _back(attacker, code=stolen.code, state=own.state)
        return "the attacker is in as the victim" if _is_in(attacker) else ""


@attack(SUBJECT, "an answer twice", "replays the address with which a browser came back")
def _twice(world: World) -> Got:
    _linked(world)
    with world.browser(source=world.source()) as visitor:
        sent = _there(world, visitor)
        _back(visitor, code=sent.code, state=sent.state)
        tried(_is_in(visitor), "it does not let in")
        visitor.form("/accounts/logout/")
        tried(not _is_in(visitor), "she did not get out")
        _back(visitor, code=sent.code, state=sent.state)
        return "it let in again" if _is_in(visitor) else ""


@attack(
    SUBJECT,
    "the way back to another site",
    "a foreign host where the provider is told to lead back to",
)
def _way_back(world: World) -> Got:
    _linked(world)
    with world.browser(source=world.source()) as visitor:
        for headers in (
            {"X-Forwarded-Host": "evil.example"},
            {"Host": "evil.example"},
            {"Forwarded": "host=evil.example"},
        ):
            location = visitor.post(LEAVE, headers=headers).headers.get("location", "")
            if "evil.example" in location:
                return f"the code would go to evil.example by {headers}"
        location = visitor.form(f"{LEAVE}?next=https://evil.example/").headers.get("location", "")
        sent = world.provider.visited(location)
        place = _back(visitor, code=sent.code, state=sent.state).headers.get("location", "")
        tried(_is_in(visitor), "she is not in")
        return f"it leads to {place}" if "evil.example" in place else ""


@attack(SUBJECT, "leaving by GET", "a foreign page's picture sends a browser to the provider")
def _by_get(world: World) -> Got:
    with world.browser(forge=True) as visitor:
        place = visitor.get(LEAVE).headers.get("location", "")
        return "a GET is enough" if place.startswith(world.provider.url) else ""


# --- accounts -------------------------------------------------------------------------------------


def _take_over(claims: Claims, world: World) -> Got:
    victim = world.person(password=True)
    world.provider.honest()
    world.provider.person = {
        "sub": f"evil-{victim.pk}",
        "email": victim.email,
        "preferred_username": victim.username,
        **claims,
    }
    with world.browser(source=world.source()) as visitor:
        _whole_way(world, visitor)
        return "the account of that address opened" if _is_in(visitor) else ""


for _label, _claims in {
    "an address": {},
    "an address said to be verified": {"email_verified": True},
    "an address said not to be verified": {"email_verified": False},
}.items():
    attack(
        SUBJECT,
        f"an account by {_label}",
        "the provider vouches for somebody else under alice's address",
    )(partial(_take_over, _claims))


@attack(
    SUBJECT,
    "a stranger whom the provider knows",
    "signs up through the provider without an invitation",
)
def _stranger(world: World) -> Got:
    world.provider.honest()
    world.provider.person = {
        "sub": "stranger",
        "email": "stranger@evil.example",
        "preferred_username": "stranger",
    }
    with world.browser(source=world.source()) as visitor:
        _whole_way(world, visitor)
        made = User.objects.filter(email="stranger@evil.example").exists()
        return "an account was made" if made or _is_in(visitor) else ""


# --- what the identity token says -----------------------------------------------------------------

_others_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
Made = Callable[[World, Claims], str]


def _changed(**claims: Any) -> Made:
    """Signed by the provider all the same: it was made for somebody else, or at another time."""
    return lambda world, honest: world.provider.signed({**honest, **claims})


WRONG: dict[str, Made] = {
    "for another site": _changed(aud="another-site"),
    "for several others": _changed(aud=["another-site", "a-third"]),
    "of another issuer": _changed(iss="https://evil.example"),
    "that is over": _changed(exp=int(time.time()) - 3_600),
    "that says neither from whom nor for whom": lambda world, honest: world.provider.signed(
        {name: value for name, value in honest.items() if name not in ("aud", "iss")}
    ),
    "that is none": lambda _world, _honest: "not.a.token",
    "of alg none, for another site": lambda _world, honest: jwt.encode(
        {**honest, "aud": "another-site"}, "", algorithm="none"
    ),
    "of alg none, for somebody else": lambda _world, honest: jwt.encode(
        {**honest, "sub": "somebody-else"}, "", algorithm="none"
    ),
    "of another key, for somebody else": lambda _world, honest: jwt.encode(
        {**honest, "sub": "somebody-else"}, _others_key, algorithm="RS256", headers={"kid": "one"}
    ),
    "signed with the client's secret, of another issuer": lambda _world, honest: jwt.encode(
        {**honest, "iss": "https://evil.example"}, CLIENT_SECRET * 2, algorithm="HS256"
    ),
    "for somebody else than the person": _changed(sub="somebody-else"),
}


def _wrong(made: Made, world: World) -> Got:
    """The provider's answer about the person is right in everything else."""
    _linked(world)
    world.provider.token = partial(made, world)
    try:
        with world.browser(source=world.source()) as visitor:
            _whole_way(world, visitor)
            tried(not world.provider.refusals, f"the provider refused: {world.provider.refusals}")
            return "it let in" if _is_in(visitor) else ""
    finally:
        world.provider.honest()


for _label, _made in WRONG.items():
    attack(SUBJECT, f"an identity token {_label}", "beside an answer that names the victim")(
        partial(_wrong, _made)
    )


@attack(
    SUBJECT, "an identity token for a second time", "the token of an earlier sign-in comes again"
)
def _again(world: World) -> Got:
    _linked(world)
    first: list[str] = []

    def kept(honest: Claims) -> str:
        first.append(world.provider.signed(honest))
        return first[0]

    world.provider.token = kept
    try:
        with world.browser(source=world.source()) as control_:
            _whole_way(world, control_)
            tried(_is_in(control_), "it does not let in at first")
        with world.browser(source=world.source()) as visitor:
            _whole_way(world, visitor)
            return "it let in again" if _is_in(visitor) else ""
    finally:
        world.provider.honest()


@attack(
    SUBJECT,
    "an answer about somebody else",
    "the provider's answer names the victim, its token the attacker",
)
def _substituted(world: World) -> Got:
    victim = _linked(world)
    named = dict(world.provider.person)
    world.provider.person = {"sub": f"evil-{victim.pk}", "email": "evil@evil.example"}
    world.provider.userinfo = lambda _person: named
    try:
        with world.browser(source=world.source()) as visitor:
            _whole_way(world, visitor)
            return "it let in as the victim" if _is_in(visitor) else ""
    finally:
        world.provider.honest()
