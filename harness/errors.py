"""Errors sorted by who must act, each with a code that never changes.

`ToolError`: the model reads it and tries otherwise. `ProviderError`: the machine retries or the run
ends. `LimitReached`: the owner raises a limit or lets it be. `Declined`: the asker may not, or not now.
Constructors only keep what they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from harness.faults import Fault, below


def in_words(message: str, hint: str) -> str:
    """What happened and what to do about it, as one text for a person."""
    return f"{message} {hint}".strip()


class AgentError(Exception):
    """Root. `code` is stable and appears at every door; `hint` says what to do about it."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def words(self) -> str:
        return in_words(self.message, self.hint)


# --- the model acts -------------------------------------------------------------------------------


class ToolError(AgentError):
    """Raised by a tool to tell the model what went wrong; never reaches a person as a failure.
    `untrusted_by`: what of its words others wrote, in words, as of an answer (`ToolOutput`)."""

    code = "tool_error"

    def __init__(self, message: str, *, hint: str = "", untrusted_by: str = "") -> None:
        super().__init__(message, hint=hint)
        self.untrusted_by = untrusted_by


class InvalidToolInput(ToolError):
    code = "invalid_tool_input"


class ToolTimedOut(ToolError):
    code = "tool_timed_out"


# --- the machine acts -----------------------------------------------------------------------------


class ProviderError(AgentError):
    """A model service failed. `retryable` says whether the same request may succeed later."""

    code = "provider_error"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after
        """Seconds the service asked us to wait, if it said so."""


class RateLimited(ProviderError):
    code = "rate_limited"
    retryable = True


class Overloaded(ProviderError):
    code = "overloaded"
    retryable = True


class ProviderTimedOut(ProviderError):
    code = "provider_timed_out"
    retryable = True
    was_sent = False
    """The service had the whole request, and charges for it though nobody hears the answer."""


class ProviderUnreachable(ProviderError):
    code = "provider_unreachable"
    retryable = True
    was_sent = False
    """The service had the request, and closed without a word."""


class BrokenStream(ProviderError):
    """The reply stopped in the middle. What arrived before is kept."""

    code = "broken_stream"
    retryable = True


class BadReply(ProviderError):
    """What the service sent is no reply, or more than one may hold. What arrived before is kept."""

    code = "bad_reply"


class BadCredentials(ProviderError):
    code = "bad_credentials"


class BadRequest(ProviderError):
    code = "bad_request"


class AddressRefused(BadRequest):
    """Nothing was connected to: the address of the service is not allowed."""

    code = "address_refused"


class UnknownModel(ProviderError):
    code = "unknown_model"


class ContextTooLong(ProviderError):
    code = "context_too_long"


class BillingRefused(ProviderError):
    code = "billing_refused"


class NotConfigured(ProviderError):
    """No key, or no such provider; nothing was sent."""

    code = "not_configured"


# --- the owner acts -------------------------------------------------------------------------------


class LimitReached(AgentError):
    code = "limit_reached"


# --- the asker acts -------------------------------------------------------------------------------


class Declined(AgentError):
    code = "declined"


class NotFound(Declined):
    """It does not exist, or it is somebody else's; the two look the same on purpose."""

    code = "not_found"


class Forbidden(Declined):
    code = "forbidden"


class WorkLost(Forbidden):
    """A worker acts by a work item that is not its own any more: its lease ran out, or was ended."""

    code = "work_lost"


class Invalid(Declined):
    """A value breaks a rule. `field` names the input, the message the rule, `hint` the remedy.

    `faults`: all that is wrong, where more than one thing may be; the first is the message's.
    """

    code = "invalid"

    def __init__(
        self, message: str, *, field: str = "", hint: str = "", faults: Sequence[Fault] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.faults = tuple(faults)

    def under(self, outer: str) -> Self:
        """The same about something that stood at `outer` of what was sent."""
        return type(self)(
            self.message,
            field=below(outer, self.field),
            hint=self.hint,
            faults=[each.under(outer) for each in self.faults],
        )


class NotAwaited(Invalid):
    """A result for a call that this worker was not given, or that has its answer already."""

    code = "not_awaited"


class TooLarge(Invalid):
    code = "too_large"


class Conflict(Declined):
    """The thing changed meanwhile, or the answer was already given."""

    code = "conflict"


class AlreadyDecided(Conflict):
    """Somebody's answer was first, and it stands."""

    code = "already_decided"


class Expired(Conflict):
    """Time ran out before the answer came; the call was denied."""

    code = "approval_expired"


class NotWaiting(Conflict):
    """The call needs no answer: it never did, or it was answered or given up otherwise."""

    code = "not_waiting"


class InputChanged(Conflict):
    """The answer is about another input than the call has."""

    code = "input_changed"


class AskedAnew(Conflict):
    """The answer is to an earlier question about the same call."""

    code = "asked_anew"


class MayNotDecide(Forbidden):
    """A condition of the rule that asks keeps this person from deciding."""

    code = "may_not_decide"


class TooMany(Declined):
    """Too often in too short a time; `retry_after` is the number of seconds to wait."""

    code = "rate_limited_by_site"

    def __init__(self, message: str, *, retry_after: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class Busy(TooMany):
    """All places for such work are taken at the moment. Nothing was done."""

    code = "busy"


# --- control, not failure -------------------------------------------------------------------------


class LeaseLost(Exception):
    """This run no longer owns its conversation and must write nothing more."""
