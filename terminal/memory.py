"""`manage.py agent memory …`: what is remembered of a person, on this machine; and turns of any dialogue
ranked.

Everything but `rank` is a person's own: it shows and takes away what the memory page does.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from accounts.models import Organisation, User
from conversations.models import Conversation
from decay.actions.rules import FIELDS, LONGEST, lift_rule, put_in_force, save_rule
from decay.fading import extent_of
from decay.models import DecayRule
from decay.statistics import Statistics, statistics_of
from harness.errors import Invalid, NotFound
from memory.access import may_write
from memory.actions.remembering import forget_memory
from memory.dialogues import dialogue_search
from memory.embedding.asking import look_up
from memory.embedding.chosen import chosen
from memory.embedding.paying import Payer
from memory.models import Memory, MemoryStore
from memory.retrieval.turns import Turn
from memory.searching import search_memories, stores_of
from reading.arguments import whole_number
from reading.foreignjson import Unreadable, read_json
from reading.moments import moment_of
from recall.listing import as_row, exported, memories_in, recalls_in, stores_in
from terminal.screen import Screen

NAME = "memory"
HELP = "what agents remember of a person, on this machine"
Command = Callable[[str, str], ArgumentParser]


SHOWN = 200
"""Characters of what was said that are shown."""
ACTS = {
    "list": "[WORD…]: what is remembered and has all of the words, newest first",
    "search": "QUESTION: what answers it, best first; --at TIME what was true then",
    "why": "CONVERSATION: what it recalled, and by which words",
    "forget": "MEMORY: take it away, with all that it said before",
    "decay": "[STORE]: how memories of each store fade, and what that saved; of one, what would fade today; "
    "--summary-days, --marker-days and --gone-days save its rule as a dry run, --begin VERSION puts it "
    "in force, --lift takes it away",
    "export": "everything of the person's own, as JSON, one a line",
    "rank": "TURNS QUESTIONS: turns of any dialogue that answer questions, from files of JSON lines",
}


def add_to(command: Command) -> None:
    """The arguments of `memory`."""
    made = command(NAME, HELP)
    made.epilog = "; ".join(f"{name} {about}" for name, about in ACTS.items())
    made.add_argument("act", choices=list(ACTS))
    made.add_argument("words", nargs="*", metavar="WORD")
    made.add_argument("--limit", type=whole_number(1, 1_000), default=10)
    made.add_argument("--at", metavar="TIME")
    for name in FIELDS.values():
        made.add_argument(f"--{name.replace('_', '-')}", type=whole_number(1, LONGEST))
    made.add_argument("--also-unconfirmed", action="store_true")
    made.add_argument("--begin", type=whole_number(1, 2**31 - 1), metavar="VERSION")
    made.add_argument("--lift", action="store_true")


def run(
    options: dict[str, Any], who: Callable[[], tuple[User, Organisation]], screen: Screen
) -> None:
    """Do what was asked for. `who` finds the person, if one is needed. Raises Invalid and NotFound."""
    words = options["words"]
    if options["act"] == "rank":
        turns, questions = _exactly(2, words)
        for line in _ranked(Path(turns), Path(questions), options["limit"]):
            _print(screen, line)
        return
    if options["url"]:
        raise Invalid(
            "Memory is shown on the machine that keeps it.",
            field="url",
            hint="Leave --url out there, or use GET /v1/memory_stores.",
        )
    user, organisation = who()
    match options["act"]:
        case "list":
            for row in memories_in(user, organisation, words=" ".join(words)):
                _show(screen, row["memory"], as_json=options["json"])
        case "search":
            stores = stores_of(user).filter(organisation=organisation)
            query = " ".join(words)
            look_up(Payer(organisation.pk, user.pk), user.pk, query)
            at = _moment(options["at"])
            found = search_memories(user, query, stores, limit=options["limit"], at=at)
            for hit in found.hits:
                why, like = hit.why, hit.likeness
                _show(screen, hit.memory, as_json=options["json"], why=why, likeness=like)
            if found.low:
                screen.note("None of these covers the question.")
        case "why":
            (uid,) = _exactly(1, words)
            _why(screen, user, uid, as_json=options["json"])
        case "forget":
            (uid,) = _exactly(1, words)
            forget_memory(actor=user, memory=_find(user, uid))
        case "decay":
            _decay(screen, user, organisation, options)
        case "export":
            for row in exported(user, organisation):
                _print(screen, row)


def _moment(given: str | None) -> datetime | None:
    """In UTC where it says no offset."""
    moment = moment_of(given)
    if given and moment is None:
        raise Invalid(
            "--at: It is no time.", field="at", hint="Write it like 2026-01-31T09:30:00Z."
        )
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _exactly(count: int, words: list[str]) -> list[str]:
    if len(words) != count:
        raise Invalid(
            f"It takes {count} argument{'' if count == 1 else 's'}.",
            field="words",
            hint="`agent memory --help` shows them.",
        )
    return words


def _why(screen: Screen, user: User, uid: str, *, as_json: bool) -> None:
    conversation = Conversation.objects.owned_by(user).named(uid).first()
    if conversation is None:
        raise NotFound("There is no such conversation.")
    for each in recalls_in(user, conversation):
        for hit in each["hits"]:
            if hit["memory"] is not None:
                why, like = hit["words"], hit["likeness"]
                _show(screen, hit["memory"], as_json=as_json, why=why, likeness=like)
        for hit in each["passages"]:
            if hit["passage"] is not None:
                _show_passage(screen, hit, as_json=as_json)
        for turn in each["turns"]:
            if turn["text"] is not None:
                _show_turn(screen, turn, as_json=as_json)


def _show_passage(screen: Screen, hit: dict[str, Any], *, as_json: bool) -> None:
    passage, why = hit["passage"], hit["words"]
    if as_json:
        row = {"id": passage.uid, "document": passage.document.name, "page": passage.page}
        _print(screen, {**row, "why": why, "likeness": hit["likeness"]})
        return
    place = f"{passage.document.name}, {passage.page}".removesuffix(", ")
    screen.pieces([f"{passage.uid} ({place}) has: {', '.join(why)}\n"])


def _show_turn(screen: Screen, turn: dict[str, Any], *, as_json: bool) -> None:
    why = turn["words"]
    if as_json:
        _print(screen, {"id": turn["id"], "said": turn["text"], "why": why})
        return
    said = " ".join(turn["text"].split())[:SHOWN]
    screen.pieces([f"{turn['id']} (said earlier) {said} has: {', '.join(why)}\n"])


def _decay(screen: Screen, user: User, organisation: Organisation, options: dict[str, Any]) -> None:
    wanted = options["words"]
    stores = list(stores_in(user, organisation))
    if wanted:
        (uid,) = _exactly(1, wanted)
        stores = [store for store in stores if store.uid == uid]
        if not stores:
            raise NotFound(
                "There is no such memory store.", hint="`agent memory decay` lists them."
            )
    days = {step: options[name] for step, name in FIELDS.items()}
    changes = any(days.values()) + (options["begin"] is not None) + options["lift"]
    if (changes and not wanted) or changes > 1:
        raise Invalid(
            "It takes one store, and one thing to do with its rule.",
            field="words",
            hint="`agent memory --help` shows how.",
        )
    if options["lift"]:
        lift_rule(actor=user, store=stores[0])
    elif options["begin"] is not None:
        put_in_force(actor=user, store=stores[0], version=options["begin"])
    elif changes:
        unconfirmed = options["also_unconfirmed"]
        save_rule(actor=user, store=stores[0], days=days, also_unconfirmed=unconfirmed)
    statistics = statistics_of(stores)
    for store in stores:
        rule = DecayRule.objects.filter(store=store).select_related("store").first()
        due = bool(wanted) and may_write(user, store)
        row = _decay_row(store, rule, statistics[store.pk], due=due)
        if options["json"]:
            _print(screen, row)
        else:
            lines = [f"{store.uid} {store.name}"]
            lines += [f"  {name}: {value}" for name, value in row.items() if name != "store"]
            screen.pieces(["\n".join(lines) + "\n"])


def _decay_row(
    store: MemoryStore, rule: DecayRule | None, statistics: Statistics, *, due: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {"store": store.uid, **asdict(statistics)}
    if rule is not None:
        row |= {name: getattr(rule, name) for name in (*FIELDS.values(), "version", "in_force_at")}
        if due:
            extent = extent_of(rule)
            row |= {f"due_{step.name.lower()}": count for step, count, _saved in extent.steps}
            row["due_tokens_saved"] = extent.tokens_saved
    return row


def _find(user: User, uid: str) -> Memory:
    rows = Memory.objects.visible_to(user).select_related("store__organisation", "store__agent")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound("There is no such memory.", hint="`agent memory list` shows yours.")
    return found


def _show(
    screen: Screen,
    memory: Memory,
    *,
    as_json: bool,
    why: tuple[str, ...] | list[str] = (),
    likeness: float | None = None,
) -> None:
    if as_json:
        more: dict[str, Any] = {"why": list(why)} if why else {}
        if likeness is not None:
            more["likeness"] = likeness
        _print(screen, {**as_row(memory, memory.store), **more})
        return
    found = f" has: {', '.join(why)}" if why else ""
    found += f" alike: {likeness:.2f}" if likeness is not None else ""
    about = f"{memory.uid} ({memory.kind}, {memory.store.name}){found}"
    screen.pieces([f"{about}\n  {' '.join(memory.content.split())}\n"])


def _print(screen: Screen, row: dict[str, Any]) -> None:
    screen.pieces([json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False) + "\n"])


# --- any dialogue ---------------------------------------------------------------------------------


def _ranked(turns: Path, questions: Path, limit: int) -> Iterator[dict[str, Any]]:
    every = [_turn(row, turns) for row in _rows(turns)]
    search = dialogue_search(every, chosen())
    for row in _rows(questions):
        found = search(_text(row, "query", questions), limit)
        yield {
            "id": row.get("id"),
            "confidence": found.confidence,
            "low": found.low,
            "hits": [
                {
                    "id": hit.turn.id,
                    "score": hit.score,
                    "words": list(hit.words),
                    "near": list(hit.near),
                    "likeness": hit.likeness,
                }
                for hit in found.hits
            ],
        }


def _turn(row: dict[str, Any], file: Path) -> Turn:
    at = row.get("at")
    moment = moment_of(at)
    if at and moment is None:
        raise Invalid(
            f"{file}: “at” is no time.", field="turns", hint="Write it like 2026-01-31T09:30:00Z."
        )
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Turn(
        str(row.get("id", "")),
        _text(row, "text", file),
        str(row.get("speaker") or ""),
        moment,
        str(row.get("group") or ""),
    )


def _text(row: dict[str, Any], name: str, file: Path) -> str:
    found = row.get(name)
    if not isinstance(found, str):
        raise Invalid(f"{file}: a line has no “{name}”.", field=name, hint="Each line has one.")
    return found


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as problem:
        raise Invalid(f"{problem.strerror}: {file}", field="file", hint="Name a file.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = read_json(line)
            except Unreadable:
                row = None
            if not isinstance(row, dict):
                raise Invalid(
                    f"{file}, line {number}: it is no JSON object.",
                    field="file",
                    hint="Write one object a line.",
                )
            yield row
