"""The statements of an append, written out for both databases: building them is what the ORM costs most.

Only for `log`, `spending`, `budgets`, `partials`, the journal of claims, and conversations and subagents that
begin, inside their transactions, where a model call waits for each of them. What an event changes is decided
there; everything that is not this hot stays with the ORM.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import BooleanField, Field, Model
from django.utils import timezone
from orjson import Fragment

from .models import Conversation, Event, PartialBlock, Run

_EVENTS = Event._meta.db_table
_CONVERSATIONS = Conversation._meta.db_table
_RUNS = Run._meta.db_table
_PARTIALS = PartialBlock._meta.db_table

_NEEDED = {
    "id",
    "uid",
    "organisation_id",
    "owner_id",
    "parent_id",
    "title",
    "status",
    "stop_reason",
    "last_seq",
    "news_seq",
    "message_count",
    "queued_count",
    "context_tokens",
    "owes_run",
    "others_wrote",
    "asked_by_id",
}
_FIELDS = [field for field in Conversation._meta.concrete_fields if field.attname in _NEEDED]
_HELD = tuple(field.attname for field in _FIELDS)
"""What a held conversation has loaded, in the order of the model, as `from_db` takes it; its other columns
are read when somebody asks for them."""
_TRUTHS = [place for place, field in enumerate(_FIELDS) if isinstance(field, BooleanField)]
"""SQLite keeps booleans as numbers; all other columns come as they are."""

_KEPT = (
    "last_seq",
    "active_at",
    "title",
    "status",
    "stop_reason",
    "news_seq",
    "message_count",
    "queued_count",
    "context_tokens",
    "owes_run",
)
"""What `keep` writes: the projections of the log that any event may change."""


def hold(conversation_id: int) -> Conversation:
    """The conversation, locked until the transaction ends. Raises `Conversation.DoesNotExist`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(_HELD)} FROM {_CONVERSATIONS} WHERE id = %s{_locking()}",
            [conversation_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise Conversation.DoesNotExist(f"There is no conversation {conversation_id}.")
    values = list(row)
    for place in _TRUTHS:
        values[place] = bool(values[place])
    return Conversation.from_db(connection.alias, _HELD, values)


def hold_free(conversation_ids: Collection[int]) -> dict[int, tuple[str, int]]:
    """Public id and last number of those conversations that nobody else has locked, locked now.

    It waits for no row, so that nobody's slow transaction holds up the other conversations.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, uid, last_seq FROM {_CONVERSATIONS}"
            f" WHERE id {_AMONG[connection.vendor]} ORDER BY id{_locking(skip=True)}",
            [_numbers(conversation_ids)],
        )
        return {pk: (uid, last_seq) for pk, uid, last_seq in cursor.fetchall()}


def running(run_ids: Collection[int]) -> set[int]:
    """Those of the runs that still hold their conversation.

    A statement of its own, after the conversation is locked: one that both locks and looks at another
    table would see that table as it was before it waited for the lock.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            # Written out: as a value it would have SQLite compile this anew each time (`jobs.prepared`).
            f"SELECT id FROM {_RUNS} WHERE id {_AMONG[connection.vendor]}"
            f" AND state = '{Run.State.RUNNING.value}'",
            [_numbers(run_ids)],
        )
        return {pk for (pk,) in cursor.fetchall()}


def begin_run(conversation_id: int, worker: str, *, seconds: int) -> Run:
    """Store a run that holds the conversation for so long, by the database's clock, so that hosts need
    not agree on the time. Raises `IntegrityError` while another one does."""
    run = Run(conversation_id=conversation_id, worker=worker, started_at=timezone.now())
    returns = connection.features.can_return_columns_from_insert
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_RUNS} (conversation_id, state, worker, lease_until, stop_reason, error,"
            f" started_at) VALUES (%s, %s, %s, {_FROM_NOW[connection.vendor]}, '', '', %s)"
            f"{' RETURNING id' if returns else ''}",
            [
                conversation_id,
                run.state,
                worker,
                f"{seconds} seconds",
                connection.ops.adapt_datetimefield_value(run.started_at),
            ],
        )
        run.pk = cursor.fetchone()[0] if returns else cursor.lastrowid
    run._state.adding, run._state.db = False, connection.alias
    return run


_FROM_NOW = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %s)",
    "postgresql": "STATEMENT_TIMESTAMP() + %s::interval",
}
"""So much later than now, as the ORM's `Now` has it."""
_AMONG = {"sqlite": "IN (SELECT value FROM json_each(%s))", "postgresql": "= ANY(%s)"}
"""One of `_numbers`."""


def keep(conversation: Conversation) -> None:
    """Write what a held conversation says about its log."""
    values = [getattr(conversation, name) for name in _KEPT]
    values[1] = connection.ops.adapt_datetimefield_value(conversation.active_at)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_CONVERSATIONS} SET {' = %s, '.join(_KEPT)} = %s WHERE id = %s",
            [*values, conversation.pk],
        )


def lengthen(counts: Sequence[tuple[int, int]], *, at: datetime) -> None:
    """Note of each held conversation (by key) that its log has grown by so many events."""
    # No conversation has the number that fills up.
    pairs = [*counts, *[(0, 0)] * (_room_for(len(counts)) - len(counts))]
    values = ", ".join(["(%s, %s)"] * len(pairs))
    with connection.cursor() as cursor:
        # Columns of a list of values have the same names on both databases.
        cursor.execute(
            f"UPDATE {_CONVERSATIONS} SET last_seq = last_seq + news.column2, active_at = %s"
            f" FROM (VALUES {values}) AS news WHERE {_CONVERSATIONS}.id = news.column1",
            [
                connection.ops.adapt_datetimefield_value(at),
                *(value for pair in pairs for value in pair),
            ],
        )


def insert(rows: Sequence[Model], *, unless_known: str = "") -> int:
    """Insert rows of one table; with the name of a unique column, only those whose value is new.
    Returns how many were inserted. When all were, they are given their keys, as `bulk_create` does."""
    if not rows:
        return 0
    here = connections[DEFAULT_DB_ALIAS]  # `connection` would look for it at each value
    returns = here.features.can_return_rows_from_bulk_insert
    sql, fields = _insertion(type(rows[0]), len(rows), unless_known, returns)
    with here.cursor() as cursor:
        cursor.execute(
            sql,
            [
                field.get_db_prep_save(field.pre_save(row, add=True), here)
                for row in rows
                for field in fields
            ],
        )
        if not returns:
            return int(cursor.rowcount)
        keys = cursor.fetchall()
    if len(keys) == len(rows):
        for row, (key,) in zip(rows, keys, strict=True):
            row.pk = key
            row._state.adding, row._state.db = False, here.alias
    return len(keys)


@lru_cache(maxsize=200)
def _insertion(
    model: type[Model], count: int, unless_known: str, returns: bool
) -> tuple[str, Sequence[Field[Any, Any]]]:
    """The statement of `insert`, and the fields whose values it takes of each row."""
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    one = f"({', '.join(['%s'] * len(fields))})"
    conflict = f" ON CONFLICT ({unless_known}) DO NOTHING" if unless_known else ""
    sql = (
        f"INSERT INTO {model._meta.db_table} ({columns})"
        f" VALUES {', '.join([one] * count)}{conflict}{' RETURNING id' if returns else ''}"
    )
    return sql, fields


class NewEvent(NamedTuple):
    """A row of the log that nobody waits to handle, before it has a key."""

    conversation_id: int
    seq: int
    uid: str
    type: str
    subject: str
    run_id: int | None
    payload: str
    """As JSON."""


_EVENT_COLUMNS = (
    "conversation_id, seq, uid, type, subject, run_id, payload, processed_at, created_at"
)
_INSERT_EVENT = f"INSERT INTO {_EVENTS} ({_EVENT_COLUMNS}) VALUES ({', '.join(['%s'] * 9)})"
_INSERT_EVENTS = (
    f"INSERT INTO {_EVENTS} ({_EVENT_COLUMNS})"
    " SELECT c, s, u, t, b, r, p, %s, %s FROM json_to_recordset(%s)"
    " AS new (c bigint, s bigint, u text, t text, b text, r bigint, p jsonb)"
)


def insert_events(events: Sequence[NewEvent], *, at: datetime) -> None:
    """Insert many rows of the log, handled and stored `at`, without making models of them."""
    stamp = connection.ops.adapt_datetimefield_value(at)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # One value for all of them: quoting each by itself costs more than all the rest.
            news = [
                dict(zip("csutbrp", (*event[:-1], Fragment(event.payload)), strict=True))
                for event in events
            ]
            cursor.execute(_INSERT_EVENTS, [stamp, stamp, orjson.dumps(news).decode()])
        else:
            cursor.executemany(_INSERT_EVENT, [(*event, stamp, stamp) for event in events])


class NewPartial(NamedTuple):
    """A row of text that is still arriving, before it has a key."""

    uid: str
    conversation_id: int
    kind: str
    model_request_id: str
    continues: str | None
    text: str


_KEEP_PARTIAL = (
    f"INSERT INTO {_PARTIALS} ({', '.join(NewPartial._fields)}, updated_at)"
    f" VALUES ({', '.join(['%s'] * 7)})"
    " ON CONFLICT (uid) DO UPDATE SET text = EXCLUDED.text, updated_at = EXCLUDED.updated_at"
)


def keep_partials(partials: Sequence[NewPartial], *, at: datetime) -> None:
    """Store these texts, each in place of what was stored of it before."""
    stamp = connection.ops.adapt_datetimefield_value(at)
    with connection.cursor() as cursor:
        cursor.executemany(_KEEP_PARTIAL, [(*partial, stamp) for partial in partials])


def drop_partial(uid: str) -> None:
    """Forget the text that was arriving: all of it is stored now."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {_PARTIALS} WHERE uid = %s", [uid])


def mark_processed(conversation_id: int, uids: Sequence[str], *, at: datetime) -> list[str]:
    """Have these events wait no more. The types of those that did."""
    if not uids:
        return []
    waiting = f"conversation_id = %s AND uid IN ({_marks(uids)}) AND processed_at IS NULL"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT type FROM {_EVENTS} WHERE {waiting}", [conversation_id, *uids])
        types = [name for (name,) in cursor.fetchall()]
        if types:
            cursor.execute(
                f"UPDATE {_EVENTS} SET processed_at = %s WHERE {waiting}",
                [connection.ops.adapt_datetimefield_value(at), conversation_id, *uids],
            )
    return types


def last_seq(conversation_id: int) -> int:
    """The number of the log's last event; 0 for none, or no such conversation."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT last_seq FROM {_CONVERSATIONS} WHERE id = %s",
            [conversation_id],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def payload_of(event_uid: str) -> dict[str, Any]:
    """What was stored of one event. Raises `Event.DoesNotExist`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT payload FROM {_EVENTS} WHERE uid = %s", [event_uid])
        row = cursor.fetchone()
    if row is None:
        raise Event.DoesNotExist(f"There is no event {event_uid}.")
    payload: dict[str, Any] = json.loads(row[0])
    return payload


def _room_for(count: int) -> int:
    """The next power of two, so that statements about many rows are a few, whatever their number: each
    that SQLite has prepared is kept for its text, as large as it has rows, by every thread."""
    return 1 << max(0, count - 1).bit_length()


def _numbers(ids: Collection[int]) -> str | list[int]:
    """All of them as one parameter of `_AMONG`, so that one statement asks for any number."""
    return orjson.dumps(list(ids)).decode() if connection.vendor == "sqlite" else list(ids)


def _marks(values: Iterable[object]) -> str:
    return ", ".join("%s" for _ in values)


def _locking(*, skip: bool = False) -> str:
    """Nothing for SQLite, where the whole transaction is the lock."""
    if not connection.features.has_select_for_no_key_update:
        return ""
    return " FOR NO KEY UPDATE SKIP LOCKED" if skip else " FOR NO KEY UPDATE"
