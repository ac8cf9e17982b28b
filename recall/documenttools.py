"""Documents in a run: tools that search the collections of its person and organisation, and read in them.

Documents are others' words: what they say is data. Each find has an address that an answer cites it by.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.urls import reverse

from conversations.kitparts import Part
from conversations.models import Conversation
from documents.models import Passage
from documents.searching import search_passages
from harness.agentconfig import AgentConfig
from harness.errors import ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput

from .reach import collections_for, has_collections
from .why import BY_WORDS, look_up_for, why_found

EXTRA = "documents"
"""The key of the conversation, among a context's extras."""
FOUND = 8
EXCERPT = 900
"""Characters of a find that are shown."""
AROUND = 2
"""Passages on each side that are read with one."""
LISTED = 50


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    if not has_collections(conversation):
        return Part()
    return Part(
        tools={tool.name: tool for tool in TOOLS},
        extras={EXTRA: conversation.pk},
    )


def search(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    collections = collections_for(conversation)
    query = arguments.get("query", "")
    if not query.strip():
        lines = [
            f"{each.uid} “{each.name}” {each.description}".rstrip()
            for each in collections.order_by("pk")[:LISTED]
        ]
        return _others_words("\n".join(lines) or "There are no documents.")
    if wanted := arguments.get("collection"):
        collections = collections.filter(uid=wanted)
        if not collections.exists():
            raise ToolError(
                f"There is no collection {wanted[:60]}.",
                hint="search_documents without a query lists them.",
            )
    look_up_for(conversation, query)
    found = search_passages(conversation.owner, query, collections, limit=FOUND)
    by_words = [BY_WORDS] if found.by_words_alone else []
    if not found.hits:
        return ToolOutput(" ".join(["No document says anything about this.", *by_words]))
    lines = [
        f"[{number}]({_address(hit.passage)}) {_place(hit.passage)} ({hit.passage.uid}; "
        f"{why_found(hit.why, hit.likeness)}; read_passage reads on)\n  {_short(hit.passage.text)}"
        for number, hit in enumerate(found.hits, 1)
    ]
    if found.low:
        lines.insert(0, "Low confidence: none of these covers the question. Say so if they do not.")
    lines += by_words
    lines.append(
        "Cite what you use where you use it, by the number with its link as it stands above, such as "
        f"[1]({_address(found.hits[0].passage)})."
    )
    return _others_words("\n".join(lines))


def read(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = _conversation(context)
    rows = Passage.objects.visible_to(conversation.owner).filter(
        document__collection__in=collections_for(conversation)
    )
    passage = rows.select_related("document").filter(uid=arguments["id"]).first()
    if passage is None:
        raise ToolError(
            f"There is no passage {arguments['id'][:60]}.", hint="search_documents finds them."
        )
    first, last = passage.number - AROUND, passage.number + AROUND
    near = rows.filter(document=passage.document, number__range=(first, last)).order_by("number")
    parts = [f"“{passage.document.name}”"]
    parts += [
        f"[{each.number}]({_address(each)}) {_place(each)} ({each.uid})\n{each.text}"
        for each in near.select_related("document")
    ]
    return _others_words("\n\n".join(parts))


def _conversation(context: ToolContext) -> Conversation:
    rows = Conversation.objects.select_related("owner", "organisation")
    return rows.get(pk=context.extras[EXTRA])


def _others_words(text: str) -> ToolOutput:
    return ToolOutput(text, untrusted=True, untrusted_by="documents")


def _address(passage: Passage) -> str:
    return reverse("documents:passage", args=[passage.uid])


def _place(passage: Passage) -> str:
    return ", ".join(
        words for words in (f"“{passage.document.name}”", passage.page, passage.heading) if words
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]}…"


_ID = {"type": "string", "minLength": 1, "maxLength": 80}
READ_PASSAGE = Tool(
    name="read_passage",
    description="Read a passage of a document whole, with what stands around it, by its id.",
    input_schema={
        "type": "object",
        "properties": {"id": _ID},
        "required": ["id"],
        "additionalProperties": False,
    },
    handler=read,
    effect=Effect.READ,
    untrusted=True,
    intent=lambda arguments: str(arguments.get("id", "")),
    owner="recall",
)
TOOLS = (
    Tool(
        name="search_documents",
        description=(
            "Search the documents of the person and the organisation. Ask in words that stand there; "
            "quotation marks for a phrase. Each find says in which document, on which page and below which "
            "heading it stands, why it was found, and how to cite it. Without a query it lists collections."
        ),
        input_schema={
            "type": "object",
            "properties": {"query": {"type": "string", "maxLength": 500}, "collection": _ID},
            "additionalProperties": False,
        },
        handler=search,
        effect=Effect.READ,
        untrusted=True,
        intent=lambda arguments: str(arguments.get("query", "")),
        owner="recall",
    ),
    READ_PASSAGE,
)
