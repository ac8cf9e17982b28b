"""For the tests of `presentation`: a conversation, a short way to write its log, and a browser's
rules of placing units, as `static/js/chat/transcript.js` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection

from accounts.models import Organisation, User
from agents.models import Agent, AgentVersion, Environment
from chat.presentation.frames import Changes, Page
from chat.presentation.panels import Drawn
from conversations import log
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.events import Event as EventValue
from harness.history import Entry


def make_conversation(owner: User, organisation: Organisation) -> Conversation:
    agent = Agent.objects.create(organisation=organisation, name=f"Agent {Agent.objects.count()}")
    version = AgentVersion.objects.create(
        agent=agent, number=1, stored_config=AgentConfig().model_dump(mode="json")
    )
    environment = Environment.objects.create(organisation=organisation, name="Here")
    return Conversation.objects.create(
        organisation=organisation, owner=owner, agent_version=version, environment=environment
    )


@pytest.fixture
def conversation(alice: User, acme: Organisation) -> Conversation:
    return make_conversation(alice, acme)


def record(
    conversation: Conversation, *events: EventValue | Entry, actor: User | None = None
) -> list[Event]:
    """Append `events` in one go."""
    entries = [event if isinstance(event, Entry) else Entry.of(event) for event in events]
    return log.append(conversation.pk, entries, actor=actor)


@contextmanager
def before_query(number: int, happens: Callable[[], object]) -> Iterator[None]:
    """Have something happen right before the query of that number (0: the first) in the block; what
    it asks itself does not count. After the block, when there were not so many."""
    asked = 0

    def ask(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == number + 1:
            happens()
        return execute(*args)

    with connection.execute_wrapper(ask):
        yield
    if asked <= number:
        happens()


@dataclass
class Browser:
    """A page as it is after loading, and after each frame that arrived since."""

    places: dict[str, list[tuple[str, int, str]]] = field(
        default_factory=lambda: {"log": [], "queue": []}
    )
    panels: dict[str, Drawn] = field(default_factory=dict)
    seq: int = 0

    @classmethod
    def loaded(cls, page: Page) -> Browser:
        browser = cls(panels=dict(page.panels), seq=page.seq)
        for place, units in (("log", page.units), ("queue", page.queue)):
            browser.places[place] = [(key_of(html), order_of(html), html) for html in units]
        return browser

    def apply(self, changes: Changes) -> None:
        if changes.cut is not None:
            self.places["queue"].clear()
            self.places["log"] = [unit for unit in self.places["log"] if unit[1] <= changes.cut]
        for unit in changes.units:
            self._place(unit["key"], unit["place"], unit["order"], unit["html"])
        for key in changes.removed:
            self._remove(key)
        self.panels.update(changes.panels)
        self.seq = changes.seq

    def _place(self, key: str, place: str, order: int, html: str) -> None:
        home = self.places[place]
        for index, (known, known_order, _html) in enumerate(home):
            if known == key and known_order == order:
                home[index] = (key, order, html)
                return
        self._remove(key)
        index = len(home)
        while index > 0 and home[index - 1][1] > order:
            index -= 1
        home.insert(index, (key, order, html))

    def _remove(self, key: str) -> None:
        for home in self.places.values():
            home[:] = [unit for unit in home if unit[0] != key]


def key_of(html: str) -> str:
    return attribute_of(html, "id").removeprefix("u-")


def order_of(html: str) -> int:
    return int(attribute_of(html, "data-order"))


def attribute_of(html: str, name: str) -> str:
    """The value of an attribute of the outermost element."""
    tag = html[: html.index(">")]
    return tag.split(f' {name}="', 1)[1].split('"', 1)[0]
