"""An answer to a waiting call as a door hands it in, checked before anybody looks at the call.

Whether it fits the call, and what comes of it, is `actions.approvals`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Invalid, TooLarge
from harness.events import Scope
from wire.givenjson import kept_object

Verdict = Literal["approve", "deny", "not_now"]

REASON_LIMIT = 4_000
PATTERN_LIMIT = 1_000
KEY_LIMIT = 100
MOST_TOGETHER = 100
"""Calls that one act may answer."""
INPUT_LIMIT = 1_000_000
"""Characters of an edited input as JSON."""
REACH: tuple[Scope, ...] = ("once", "run", "conversation", "always")
"""Of an answer, the narrowest first."""


@dataclass(frozen=True, slots=True)
class Answer:
    actor: User
    verdict: Verdict
    input_hash: str
    reason: str
    edited_input: dict[str, Any] | None
    scope: Scope
    key: str | None
    seen_round: int | None
    """The number of the question that the actor saw; None where she denies it whatever it is."""
    pattern: str = ""
    """Which calls a scope beyond `once` covers; empty: exactly this one."""


def checked(
    *,
    actor: User,
    verdict: Verdict,
    input_hash: str,
    reason: str,
    edited_input: Mapping[str, Any] | None,
    scope: Scope,
    key: str | None,
    seen_round: int | None,
    pattern: str = "",
) -> Answer:
    """Raises Invalid or TooLarge naming the field."""
    reason = reason.replace("\0", "").strip()
    if verdict not in {"approve", "deny", "not_now"}:
        # An answer nobody knows never lets anything run.
        raise Invalid(
            _("There is no verdict “%(verdict)s”.") % {"verdict": str(verdict)[:40]},
            field="verdict",
            hint=_("Choose approve, deny or not_now."),
        )
    if scope not in REACH:
        raise Invalid(
            _("There is no scope “%(scope)s”.") % {"scope": str(scope)[:40]},
            field="scope",
            hint=_("Choose once, run, conversation or always."),
        )
    if verdict != "approve" and (edited_input is not None or scope != "once"):
        raise Invalid(
            _("Only a call that is allowed can be changed or allowed for longer."),
            field="scope" if edited_input is None else "edited_input",
            hint=_("Leave it out, or approve."),
        )
    if pattern and scope == "once":
        raise Invalid(
            _("What is allowed once covers this call alone."),
            field="pattern",
            hint=_("Choose for how long it holds, or leave the pattern out."),
        )
    if len(pattern) > PATTERN_LIMIT:
        raise TooLarge(
            _("The pattern is longer than %(limit)d characters.") % {"limit": PATTERN_LIMIT},
            field="pattern",
        )
    if len(reason) > REASON_LIMIT:
        raise TooLarge(
            _("The reason is longer than %(limit)d characters.") % {"limit": REASON_LIMIT},
            field="reason",
        )
    if key is not None and not (0 < len(key) <= KEY_LIMIT and key.isprintable()):
        raise Invalid(
            _("The key is empty, has more than %(limit)d characters, or some that do not print.")
            % {"limit": KEY_LIMIT},
            field="key",
            hint=_("Leave it out."),
        )
    chosen = (
        None
        if edited_input is None
        else kept_object(edited_input, field="edited_input", limit=INPUT_LIMIT)
    )
    return Answer(
        actor, verdict, input_hash, reason, chosen, scope, key, seen_round, pattern.strip()
    )
