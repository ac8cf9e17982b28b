"""Every operation refuses every mistake in our own words: the field as it was sent, the rule, the remedy.

The operations and their mistakes come from the OpenAPI document, the frames from the sockets' own types,
and the phrases that no answer may hold from the tables of those who validate (`tests.phrases`).

With the tests each operation is sent a quarter of its mistakes, others with each commit (`tests.parts`);
`make contract-api` (MISTAKES=all) sends all of them.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from api import incoming
from chat import protocol
from tests.architecture.sources import MODULES, ROOT
from tests.mistakes import SECRET, Description, Mistake
from tests.parts import chosen_part
from tests.phrases import phrase_in
from wire.socketframes import Refused

PATH_PARAMETER = re.compile(r"{(\w+)}")
PARTS = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')
ALL = os.environ.get("MISTAKES") == "all"
OF_A_KIND = 1
"""How many mistakes of one kind an operation is sent, unless it is all."""
STRIDES = {"/v1/": 4, "/api/": 4, "/agui": 1}
"""By door: one mistake of so many is sent, unless it is all."""
MUST = frozenset({"missing", "misspelled value", "unknown value", "too long", "unknown type"})
"""Mistakes that nobody may take for a good request."""
ZERO = "a zero character"
"""A mistake that may be cleaned away, or refused for something else, and must not be a fault."""


WORKED_OUTSIDE = ("mcp_oauth_validate",)
"""How addresses end that ask another service, in threads that do not see a test's transaction."""


@pytest.fixture
def program(alice, acme, settings) -> Client:
    settings.AGENTSITE_API_WRITES_PER_MINUTE = settings.AGENTSITE_API_READS_PER_MINUTE = 0
    issued = create_token(actor=alice, organisation=acme, name="program", scopes=TokenScope.values)
    return Client(headers={"Authorization": f"Bearer {issued.secret}"})


@pytest.fixture
def description(world) -> Description:
    document = SchemaGenerator().get_schema(request=None, public=True)
    known = {
        "agent": world["v1/agents/"]["uid"],
        **dict.fromkeys(("environment", "environment_id"), world["v1/environments/"]["uid"]),
        "file_id": world["v1/files/"]["uid"],
        "url": "https://hooks.example.invalid/",
        "mcp_server_url": "https://mcp.example.invalid/one",
        "token_endpoint": "https://sign-in.example.invalid/token",
        **dict.fromkeys(("token", "access_token", "refresh_token"), "long-enough-to-be-one"),
        "messages": [{"role": "user", "content": "Hello"}],
    }
    return Description(document, known)


class Judge:
    """What is wrong with refusals, counted by kind."""

    def __init__(self) -> None:
        self.answers = self.refusals = 0
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []

    def complain(self, kind: str, of: str, said: object) -> None:
        self.counts[kind] += 1
        self.complaints.append(f"{kind}: {of}: {str(said)[:300]}")

    def judge(
        self,
        of: str,
        mistake: Mistake,
        status: int,
        error: Mapping[str, Any],
        parameters: Collection[str] = (),
    ) -> None:
        """`error`: code, message, hint and field of a refusal, and `faults` where there are more;
        `parameters`: what the operation takes in its address, which may be missing."""
        self.refusals += 1
        words = f"{error['message']} {error['hint']}"
        for fault in error.get("faults") or ():
            words += f" {fault['message']} {fault['hint']}"
        if phrase := phrase_in(words):
            self.complain(f"a validator's phrase “{phrase}”", of, error)
        if not error["code"]:
            self.complain("no code", of, error)
        if not error["hint"]:
            self.complain("no remedy", of, error)
        if SECRET in words:
            self.complain("a value is repeated", of, error)
        if error["field"] not in parameters and not _was_sent(error["field"], mistake):
            self.complain("a field that was not sent", of, error)
        elif mistake.at is not None and status in {400, 413, 422} and not _about(mistake, error):
            self.complain("another field than the wrong one", of, error)

    def report(self) -> str:
        if not self.refusals:
            return "nothing was refused"
        shares = {
            name: sum(count for kind, count in self.counts.items() if kind.startswith(name))
            for name in ("a validator's phrase", "a field that was not sent", "no remedy")
        }
        told = ", ".join(f"{name} {count / self.refusals:.0%}" for name, count in shares.items())
        return f"{self.answers} answers, {self.refusals} refusals: {told}"


def _parts(written: str) -> list[str | int]:
    return [
        int(number) if number else quoted or name for quoted, number, name in PARTS.findall(written)
    ]


def _was_sent(written: str, mistake: Mistake) -> bool:
    """Whether the place is one of the request; what is missing has a holder in it."""
    names = {*mistake.query, *mistake.parameters, "Authorization", "Content-Type"}
    if not written or written in names or written.split("[")[0] in names:
        return True
    holder = {} if mistake.body is None and not mistake.raw else mistake.body
    parts = _parts(written)
    for part in parts[:-1]:
        try:
            holder = holder[part]
        except (LookupError, TypeError):
            return False
    last = parts[-1]
    if isinstance(last, int):
        return isinstance(holder, list) and last < len(holder)
    return isinstance(holder, dict)


def _about(mistake: Mistake, error: Mapping[str, Any]) -> bool:
    """Whether one of the faults is at the place of the mistake, above or below it."""
    assert mistake.at is not None
    wrong = [str(part) for part in mistake.at]
    fields = [error["field"], *(fault["field"] for fault in error.get("faults") or ())]
    for each in fields:
        found = [str(part) for part in _parts(each)]
        length = min(len(found), len(wrong))
        if found[:length] == wrong[:length]:
            return True
    return False


def error_of(answer: Any) -> Mapping[str, Any]:
    """Of any door: code, message, hint, field, faults."""
    body = json.loads(answer.content)
    error = body["error"]
    if body.get("type") == "error":
        details = error["details"] or {}
        assert set(error) == {"type", "message", "details"}
        return {
            "code": details.get("error_code", ""),
            "message": error["message"],
            "hint": details.get("hint", ""),
            "field": details.get("field", ""),
            "faults": details.get("faults"),
        }
    return {**error}


def _send(program: Client, method: str, path: str, mistake: Mistake) -> Any:
    raw = mistake.raw
    if raw is None:
        raw = (
            b""
            if mistake.body is None and mistake.at is None
            else json.dumps(mistake.body).encode()
        )
    if method == "GET":
        return program.get(path, dict(mistake.query))
    return program.generic(
        method,
        path,
        raw,
        mistake.content_type,
        query_params=dict(mistake.query),
    )


def _address(path: str, world: Mapping[str, Any], mistake: Mistake) -> str:
    pattern = path.removeprefix("/").replace("{uid}", "<str:uid>")
    values: Mapping[str, Any] = next(
        (
            values
            for beginning, values in world.items()
            if pattern.replace("<str:", "<id:").startswith(beginning.replace("<str:", "<id:"))
        ),
        {},
    )
    chosen = {**values, **mistake.parameters}
    return PATH_PARAMETER.sub(lambda match: str(chosen.get(match[1], "x")).split("?")[0], path)


ENDLESS = ("/stream",)
"""How the addresses end whose answers do not."""


def _walk(
    description: Description, door: str
) -> Iterator[tuple[str, str, Mapping[str, Any], Mistake]]:
    stride = 1 if ALL else STRIDES[door]
    part, place = chosen_part("CONTRACT_PART", stride), 0
    for method, path, operation in description.operations():
        if path.startswith(door):
            made: Counter[str] = Counter()
            for mistake in description.mistakes(operation):
                made[mistake.what] += 1
                if not (ALL or made[mistake.what] <= OF_A_KIND or mistake.what in MUST):
                    continue
                place += 1
                if place % stride == part:
                    yield method, path, operation, mistake


@pytest.mark.django_db
@pytest.mark.parametrize("door", STRIDES)
def test_every_operation_refuses_every_mistake_in_our_words(door, program, world, description):
    judge = Judge()
    for method, path, operation, mistake in _walk(description, door):
        method = mistake.method or method
        address = _address(path, world, mistake)
        wrong_before = mistake.parameters or mistake.method or mistake.what == "bad parameter"
        if path.endswith((*ENDLESS, *WORKED_OUTSIDE)) and not wrong_before:
            continue
        judge.answers += 1
        mark = transaction.savepoint()
        answer = _send(program, method, address, mistake)
        transaction.savepoint_rollback(mark)
        of = f"{method} {path} {mistake} → {answer.status_code}"
        if answer.status_code < 400:
            if mistake.what in MUST:
                judge.complain("taken", of, "")
            continue
        if answer.status_code >= 500:
            judge.complain("a fault of the server", of, answer.content)
            continue
        if mistake.what == ZERO:
            continue  # what is wrong besides may be told first
        parameters = [each["name"] for each in operation.get("parameters", ())]
        judge.judge(of, mistake, answer.status_code, error_of(answer), parameters)
    print(f"\n{door}: {judge.report()}")
    assert judge.refusals > 20
    assert not judge.complaints, f"{judge.counts.most_common()}\n" + "\n".join(
        judge.complaints[:60]
    )


# --- sockets --------------------------------------------------------------------------------------


UNKNOWN = frozenset({"misspelled name", "unknown name"})
"""Mistakes that are refused, or named in the answer where a newer client may speak to an older server."""


def named_by(frame: Any) -> list[str]:
    return frame.ignored() if isinstance(frame, incoming._Incoming) else []


@pytest.mark.parametrize(
    ("adapter", "parse"),
    [(protocol._ADAPTER, protocol.parse), (incoming._ADAPTER, incoming.parse)],
    ids=["pages", "programs"],
)
def test_every_frame_refuses_every_mistake_in_our_words(adapter, parse):
    """Every type of frame of both sockets, with what its own type says may be sent."""
    document = adapter.json_schema(ref_template="#/components/schemas/{model}")
    schemas = document.pop("$defs")
    frames = Description({"components": {"schemas": schemas}}, {"content": "Hello"})
    judge = Judge()
    for name, schema in schemas.items():
        if "type" not in schema.get("properties", {}):
            continue
        kinds = schema["properties"]["type"]
        kind = kinds.get("const") or kinds["enum"][0]
        operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
        for mistake in frames.mistakes(operation):
            if mistake.method or mistake.query or mistake.at == ("type",):
                continue
            raw = mistake.raw
            if raw is None:
                body = mistake.body
                raw = json.dumps(
                    {"type": kind, **body} if isinstance(body, dict) else body
                ).encode()
            judge.answers += 1
            try:
                frame = parse(raw.decode("utf-8", "surrogateescape"))
            except Refused as refused:
                error = {
                    "code": refused.code,
                    "message": refused.message,
                    "hint": refused.hint,
                    "field": refused.field,
                }
                judge.judge(f"{name} {mistake}", mistake, 422, error, ("type", "content"))
            else:
                told = mistake.what in UNKNOWN and (mistake.at or ())[-1:] == tuple(named_by(frame))
                if mistake.what in {*MUST, *UNKNOWN} and mistake.at is not None and not told:
                    judge.complain("taken", f"{name} {mistake}", "")
    print(f"\n{judge.report()}")
    assert judge.refusals > 20
    assert not judge.complaints, "\n".join(judge.complaints[:40])


# --- the code -------------------------------------------------------------------------------------

TELLS = re.compile(r"""\[["']msg["']\]|\bproblem\.messages?\[""")
"""How pydantic's own words would be passed on."""


def test_no_module_passes_a_validators_words_on():
    told = [
        str(path) for path in MODULES if TELLS.search((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not told, f"use harness.modelfaults: {told}"
