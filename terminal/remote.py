"""The command line against another machine: its `/v1` API, through the official SDK and a token.

Uses nothing that a program with the same token could not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar
from urllib.parse import quote

import anthropic
import httpx2

from harness.errors import Declined, Forbidden, Invalid, NotFound

from .door import Item, Row, Stored, Streaming, Summary

T = TypeVar("T")

PAGE = 100
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""Seconds before a stream that broke off is taken up again; a server restarts in less than all."""


class _Broken(Exception):
    """A stream ended in the middle: a proxy's patience, or the server was restarted."""


class RemoteDoor:
    """See `door.Door`."""

    def __init__(self, url: str, token: str) -> None:
        self._client = anthropic.Anthropic(base_url=url.rstrip("/"), api_key=token)
        self._sessions = self._client.beta.sessions

    def conversations(self, limit: int) -> list[Summary]:
        found: list[Summary] = []
        for session in self._declining(lambda: self._sessions.list(limit=min(limit, PAGE))):
            found.append(_summary(session))
            if len(found) == limit:
                break
        return found

    def describe(self, uid: str) -> Summary:
        return _summary(self._declining(lambda: self._sessions.retrieve(uid)))

    def begin(self, *, agent: str, environment: str, title: str) -> str:
        def start() -> str:
            return self._sessions.create(
                agent=_pick(self._client.beta.agents.list(), agent, "agent"),
                environment_id=_pick(
                    self._client.beta.environments.list(), environment, "environment"
                ),
                title=title or None,
            ).id

        return self._declining(start)

    def post(self, uid: str, text: str, *, interrupt: bool = False) -> None:
        events: list[Any] = [{"type": "user.interrupt"}] if interrupt else []
        events.append({"type": "user.message", "content": [{"type": "text", "text": text}]})
        self._declining(lambda: self._sessions.events.send(uid, events=events))

    def stop(self, uid: str) -> None:
        self._declining(
            lambda: self._sessions.events.send(uid, events=[{"type": "user.interrupt"}])
        )

    def decide(
        self,
        uid: str,
        call: str,
        *,
        allow: bool,
        reason: str = "",
        edited: dict[str, Any] | None = None,
        read_to: str = "",
    ) -> None:
        answer: Any = {
            "type": "user.tool_confirmation",
            "tool_use_id": call,
            "result": "allow" if allow else "deny",
        }
        if reason:
            answer["deny_message"] = reason
        if edited is not None:
            answer["x_edited_input"] = edited
        if read_to:
            answer["x_read_to"] = read_to
        self._declining(lambda: self._sessions.events.send(uid, events=[answer]))

    def set_aside(self, uid: str, event: str) -> None:
        address, body = f"/v1/sessions/{uid}/x_set_aside", {"event_id": event}
        self._declining(lambda: self._client.post(address, cast_to=object, body=body))

    def branch(
        self,
        uid: str,
        act: str,
        event: str,
        *,
        content: str = "",
        model: str = "",
        files: bool = True,
    ) -> None:
        body = {"act": act, "event_id": event, "content": content, "model": model, "files": files}
        address = f"/v1/sessions/{uid}/x_branch"
        self._declining(lambda: self._client.post(address, cast_to=object, body=body))

    def fork(self, uid: str, event: str) -> str:
        address, body = f"/v1/sessions/{uid}/x_fork", {"event_id": event}
        answer: Any = self._declining(lambda: self._client.post(address, cast_to=object, body=body))
        return str(answer["id"])

    def wake(self, uid: str) -> None:
        self._declining(
            lambda: self._client.post(f"/v1/sessions/{uid}/wake", cast_to=object, body={})
        )

    def events(self, uid: str) -> Iterator[Row]:
        pages = iter(self._declining(lambda: self._sessions.events.list(uid, limit=1_000)))
        while (event := self._declining(lambda: next(pages, None))) is not None:
            yield event.to_dict(mode="json")

    def last_event(self, uid: str) -> str:
        page = self._declining(lambda: self._sessions.events.list(uid, limit=1, order="desc"))
        return page.data[0].id if page.data else ""

    def follow(self, uid: str, *, after: str = "") -> Iterator[Item]:
        """Ends when the session is deleted. A stream that breaks off is taken up again where it was;
        Declined when that does not succeed for long."""
        failures = 0
        while True:
            try:
                for item in self._stream(uid, after):
                    failures = 0
                    yield item
                    if isinstance(item, Stored):
                        after = item.event["id"]
                        if item.event["type"] == "session.deleted":
                            return
            except _Broken as broken:
                failures += 1
                if failures > len(PAUSES):
                    raise Declined(
                        f"{self._client.base_url} broke the stream off.", hint="Try again later."
                    ) from broken
                time.sleep(PAUSES[failures - 1])

    def _stream(self, uid: str, after: str) -> Iterator[Item]:
        """Until the stream ends, which it never does by itself: raises `_Broken` then."""
        # Connected first, read up second, so that nothing falls in between; told once by its id.
        stream = self._declining(
            lambda: self._sessions.events.stream(uid, event_deltas=["agent.message"])
        )
        with closing(stream):
            seen: set[object] = set()
            said: dict[str, int] = {}
            behind = not after
            for row in self.events(uid):
                seen |= {row["id"], _telling(row)}
                if behind:
                    yield Stored(row)
                behind = behind or row["id"] == after
            while (item := self._next(stream)) is not None:
                event: Any = item.to_dict(mode="json")
                if event["type"] == "event_delta":
                    text = event["delta"].get("content", {}).get("text", "")
                    block = event["event_id"]
                    if block not in seen and text:
                        offset = said.get(block, 0)
                        said[block] = offset + len(text)
                        yield Streaming(block, offset, text)
                elif event["type"] != "event_start" and _telling(event) not in seen:
                    seen |= {event.get("id"), _telling(event)}
                    yield Stored(event)
        raise _Broken

    def _next(self, stream: Any) -> Any:
        try:
            return self._declining(lambda: next(stream, None))
        except httpx2.TransportError as problem:
            raise _Broken from problem
        except Declined as declined:
            if _says_come_again(declined.__cause__):
                raise _Broken from declined
            raise

    def export(self, uid: str, form: str) -> Iterator[str]:
        """In one piece: what another machine sends is printed only if all of it came."""
        path = f"/v1/sessions/{quote(uid, safe='')}/export"
        file = self._declining(
            lambda: self._client.get(
                path, cast_to=httpx2.Response, options={"params": {"format": form}}
            )
        )
        yield file.content.decode()

    def close(self) -> None:
        self._client.close()

    def _declining(self, call: Callable[[], T]) -> T:
        """What the server declines, in our own errors; so too when it cannot be reached."""
        try:
            return call()
        except anthropic.NotFoundError as problem:
            raise NotFound(_words(problem)) from problem
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as problem:
            raise Forbidden(
                _words(problem), hint="Is AGENTSITE_TOKEN valid, and does it have the scope?"
            ) from problem
        except anthropic.APIStatusError as problem:
            raise Declined(_words(problem)) from problem
        except anthropic.APIConnectionError as problem:
            raise Declined(
                f"{self._client.base_url} cannot be reached.", hint="Is the address right?"
            ) from problem


def _telling(event: Row) -> object:
    """What makes it another one to tell of. A thread's call keeps its id where it is asked about anew."""
    if event.get("session_thread_id"):
        return event.get("id"), event.get("processed_at")
    return event.get("id")


def _summary(session: Any) -> Summary:
    return Summary(
        uid=session.id,
        title=session.title or "",
        status=session.status,
        stop_reason="",
        agent=session.agent.name,
        active_at=session.updated_at.isoformat(),
        busy=session.status in {"running", "rescheduling"},
    )


def _pick(offered: Any, wanted: str, kind: str) -> str:
    """The id of the one with this id or name; the first one where nothing is wanted. A name that
    several have is refused."""
    names, called = [], []
    for one in offered:
        if wanted in {"", one.id}:
            return str(one.id)
        if one.name == wanted:
            called.append(str(one.id))
        names.append(one.name)
    if len(called) == 1:
        return called[0]
    if called:
        raise Invalid(
            f"More than one {kind} is called “{wanted}”.",
            field=kind,
            hint=f"Give the id of the one you mean: {', '.join(called[:20])}",
        )
    raise Invalid(
        f"The {kind} “{wanted}” is not on offer." if wanted else f"No {kind} is on offer.",
        field=kind,
        hint=f"There is: {', '.join(names[:20])}" if names else "",
    )


def _says_come_again(problem: BaseException | None) -> bool:
    body = problem.body if isinstance(problem, anthropic.APIStatusError) else None
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, dict) and error.get("type") in {"api_error", "overloaded_error"}


def _words(problem: anthropic.APIStatusError) -> str:
    body = problem.body
    error = body.get("error") if isinstance(body, dict) else None
    words = error.get("message") if isinstance(error, dict) else None
    return str(words or problem.message)
