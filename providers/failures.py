"""From a model service's failures to `ProviderError`: by HTTP status, error type and cause.

Shared by the providers that speak HTTP. Whether and when to try again is decided by
the loop (`harness.loop`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.errors import (
    AddressRefused,
    BadCredentials,
    BadReply,
    BadRequest,
    BillingRefused,
    BrokenStream,
    ContextTooLong,
    Overloaded,
    ProviderError,
    ProviderTimedOut,
    ProviderUnreachable,
    RateLimited,
    UnknownModel,
)
from providers.wiretext import HIDDEN, Blanker
from reading.digits import amount_of
from reading.moments import moment_in_mail
from reading.wholetext import mended

MOST_WORDS = 2_000
"""Characters of what a service says about a failure; the rest is looked at by nothing."""
SHORTEST_SECRET = 4
MOST_NAME = 100
"""Characters of the names that it gives to errors."""

_TOO_LONG = re.compile(
    r"prompt is too long|context[ _](length|window|limit)|maximum context|too many (input )?tokens"
    r"|exceed\w{0,10} .{0,40}context|input length and .?max_tokens.? exceed",
    re.IGNORECASE,
)
_UNPAID = re.compile(
    r"credit balance|billing|insufficient[ _]quota|spend(ing)?[ _]limit", re.IGNORECASE
)

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 504,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}
"""Error types of both public APIs with the status they stand for: a stream names only the type."""


_UNSENT = frozenset({"ConnectTimeout", "PoolTimeout", "WriteTimeout", "ConnectionTimeoutError"})
"""How transports, which are imported on first use, call a timeout before the whole request had left."""
_SENT = frozenset({"ClientOSError", "ReadError", "RemoteProtocolError", "ServerDisconnectedError"})
"""And the end of a connection while an answer was awaited."""
_MAY_HAVE_ARRIVED = (ProviderTimedOut, ProviderUnreachable)
_IN_OUR_WORDS: Mapping[type[ProviderError], str] = {
    BadCredentials: "The model service refused the key",
    BillingRefused: "The model service refused for want of credit",
    BrokenStream: "The reply broke off",
    ContextTooLong: "The model service takes no request of this length",
    Overloaded: "The model service is failing or overloaded",
    ProviderTimedOut: "The model service did not answer in time",
    ProviderUnreachable: "The model service could not be reached",
    RateLimited: "The model service is asked too often",
    UnknownModel: "The model service knows no such model",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What a service said about a failure; made by `report_of` alone, which bounds it."""

    message: str
    status: int | None = None
    kind: str = ""
    """Its own name for the sort of error (`overloaded_error`)."""
    code: str = ""
    """Its own name for the cause, where it gives one (`context_length_exceeded`)."""
    retry_after: float | None = None


def report_of(
    said: object,
    *,
    otherwise: str,
    secret: str,
    tokens: Iterable[str] = (),
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Report:
    """`said`: an error's body: an object in most services, a plain text in some; anything in the hostile
    ones. `otherwise`: the words where it has none. `tokens`: what else it was told and must not say again."""
    fields = said if isinstance(said, dict) else {}
    words = fields.get("message") if fields else said
    if not isinstance(words, str) or not words:
        words = otherwise
    return Report(
        message=mended(_without_secrets(words, (secret, *tokens))),
        status=status,
        kind=_name(fields.get("type")),
        code=_name(fields.get("code")),
        retry_after=retry_after(headers or {}),
    )


def _name(given: object) -> str:
    """Some services use numbers for names."""
    match given:
        case str():
            return mended(given[:MOST_NAME])
        case int() if not isinstance(given, bool) and abs(given) < 10**9:
            return str(given)
    return ""


def failure_of(report: Report, *, model: str) -> ProviderError:
    """The error for a report, of the class that says who must act."""
    status = report.status or _STATUS_OF_TYPE.get(report.kind, 500)
    kind, hint = _class_for(status, report, model)
    return kind(report.message, hint=hint, status=report.status, retry_after=report.retry_after)


def _class_for(status: int, report: Report, model: str) -> tuple[type[ProviderError], str]:
    text = f"{report.kind} {report.code} {report.message}"
    match status:
        case 402:
            return (
                BillingRefused,
                "Check credit and spending limits of the account behind this key.",
            )
        case 400 | 422 | 429 | 403 if _UNPAID.search(text):
            return (
                BillingRefused,
                "Check credit and spending limits of the account behind this key.",
            )
        case 401:
            return BadCredentials, "Check the provider key under Settings → Provider keys."
        case 403:
            return (
                BadCredentials,
                f"Check the key's permissions: it may not use {model!r}.",
            )
        case 404 if "model" in text.lower():
            return (
                UnknownModel,
                f"Check the agent's model name: nobody there knows {model!r}.",
            )
        case 404:
            return BadRequest, "Nothing answers at this address. Check the provider's base URL."
        case 400 | 413 | 422 if _TOO_LONG.search(text):
            return (
                ContextTooLong,
                "Shorten the conversation or choose a larger model window.",
            )
        case 413:
            return ContextTooLong, "The request is larger than the service takes. Attach less."
        case 408 | 504:
            return ProviderTimedOut, "The service took too long. Try again."
        case 429:
            return (
                RateLimited,
                "Wait a little: this key may ask only so often.",
            )
        case _ if status >= 500:
            return Overloaded, "The service is failing or overloaded. Try again later."
        case _:
            return BadRequest, ""


def timed_out(seconds: float, error: BaseException) -> ProviderTimedOut:
    """`error` as the transport raised it."""
    failure = ProviderTimedOut(
        f"The model service sent nothing for {seconds:g} seconds.",
        hint="Try again, or raise the provider's timeout.",
    )
    failure.was_sent = not any(type(each).__name__ in _UNSENT for each in _causes(error))
    return failure


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def disconnected(error: BaseException, *, opened: bool) -> ProviderError:
    """The connection failed, or what came over it made no sense; `opened`: in mid-reply."""
    if opened:
        return _broken(root_cause(error))
    failure = ProviderUnreachable(
        f"The model service could not be reached: {root_cause(error)}.",
        hint="Check the network and the provider's base URL.",
    )
    failure.was_sent = any(type(each).__name__ in _SENT for each in _causes(error))
    return failure


def without_words(failure: ProviderError) -> ProviderError:
    """The same failure in our words alone, for what came from an address that anybody may have typed."""
    if isinstance(failure, AddressRefused | BadReply):
        return failure
    what = _IN_OUR_WORDS.get(type(failure), "The model service refused the request")
    status = f" (HTTP {failure.status})" if failure.status is not None else ""
    same = type(failure)(
        f"{what}{status}.",
        hint=failure.hint,
        status=failure.status,
        retry_after=failure.retry_after,
    )
    if isinstance(failure, _MAY_HAVE_ARRIVED) and isinstance(same, _MAY_HAVE_ARRIVED):
        same.was_sent = failure.was_sent
    return same


def broken_by(cause: ProviderError) -> ProviderError:
    """The reply stopped after its first piece because of `cause`, which the message names; a `BadReply`
    says so itself."""
    if isinstance(cause, BrokenStream | BadReply):
        return cause
    return _broken(cause.message.rstrip("."), cause.status, cause.retry_after)


def _broken(why: str, status: int | None = None, retry_after: float | None = None) -> BrokenStream:
    return BrokenStream(
        f"The reply broke off: {why}.",
        hint="What had arrived is kept. Ask to continue.",
        status=status,
        retry_after=retry_after,
    )


def ended_early() -> BrokenStream:
    return _broken("the service closed the stream without ending the message")


def malformed(data: str) -> BrokenStream:
    return _broken(f"the service sent something that is no part of a reply: {data[:80]!r}")


def root_cause(error: BaseException) -> str:
    """The innermost cause as `Class: text`, which is where transport errors tell what happened."""
    while (inner := error.__cause__) is not None:
        error = inner
    text = mended(str(error)[:MOST_WORDS]).strip().rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or a date); None if unsaid."""
    milliseconds = amount_of(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    given = headers.get("retry-after", "").strip()
    seconds = amount_of(given)
    if seconds is not None:
        return max(0.0, seconds)
    moment = moment_in_mail(given)
    return max(0.0, moment.timestamp() - time.time()) if moment is not None else None


def _without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The beginning of `text` with every occurrence of each of `secrets` blanked: some services echo the key
    they refuse."""
    blanker = Blanker(secrets, least=SHORTEST_SECRET)
    shown = blanker.feed(text[:MOST_WORDS])
    # What may be the beginning of one is, where the rest was cut off.
    held = blanker.rest()
    cut = len(text) > MOST_WORDS and len(held) >= SHORTEST_SECRET
    return shown + (HIDDEN if cut else held)
