"""A workspace in a directory of its own, beside a secret that nothing may reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.events import Todo
from harness.tools import Outcome, ToolContext, perform
from tools_app.catalogue import find
from tools_app.workspace import Workspace

Call = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("what nobody may read")
    root = tmp_path / "workspace"
    root.mkdir(mode=0o700)
    return root


@pytest.fixture
def outside(root: Path) -> Path:
    return root.parent / "outside"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.fixture
def call(root: Path) -> Call:
    """Performs a call as the loop does: schema, containment and all."""

    async def perform_call(
        name: str, /, current: tuple[Todo, ...] = (), plan_mode: bool = False, **arguments: Any
    ) -> Outcome:
        tool = find(name)
        assert tool is not None
        context = ToolContext("sevt_1", root, todos=current, plan_mode=plan_mode)
        return await perform(tool, context, arguments)

    return perform_call
