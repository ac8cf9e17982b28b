"""Questions of servers to people: kept for a call that rests, told to it again when it is begun anew.

The question itself is a call that the call makes (`ASK`), which no model can; its answer is in the log.
Who may answer is `actions.questions`'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accounts import vault
from conversations.models import Conversation
from harness.content import text_of
from harness.tools import PEOPLE, Effect, NestedAnswer, Tool, ToolContext
from reading.foreignjson import Unreadable, read_json

from .elicitation import Asked
from .models import McpQuestion

ASK = "mcp_question"
ACCOUNT = "account"
"""What the question for an account is called, where servers have names for theirs."""
MOST_ROUNDS = 10
MOST_STATE = 100_000
"""Characters of what a server has us keep."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A question of a call as it was kept."""

    uid: str
    server: str
    place: str
    kind: str
    round: int
    names: tuple[str, ...]
    state: str

    @property
    def given(self) -> dict[str, Any]:
        """With what the question is asked."""
        return {"server": self.server, "question": self.uid}


def kept_of(conversation_uid: str, call_uid: str) -> list[Kept]:
    rows = McpQuestion.objects.filter(conversation__uid=conversation_uid, call_uid=call_uid)
    return [_kept(row) for row in rows.select_related("server").order_by("round")]


def keep(
    conversation_uid: str,
    call_uid: str,
    server_id: int,
    place: str,
    number: int,
    kind: McpQuestion.Kind,
    asked: Mapping[str, Asked],
    state: str,
) -> Kept:
    """Whatever was kept for that round before, and never became a question, is forgotten."""
    conversation = Conversation.objects.get(uid=conversation_uid)
    row, _made = McpQuestion.objects.update_or_create(
        conversation=conversation,
        call_uid=call_uid,
        round=number,
        defaults={
            "server_id": server_id,
            "place": place,
            "kind": kind,
            "asked": {name: each.model_dump(mode="json") for name, each in asked.items()},
            "sealed": vault.seal(state) if state else "",
        },
    )
    return _kept(row)


def asked_in(row: McpQuestion) -> dict[str, Asked]:
    return {name: Asked.model_validate(held) for name, held in row.asked.items()}


def responses_in(answer: NestedAnswer, kept: Kept) -> dict[str, Any]:
    """What goes back to the server: what a person said, or that she did not."""
    none = {"action": "cancel"}
    try:
        said = read_json(text_of(answer.content)) if not answer.is_error else {}
    except Unreadable:
        said = {}
    held = said if isinstance(said, dict) else {}
    return {name: held.get(name, none) for name in kept.names}


def is_declined(answer: NestedAnswer) -> bool:
    return answer.is_error or '"accept"' not in text_of(answer.content)


def ask_tool() -> Tool:
    return Tool(
        name=ASK,
        description="Asks a person what a server wants to know.",
        input_schema={"type": "object"},
        handler=_never,
        effect=Effect.READ,
        owner="mcp",
        granted=True,
        within_only=True,
        handed_out=lambda given: (ASK, dict(given)),
        carrier=PEOPLE,
        intent=lambda given: str(given.get("server", "")),
    )


def words_of(responses: Mapping[str, Any]) -> str:
    """An answer as the log keeps it."""
    return json.dumps(responses, ensure_ascii=False)


def _kept(row: McpQuestion) -> Kept:
    state = vault.open_sealed(row.sealed) if row.sealed else ""
    return Kept(row.uid, row.server.name, row.place, row.kind, row.round, tuple(row.asked), state)


def _never(_context: ToolContext, _arguments: dict[str, Any]) -> str:
    raise AssertionError
