"""How every door for programs reads the JSON body of a request.

The limits and refusals are `wire.givenjson`'s; what the body must say is each door's own.
"""

from __future__ import annotations

from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from harness.errors import Invalid, TooLarge

from .givenjson import read_given

BODY_BYTES = 32 * 1024 * 1024
"""Of one request, as the public API has it."""


class Unparsed(ParseError):
    """The body is no JSON, or none that can be kept; says what to do."""

    def __init__(self, problem: Invalid) -> None:
        super().__init__(problem.message)
        self.hint = problem.hint


class GivenJsonParser(JSONParser):
    """Of a request's body, for every door that takes JSON."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Any = None,
    ) -> Any:
        # One byte more than is taken, so that what is longer is known to be so.
        try:
            return read_given(stream.read(BODY_BYTES + 1), limit=BODY_BYTES)
        except TooLarge:
            raise
        except Invalid as problem:
            raise Unparsed(problem) from None
