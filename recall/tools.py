"""What agents do with memory: search it and what was said before, read, remember, forget.

What an agent learns while strangers' words are before it is kept aside until a person says yes. What only a
person may do (sharing a memory with others) asks each time.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from conversations.models import Conversation
from conversations.models.run import Run
from conversations.outcomes import is_reached
from conversations.search import Written
from harness.errors import AgentError, Declined, ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from memory.access import Author
from memory.actions.remembering import (
    LEARNABLE,
    Source,
    forget_memory,
    own_store,
    promote_memory,
    remember,
)
from memory.models import AuthorKind, Memory, MemoryStore, MemoryVersion
from memory.searching import search_memories
from reading.digits import number_of
from reading.moments import day_of
from tools_app.touches import require_as_told

from .past import around, search_past
from .reach import reach_of, stores_for
from .strangers import has_strangers_words, require_asked
from .why import BY_WORDS, look_up_for, why_found

EXTRA = "memory"
"""The key of the conversation, among a context's extras."""
LEARNED_A_RUN = 3
"""New learnings of one run."""
FOUND = 8
LISTED = 50
EXCERPT = 500
"""Characters of a find that are shown."""
READ = 20_000
"""Characters of a memory that are read at once."""


def search(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    query = arguments.get("query", "")
    at, since, until = (_moment(arguments, name) for name in ("at", "since", "until"))
    if since is not None and until is not None and since >= until:
        raise ToolError("since is a day behind until.", hint="Give the earlier day as since.")
    if not query.strip():
        return ToolOutput(_listed(conversation, at or timezone.now(), since, until))
    stores = stores_for(conversation, reach_of(conversation))
    if at is None and not arguments.get("also_ended"):
        at = timezone.now()
    lineage = arguments.get("lineage", "")
    look_up_for(conversation, query)
    found = search_memories(
        conversation.owner,
        query,
        stores,
        limit=FOUND,
        at=at,
        since=since,
        until=until,
        for_agents=True,
    )
    Memory.objects.filter(pk__in=[hit.memory.pk for hit in found.hits]).count_use()
    lines = [
        f"{hit.memory.uid} ({_about(hit.memory)}; {why_found(hit.why, hit.likeness)}; read_memory reads it)\n"
        f"  {_short(hit.memory.content)}"
        for hit in found.hits
    ]
    unsure, agreed, untrusted = found.low, False, ""
    if arguments.get("conversations") or lineage:
        past = search_past(
            conversation, query, limit=FOUND, lineage=lineage, written=Written(since, until)
        )
        lines += [
            f"{hit.turn.group}#{hit.turn.id} ({hit.turn.at:%Y-%m-%d %H:%M}, {hit.turn.speaker}; has: "
            f"{', '.join(hit.words) or 'what stands beside it'}; read_memory reads it with what stands "
            f"around it)\n  {_short(hit.turn.text)}"
            for hit in past.hits
        ]
        agreed = not (unsure or past.low)
        unsure = unsure and past.low
        if past.hits:
            untrusted = "earlier conversations"
    if not lines:
        nothing = "Nothing is remembered about this."
        return ToolOutput(f"{nothing} {BY_WORDS}" if found.by_words_alone else nothing)
    if found.by_words_alone:
        lines.append(BY_WORDS)
    if unsure:
        lines.insert(
            0,
            "Low confidence: none of these covers the question. If they do not answer it, say so.",
        )
    elif agreed:
        lines.insert(0, "High confidence: memories and conversations both cover the question.")
    return ToolOutput("\n".join(lines), untrusted=bool(untrusted), untrusted_by=untrusted)


def read(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    wanted = arguments["id"]
    if "#" in wanted:
        text = _around(conversation, wanted)
        return ToolOutput(text, untrusted=True, untrusted_by="an earlier conversation")
    memory = found_memory(conversation, wanted)
    Memory.objects.filter(pk=memory.pk).count_use()
    head = f"{memory.uid} ({_about(memory)}), {memory.path} in “{memory.store.name}”, sha256 {memory.sha256}"
    if memory.supersedes is not None:
        head += f"; before, until {memory.supersedes.valid_until:%Y-%m-%d}: {memory.supersedes.uid}"
    text = memory.content[:READ]
    if len(memory.content) > READ:
        text += f"\n[{len(memory.content) - READ:,} characters more]"
    return ToolOutput(f"{head}\n{text}")


def keep(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    if not reach_of(conversation).personal:
        raise ToolError(
            "Nothing is remembered here: others can read this conversation, or the person wants no memory.",
        )
    if _learned(conversation) >= LEARNED_A_RUN:
        raise ToolError(
            f"This turn has remembered {LEARNED_A_RUN} things already.",
            hint="Keep to what will matter later.",
        )
    untrusted = bool(context.tainted_by) or has_strangers_words(conversation)
    look_up_for(conversation, arguments["text"])
    source = Source(
        conversation.uid, context.call_id, conversation.agent_version.agent.uid, untrusted
    )
    try:
        store = own_store(actor=conversation.owner, organisation=conversation.organisation)
        made = remember(
            actor=conversation.owner,
            store=store,
            text=arguments["text"],
            kind=arguments.get("kind", "fact"),
            key=arguments.get("key", ""),
            source=source,
            author=_author(conversation),
        )
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    if not made.new:
        return ToolOutput(f"That is known: {made.memory.uid}.")
    words = f"Remembered as {made.memory.uid}."
    if made.superseded is not None:
        words += f" {made.superseded.uid} was true until now."
    if untrusted:
        words += (
            " It is used once the person has confirmed it, because strangers' words were read here."
        )
    return ToolOutput(words)


def forget(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    memory = found_memory(conversation, arguments["id"])
    if memory.store.owner_id != conversation.owner_id:
        raise ToolError("This memory is shared.", hint="A person forgets it under Memory.")
    require_asked(context, conversation)
    require_as_told(conversation.pk, context.call_id, bound_to(memory))
    try:
        forget_memory(
            actor=conversation.owner,
            memory=memory,
            version_uid=memory.version_uid,
            author=_author(conversation),
        )
    except Declined as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return ToolOutput("Forgotten, with all that it said before.")


def share(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    memory = found_memory(conversation, arguments["id"])
    store = shared_store(conversation, arguments["store"])
    _require_pass(memory)
    sha256 = arguments["sha256"].strip().lower()
    try:
        with transaction.atomic():
            made = promote_memory(
                actor=conversation.owner, memory=memory, store=store, sha256=sha256
            )
            # Behind the act, which holds what it looked at; what is raised undoes it.
            bound = [*bound_to(memory), store.uid, made.stood]
            require_as_told(conversation.pk, context.call_id, bound)
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return ToolOutput(f"Shared in “{store.name}” as {made.memory.uid}.")


# --- what they share ------------------------------------------------------------------------------


def _conversation(context: ToolContext) -> Conversation:
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    return rows.get(pk=context.extras[EXTRA])


def _author(conversation: Conversation) -> Author:
    return Author(AuthorKind.SESSION, conversation.uid)


def found_memory(conversation: Conversation, uid: str) -> Memory:
    """One that its agent is told of. Raises ToolError."""
    stores = stores_for(conversation, reach_of(conversation))
    rows = Memory.objects.filter(store__in=stores).trusted()
    rows = rows.select_related("store__organisation", "store__agent", "supersedes")
    memory = rows.filter(uid=uid).first()
    if memory is None:
        raise ToolError(f"There is no memory {uid[:60]}.", hint="search_memory finds them.")
    return memory


def shared_store(conversation: Conversation, uid: str) -> MemoryStore:
    """Raises ToolError."""
    stores = MemoryStore.objects.visible_to(conversation.owner).filter(
        organisation=conversation.organisation, uid=uid, owner=None
    )
    store = stores.select_related("organisation", "agent").first()
    if store is None:
        raise ToolError("There is no such shared store.", hint="search_memory names stores.")
    return store


def bound_to(*memories: Memory) -> list[str]:
    """What a yes to an act on these holds for: them as they are, and no others."""
    return [part for each in memories for part in (each.uid, each.path, each.version_uid)]


def _moment(arguments: dict[str, Any], name: str) -> datetime | None:
    """Where a day begins in the server's zone; of `until`, which includes it, where the next one does; of
    `at` its last moment, at which what begins with the next one is not true yet."""
    given = arguments.get(name)
    if not given:
        return None
    day = day_of(given)
    if day is None:
        raise ToolError(f"{name}: {given[:40]} is no day.", hint="Write it like 2026-01-31.")
    begins = timezone.make_aware(datetime.combine(day, time.min))
    if name == "since":
        return begins
    ends = begins + timedelta(days=1)
    return ends if name == "until" else ends - timedelta(microseconds=1)


def _listed(
    conversation: Conversation, at: datetime, since: datetime | None, until: datetime | None
) -> str:
    stores = stores_for(conversation, reach_of(conversation))
    rows = Memory.objects.filter(store__in=stores).trusted().true_at(at)
    rows = rows.known_between(since, until)
    newest = rows.select_related("store").order_by("-pinned", "-updated_at", "-pk")[:LISTED]
    lines = [f"Store “{store.name}” ({store.scope}): {store.uid}" for store in stores]
    lines += [f"{each.uid} ({_about(each)}) {_short(each.content)}" for each in newest]
    return "\n".join(lines) or "Nothing is remembered yet."


def _require_pass(memory: Memory) -> None:
    """What was learned where an outcome was asked for is shared once that is reached."""
    source = Conversation.objects.filter(uid=memory.source_conversation).first()
    if source is not None and not is_reached(source):
        raise ToolError(
            "The outcome that was asked for where this was learned is not reached.",
            hint="Share it once the outcome is judged to be satisfied.",
        )


def _learned(conversation: Conversation) -> int:
    run = Run.objects.filter(conversation=conversation, state="running").first()
    if run is None:
        return 0
    return MemoryVersion.objects.filter(
        author_kind=AuthorKind.SESSION,
        author_uid=conversation.uid,
        operation=MemoryVersion.Operation.CREATED,
        created_at__gte=run.started_at,
    ).count()


def _around(conversation: Conversation, place: str) -> str:
    group, _hash, seq = place.partition("#")
    rows = Conversation.objects.visible_to(conversation.owner).filter(
        organisation=conversation.organisation, uid=group
    )
    past = rows.first()
    number = number_of(seq)
    if past is None or number is None or not reach_of(conversation).personal:
        raise ToolError(f"There is no such place: {place[:80]}.", hint="search_memory finds them.")
    return around(past, number)


def _about(memory: Memory) -> str:
    words = [str(memory.kind)]
    if memory.valid_from:
        words.append(f"since {memory.valid_from:%Y-%m-%d}")
    if memory.valid_until:
        words.append(f"until {memory.valid_until:%Y-%m-%d}")
    if memory.source_conversation:
        words.append(f"from {memory.source_conversation}")
    return ", ".join(words)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]}…"


_DAY = {"type": "string", "maxLength": 10, "description": "Such as 2026-01-31."}
_SHA256 = {
    "type": "string",
    "minLength": 64,
    "maxLength": 64,
    "description": "Of the memory, from read_memory. If it says something else by now, nothing is done.",
}
_ID = {"type": "string", "minLength": 1, "maxLength": 80}
TOOLS = (
    Tool(
        name="search_memory",
        description=(
            "Search what is remembered: of the person, of this kind of work, of the organisation. Ask in "
            "words that stand there; quotation marks for a phrase. Each find says where it is from and why "
            "it was found. Without a query it lists what there is. With conversations it also finds what "
            "was said in the person's earlier conversations, with lineage what was said and done in those "
            "that were begun from here (children) or from which this one was (parents). With also_ended it "
            "also finds what is no longer true, with at what was true at the end of a day."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "maxLength": 500},
                "conversations": {"type": "boolean"},
                "lineage": {"type": "string", "enum": ["children", "parents"]},
                "also_ended": {"type": "boolean"},
                "at": _DAY,
                "since": _DAY,
                "until": _DAY,
            },
            "additionalProperties": False,
        },
        handler=search,
        effect=Effect.READ,
        apart=True,
        intent=lambda arguments: str(arguments.get("query", "")),
        owner="recall",
    ),
    Tool(
        name="read_memory",
        description="Read one memory whole, or a place of an earlier conversation, by its id.",
        input_schema={
            "type": "object",
            "properties": {"id": _ID},
            "required": ["id"],
            "additionalProperties": False,
        },
        handler=read,
        effect=Effect.READ,
        apart=True,
        intent=lambda arguments: str(arguments.get("id", "")),
        owner="recall",
    ),
    Tool(
        name="remember",
        description=(
            "Remember one thing for later conversations with this person: a fact, a preference, a lesson "
            "from what went wrong, a correction. In one sentence that is understood without this "
            "conversation. The key says what it is about (office-city): another text under the same key "
            "takes its place. Never secrets. At most three a turn, and only what will matter later."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": 2_000},
                "kind": {"type": "string", "enum": [str(kind) for kind in LEARNABLE]},
                "key": {"type": "string", "maxLength": 120},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
        handler=keep,
        effect=Effect.WORKSPACE,
        apart=True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("text", "")),
        owner="recall",
    ),
    Tool(
        name="forget_memory",
        description="Forget a memory of the person's for good, with all that it said before.",
        input_schema={
            "type": "object",
            "properties": {"id": _ID},
            "required": ["id"],
            "additionalProperties": False,
        },
        handler=forget,
        effect=Effect.WORKSPACE,
        apart=True,
        asks_once_tainted=lambda _arguments: True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("id", "")),
        owner="recall",
    ),
    Tool(
        name="share_memory",
        description=(
            "Put a memory of the person's into a store that others read. The person is asked, and is shown "
            "what is shared and what it takes the place of."
        ),
        input_schema={
            "type": "object",
            "properties": {"id": _ID, "store": _ID, "sha256": _SHA256},
            "required": ["id", "store", "sha256"],
            "additionalProperties": False,
        },
        handler=share,
        effect=Effect.OUTSIDE,
        always_asks=True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("id", "")),
        owner="recall",
    ),
)
