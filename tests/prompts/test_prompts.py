"""Named prompts: versions that stay, labels that move, and what a conversation is told of them."""

from __future__ import annotations

import pytest

from accounts.models import Membership, Role
from audit.models import AuditEntry
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message
from conversations.kits import plan_kit
from conversations.models import Conversation, Event
from harness.content import Text
from harness.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from harness.events import UserMessage
from prompts.actions.prompts import (
    TEXT_LIMIT,
    add_version,
    create_prompt,
    delete_prompt,
    import_prompt,
    move_label,
    remove_label,
    spec_of,
)
from prompts.files import read_prompt, written_prompt
from prompts.filling import Variable
from prompts.models import Prompt, PromptVersion
from prompts.using import agents_with, conversations_with, told
from tests.conversations.conftest import rested, still

pytestmark = pytest.mark.django_db(transaction=True)


def names(**use: object) -> dict[str, object]:
    return {"prompts": [{"name": "tone", **use}]}


def system(conversation: Conversation) -> str:
    return plan_kit(Conversation.objects.get(pk=conversation.pk)).system


def test_a_conversation_keeps_the_text_it_began_with_when_the_label_moves(
    alice, acme, tone, converse
):
    conversation, scripted = converse(["One.", "Two."], instructions="Be brief.", **names())
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    expected = "Answer alice of Acme in a kind tone. Leave {{braces}} alone."
    assert scripted.requests[0].system.startswith(f"Be brief.\n\n{expected}")

    second = add_version(actor=alice, prompt=tone, text="Shout.", label="production")
    post_message(actor=alice, conversation=conversation, text="Again")
    rested(conversation, 2)
    assert scripted.requests[1].system == scripted.requests[0].system
    [used] = told(conversation)
    assert (used.text, used.version.number, used.wanted) == (expected, 1, "production")

    later, _scripted = converse(**names())
    assert "Shout." in system(later)
    assert [each.version for each in conversations_with(tone, alice)] == [used.version]
    assert second.number == 2


def test_a_version_is_named_by_number_and_its_variables_are_filled_in_once(alice, tone, converse):
    add_version(actor=alice, prompt=tone, text="Shout.", label="production")
    conversation, _scripted = converse(**names(version="1", values={"tone": "{{person}}"}))
    assert "in a {{person}} tone" in system(conversation)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ({"name": "tune"}, "There are: tone."),
        ({"version": "staging"}, "Its labels: production. Its versions: 1 to 1."),
        ({"version": "7"}, "Its labels: production. Its versions: 1 to 1."),
    ],
)
def test_what_cannot_be_had_refuses_the_message_and_names_what_there_is(
    alice, tone, converse, use, said
):
    conversation, _scripted = converse(**names(**use))
    with pytest.raises(Conflict) as refusal:
        post_message(actor=alice, conversation=conversation, text="Hello")
    assert refusal.value.hint == said
    assert not Event.objects.filter(conversation=conversation, type="user.message").exists()


def test_a_variable_without_a_value_refuses_the_message_by_its_name(alice, tone, converse):
    add_version(
        actor=alice,
        prompt=tone,
        text="{{house}}",
        variables=[Variable(name="house")],
        label="production",
    )
    conversation, _scripted = converse(**names())
    with pytest.raises(Conflict, match="needs values for: house"):
        post_message(actor=alice, conversation=conversation, text="Hello")


def test_a_fork_goes_on_with_the_texts_of_its_origin(alice, tone, converse):
    conversation, _scripted = converse(["One.", "Two."], **names())
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    add_version(actor=alice, prompt=tone, text="Shout.", label="production")
    said = Event.objects.get(conversation=conversation, type="agent.message")
    fork = fork_conversation(actor=alice, conversation=conversation, event_uid=said.uid)
    post_message(actor=alice, conversation=fork, text="And here?")
    rested(fork, 2)
    assert [used.version.number for used in told(fork)] == [1]
    still()


def test_an_organisations_prompt_stands_before_the_servers_of_its_name(
    alice, staff, tone, converse
):
    create_prompt(actor=staff, organisation=None, name="tone", text="Ours.", label="production")
    create_prompt(actor=staff, organisation=None, name="all", text="Everybody.", label="production")
    conversation, _scripted = converse(prompts=[{"name": "tone"}, {"name": "all"}])
    assert "in a kind tone" in system(conversation)
    assert "Everybody." in system(conversation)


def test_a_version_that_says_the_same_is_no_new_one_and_bad_ones_are_refused(alice, acme, tone):
    first = tone.versions.get()
    same = {"text": first.text.replace("\n", "\r\n"), "variables": first.variables}
    assert add_version(actor=alice, prompt=tone, **same) == first
    for wrong in ({"text": " "}, {"text": "x", "variables": [Variable(name="person")]}):
        with pytest.raises(Invalid):
            add_version(actor=alice, prompt=tone, **wrong)
    twice = [Variable(name="a"), Variable(name="a")]
    with pytest.raises(Invalid, match="declared twice"):
        add_version(actor=alice, prompt=tone, text="x", variables=twice)
    with pytest.raises(TooLarge):
        add_version(actor=alice, prompt=tone, text="x" * (TEXT_LIMIT + 1))
    for label in ("latest", "Production", "7"):
        with pytest.raises(Invalid):
            move_label(actor=alice, prompt=tone, label=label, version="1")
    with pytest.raises(Invalid):
        create_prompt(actor=alice, organisation=acme, name="A name", text="x")
    with pytest.raises(Conflict):
        create_prompt(actor=alice, organisation=acme, name="tone", text="x")
    assert PromptVersion.objects.count() == 1


def test_labels_move_and_each_move_is_in_the_audit_log(alice, tone):
    add_version(actor=alice, prompt=tone, text="Shout.")
    move_label(actor=alice, prompt=tone, label="staging", version="latest")
    move_label(actor=alice, prompt=tone, label="production", version="staging")
    move_label(actor=alice, prompt=tone, label="production", version="2")  # is there already
    remove_label(actor=alice, prompt=tone, label="staging")
    moves = AuditEntry.objects.filter(action="prompt_label_moved").order_by("id")
    told_of = [
        (row.details["label"], row.details["before"], row.details["version"]) for row in moves
    ]
    assert told_of == [
        ("production", None, 1),
        ("staging", None, 2),
        ("production", 1, 2),
        ("staging", 2, None),
    ]


def test_what_an_agent_names_or_a_conversation_was_told_is_not_deleted(alice, tone, converse):
    conversation, _scripted = converse(["One."], **names())
    agent = conversation.agent_version.agent
    assert [use.agent for use in agents_with(tone, alice)] == [agent.name]
    with pytest.raises(Conflict, match=f"Agents name it: {agent.name}"):
        delete_prompt(actor=alice, prompt=tone)
    with pytest.raises(Conflict):
        remove_label(actor=alice, prompt=tone, label="production")
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    type(agent).objects.filter(pk=agent.pk).update(current=None)
    with pytest.raises(Conflict, match="Conversations were told"):
        delete_prompt(actor=alice, prompt=tone)
    still()
    conversation.delete()
    delete_prompt(actor=alice, prompt=tone)
    assert not Prompt.objects.exists()


def test_a_file_holds_all_of_it_and_is_read_without_loss(alice, bob, mallory, elsewhere, tone):
    add_version(actor=alice, prompt=tone, text="Two\n\n  lines: {{a}}\n", note="More", label="next")
    text = written_prompt(spec_of(tone))
    assert read_prompt(text) == spec_of(tone)
    copy, added = import_prompt(actor=mallory, organisation=elsewhere, spec=read_prompt(text))
    assert (added, spec_of(copy)) == (2, spec_of(tone))
    assert import_prompt(actor=mallory, organisation=elsewhere, spec=read_prompt(text))[1] == 0
    other = read_prompt(text.replace("in a", "without"))
    with pytest.raises(Conflict, match="says something else here"):
        import_prompt(actor=mallory, organisation=elsewhere, spec=other)
    late = {"name": "late", "versions": spec_of(tone).versions[1:], "labels": {"next": 2}}
    spec = spec_of(tone).model_copy(update=late)
    gaps, _added = import_prompt(actor=alice, organisation=tone.organisation, spec=spec)
    assert [each.number for each in spec_of(gaps).versions] == [2]


def test_only_managers_change_prompts_and_strangers_find_none(alice, bob, mallory, acme, tone):
    acts = (
        lambda who: create_prompt(actor=who, organisation=acme, name="new", text="x"),
        lambda who: add_version(actor=who, prompt=tone, text="x"),
        lambda who: move_label(actor=who, prompt=tone, label="a", version="1"),
        lambda who: remove_label(actor=who, prompt=tone, label="production"),
        lambda who: delete_prompt(actor=who, prompt=tone),
        lambda who: import_prompt(actor=who, organisation=acme, spec=spec_of(tone)),
    )
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.MEMBER)
    for act in acts:
        with pytest.raises(NotFound):
            act(mallory)
        with pytest.raises(Forbidden):
            act(bob)
    with pytest.raises(Forbidden):
        create_prompt(actor=alice, organisation=None, name="server", text="x")
    assert Prompt.objects.visible_to(bob).count() == 1
    assert not Prompt.objects.visible_to(mallory).exists()


def test_an_agent_without_prompts_costs_no_query_more(
    alice, tone, converse, django_assert_num_queries
):
    from prompts import fixing, kitpart  # noqa: PLC0415
    from tools_app.workspace import workspace_for  # noqa: PLC0415

    conversation, _scripted = converse(["One."])
    config = conversation.config
    with django_assert_num_queries(0):
        assert not kitpart.part(conversation, config, workspace_for(conversation.uid)).sections
        fixing.fix(conversation, Event(seq=1), UserMessage(content=(Text(text="Hello"),)))
