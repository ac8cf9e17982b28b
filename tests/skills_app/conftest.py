"""What tests of skills begin with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.models import Organisation, User
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import create_skill
from skills_app.models import SkillVersion
from tests.conversations.conftest import converse, environment, make_agent
from tests.sandbox.conftest import needs_bubblewrap

__all__ = ["converse", "environment", "make_agent", "needs_bubblewrap"]

Files = dict[str, bytes]


def text_of(
    name: str = "code-review", body: str = "Look at the tests first.", more: str = ""
) -> bytes:
    head = f"---\nname: {name}\ndescription: How we review code.\n{more}---\n"
    return f"{head}\n{body}\n".encode()


def files_of(name: str = "code-review", **more: bytes) -> Files:
    return {
        "SKILL.md": text_of(name),
        "scripts/look.py": b"#!/usr/bin/env python3\nprint('seen')\n",
    } | more


@pytest.fixture
def released(alice: User, acme: Organisation) -> Callable[..., SkillVersion]:
    """A skill of Acme's that alice wrote and, as its only manager, released."""

    def release(files: Files | None = None, *, actor: User = alice) -> SkillVersion:
        version = create_skill(actor=actor, organisation=acme, files=files or files_of())
        ask_for_release(actor=actor, version=version)
        return decide_release(actor=alice, version=version, approve=True)

    return release
