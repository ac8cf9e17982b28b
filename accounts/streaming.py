"""Downloads that are made while they are sent, for whoever may still read them.

Here stands whose share of the threads a download takes, and that it ends with the right to it. How the
pieces are made is `wire.streaming`'s part, what they are the subjects'.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, AnyStr

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIRequest

from accounts.api.authentication import Caller, caller_of_token
from accounts.models import User
from accounts.persons import whose_place
from accounts.sessions import user_of_session
from wire.streaming import in_threads


class ReaderGone(RequestAborted):
    """Who asked may not read it any more. Raised amid an answer, so that the transfer breaks off and nobody
    takes what was sent for the whole; Django does as if she had hung up."""


def streamed(
    request: Any, pieces: Iterator[AnyStr], *, still: Callable[[User], bool]
) -> Iterator[AnyStr] | AsyncIterator[AnyStr]:
    """Them as the server of this request sends them one by one: under ASGI Django would first gather a plain
    iterator in memory.

    Before each hand-over `still` is asked whether the person, read anew, may read them; somebody whose
    session or token has ended may not, whatever it says. Between two pieces no cursor may stay open: the
    next may be made in another thread, on another connection. They are made in the language of the request.
    """
    given = getattr(request, "_request", request)  # REST framework's own has it inside
    if not isinstance(given, ASGIRequest):
        return pieces
    reader = _reader(request)

    def check() -> None:
        user = reader()
        if user is None or not still(user):
            raise ReaderGone

    return in_threads(pieces, whose_place(request.user), check)


def _reader(request: Any) -> Callable[[], User | None]:
    """Who asks, by the credential that was shown, each time it is called."""
    caller = getattr(request, "caller", None)
    if isinstance(caller, Caller):
        token = caller.token.uid

        def of_token() -> User | None:
            found = caller_of_token(token)
            return found.user if found is not None else None

        return of_token
    session = request.session.session_key
    return lambda: user_of_session(session)
