"""What programs do in one go: begin sessions, send several inputs, keep files and notes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from agents.actions.environments import delete_environment
from agents.actions.metadata import note_agent, note_environment
from agents.models import Environment
from conversations.actions.conversations import archive_conversation
from conversations.actions.stored_files import (
    delete_file,
    open_file,
    store_file,
)
from conversations.models import Conversation, Event, FileResource, StoredFile
from harness.agentconfig import CustomTool, ToolRule
from harness.content import Base64Source, Image, Text
from harness.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    TooLarge,
)
from harness.events import (
    UserCustomToolResult,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
)
from programs.actions.metadata import note_conversation
from programs.actions.resources import add_resource, remove_resource
from programs.actions.sending import send_events
from programs.actions.sessions import begin_session, cap_session, require_at_rest
from providers.scripted import call, reply
from spending.models import Budget
from tests.conversations.conftest import rested, still, until
from tests.patience import PATIENCE
from tests.pictures import GOOD
from tools_app.workspace import workspace_for


@pytest.fixture(autouse=True)
def files_of_their_own(settings, tmp_path):
    settings.AGENTSITE_FILES_DIR = tmp_path / "files"


def message(words: str) -> UserMessage:
    return UserMessage(content=(Text(text=words),))


@pytest.fixture
def keep(alice, acme):
    def store(content: bytes = b"hello", name: str = "a.txt") -> StoredFile:
        return store_file(
            actor=alice,
            organisation=acme,
            filename=name,
            mime_type="text/plain",
            chunks=[content[:2], content[2:]],
        )

    return store


# --- beginning ------------------------------------------------------------------------------------


def test_a_session_begins_with_all_it_is_to_have_or_not_at_all(
    alice, acme, make_agent, environment, keep
):
    file = keep()
    agent = make_agent(provider="scripted", model="none")
    values = {
        "caller": None,
        "actor": alice,
        "organisation": acme,
        "agent": agent,
        "environment": environment,
        "title": "Named",
        "metadata": {"a": "b"},
        "cap": 100,
        "files": [(file.uid, "")],
    }
    with pytest.raises(NotFound):
        begin_session(**{**values, "files": [(file.uid, ""), ("file_none", "")]})
    assert not Conversation.objects.exists()
    assert not FileResource.objects.exists()
    session = begin_session(**values)
    session.refresh_from_db()
    assert (session.title, session.metadata) == ("Named", {"a": "b"})
    assert Budget.objects.in_force().get(conversation=session).limit == 100
    assert (workspace_for(session.uid) / "uploads" / "a.txt").read_bytes() == b"hello"


def test_mallory_begins_nothing_in_acme(mallory, acme, make_agent, environment):
    with pytest.raises(NotFound):
        begin_session(
            caller=None,
            actor=mallory,
            organisation=acme,
            agent=make_agent(),
            environment=environment,
        )


def test_a_cap_is_set_raised_and_lifted_by_the_owner_alone(alice, mallory, converse):
    conversation, _ = converse()
    cap_session(actor=alice, conversation=conversation, limit=5)
    with pytest.raises(NotFound):
        cap_session(actor=mallory, conversation=conversation, limit=7)
    with pytest.raises(NotFound):
        cap_session(actor=mallory, conversation=conversation, limit=None)
    assert Budget.objects.in_force().get().limit == 5
    cap_session(actor=alice, conversation=conversation, limit=None)
    assert not Budget.objects.in_force().exists()


def test_a_version_that_does_not_exist_is_named(alice, acme, make_agent, environment):
    with pytest.raises(Invalid) as caught:
        begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=make_agent(),
            environment=environment,
            version=7,
        )
    assert caught.value.field == "agent"


ALLOW_READ = ToolRule(tool="read_file")
ASK_ALL = ToolRule(tool="*", permission="always_ask")


@pytest.mark.parametrize(
    ("rules", "added", "fits"),
    [
        ((ALLOW_READ,), (), True),
        ((ALLOW_READ,), (ToolRule(tool="read_file", permission="always_ask"),), True),
        ((ALLOW_READ,), (ToolRule(tool="bash", permission="always_deny"),), True),
        ((ALLOW_READ,), (ToolRule(tool="*", permission="always_deny"),), True),
        ((ALLOW_READ,), (ToolRule(tool="bash", permission="always_ask"),), False),
        ((ALLOW_READ,), (ToolRule(tool="*", permission="always_ask"),), False),
        ((ALLOW_READ,), (ToolRule(tool="read_*", permission="always_ask"),), False),
        ((ALLOW_READ,), (ToolRule(tool="bash"),), False),
        ((ASK_ALL,), (ToolRule(tool="bash", permission="always_allow"),), False),
    ],
)
def test_one_sessions_tools_are_never_more_than_its_agents(
    alice, acme, make_agent, environment, rules, added, fits
):
    agent = make_agent(tools=rules)

    def begin():
        wanted = [rule.model_dump(mode="json") for rule in (*rules, *added)]
        return begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            overrides={"tools": wanted},
        )

    if fits:
        assert begin().config.tools == (*rules, *added)
    else:
        with pytest.raises(Invalid) as caught:
            begin()
        assert caught.value.field == "tools"


def test_a_session_cannot_leave_a_rule_of_its_agent_out(alice, acme, make_agent, environment):
    deny = ToolRule(tool="bash", permission="always_deny")
    agent = make_agent(tools=(ToolRule(tool="*"), deny))
    with pytest.raises(Invalid):
        begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            overrides={"tools": [ToolRule(tool="*").model_dump(mode="json")]},
        )


@pytest.mark.django_db
def test_what_works_is_not_put_away(converse):
    conversation, _ = converse()
    require_at_rest(conversation)
    conversation.status = "running"
    with pytest.raises(Conflict):
        require_at_rest(conversation)


# --- sending --------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_several_inputs_all_are_taken_or_none(alice, converse):
    conversation, _ = converse()
    with pytest.raises(NotFound):
        send_events(
            actor=alice,
            conversation=conversation,
            events=[
                message("Hi"),
                UserToolConfirmation(tool_use_id="sevt_none", result="allow"),
            ],
        )
    assert not Event.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_mallory_sends_nothing(mallory, converse):
    conversation, _ = converse()
    for event in (
        message("Hi"),
        UserInterrupt(),
        UserToolConfirmation(tool_use_id="sevt_1", result="allow"),
        UserCustomToolResult(custom_tool_use_id="sevt_1"),
    ):
        with pytest.raises(NotFound):
            send_events(actor=mallory, conversation=conversation, events=[event])
    assert not Event.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_what_is_archived_takes_nothing_more(alice, converse):
    conversation, _ = converse()
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    with pytest.raises(Conflict):
        send_events(actor=alice, conversation=conversation, events=[message("Hi")])


@pytest.mark.django_db(transaction=True)
def test_an_interrupt_of_nothing_is_answered_and_not_stored(alice, converse):
    conversation, _ = converse()
    (sent,) = send_events(actor=alice, conversation=conversation, events=[UserInterrupt()])
    assert sent.seq is None
    assert sent.processed_at is not None
    assert not Event.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_a_message_carries_images(alice, converse):
    conversation, scripted = converse([reply("A picture.")])
    picture = Image(source=Base64Source(media_type="image/png", data=GOOD))
    send_events(
        actor=alice,
        conversation=conversation,
        events=[UserMessage(content=(Text(text="What is this?"), picture))],
    )
    rested(conversation)
    stored = Event.objects.get(conversation=conversation, type="user.message").value
    assert stored.content == (Text(text="What is this?"), picture)
    assert picture in scripted.requests[0].messages[-1].parts


@pytest.mark.django_db(transaction=True)
def test_the_same_answer_again_is_the_same_event_and_another_is_refused(alice, bob, converse):
    tool = CustomTool(name="weather", description="Says it.")
    conversation, _ = converse([reply(call("weather")), reply("Fine.")], custom_tools=(tool,))
    send_events(actor=alice, conversation=conversation, events=[message("Hi")])
    use = until(
        lambda: Event.objects.filter(
            conversation=conversation, type="agent.custom_tool_use"
        ).first()
    )
    answer = UserCustomToolResult(custom_tool_use_id=use.uid, content=(Text(text="Snow"),))
    until(lambda: Event.objects.filter(type="session.status_idle").exists())
    with pytest.raises(NotFound):
        send_events(actor=bob, conversation=conversation, events=[answer])
    first, again = (
        send_events(actor=alice, conversation=conversation, events=[answer])[0] for _ in range(2)
    )
    assert first.uid == again.uid
    other = answer.model_copy(update={"is_error": True})
    with pytest.raises(Conflict):
        send_events(actor=alice, conversation=conversation, events=[other])
    still()


@pytest.mark.django_db(transaction=True)
def test_a_call_of_a_child_is_answered_through_its_parent_and_no_stranger(alice, converse):
    tool = CustomTool(name="weather", description="Says it.")
    child, _ = converse([reply(call("weather")), reply("Fine.")], custom_tools=(tool,))
    parent, _ = converse()
    stranger, _ = converse()
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    send_events(actor=alice, conversation=child, events=[message("Hi")])
    use = until(lambda: Event.objects.filter(type="agent.custom_tool_use").first())
    until(lambda: Event.objects.filter(type="session.status_idle").exists())
    answer = UserCustomToolResult(custom_tool_use_id=use.uid, content=(Text(text="Snow"),))
    with pytest.raises(NotFound):
        send_events(actor=alice, conversation=stranger, events=[answer])
    (sent,) = send_events(actor=alice, conversation=parent, events=[answer])
    assert sent.thread_uid == child.uid
    still()


# --- files ----------------------------------------------------------------------------------------


def test_a_file_is_kept_whole_and_private(alice, acme, keep, settings):
    file = keep(b"hello")
    with open_file(actor=alice, file=file) as content:
        assert content.read() == b"hello"
    assert (file.size, file.filename) == (5, "a.txt")
    (path,) = settings.AGENTSITE_FILES_DIR.glob("*/*")
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["", "..", "a/", "n" * 256, "a\nb"])
def test_a_file_needs_a_name(alice, acme, keep, name, settings):
    with pytest.raises(Invalid):
        keep(name=name)
    assert not list(settings.AGENTSITE_FILES_DIR.glob("*/*"))


def test_folders_in_a_name_are_ignored(keep):
    assert keep(name="../../etc/passwd").filename == "passwd"


def test_a_file_at_the_limit_is_kept_and_one_past_it_leaves_nothing(keep, settings):
    settings.AGENTSITE_FILE_BYTES = 5
    keep(b"12345")
    with pytest.raises(TooLarge):
        keep(b"123456")
    settings.AGENTSITE_FILES_BYTES = 9
    with pytest.raises(LimitReached):
        keep(b"12345")
    assert len(list(settings.AGENTSITE_FILES_DIR.glob("*/*"))) == StoredFile.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_uploads_at_the_same_time_keep_to_the_quota_together(alice, acme, settings):
    """Each begins while there is room for it."""
    settings.AGENTSITE_FILES_BYTES = 9
    begun = threading.Barrier(3)

    def pieces() -> Iterator[bytes]:
        yield b"12"
        begun.wait(PATIENCE)
        yield b"345"

    def upload(number: int) -> bool:
        try:
            store_file(
                actor=alice,
                organisation=acme,
                filename=f"{number}.txt",
                mime_type="text/plain",
                chunks=pieces(),
            )
        except LimitReached:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(3) as threads:
        kept = list(threads.map(upload, range(3)))
    assert sorted(kept) == [False, False, True]
    assert len(list(settings.AGENTSITE_FILES_DIR.glob("*/*"))) == StoredFile.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_deleted_file_is_gone_and_its_copies_stay(alice, converse, keep, settings):
    conversation, _ = converse()
    file = keep()
    resource = add_resource(actor=alice, conversation=conversation, file_uid=file.uid, path="b/c")
    delete_file(actor=alice, file=file)
    assert not list(settings.AGENTSITE_FILES_DIR.glob("*/*"))
    resource.refresh_from_db()
    assert (resource.file, resource.file_uid) == (None, file.uid)
    copy = workspace_for(conversation.uid) / "b" / "c"
    assert copy.read_bytes() == b"hello"
    remove_resource(actor=alice, conversation=conversation, resource=resource)
    assert not copy.exists()


def test_a_path_that_is_taken_is_refused_and_nothing_is_overwritten(alice, converse, keep):
    conversation, _ = converse()
    first, second = keep(b"first"), keep(b"second")
    add_resource(actor=alice, conversation=conversation, file_uid=first.uid, path="x.txt")
    with pytest.raises(Conflict):
        add_resource(actor=alice, conversation=conversation, file_uid=second.uid, path="x.txt")
    folder = workspace_for(conversation.uid)
    assert [path.name for path in folder.iterdir()] == ["x.txt"]
    assert (folder / "x.txt").read_bytes() == b"first"


@pytest.mark.parametrize("path", ["../x", "/etc/../../x", "a\0b", "a/../../b"])
def test_no_path_leads_out_of_the_workspace(alice, converse, keep, path):
    conversation, _ = converse()
    with pytest.raises(Invalid):
        add_resource(actor=alice, conversation=conversation, file_uid=keep().uid, path=path)
    assert not FileResource.objects.exists()


def test_mallory_and_bob_reach_no_file_of_alices(alice, bob, mallory, acme, converse, keep):
    conversation, _ = converse()
    file = keep()
    resource = add_resource(actor=alice, conversation=conversation, file_uid=file.uid)
    for actor in (bob, mallory):
        assert not StoredFile.objects.visible_to(actor).exists()
        for attempt in (
            lambda who=actor: open_file(actor=who, file=file),
            lambda who=actor: delete_file(actor=who, file=file),
            lambda who=actor: add_resource(actor=who, conversation=conversation, file_uid=file.uid),
            lambda who=actor: remove_resource(
                actor=who, conversation=conversation, resource=resource
            ),
        ):
            with pytest.raises(NotFound):
                attempt()
    with pytest.raises(NotFound):
        store_file(actor=mallory, organisation=acme, filename="x", mime_type="a/b", chunks=[b"x"])
    assert StoredFile.objects.get() == file


# --- notes and environments -----------------------------------------------------------------------


def test_who_may_change_a_thing_may_change_its_notes(
    alice, bob, mallory, staff, acme, converse, make_agent, environment
):
    conversation, _ = converse()
    agent = make_agent("Acme's", organisation=acme)
    note_agent(actor=alice, agent=agent, metadata={"a": "1"})
    note_conversation(actor=alice, conversation=conversation, metadata={"b": "2"})
    note_environment(actor=staff, environment=environment, metadata={"c": "3"})
    for actor, error in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(error):
            note_agent(actor=actor, agent=agent, metadata={})
        with pytest.raises(NotFound):
            note_conversation(actor=actor, conversation=conversation, metadata={})
        with pytest.raises(Forbidden):
            note_environment(actor=actor, environment=environment, metadata={})
    for row, notes in ((agent, {"a": "1"}), (conversation, {"b": "2"}), (environment, {"c": "3"})):
        row.refresh_from_db()
        assert row.metadata == notes


def test_notes_are_few_and_short(alice, converse):
    conversation, _ = converse()
    full = {f"{n:064}": "v" * 512 for n in range(16)}
    note_conversation(actor=alice, conversation=conversation, metadata=full)
    for wrong in ({**full, "more": ""}, {"k" * 65: ""}, {"k": "v" * 513}, {"": "v"}):
        with pytest.raises(Invalid) as caught:
            note_conversation(actor=alice, conversation=conversation, metadata=wrong)
        assert caught.value.field == "metadata"


def test_an_environment_is_deleted_only_by_staff_and_while_nothing_uses_it(
    alice, mallory, staff, converse, environment
):
    unused = Environment.objects.create(name="Unused")
    for actor in (alice, mallory):
        with pytest.raises(Forbidden):
            delete_environment(actor=actor, environment=unused)
    delete_environment(actor=staff, environment=unused)
    converse()
    with pytest.raises(Conflict):
        delete_environment(actor=staff, environment=environment)
    assert list(Environment.objects.filter(pk__in=[unused.pk, environment.pk])) == [environment]
