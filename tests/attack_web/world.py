"""The site under attack: a server of its own with a database file, what belongs to alice, and strangers.

The attacker's process shares the database with the server, to set scenes and to see what really came of
an attack. What is done to the site goes through its doors.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from accounts.actions.organisations import create_organisation
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.current_organisation import choose_organisation
from accounts.models import Membership, Organisation, Role, TokenScope, User
from agents.actions.agents import create_agent
from agents.models import Agent, Environment
from approvals.models import Approval
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.events import Event, dump
from harness.ids import new_event_id
from tests.architecture.conftest import alices_objects
from tests.attack_web.case import NotTried
from tests.attack_web.identities import IdentityProvider
from tests.attack_web.inside import Inside
from tests.attack_web.second import Second
from tests.attack_web.visitors import Line, Visitor
from tests.journeys.model_service import ModelService
from tests.journeys.site import Site

PASSWORD = "correct horse battery staple"
MARK = "quokka-9f3b"
"""Stands in everything of alice's that a stranger could see."""
MODEL = "claude-sonnet-5-5"

HELD = (
    *("accounts_organisation", "accounts_membership", "accounts_invitation", "accounts_user"),
    *("accounts_providerkey", "accounts_apitoken", "account_emailaddress", "mfa_authenticator"),
    *("conversations_conversation", "conversations_event", "agents_agent"),
    *("agents_agentversion", "agents_environment", "approvals_approval"),
    *("approvals_approvaldecision", "spending_budget", "approvals_policyrule"),
    *("vaults_vault", "vaults_vaultcredential", "webhooks_webhookendpoint"),
    *("conversations_storedfile", "workers_workitem", "workers_environmentkey"),
    *("conversations_defaults", "agents_sandboxrules", "conversations_customtool"),
)
"""Tables in which nothing of alice's may change by a stranger's hand; of all others it is what hangs on her
organisation or her conversation."""
_OF_JOBS = ("notices_waitnotice",)
"""What the site itself writes down of hers as time passes."""
_ASKED = frozenset({"reached_at", "away_since", "failures", "problem", "remarks", "due_at"})
_PASSING_OF = {"prompts_promptsource": _ASKED}
"""The same of single tables: what came of asking a source, which a job does."""
_PASSING = {
    *("last_used_at", "last_login", "updated_at", "refreshing_until", "reads_until"),
    *("writes_until", "day", "day_requests"),
}


class World:
    """What attacks are given. `address` is the site's; people are rows, ready to be visited as."""

    def __init__(
        self,
        site: Site,
        service: ModelService,
        inside: Inside,
        listed: Inside,
        provider: IdentityProvider,
        directory: Path,
    ) -> None:
        self.site, self.service = site, service
        self.inside, self.listed = inside, listed
        self.provider, self.directory = provider, directory
        self.address = site.address
        self._numbers = itertools.count(1)
        self.alice, self.bob, self.rita = (self.person(name) for name in ("alice", "bob", "rita"))
        self.mallory = self.person("mallory")
        self.staff = self.person("staff", is_staff=True, is_superuser=True)
        self.acme = create_organisation(actor=self.alice, name=f"Acme {MARK}")
        self.elsewhere = create_organisation(actor=self.mallory, name="Elsewhere")
        # What alice's conversations may do is bounded by the rules and budgets among her objects.
        self.olga = self.person("olga")
        self.home = create_organisation(actor=self.olga, name="Home")
        for one, role in ((self.bob, Role.MEMBER), (self.rita, Role.REVIEWER)):
            for organisation in (self.acme, self.home):
                Membership.objects.create(user=one, organisation=organisation, role=role)
        self.environment = Environment.objects.filter(organisation=None).order_by("pk")[0]
        self.agent = self.agent_of(self.acme, self.alice)
        self.conversation = self.converse(self.alice, title=f"Plans {MARK}")
        self.objects = alices_objects(self.alice, self.acme, self.conversation)
        self.token = self.token_of(self.alice, self.acme)
        self.olgas = self.token_of(self.olga, self.home)
        # What her objects left to be done is done, so that no run changes them under an attack.
        self.program(self.token).post(f"/v1/sessions/{self.conversation.uid}/wake", json={})
        self.rested(self.conversation)
        self._settled()
        self.mallorys = self.token_of(self.mallory, self.elsewhere)
        self.bobs = self.token_of(self.bob, self.home)
        self._second: Second | None = None

    @property
    def second(self) -> Second:
        """The server for many machines, beside the site's own and with the same tables; on first use."""
        if self._second is None:
            self._second = Second(self.site, self.directory)
        return self._second

    def close(self) -> None:
        if self._second is not None:
            self._second.stop()

    # --- people and their things ------------------------------------------------------------------

    def number(self) -> int:
        return next(self._numbers)

    def source(self) -> str:
        """An address on loopback from which nobody has called."""
        number = self.number()
        return f"127.{1 + number // 250}.7.{1 + number % 250}"

    def person(self, name: str = "", *, password: bool = False, **fields: Any) -> User:
        name = name or f"person{self.number()}"
        user = User(username=name, email=f"{name}@example.org", **fields)
        if password:
            user.set_password(PASSWORD)
        else:
            user.set_unusable_password()
        user.save()
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
        return user

    def member(self, organisation: Organisation | None = None, role: Role = Role.MEMBER) -> User:
        """Somebody new in acme."""
        user = self.person()
        Membership.objects.create(user=user, organisation=organisation or self.acme, role=role)
        return user

    def organisation(self, owner: User) -> Organisation:
        return create_organisation(actor=owner, name=f"Organisation {self.number()}")

    def robot(self, maker: User, organisation: Organisation, role: Role = Role.MEMBER) -> User:
        return create_service_account(
            actor=maker, organisation=organisation, name=f"Robot {self.number()}", role=role
        )

    def token_of(
        self, user: User, organisation: Organisation, *scopes: str, by: User | None = None
    ) -> str:
        every = [
            scope
            for scope in TokenScope.values
            if scope != TokenScope.ADMIN or not user.is_staff or user.is_superuser
        ]
        issued = create_token(
            actor=by or user,
            organisation=organisation,
            name=f"t{self.number()}",
            user=user if by else None,
            scopes=list(scopes) or self._possible(user, organisation, every),
        )
        return issued.secret

    def _possible(self, user: User, organisation: Organisation, scopes: list[str]) -> list[str]:
        own = Membership.objects.filter(user=user, organisation=organisation).first()
        manages = own is not None and Role(own.role).manages
        return [one for one in scopes if manages or one not in ("admin", "agents:manage")]

    def agent_of(self, organisation: Organisation, owner: User, **config: Any) -> Agent:
        return create_agent(
            actor=owner,
            organisation=organisation,
            name=f"Agent {self.number()}",
            description="",
            config=AgentConfig(**{"provider": "anthropic", "model": MODEL, **config}),
        )

    def converse(
        self,
        owner: User,
        *,
        organisation: Organisation | None = None,
        agent: Agent | None = None,
        title: str = "",
        **features: bool,
    ) -> Conversation:
        return create_conversation(
            actor=owner,
            organisation=organisation or self.acme,
            agent=agent or self.agent,
            environment=self.environment,
            title=title,
            features=features or None,
        )

    # --- visits -----------------------------------------------------------------------------------

    def session_of(self, user: User, organisation: Organisation | None = None) -> str:
        """A session as signing in makes it, working in this organisation."""
        store = SessionStore()
        store[SESSION_KEY] = str(user.pk)
        store[BACKEND_SESSION_KEY] = "accounts.backends.PeopleBackend"
        store[HASH_SESSION_KEY] = user.get_session_auth_hash()
        if organisation is not None:
            choose_organisation(user, store, organisation.uid)
        store.create()
        return str(store.session_key)

    def browser(
        self, user: User | None = None, organisation: Organisation | None = None, **options: Any
    ) -> Visitor:
        session = self.session_of(user, organisation) if user is not None else ""
        return Visitor(self.address, session=session, **options)

    def program(self, token: str, **options: Any) -> Visitor:
        return Visitor(self.address, token=token, **options)

    def line(self, path: str, **options: Any) -> Line:
        return Line(self.address, path, **options)

    def shown(self, organisation: Organisation, **values: Any) -> dict[str, Any]:
        """What a form posts that was shown while its person worked in `organisation`."""
        return {"shown_organisation": organisation.uid, **values}

    # --- turns ------------------------------------------------------------------------------------

    def turn(self, token: str, conversation: Conversation, *answers: Any) -> str:
        """A message that the model answers with these replies; the opening that was sent."""
        opening = f"Opening {self.number()}"
        self.service.expect(opening, *answers)
        body = {
            "events": [{"type": "user.message", "content": [{"type": "text", "text": opening}]}]
        }
        answer = self.program(token).post(f"/v1/sessions/{conversation.uid}/events", json=body)
        if answer.status_code >= 300:
            raise NotTried(f"the message was refused: {answer.text[:200]}")
        return opening

    def say(self, conversation: Conversation, *events: Event) -> None:
        """As a run of the site's own would: whoever follows hears it at once."""
        self.site.append(conversation.uid, *((new_event_id(), dump(one)) for one in events))

    def rested(self, conversation: Conversation, idles: int = 1) -> list[dict[str, Any]]:
        """The payloads of the log once it rested so often."""

        def rests() -> bool:
            kinds = [one["type"] for one in self.log(conversation)]
            return kinds.count("session.status_idle") >= idles

        self.until(rests, "the conversation never rested")
        return self.log(conversation)

    def log(self, conversation: Conversation) -> list[dict[str, Any]]:
        return [dict(one.payload, type=one.type) for one in conversation.events.order_by("seq")]

    def _settled(self) -> None:
        """Behind its rest, whatever of hers a run still writes has been written."""

        def still() -> bool:
            before = self.state()
            time.sleep(0.5)
            return not self.changed_since(before)

        self.until(still, "what is alice's never came to rest")

    def asked(self, conversation: Conversation) -> Approval:
        def waiting() -> Approval | None:
            return Approval.objects.filter(conversation=conversation, state="pending").first()

        found: Approval = self.until(waiting, "the call never asked")
        return found

    def until(self, holds: Callable[[], Any], otherwise: str, seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (value := holds()):
            if time.monotonic() > end:
                raise NotTried(otherwise)
            time.sleep(0.02)
        return value

    # --- what came of it --------------------------------------------------------------------------

    def state(self) -> Mapping[str, str]:
        """A fingerprint of every table that strangers must not change."""
        found: dict[str, str] = {}
        with sqlite3.connect(f"file:{self.directory}/data/db.sqlite3?mode=ro", uri=True) as base:
            every = [
                row[0]
                for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for table in every:
                columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
                if not (where := self._hers(table, columns)):
                    continue
                passing = _PASSING | _PASSING_OF.get(table, frozenset())
                kept = ", ".join(f'"{name}"' for name in columns if name not in passing)
                digest = hashlib.sha256()
                for row in base.execute(f"SELECT {kept} FROM {table} WHERE {where} ORDER BY 1"):
                    digest.update(repr(row).encode())
                found[table] = digest.hexdigest()
        base.close()
        return found

    def _hers(self, table: str, columns: Sequence[str]) -> str:
        """Which rows are watched, in SQL; empty: none."""
        conversation, organisation = self.conversation.pk, self.acme.pk
        if table == "conversations_conversation":
            return f"id = {conversation}"
        if table in _OF_JOBS:
            return ""
        if "conversation_id" in columns:
            return f"conversation_id = {conversation}"
        if table in HELD:
            return "true"
        return f"organisation_id = {organisation}" if "organisation_id" in columns else ""

    def changed_since(self, before: Mapping[str, str]) -> str:
        return ", ".join(name for name, sum_ in self.state().items() if before[name] != sum_)
