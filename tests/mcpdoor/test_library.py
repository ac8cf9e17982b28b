"""What an organisation keeps for its agents is offered to MCP clients: to its people, and to nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from mcp import Client
from mcp.shared.exceptions import MCPError

from accounts.models import Organisation, TokenScope, User
from documents import indexing
from documents.actions.collections import create_collection
from documents.actions.documents import add_document
from mcpdoor.library import MOST_FILLED, prompts_of
from mcpdoor.tools import Principal
from memory.actions.memories import create_memory
from memory.actions.remembering import own_store
from memory.models import Memory
from prompts.actions.prompts import add_version, create_prompt
from prompts.filling import Variable
from prompts.models import PromptVersion
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import create_skill

from .test_door import asked, token, with_client

pytestmark = pytest.mark.django_db(transaction=True)

SKILL = b"---\nname: invoices\ndescription: How invoices are written here.\n---\n\nNumber each.\n"


def said(secret: str, name: str, **given: Any) -> Any:
    return with_client(secret, asked(name, **given)).structured_content


def test_a_client_reckons_and_searches_what_its_person_may_read(
    alice: User, bob: User, mallory: User, acme: Organisation, elsewhere: Organisation
):
    text = "The parrot of the office is called Coco."
    create_memory(
        actor=alice,
        store=own_store(actor=alice, organisation=acme),
        path="/parrot.md",
        content=text,
    )
    shared = create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)
    handbook = b"# Travel\n\nTrains are booked in second class.\n"
    document = add_document(actor=alice, collection=shared, name="handbook.md", data=handbook)
    indexing.index_document(document.pk)
    hers, bobs = token(alice, acme), token(bob, acme)
    assert said(hers, "calculator", expression="2 * (3 + 4)")["value"] == "14"
    wrong = with_client(hers, asked("calculator", expression="import os"))
    assert wrong.is_error
    (memory,) = said(hers, "search_memories", query="What is the parrot called?")["memories"]
    assert memory["text"] == text
    assert said(bobs, "search_memories", query="What is the parrot called?")["memories"] == []
    Memory.objects.update(valid_until=timezone.now())
    assert said(hers, "search_memories", query="What is the parrot called?")["memories"] == []
    for secret in (hers, bobs):
        (passage,) = said(secret, "search_documents", query="Which class are trains?")["passages"]
        assert (passage["document"], passage["collection"]) == ("handbook.md", "Handbooks")
        assert "second class" in passage["text"]
    strangers = token(mallory, elsewhere)
    for name, found in (("search_memories", "memories"), ("search_documents", "passages")):
        assert said(strangers, name, query="parrot trains")[found] == []
    writes = token(alice, acme, TokenScope.CONVERSATIONS_WRITE)
    assert with_client(writes, asked("search_documents", query="trains")).is_error


def test_skills_are_resources_and_named_prompts_are_prompts(
    alice: User, mallory: User, acme: Organisation, elsewhere: Organisation
):
    version = create_skill(actor=alice, organisation=acme, files={"SKILL.md": SKILL})
    ask_for_release(actor=alice, version=version)
    decide_release(actor=alice, version=version, approve=True)
    given = (Variable(name="what"), Variable(name="tone", default="kindly"))
    review = create_prompt(
        actor=alice,
        organisation=acme,
        name="review",
        text="Review {{what}} {{tone}} for {{person}} at {{organisation}}. Keep {{this}}.",
        variables=given,
        description="Have something reviewed",
        label="production",
    )
    add_version(actor=alice, prompt=review, text="Not in use yet.")

    async def use(client: Client) -> tuple[list[Any], list[Any]]:
        resources = (await client.list_resources()).resources
        return resources, (await client.list_prompts()).prompts

    resources, prompts = with_client(token(alice, acme), use)
    (skill,) = [each for each in resources if each.name == "invoices"]
    (prompt,) = prompts
    assert prompt.name == "review"
    assert [(each.name, each.required) for each in prompt.arguments] == [
        ("what", True),
        ("tone", False),
    ]

    async def hers(client: Client) -> None:
        (held,) = (await client.read_resource(skill.uri)).contents
        assert "Number each." in held.text
        got = await client.get_prompt("review", {"what": "this text"})
        (message,) = got.messages
        assert message.content.text == ("Review this text kindly for alice at Acme. Keep {{this}}.")
        with pytest.raises(MCPError, match="too long"):
            await client.get_prompt("review", {"what": "x" * (MOST_FILLED // 4)})
        with pytest.raises(MCPError, match="Missing argument: what"):
            await client.get_prompt("review", {})

    async def mallorys(client: Client) -> None:
        seen, offered = await use(client)
        assert not [each for each in seen if each.name == "invoices"]
        assert offered == []
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource(skill.uri)
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("review", {"what": "x"})

    with_client(token(alice, acme), hers)
    with_client(token(mallory, elsewhere), mallorys)
    writes = token(alice, acme, TokenScope.CONVERSATIONS_WRITE)
    with_client(writes, mallorys)


def test_many_prompts_are_told_by_two_questions_and_one_that_waits_stands_in_its_place(
    alice: User, staff: User, acme: Organisation, django_assert_num_queries: Any
):
    who = Principal(alice, acme)
    create_prompt(actor=staff, organisation=None, name="shared", text="The server's.")
    for number in range(3):
        create_prompt(actor=alice, organisation=acme, name=f"own-{number}", text="Hers.")
    with django_assert_num_queries(2):
        assert [each.name for each in prompts_of(who)] == ["own-0", "own-1", "own-2", "shared"]
    hers = create_prompt(actor=alice, organisation=acme, name="shared", text="Fetched.")
    PromptVersion.objects.filter(prompt=hers).update(waits=True)
    assert [each.name for each in prompts_of(who)] == ["own-0", "own-1", "own-2"]
