"""Where a limit is each person's, what her service accounts hold counts as hers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.actions.service_accounts import create_service_account
from accounts.models import Organisation, User
from agents.actions import own
from agents.actions.own import duplicate_agent
from agents.models import Agent
from documents.actions.collections import create_collection
from folders.actions import folders
from harness.errors import LimitReached
from memory.actions.stores import create_store
from skills_app.actions.skills import create_skill
from tests.conversations.conftest import MakeAgent, make_agent
from tests.skills_app.conftest import files_of

__all__ = ["make_agent"]

Make = Callable[[User, Organisation, str], object]


def _folder(user: User, organisation: Organisation, name: str) -> object:
    return folders.create_folder(actor=user, organisation=organisation, name=name)


def _store(user: User, organisation: Organisation, name: str) -> object:
    return create_store(actor=user, organisation=organisation, name=name)


def _skill(user: User, organisation: Organisation, name: str) -> object:
    return create_skill(actor=user, organisation=organisation, files=files_of(name), own=True)


def _collection(user: User, organisation: Organisation, name: str) -> object:
    return create_collection(actor=user, organisation=organisation, name=name)


def _agent(user: User, organisation: Organisation, name: str) -> object:
    base = Agent.objects.get(name="Base")
    return duplicate_agent(actor=user, organisation=organisation, agent=base, name=name)


@pytest.mark.django_db
@pytest.mark.parametrize("make", [_folder, _store, _skill, _collection, _agent])
def test_what_her_service_accounts_hold_counts_as_hers(
    alice: User,
    bob: User,
    acme: Organisation,
    settings: Any,
    monkeypatch: Any,
    make_agent: MakeAgent,
    make: Make,
):
    make_agent("Base")
    monkeypatch.setattr(folders, "MOST", 1)
    monkeypatch.setattr(own, "MOST_OWN", 1)
    for name in ("MEMORY_STORES", "SKILLS", "COLLECTIONS"):
        setattr(settings, f"AGENTSITE_{name}", 1)
    program = create_service_account(actor=alice, organisation=acme, name="Robot")
    make(program, acme, "first")
    with pytest.raises(LimitReached):
        make(alice, acme, "second")
    make(bob, acme, "third")
