"""Full-text search over titles and message texts: keeping the index, asking it, showing the place.

One set of functions for SQLite (FTS5) and PostgreSQL (`tsvector`). What a person types is never
query syntax: each word is looked for as it stands, or as the beginning of a word, a `Phrase` as it stands.
Who may see which conversation is not decided here: `matching` narrows the queryset it is given. Filters are
read by `keeping.words`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connections, router
from django.db.models import Exists, Min, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext as _

from harness.content import text_of
from harness.errors import Invalid
from harness.events import AgentMessage, MessageEdited, SessionUpdated, UserMessage
from reading.normalizing import with_few_marks

from .models import Conversation, Event, SearchEntry
from .models.conversation import ConversationQuerySet

QUERY_LIMIT = 200
"""Characters of a search."""
ENTRY_LIMIT = 100_000
"""Characters of one message that are searched; PostgreSQL's tsvector takes no more than 1 MB."""
SNIPPET_BEFORE = 50
SNIPPET_LENGTH = 180
_AT_ONCE = 1_500
"""Characters that are looked through before another thread has a turn."""
_LONGEST_FIND = 5 * QUERY_LIMIT
"""Characters: between the words of a phrase may stand four signs."""
TITLE_SEQ = 0

_PUT = (
    "INSERT INTO conversations_searchentry (conversation_id, seq, text) VALUES (%s, %s, %s)"
    " ON CONFLICT (conversation_id, seq) DO UPDATE SET text = excluded.text"
)
"""The ORM would look first, and lay two savepoints around it."""

_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean: no index here tells their words apart."""


# --- keeping the index ----------------------------------------------------------------------------


def index_event(event: Event) -> None:
    """Make the text of a stored message, or a new title, findable; other events change nothing.

    Called by `log.append` in the transaction that stores the event. Twice the same is one entry.
    """
    match event.value:
        case UserMessage(content=content):
            _put(event.conversation_id, event.seq, text_of(content))
        case AgentMessage(content=pieces):
            _put(event.conversation_id, event.seq, text_of(pieces))
        case SessionUpdated(title=str(title)):
            index_title(event.conversation_id, title)
        case _:
            pass


def index_edited(edit: Event, message_uid: str) -> None:
    """Make a queued message findable by what an `x.message_edited` says now, no longer by before."""
    value = edit.value
    message = Event.objects.filter(
        conversation_id=edit.conversation_id, uid=message_uid, type="user.message"
    ).first()
    if message is not None and isinstance(value, MessageEdited):
        _put(message.conversation_id, message.seq, text_of(value.content))


def index_title(conversation_id: int, title: str) -> None:
    """Make a conversation findable by `title` and no longer by its former one."""
    _put(conversation_id, TITLE_SEQ, title)


def _put(conversation_id: int, seq: int, text: str) -> None:
    text = with_few_marks(text[:ENTRY_LIMIT].replace("\0", " "))
    if text.strip():
        with connections[router.db_for_write(SearchEntry)].cursor() as cursor:
            cursor.execute(_PUT, [conversation_id, seq, text])
    else:
        SearchEntry.objects.filter(conversation_id=conversation_id, seq=seq).delete()


# --- asking ---------------------------------------------------------------------------------------


class Phrase(str):
    """Words that stand one after the other, and end where they end."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Written:
    """From when on, and until before when."""

    since: datetime | None = None
    until: datetime | None = None

    def of(self, column: str) -> Q:
        condition = Q()
        if self.since is not None:
            condition &= Q(**{f"{column}__gte": self.since})
        if self.until is not None:
            condition &= Q(**{f"{column}__lt": self.until})
        return condition


ALWAYS = Written()


def matching(
    queryset: ConversationQuerySet, words: Sequence[str], written: Written = ALWAYS
) -> ConversationQuerySet:
    """Those conversations of `queryset` whose title, or one of whose messages, has every one of `words`; all
    of them if there are none. Order and other filters stay.

    A message was `written` then; a title counts where the conversation was active then.
    """
    if not words:
        return queryset
    return queryset.filter(pk__in=_entries(words, written).values("conversation_id"))


def words_of(text: str) -> list[str]:
    """What to look for: the parts between spaces, without control characters, each once.

    Raises `Invalid` for more than `QUERY_LIMIT` characters; nothing else that is typed is an error.
    """
    check_length(text)
    return list(dict.fromkeys(readable(text).split()))


def check_length(text: str) -> None:
    if len(text) > QUERY_LIMIT:
        raise Invalid(
            _("The search is longer than %(limit)d characters.") % {"limit": QUERY_LIMIT},
            field="q",
            hint=_("Search for fewer words."),
        )


def readable(text: str) -> str:
    """`text` without what no text has, and with plain spaces."""
    whole = _CONTROL.sub(" ", text.encode(errors="ignore").decode())
    return " ".join(whole.split())


def _entries(words: Sequence[str], written: Written) -> QuerySet[SearchEntry]:
    entries = SearchEntry.objects.order_by()
    indexed = [word for word in words if _is_indexed(word)]
    if indexed:
        entries = entries.filter(pk__in=_ids(indexed))
    for word in words:
        if word not in indexed:
            entries = entries.filter(text__icontains=word)
    if written != ALWAYS:
        event = Event.objects.filter(
            written.of("created_at"), conversation=OuterRef("conversation"), seq=OuterRef("seq")
        )
        title = Q(seq=TITLE_SEQ) & written.of("conversation__active_at")
        entries = entries.filter(title | Q(Exists(event)))
    return entries


def _is_indexed(word: str) -> bool:
    """Whether the full-text index can answer for `word`; else the text itself is searched."""
    return any(map(str.isalnum, word)) and not _UNSPACED.search(word)


def _ids(words: Sequence[str]) -> RawSQL:
    if connections[router.db_for_read(SearchEntry)].vendor == "postgresql":
        # The expression of the index (migration 0001) to the letter: else the index is not used.
        return RawSQL(
            "SELECT id FROM conversations_searchentry WHERE to_tsvector('simple', regexp_replace("
            r"regexp_replace(normalize(text, NFD), '[\u0300-\u036f]', '', 'g'),"
            " '[!-/:-@[-`{-~]+', ' ', 'g'))"
            " @@ to_tsquery('simple', %s)",
            [" & ".join(map(_postgresql_term, words))],
        )
    return RawSQL(
        "SELECT rowid FROM conversations_searchindex WHERE conversations_searchindex MATCH %s",
        [" ".join(map(_fts5_term, words))],
    )


def _fts5_term(word: str) -> str:
    """A string in FTS5's own quoting, as a beginning if it is no phrase: no operator inside has a meaning."""
    doubled = word.replace('"', '""')
    return f'"{doubled}"' if isinstance(word, Phrase) else f'"{doubled}"*'


_ACCENTS = re.compile("[\u0300-\u036f]")
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]+")
"""What would be addresses, paths and tags to PostgreSQL's reader of texts, which looks through the rest of a
text again for each that might begin one."""


def _postgresql_term(word: str) -> str:
    bare = _SIGNS.sub(" ", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))
    return f"'{bare}'" if isinstance(word, Phrase) else f"'{bare}':*"


# --- showing the place ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A scrap of text; `found` when it is what was searched for."""

    text: str
    found: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """Where it was found: what stands around it, and the message it stands in."""

    pieces: list[Piece]
    event_uid: str
    subject: str
    """What the page knows the message by."""
    at: datetime


def hits(
    conversations: Collection[Conversation], words: Sequence[str], written: Written = ALWAYS
) -> dict[int, Hit]:
    """By primary key, the first message that has all of `words`.

    Conversations whose title alone matches are left out. Three queries, however many there are.
    """
    if not words or not conversations:
        return {}
    first = (
        _entries(words, written)
        .filter(conversation__in=conversations, seq__gt=TITLE_SEQ)
        .values("conversation_id")
        .annotate(first=Min("pk"))
        .values("first")
    )
    found = list(SearchEntry.objects.filter(pk__in=first))
    places = Q()
    for entry in found:
        places |= Q(conversation=entry.conversation_id, seq=entry.seq)
    rows = Event.objects.filter(places).only(
        "uid", "subject", "created_at", "conversation_id", "seq"
    )
    events = {(row.conversation_id, row.seq): row for row in rows} if found else {}
    return {
        entry.conversation_id: Hit(
            marked(_excerpt(entry.text, words), words), event.uid, event.subject, event.created_at
        )
        for entry in found
        if (event := events.get((entry.conversation_id, entry.seq))) is not None
    }


def marked(text: str, words: Sequence[str]) -> list[Piece]:
    """`text` cut into what was searched for and what stands between."""
    if not words:
        return [Piece(text, found=False)]
    # The group makes split() return what was found too: at every odd place.
    pieces = _pattern(words).split(text)
    return [Piece(piece, found=bool(place % 2)) for place, piece in enumerate(pieces) if piece]


def _excerpt(text: str, words: Sequence[str]) -> str:
    start = max(0, _place(text, words) - SNIPPET_BEFORE)
    if start:
        gap = text.find(" ", start, start + SNIPPET_BEFORE)
        start = gap + 1 if gap >= 0 else start
    end = start + SNIPPET_LENGTH
    excerpt = " ".join(text[start:end].split())
    return f"{'… ' if start else ''}{excerpt}{' …' if end < len(text) else ''}"


def _place(text: str, words: Sequence[str]) -> int:
    """Where the first of them stands; 0 where none does."""
    pattern = _pattern(words)
    for start in range(0, len(text), _AT_ONCE):
        found = pattern.search(text, start, start + _AT_ONCE + _LONGEST_FIND)
        if found:
            return found.start()
    return 0


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(_spelled, longest_first))})", re.IGNORECASE)


def _spelled(word: str) -> str:
    """Of a phrase its words, whatever signs stand between them, as the index has it. No sign is also part of
    a word, so that there is one way to read a text."""
    parts = _WORD.findall(word) if isinstance(word, Phrase) else []
    return r"\W{1,4}".join(map(re.escape, parts)) or re.escape(word)
