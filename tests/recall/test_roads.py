"""Every road to what is remembered and to what documents say: alice finds her own and what is shared, bob
what is shared and nothing once he has left, mallory nothing.

A road returns all that it lets a person see. That alice sees her words by it shows that it looks.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.actions.tokens import create_token
from accounts.current_organisation import SHOWN
from accounts.models import Membership, Organisation, TokenScope, User
from conversations.actions.messages import post_message
from conversations.kitparts import mounts_of, part_of
from conversations.models import Conversation
from documents.actions.collections import create_collection
from documents.models import Passage
from harness.errors import Declined, Invalid, ToolError
from harness.tools import ToolContext
from mcpdoor.lookups import Search, find_memories, find_passages
from mcpdoor.tools import Principal
from memory.actions.memories import create_memory
from memory.actions.remembering import own_store, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import Memory, MemoryStore
from memory.writing import sha_of
from owndata.actions.exporting import export_own_data
from providers.scripted import reply
from recall.actions.attaching import Wanted, attach_stores
from recall.models import Access
from terminal.memory import run
from terminal.screen import Screen
from tests.conversations.conftest import rested
from tests.documents.reading import added

pytestmark = pytest.mark.django_db(transaction=True)
OWN = ("Petronella", "marzipan", "blunderbuss")
SHARED = ("Quillfeather", "gorgonzola")
QUESTION = (
    "What is known of the keeper Petronella Quillfeather, marzipan, gorgonzola and the blunderbuss?"
)


@dataclass
class World:
    organisation: Organisation
    talk: Conversation
    """Alice's, which has recalled what is known."""
    converse: Any
    tokens: dict[str, str]
    """Of each person, from before anybody left."""
    homes: dict[str, Organisation]

    def conversation_of(self, user: User) -> Conversation:
        """One of hers, as it would be if she had begun it before."""
        made, _script = self.converse([])
        rows = Conversation.objects.filter(pk=made.pk)
        rows.update(owner=user, organisation=self.homes[user.username])
        return rows.get()


Road = Callable[[World, User], str]


@pytest.fixture
def world(converse, alice, bob, mallory, acme, elsewhere) -> World:
    mine = own_store(actor=alice, organisation=acme)
    remember(actor=alice, store=mine, text="The keeper of the quay is Petronella.")
    ours = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    create_memory(
        actor=alice,
        store=ours,
        path="/keeper.md",
        content="The keeper of the quay was Quillfeather.",
    )
    own = create_collection(actor=alice, organisation=acme, name="Mine")
    added(alice, own, b"The keeper eats marzipan.", "own.md")
    shared = create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)
    added(alice, shared, b"The keeper eats gorgonzola.", "shared.md")
    talk, _script = converse([reply("It is the blunderbuss.")])
    post_message(actor=alice, conversation=talk, text=QUESTION)
    rested(talk)
    homes = {"alice": acme, "bob": acme, "mallory": elsewhere}
    scopes = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
    tokens = {
        each.username: create_token(
            actor=each, organisation=homes[each.username], name="t", scopes=scopes
        ).secret
        for each in (alice, bob, mallory)
    }
    return World(acme, talk, converse, tokens, homes)


# --- roads ----------------------------------------------------------------------------------------


def by_tools(world: World, user: User) -> str:
    """Whatever an agent calls with whatever id it was told."""
    conversation = world.conversation_of(user)
    made = part_of(conversation, conversation.config, Path())
    context = ToolContext("sevt_1", Path(), extras=dict(made.extras))
    memories = Memory.objects.values_list("uid", flat=True)
    places = [f"{world.talk.uid}#{row.seq}" for row in world.talk.events.all()]
    passages = Passage.objects.values_list("uid", flat=True)
    tried: list[tuple[str, dict[str, Any]]] = [
        ("search_memory", {"query": QUESTION, "conversations": True, "also_ended": True}),
        ("search_memory", {"query": QUESTION, "lineage": "parents"}),
        ("search_memory", {}),
        *(("read_memory", {"id": uid}) for uid in (*memories, *places)),
        ("search_documents", {"query": QUESTION}),
        ("search_documents", {}),
        *(("read_passage", {"id": uid}) for uid in passages),
    ]
    told = [section.text for section in made.sections]
    for name, arguments in tried:
        if name in made.tools:
            told.append(_answer(partial(made.tools[name].handler, context, arguments)))
    return "\n".join(told)


def _answer(act: Callable[[], Any]) -> str:
    try:
        return str(act())
    except (ToolError, Declined) as problem:
        return str(problem)


def by_the_prompt(world: World, user: User) -> str:
    """What messages of hers recall, and the passages that are named to the agent."""
    told = []
    for question in ("Who is the keeper of the quay?", "What does the keeper eat?"):
        conversation = world.conversation_of(user)
        if Membership.objects.filter(user=user, organisation=conversation.organisation).exists():
            post_message(actor=user, conversation=conversation, text=question)
            rested(conversation)
        made = part_of(conversation, conversation.config, Path())
        told += [section.text for section in made.sections]
        told += Passage.objects.filter(uid__in=_named(made.sections)).values_list("text", flat=True)
    return "\n".join(told)


def _named(sections: Any) -> list[str]:
    words = " ".join(section.text for section in sections).split()
    return [word for word in words if word.startswith("psg_")]


def by_a_folder(world: World, user: User) -> str:
    """Each store by its id, as a folder that commands see."""
    told = []
    for store in MemoryStore.objects.all():
        conversation = world.conversation_of(user)
        wanted = [Wanted(store.uid, Access.READ_ONLY)]
        try:
            attach_stores(actor=user, conversation=conversation, stores=wanted)
        except (Invalid, Declined) as problem:
            told.append(str(problem))
        for mount in mounts_of(conversation):
            told += [file.read_text() for file in mount.source.rglob("*") if file.is_file()]
    return "\n".join(told)


def by_the_public_api(world: World, user: User) -> str:
    paths = ["memory_stores"]
    for store in MemoryStore.objects.all():
        one = f"memory_stores/{store.uid}"
        paths += [one, f"{one}/memories?view=full", f"{one}/memory_versions?view=full"]
        paths += [f"{one}/memories/{memory.uid}" for memory in Memory.objects.all()]
        versions = store.versions.values_list("uid", flat=True)
        paths += [f"{one}/memory_versions/{version}" for version in versions]
    paths += [f"sessions/{world.talk.uid}", f"sessions/{world.talk.uid}/events"]
    return _read(_program(world, user), [f"/v1/{path}" for path in paths])


def by_our_api(world: World, user: User) -> str:
    paths = ["memories", f"memories/search?q={QUESTION}", "memories/stores", "memories/export"]
    paths += [f"memories?store_id={store.uid}" for store in MemoryStore.objects.all()]
    paths += [f"memories/{memory.uid}" for memory in Memory.objects.all()]
    paths += [f"conversations/{world.talk.uid}/recalled", "collections"]
    for passage in Passage.objects.select_related("document__collection"):
        one = f"collections/{passage.document.collection.uid}"
        paths += [one, f"{one}/documents", f"{one}/documents/{passage.document.uid}"]
        paths += [f"{one}/search?q={QUESTION}"]
    return _read(_program(world, user), [f"/api/{path}" for path in paths])


def by_pages(world: World, user: User) -> str:
    client = Client()
    client.force_login(user)
    paths = ["/settings/memory/", "/settings/memory/export/", f"/c/{world.talk.uid}/memory/"]
    paths += ["/settings/memory/?q=keeper", f"/c/{world.talk.uid}/", "/settings/documents/"]
    paths += [f"/settings/memory/{memory.uid}/" for memory in Memory.objects.all()]
    paths += [f"/settings/decay/{store.uid}/" for store in MemoryStore.objects.all()]
    paths += [f"/passages/{passage.uid}/" for passage in Passage.objects.all()]
    paths += [
        f"/settings/documents/{passage.document.collection.uid}/?q=keeper"
        for passage in Passage.objects.select_related("document__collection")
    ]
    shown = f"{SHOWN}={world.organisation.uid}"
    return _read(client, paths) + _read(client, [f"/settings/memory/?{shown}"])


def by_the_door_for_clients(world: World, user: User) -> str:
    who = Principal(user, world.homes[user.username])
    given = Search(query=QUESTION)
    return f"{find_memories(who, given)} {find_passages(who, given)}"


def by_the_command_line(world: World, user: User) -> str:
    told = io.StringIO()
    screen = Screen(as_json=True, out=told, notes=told)
    acts = [("list", []), ("search", [QUESTION]), ("why", [world.talk.uid]), ("export", [])]
    for act, words in acts:
        options = {"act": act, "words": words, "url": "", "json": True, "limit": 20, "at": None}
        told.write(_answer(partial(run, options, lambda: (user, world.organisation), screen)))
    return told.getvalue()


def by_an_archive_of_ones_own(_world: World, user: User) -> str:
    with ZipFile(io.BytesIO(b"".join(export_own_data(actor=user)))) as held:
        return "\n".join(held.read(name).decode() for name in held.namelist())


def _program(world: World, user: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {world.tokens[user.username]}"})


def _read(client: Client, paths: list[str]) -> str:
    answers = [client.get(path) for path in paths]
    assert all(answer.status_code < 500 for answer in answers)
    return "\n".join(b"".join(_pieces(answer)).decode() for answer in answers)


def _pieces(answer: Any) -> Iterator[bytes]:
    yield from answer.streaming_content if answer.streaming else [answer.content]


ROADS: dict[Road, tuple[str, ...]] = {
    by_tools: (*OWN, *SHARED),
    by_the_prompt: (*OWN[:2], *SHARED),
    by_a_folder: (OWN[0], SHARED[0]),
    by_the_public_api: (OWN[0], OWN[2], SHARED[0]),
    by_our_api: (*OWN[:2], *SHARED),
    by_pages: (*OWN, *SHARED),
    by_the_door_for_clients: (*OWN[:2], *SHARED),
    by_the_command_line: (OWN[0], SHARED[0]),
    by_an_archive_of_ones_own: OWN,
}
"""What alice sees by each."""


def seen(told: str) -> set[str]:
    """The words in it that no question says."""
    bare = told.replace(QUESTION, "")
    return {word for word in (*OWN, *SHARED) if word in bare}


def test_each_sees_what_is_theirs_and_nothing_else(world, alice, bob, mallory, acme):
    for road, words in ROADS.items():
        assert seen(road(world, alice)) == set(words), road
        assert seen(road(world, bob)) == set(words) & set(SHARED), road
        assert seen(road(world, mallory)) == set(), road
    Membership.objects.filter(user=bob, organisation=acme).delete()
    for road in ROADS:
        assert seen(road(world, bob)) == set(), road


def test_a_conversation_from_before_she_left_shows_nothing_any_more(world, bob, acme):
    """Its folders, its prompt and its tools, though they were given when she was a member."""
    conversation = world.conversation_of(bob)
    ours = MemoryStore.objects.get(name="Ours")
    attach_stores(actor=bob, conversation=conversation, stores=[Wanted(ours.uid, Access.READ_ONLY)])
    post_message(actor=bob, conversation=conversation, text="Who is the keeper?")
    rested(conversation)
    made = part_of(conversation, conversation.config, Path())
    (mount,) = mounts_of(conversation)
    assert "Quillfeather" in str([section.text for section in made.sections])
    assert "Quillfeather" in (mount.source / "keeper.md").read_text()
    context = ToolContext("sevt_1", Path(), extras=dict(made.extras))
    handlers = {name: tool.handler for name, tool in made.tools.items()}
    Membership.objects.filter(user=bob, organisation=acme).delete()

    told = [section.text for section in part_of(conversation, conversation.config, Path()).sections]
    assert mounts_of(conversation) == ()
    assert not (mount.source / "keeper.md").exists()
    passage = Passage.objects.get(document__name="shared.md")
    for name, arguments in (
        ("search_memory", {"query": QUESTION}),
        ("read_memory", {"id": Memory.objects.get(store=ours).uid}),
        ("search_documents", {"query": QUESTION}),
        ("read_passage", {"id": passage.uid}),
    ):
        told.append(_answer(partial(handlers[name], context, arguments)))
    assert seen("\n".join(told)) == set()


def test_nothing_of_alices_is_shared_changed_or_forgotten_by_others(world, bob, mallory):
    before = list(Memory.objects.order_by("pk").values_list("uid", "content"))
    stores = list(MemoryStore.objects.values_list("uid", flat=True))
    for user in (bob, mallory):
        conversation = world.conversation_of(user)
        made = part_of(conversation, conversation.config, Path())
        context = ToolContext("sevt_1", Path(), extras=dict(made.extras))
        tried = [("forget_memory", {"id": uid}) for uid, _content in before]
        tried += [
            ("share_memory", {"id": uid, "store": store, "sha256": sha_of(content)})
            for uid, content in before
            for store in stores
        ]
        for name, arguments in tried:
            with pytest.raises(ToolError):
                made.tools[name].handler(context, arguments)
    assert list(Memory.objects.order_by("pk").values_list("uid", "content")) == before


@pytest.mark.parametrize("road", ["pages", "api"])
def test_what_is_others_answers_as_what_there_is_not_and_costs_the_same(road, world, mallory):
    """Neither words nor the work done for them tell that something is there."""
    passage = Passage.objects.get(document__name="own.md")
    collection, memory = passage.document.collection.uid, Memory.objects.order_by("pk")[0]
    store, talk = memory.store.uid, world.talk.uid
    pages = {
        "/settings/memory/{}/": memory.uid,
        "/settings/decay/{}/": store,
        "/c/{}/memory/": talk,
        "/passages/{}/": passage.uid,
        "/settings/documents/{}/": collection,
    }
    apis = {
        "/api/memories/{}": memory.uid,
        "/api/memories?store_id={}": store,
        "/api/conversations/{}/recalled": talk,
        "/api/collections/{}": collection,
        "/api/collections/{}/search?q=keeper": collection,
        "/v1/memory_stores/{}": store,
        "/v1/memory_stores/{}/memories": store,
    }
    client = _program(world, mallory)
    if road == "pages":
        client = Client()
        client.force_login(mallory)
    for path, uid in (pages if road == "pages" else apis).items():
        unknown = f"{uid[:-4]}zzzz"
        client.get(path.format(unknown))
        answers = []
        for each in (unknown, uid):
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(path.format(each))
            said = answer.json()["error"]["message"] if road == "api" else ""
            answers.append((answer.status_code, said.replace(each, ""), len(queries)))
        assert answers[0] == answers[1], path
        assert answers[0][0] in {404, 422}
