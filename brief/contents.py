"""What a brief says, as data: it is stored so, shown by pages, and written by the mail and the terminal.

Words for codes are found when somebody reads it, in her language; nothing here is looked up.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict

from conversations.models import BackgroundCommand
from schedules.models import OrderRun, StandingOrder
from schedules.projection import NOT_MET
from spending.amounts import money
from subagents.models import Subagent

Kind = Literal["schedule", "subagent", "command", "turn", "approval", "question", "list", "budget"]


class Line(BaseModel):
    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str
    path: str = ""
    """Below the site's address; empty: it leads nowhere."""
    words: str = ""
    code: str = ""
    """Of a failure, a reason to leave out or to pause; `wording` has words for those it knows."""
    count: int = 1
    at: datetime | None = None
    cost: Decimal | None = None

    @property
    def wording(self) -> str:
        """What the code means; the code itself where it is somebody else's."""
        if self.code.startswith("pause:"):
            return str(StandingOrder.Pause(self.code.removeprefix("pause:")).label)
        if self.code.startswith("skip:"):
            return str(OrderRun.Skip(self.code.removeprefix("skip:")).label)
        if self.code == NOT_MET:
            return _("its outcome was not reached")
        if self.code == "drift":
            return _("changed since the run before")
        if self.kind == "subagent" and self.code in Subagent.State.values:
            return str(Subagent.State(self.code).label)
        if self.kind == "command" and self.code in BackgroundCommand.State.values:
            return str(BackgroundCommand.State(self.code).label)
        return self.code

    @property
    def kind_text(self) -> str:
        return {
            "schedule": _("schedule"),
            "subagent": _("subagent"),
            "command": _("background command"),
            "turn": _("conversation"),
            "approval": _("approval"),
            "question": _("question"),
            "list": "",
            "budget": _("budget"),
        }[self.kind]

    @property
    def cost_text(self) -> str:
        return "" if self.cost is None else money(self.cost)


class Spent(BaseModel):
    model_config = ConfigDict(frozen=True)

    cost: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0
    """Calls that `cost` leaves out for lack of a price."""
    by_schedules: Decimal = Decimal(0)
    """Of `cost`, what runs of schedules that ended used."""

    @property
    def cost_text(self) -> str:
        return money(self.cost)

    @property
    def by_schedules_text(self) -> str:
        return money(self.by_schedules)


class Contents(BaseModel):
    model_config = ConfigDict(frozen=True)

    waits: tuple[Line, ...] = ()
    ran: tuple[Line, ...] = ()
    failed: tuple[Line, ...] = ()
    skipped: tuple[Line, ...] = ()
    """What was left out, and what is paused."""
    changed: tuple[Line, ...] = ()
    """What is another thing now than a schedule was saved with, or its last run used."""
    spent: Spent = Spent()
    budgets: tuple[Line, ...] = ()
    more: int = 0
    """Lines that were left out of the lists above for their number."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell: that money was spent in conversations of her own she knows."""
        return not (self.waits or self.ran or self.failed or self.skipped or self.changed)
