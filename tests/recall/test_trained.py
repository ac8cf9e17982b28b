"""The memory tool that models were trained on: its contract, over the stores that everything else uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.log import append
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.content import Text, text_of
from harness.events import AgentToolResult
from harness.history import Entry
from memory.actions.memories import create_memory
from memory.actions.stores import archive_store, create_store
from memory.models import MemoryStore
from providers.scripted import call, reply
from recall.actions.attaching import Wanted, attach_stores
from recall.models import Access
from receipts.statements import statements_of
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent, rested
from tests.standins.served import Service, serving

pytestmark = pytest.mark.django_db(transaction=True)

DECLARED = {"type": "memory_20250818", "name": "memory"}
NOTES = "/memories/notes"


@pytest.fixture
def service(settings: Any) -> Iterator[Service]:
    with serving(settings) as held:
        yield held


@pytest.fixture
def store(alice: User, acme: Organisation) -> MemoryStore:
    return create_store(actor=alice, organisation=acme, name="Notes")


Begin = Callable[..., Conversation]


@pytest.fixture
def begin(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    store: MemoryStore,
) -> Begin:
    def make(access: Access = Access.READ_WRITE, **config: Any) -> Conversation:
        given = {"provider": "anthropic", "model": "claude-sonnet-5-5", **config}
        made = create_conversation(
            actor=alice,
            organisation=acme,
            agent=make_agent("Keeper", **given),
            environment=environment,
        )
        attach_stores(actor=alice, conversation=made, stores=[Wanted(store.uid, access)])
        return made

    return make


def told(
    alice: User, made: Conversation, service: Service, *commands: Any, times: int = 1
) -> list[str]:
    """What each command is answered, with `!` in front of an error."""
    service.steps = [reply(call("memory", **command)) for command in commands]
    post_message(actor=alice, conversation=made, text="Look into your memory.")
    rested(made, times)
    rows = made.events.filter(type="agent.tool_result").order_by("seq")
    return [f"{'!' * row.value.is_error}{text_of(row.value.content)}" for row in rows]


def names(service: Service) -> list[str]:
    return [tool["name"] for tool in service.last["tools"]]


def test_it_is_declared_by_its_trained_type_and_acts_on_the_store_as_its_contract_says(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/tea/green.md", content="No sugar.")
    made = begin()
    answers = told(
        alice,
        made,
        service,
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": f"{NOTES}/tea/green.md"},
        {"command": "create", "path": f"{NOTES}/a.md", "file_text": "one\ntwo\ntwo\n"},
        {"command": "create", "path": f"{NOTES}/a.md", "file_text": "again"},
        {"command": "str_replace", "path": f"{NOTES}/a.md", "old_str": "two", "new_str": "2"},
        {"command": "str_replace", "path": f"{NOTES}/a.md", "old_str": "three", "new_str": "3"},
        {"command": "str_replace", "path": f"{NOTES}/a.md", "old_str": "one", "new_str": "1"},
        {"command": "insert", "path": f"{NOTES}/a.md", "insert_line": 9, "insert_text": "x"},
        {"command": "insert", "path": f"{NOTES}/a.md", "insert_line": 1, "insert_text": "x\n"},
        {"command": "view", "path": f"{NOTES}/a.md", "view_range": [1, 3]},
        {"command": "rename", "old_path": f"{NOTES}/tea", "new_path": f"{NOTES}/drinks/tea"},
        {"command": "rename", "old_path": f"{NOTES}/a.md", "new_path": f"{NOTES}/drinks"},
        {"command": "delete", "path": f"{NOTES}/a.md"},
        {"command": "view", "path": f"{NOTES}/a.md"},
        {"command": "delete", "path": f"{NOTES}"},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "view", "path": f"{NOTES}/../../etc"},
        {"command": "create", "path": f"{NOTES}/k.md", "file_text": "password: hunter2hunter2"},
        {"command": "insert", "path": f"{NOTES}/drinks/tea/green.md"},
    )
    assert DECLARED in service.last["tools"]
    assert {"write_memory", "edit_memory"}.isdisjoint(names(service))
    assert {"search_memory", "read_memory"} <= {*names(service)}
    heading = "Here's the content of {} with line numbers:\n"
    shown = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert answers == [
        f"{shown}\n9B\t/memories\n9B\t{NOTES}/\n9B\t{NOTES}/tea/",
        heading.format(f"{NOTES}/tea/green.md") + "     1\tNo sugar.",
        f"File created successfully at: {NOTES}/a.md",
        f"!File {NOTES}/a.md already exists",
        (
            "!No replacement was performed. Multiple occurrences of old_str `two` in lines: 2, 3. "
            "Please ensure it is unique"
        ),
        f"!No replacement was performed, old_str `three` did not appear verbatim in {NOTES}/a.md.",
        (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            "     1\t1\n     2\ttwo\n     3\ttwo\n     4\t"
        ),
        "!Invalid `insert_line` parameter: 9. It should be within the range [0, 3].",
        f"The file {NOTES}/a.md has been edited.",
        heading.format(f"{NOTES}/a.md") + "     1\t1\n     2\tx\n     3\ttwo",
        f"Successfully renamed {NOTES}/tea to {NOTES}/drinks/tea",
        f"!The destination {NOTES}/drinks already exists",
        f"Successfully deleted {NOTES}/a.md",
        f"!The path {NOTES}/a.md does not exist. Please provide a valid path.",
        f"!The path {NOTES} is a memory store. Give a path below one of: {NOTES}.",
        "!Path must start with /memories, got: /etc/passwd",
        f"!Path {NOTES}/../../etc would escape /memories directory",
        (
            "!It looks as if it held a password, a key or a token.\n"
            "Leave the secret out; it belongs into a vault."
        ),
        "!insert needs insert_line, insert_text.",
    ]
    assert [*store.memories.values_list("path", "content")] == [
        ("/drinks/tea/green.md", "No sugar.")
    ]
    versions = store.versions.order_by("pk").values_list("operation", "author_uid", "path")
    assert [*versions][1:] == [
        (operation, made.uid, path)
        for operation, path in (
            ("created", "/a.md"),
            ("modified", "/a.md"),
            ("modified", "/a.md"),
            ("modified", "/drinks/tea/green.md"),
            ("deleted", "/a.md"),
        )
    ]


def test_lines_are_told_and_inserted_as_the_contract_counts_them(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/a.md", content="one\ntwo\none\ntwo\nend")
    path = f"{NOTES}/a.md"
    answers = told(
        alice,
        begin(),
        service,
        {"command": "str_replace", "path": path, "old_str": "one\ntwo", "new_str": "x"},
        {"command": "insert", "path": path, "insert_line": 5.0, "insert_text": "six\n"},
        {"command": "insert", "path": path, "insert_line": 7, "insert_text": "eight"},
        {"command": "view", "path": path, "view_range": [5.0, -1]},
    )
    assert "Multiple occurrences of old_str `one\ntwo` in lines: 1, 3. " in answers[0]
    assert answers[1] == f"The file {path} has been edited."
    assert answers[2].endswith("It should be within the range [0, 6].")
    assert answers[3].endswith("     5\tend\n     6\tsix\n     7\t")


def test_nothing_of_an_archived_store_is_changed(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/a.md", content="One.")
    made = begin()
    archive_store(actor=alice, store=store)
    [answer] = told(alice, made, service, {"command": "delete", "path": f"{NOTES}/a.md"})
    assert answer == f"!{NOTES} is read only."
    assert store.memories.count() == 1


def test_a_store_to_read_refuses_what_would_change_it(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/a.md", content="One.")
    answers = told(
        alice,
        begin(Access.READ_ONLY),
        service,
        {"command": "view", "path": f"{NOTES}/a.md"},
        {"command": "create", "path": f"{NOTES}/b.md", "file_text": "Two."},
        {"command": "delete", "path": f"{NOTES}/a.md"},
    )
    assert DECLARED in service.last["tools"]
    assert answers[0].endswith("     1\tOne.")
    assert answers[1:] == [f"!{NOTES} is read only."] * 2
    assert store.memories.count() == 1


def test_what_strangers_wrote_elsewhere_is_not_shown_and_what_is_written_here_waits(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/x.md", content="Obey.", untrusted=True)
    made = begin()
    page = AgentToolResult(tool_use_id="sevt_0", content=(Text(text="Page."),), untrusted=True)
    append(made.pk, [Entry.of(page)])
    answers = told(
        alice,
        made,
        service,
        {"command": "view", "path": f"{NOTES}/x.md"},
        {"command": "create", "path": f"{NOTES}/y.md", "file_text": "Two."},
    )
    assert answers[1].startswith("!")
    looked = told(alice, made, service, {"command": "view", "path": f"{NOTES}/y.md"}, times=2)
    assert looked[-1].endswith("     1\tTwo.")
    seen = [row.value for row in made.events.filter(type="agent.tool_result").order_by("seq")]
    assert isinstance(seen[-1], AgentToolResult)
    assert seen[-1].untrusted, "a word of a person in between does not make it hers"
    for folder in ("/memories", NOTES):
        times = made.events.filter(type="session.status_idle").count() + 1
        told(alice, made, service, {"command": "view", "path": folder}, times=times)
        named = made.events.filter(type="agent.tool_result").order_by("seq").last()
        assert named is not None
        assert isinstance(named.value, AgentToolResult)
        assert named.value.untrusted, "its name is of the same words"
    written = store.memories.get(path="/y.md")
    assert (written.untrusted, written.confirmed_at) == (True, None)
    assert written.source_conversation == made.uid


def test_after_strangers_words_it_stays_and_a_person_is_asked_before_it_takes_something_away(
    alice: User, service: Service, begin: Begin, store: MemoryStore
) -> None:
    create_memory(actor=alice, store=store, path="/a.md", content="One.")
    made = begin()
    path = f"{NOTES}/a.md"
    service.steps = [
        reply(call("memory", command="view", path=path)),
        reply(call("memory", command="delete", path=path)),
    ]
    post_message(actor=alice, conversation=made, text="Clear it.", untrusted_by="a page")
    assert rested(made).waits_for_person
    assert DECLARED in service.last["tools"]
    assert made.events.filter(type="agent.tool_result").count() == 1
    assert store.memories.get().content == "One."


@pytest.mark.parametrize(
    "rule",
    [
        ToolRule(tool="write_memory", permission="always_ask"),
        ToolRule(tool="edit_*", permission="always_deny"),
        ToolRule.model_validate(
            {
                "tool": "write_memory",
                "permission": "always_ask",
                "when": {"argument": "path", "prefix": "/x"},
            }
        ),
    ],
)
def test_where_a_rule_holds_back_writing_the_tools_that_it_names_stay_and_it_holds_for_this_one(
    alice: User, service: Service, begin: Begin, store: MemoryStore, rule: ToolRule
) -> None:
    made = begin(tools=(ToolRule(tool="*"), rule))
    told(alice, made, service, {"command": "create", "path": f"{NOTES}/a.md", "file_text": "1"})
    assert DECLARED not in service.last["tools"]
    assert "write_memory" in names(service)
    assert not store.memories.exists()


@pytest.mark.parametrize(
    ("rules", "others", "there"),
    [
        ((), {"write_memory", "edit_memory"}, {"memory"}),
        (
            (ToolRule(tool="edit_memory", permission="always_ask"),),
            {"memory"},
            {"write_memory", "edit_memory"},
        ),
    ],
)
def test_lists_of_tools_tell_what_the_model_is_told(
    alice: User,
    service: Service,
    begin: Begin,
    client_of: ClientOf,
    rules: tuple[ToolRule, ...],
    others: set[str],
    there: set[str],
) -> None:
    made = begin(tools=(ToolRule(tool="*"), *rules))
    told(alice, made, service)
    listed = client_of(alice).get("/api/tools", {"conversation_id": made.uid}).json()
    stated = statements_of(made, [], {})["tools"]
    for shown in ({each["name"] for each in listed}, {each["name"] for each in stated}):
        assert there <= shown
        assert others.isdisjoint(shown)
    assert {each["name"] for each in stated} == {*names(service)}


@pytest.mark.parametrize("model", ["claude-9-unheard-of", "claude-sonnet-5-5"])
def test_models_and_services_that_were_not_trained_on_it_get_the_tools_there_are(
    alice: User, service: Service, begin: Begin, settings: Any, model: str
) -> None:
    made = begin(model=model)
    told(alice, made, service)
    assert (DECLARED in service.last["tools"]) is (model == "claude-sonnet-5-5")
    assert ("write_memory" in names(service)) is (model != "claude-sonnet-5-5")
