"""The files that a run begins with, copied before anything is locked for it: others would wait as long.

Whether it is to begin at all is known only under the locks. So that is asked, then they are copied, then it
is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from harness.errors import AgentError
from programs.actions.bringing import Brought, bring_files

from .models import OrderRun, StandingOrder

Files = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Copies:
    files: Files
    brought: Brought | AgentError
    """Or why they could not be copied."""


class FilesFirst(Exception):
    """The run would begin, had its files been copied."""

    def __init__(self, order: StandingOrder, run: OrderRun) -> None:
        super().__init__(order.uid)
        self.order, self.run = order, run


def brought_for(order: StandingOrder, run: OrderRun, copies: Copies | None) -> Brought | None:
    """None where it begins without files. Raises FilesFirst where `copies` are not what it is to have by now,
    and the AgentError that kept them from being made."""
    files = _files(order, run)
    if not files:
        return None
    if copies is None or copies.files != files:
        raise FilesFirst(order, run)
    if isinstance(copies.brought, AgentError):
        raise copies.brought
    return copies.brought


@contextmanager
def copied(order: StandingOrder, run: OrderRun) -> Iterator[Copies]:
    """They go again unless the run has begun when this ends."""
    files = _files(order, run)
    with ExitStack() as kept:
        brought: Brought | AgentError
        try:
            brought = kept.enter_context(
                bring_files(
                    actor=order.owner,
                    organisation=order.organisation,
                    environment=order.environment,
                    files=files,
                    says=True,
                )
            )
        except AgentError as refusal:
            brought = refusal
        yield Copies(files, brought)


def _files(order: StandingOrder, run: OrderRun) -> Files:
    return [(uid, path) for uid, path in (*order.files, *run.attachments)]
