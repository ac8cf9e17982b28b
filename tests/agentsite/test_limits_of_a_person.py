"""Where a limit is each person's, what her service accounts hold counts as hers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.actions.service_accounts import create_service_account
from accounts.models import Organisation, User
from folders.actions import folders
from harness.errors import LimitReached
from memory.actions.stores import create_store
from skills_app.actions.skills import create_skill
from tests.skills_app.conftest import files_of

Make = Callable[[User, Organisation, str], object]


def _folder(user: User, organisation: Organisation, name: str) -> object:
    return folders.create_folder(actor=user, organisation=organisation, name=name)


def _store(user: User, organisation: Organisation, name: str) -> object:
    return create_store(actor=user, organisation=organisation, name=name)


def _skill(user: User, organisation: Organisation, name: str) -> object:
    return create_skill(actor=user, organisation=organisation, files=files_of(name), own=True)


@pytest.mark.django_db
@pytest.mark.parametrize("make", [_folder, _store, _skill])
def test_what_her_service_accounts_hold_counts_as_hers(
    alice: User, bob: User, acme: Organisation, settings: Any, monkeypatch: Any, make: Make
):
    monkeypatch.setattr(folders, "MOST", 1)
    for name in ("MEMORY_STORES", "SKILLS"):
        setattr(settings, f"AGENTSITE_{name}", 1)
    program = create_service_account(actor=alice, organisation=acme, name="Robot")
    make(program, acme, "first")
    with pytest.raises(LimitReached):
        make(alice, acme, "second")
    make(bob, acme, "third")
